"""The time of passes over and over again, each distinct one worked out once: for plans, serving and costs.

time = estimates of the kernels, one after the other + exchanges, as an engine does them
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import NamedTuple

from memwall.errors import UsageError
from memwall.estimate.constants import Fit
from memwall.estimate.estimate import Estimate, estimate_in_pass
from memwall.estimate.library import UNKNOWN, Library
from memwall.hardware import Device
from memwall.memory.activations import SAMPLED_SEQUENCES, TOKENS_A_PASS, activation_bytes
from memwall.memory.budget import total_memory
from memwall.models.model import Model, Storage
from memwall.models.passes import Tokens
from memwall.models.step.launch import Setting
from memwall.models.step.whole import kernels
from memwall.parallel.layout import Layout
from memwall.parallel.memory import cache_on_a_gpu, weights_on_a_gpu
from memwall.parallel.shard import shard
from memwall.parallel.stages import head_share
from memwall.program import Kernel
from memwall.reports.case import Formats
from memwall.reports.step_layout import Spread, exchanged, part_of
from memwall.reports.step_setting import fastest, formats_of, setting_of

BASIS = "estimates of good kernels, one after the other, and of what passes over the links"


@lru_cache(maxsize=65_536)
def kernel_estimate(
    kernel: Kernel,
    device: Device,
    library: Library = UNKNOWN,
    own: tuple[Fit, ...] = (),
    eager: bool = False,
) -> Estimate:
    """The expected time of one kernel of a pass; equal kernels of many passes are worked out once."""
    return estimate_in_pass(kernel, device, library, own, eager)


class Subject(NamedTuple):
    """What is served where."""

    model: Model
    device: Device
    storage: Storage
    setting: Setting
    """Its formats; tokens are set pass by pass."""


def subject(
    model: Model,
    device: Device,
    dtype: str | None = None,
    weight_dtype: str | None = None,
    kv_dtype: str | None = None,
) -> tuple[Subject, Formats]:
    """A model on a device in the formats asked for; without any, as its checkpoint computes.

    Raises:
        UsageError: it generates nothing, or has an encoder that must read first.
        NotAvailable: the device has no such engine.
    """
    if not model.decodes or model.encoder:
        raise UsageError(f"{model.title} is not a decoder: this is for those", "Try memwall step")
    formats, storage = formats_of(model, device, dtype, weight_dtype, kv_dtype)
    setting = setting_of(device, formats, storage, Tokens(1, 1, 1), "decode")
    return Subject(model, device, storage, setting), formats


class PassTime(NamedTuple):
    """A pass of a layout."""

    kernels_s: float
    """Of one microbatch through all stages, one after the other."""
    exchanges_s: float
    stretch: float
    """Over one microbatch, for all of them."""

    @property
    def time_s(self) -> float:
        """Of the pass [s]."""
        return self.stretch * (self.kernels_s + self.exchanges_s)


class Passes:
    """Times of a subject's passes."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.total_bytes = int(total_memory(subject.device).value)
        self._kernels_s = lru_cache(maxsize=None)(self._measure)
        self._shard = lru_cache(maxsize=None)(partial(shard, subject.model))
        self._forms: dict[bool, bool] = {}
        self._resident = lru_cache(maxsize=None)(self._hold)

    @property
    def basis(self) -> str:
        """What the times are made of."""
        return BASIS

    def time(self, layout: Layout, tokens: Tokens, prefill: bool) -> PassTime:
        """One pass.

        Args:
            layout: how the model is laid out.
            tokens: of all GPUs together.
            prefill: whether the prompt is read.

        Raises:
            UsageError, NotPublished: the layout cannot stand on such GPUs.
        """
        s = self.subject
        setting = part_of(s.setting._replace(prefill=prefill), layout, tokens)
        passed = exchanged(s.model, s.device, layout, setting)
        spread = Spread(layout, passed, tokens.batch, not prefill)
        known = spread.estimate_time_s
        between_s = spread.bound_time_s if known is None else known
        alike = layout._replace(pp=1, dp=layout.dp if layout.ep > 1 else 1)  # the same kernels
        kernels_s, share = self._kernels_s(alike, setting)
        return PassTime(kernels_s, between_s, float(spread.expected_stretch(s.model.layer_count, share)))

    def needed_bytes(self, layout: Layout, batch: int, length: int) -> int:
        """Weights, cache and room for activations on the GPU with most [B]."""
        s = self.subject
        held = cache_on_a_gpu(s.model, length, batch, layout, s.setting.plain.kv)
        return self._resident(layout) + held

    def _hold(self, layout: Layout) -> int:
        s = self.subject
        room = activation_bytes(s.model, TOKENS_A_PASS, SAMPLED_SEQUENCES, layout.tp)
        return weights_on_a_gpu(s.model, s.storage, layout) + room

    def _measure(self, layout: Layout, setting: Setting) -> tuple[float, float]:
        """Of all kernels [s], and the part of it that is the head's."""
        s = self.subject
        part = self._shard(layout)
        chosen = setting._replace(absorbed=self._absorbed(layout, setting))
        launches = kernels(part, chosen)
        times = [float(kernel_estimate(each.kernel, s.device).time_s) for each in launches]
        whole_s = sum(each.repeats * time_s for each, time_s in zip(launches, times, strict=True))
        return whole_s, float(head_share(launches, times))

    def _absorbed(self, layout: Layout, setting: Setting) -> bool:
        """The form of latent attention: one for prefills and one for decoding, found once."""
        if setting.prefill not in self._forms:
            chosen = fastest(self._shard(layout), setting, self.subject.device)
            self._forms[setting.prefill] = chosen.absorbed
        return self._forms[setting.prefill]
