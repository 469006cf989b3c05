"""The report on a pass: its kernels with their bounds, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from memwall.bound import Bound
from memwall.errors import NotAvailable
from memwall.estimate.engine import Engine
from memwall.estimate.estimate import Estimate, together
from memwall.hardware import Device
from memwall.maths import Count
from memwall.memory.budget import total_memory
from memwall.models.model import Model, Storage
from memwall.models.passes import Tokens
from memwall.models.step.launch import Launch, Setting
from memwall.parallel.memory import cache_on_a_gpu, weights_on_a_gpu
from memwall.parallel.stages import head_share
from memwall.program import Work
from memwall.reports.case import Formats
from memwall.reports.notebook import Report
from memwall.reports.step_layout import Spread, engine_s

if TYPE_CHECKING:
    from memwall.reports.steps import Step


class Line(NamedTuple):
    """A kernel of the pass with its bound."""

    launch: Launch
    bound: Bound
    """Of one launch."""
    estimate: Estimate | None = None
    """Of one launch; None when only the bound is wanted."""

    @property
    def time_s(self) -> float:
        """The least time of all its repeats, one after the other [s]."""
        return self.launch.repeats * self.bound.time_s

    @property
    def work(self) -> Work:
        """Of all its repeats."""
        return self.bound.work.times(self.launch.repeats)


@dataclass(frozen=True, slots=True, repr=False)
class StepReport(Report):
    """A pass on one device, or on several of one kind, at the bound; work and bytes are one GPU's."""

    device: Device
    model: Model
    phase: str
    tokens: Tokens
    source: int
    """Tokens of the encoder; 0 without one."""
    formats: Formats
    storage: Storage
    setting: Setting
    lines: tuple[Line, ...]
    whole: Bound
    """All kernels together, everything overlapping."""
    other_traffic_bytes: int
    """Of the same pass eager, or of an eager one fused."""
    asked: Mapping[str, Any]
    """The arguments, to ask again with something changed."""
    defaults: tuple[str, ...]
    spread: Spread
    """How it is laid out on several GPUs, and what they exchange."""
    engine: Engine | None = None
    """Whose step of decoding is estimated; None: a pass compiled into a CUDA graph."""

    @property
    def bounds(self) -> list[Bound]:
        """The pass's bound and its kernels'."""
        return [self.whole, *(line.bound for line in self.lines)]

    @property
    def advice(self) -> tuple[Step, ...]:
        """What to do next, in order, each with its bound."""
        from memwall.reports.step_advice import next_steps

        return next_steps(self)

    @property
    def kernels_bound_time_s(self) -> float:
        """The sum of the kernels' and the exchanges' bounds [s]: one after the other."""
        return self.spread.stretch * (sum(line.time_s for line in self.lines) + self.spread.bound_time_s)

    @property
    def bound_time_s(self) -> float:
        """The least time of the pass [s]; of a pipeline, of all its microbatches through all stages."""
        return self.spread.stretch * self.whole.time_s

    @property
    def kernels_estimate(self) -> Estimate | None:
        """Of one microbatch's kernels, one after the other; None when only the bound is wanted."""
        known = [(line.launch.repeats, line.estimate) for line in self.lines]
        each = [estimate for _, estimate in known if estimate is not None]
        return together(each, [repeats for repeats, _ in known]) if len(each) == len(known) else None

    @property
    def estimate(self) -> Estimate | None:
        """What the pass takes: its kernels one after the other, and what passes over the links."""
        kernels = self.kernels_estimate
        if kernels is None:
            return None
        between_s = self.spread.estimate_time_s
        known_s = self.spread.bound_time_s if between_s is None else between_s
        time_s = self.spread.beside_host(self.expected_stretch * (kernels.time_s + known_s))
        found = kernels._replace(time_s=time_s, bound_time_s=self.kernels_bound_time_s)
        if self.engine is None:
            return found
        return found._replace(
            time_s=time_s + self.engine_time_s,
            basis=self.engine.basis(self.device),
            error_p50=self.engine.on(self.device).error_p50,
            error_p90=self.engine.on(self.device).error_p90,
        )

    @property
    def expected_stretch(self) -> Count:
        """The estimate of the pass over that of one microbatch through all stages."""
        known = [(line.launch, line.estimate.time_s) for line in self.lines if line.estimate is not None]
        return self.spread.expected_stretch(self.model.layer_count, head_share(*zip(*known, strict=True)))

    @property
    def expected_bubble(self) -> Count | None:
        """Part of the estimate in which a stage waits, for the slowest one too; None without an estimate."""
        known = all(line.estimate is not None for line in self.lines)
        return self.spread.waits(self.expected_stretch) if known else None

    @property
    def engine_time_s(self) -> Count:
        """What the engine adds to kernels and exchanges: host, launches, waiting for each other [s]."""
        if self.engine is None:
            return 0.0
        return engine_s(self.engine, self.model, self.device, self.spread, self.setting.tokens.batch)

    def share(self, line: Line) -> float:
        """A kernel's part of the pass, one after the other."""
        return self.spread.stretch * line.time_s / self.kernels_bound_time_s

    @property
    def new_tokens(self) -> int:
        """Tokens that the pass reads, or adds."""
        return self.tokens.batch * self._each

    @property
    def tokens_per_s(self) -> float:
        """Tokens of the whole batch a second, at the bound: of the prompt, or generated."""
        return self.new_tokens / self.bound_time_s

    @property
    def tokens_per_s_per_user(self) -> float:
        """Those of one sequence."""
        return self._each / self.bound_time_s

    @property
    def _each(self) -> int:
        return self.source if self.source and self.phase == "prefill" else self.tokens.seq_q

    @property
    def mbu(self) -> float:
        """Memory bandwidth utilisation: the pass's bytes / bandwidth, over the bound time."""
        busy = self.whole.work.traffic_bytes / self.device.bandwidth.value
        return float(busy / self.whole.time_s * (1 - self.spread.bubble))

    @property
    def mfu(self) -> float:
        """Model FLOPs utilisation: matrix FLOPs / their formats' peaks, over the bound time."""
        flops = self.whole.work.matrix_flops
        busy = sum(count / self.device.peak(dtype).rate.value for dtype, count in flops.items())
        return float(busy / self.whole.time_s * (1 - self.spread.bubble))

    @property
    def saved_bytes(self) -> int:
        """What fusion saves, of an eager pass's traffic."""
        return abs(self.other_traffic_bytes - whole_bytes(self.whole.work.traffic_bytes))

    def read_bytes(self, *roles: str) -> int:
        """What the pass reads of tensors of those roles; tables that are looked up apart."""
        return self._bytes(roles, "reads")

    def written_bytes(self, *roles: str) -> int:
        """What the pass writes of tensors of those roles."""
        return self._bytes(roles, "writes")

    def _bytes(self, roles: Sequence[str], side: str) -> int:
        found = 0.0
        for launch in (line.launch for line in self.lines):
            for tensor in getattr(launch.kernel, side):
                looked_up = launch.kind == "embedding" and tensor.role == "weight"
                if tensor.role in roles and not looked_up and tensor.name not in _ANGLES:
                    found += launch.repeats * tensor.bytes
        return whole_bytes(found)

    @property
    def weight_bytes(self) -> int:
        """Weights that the pass reads: the experts that it meets, and of the embedding nothing."""
        return self.read_bytes("weight", "parameter")

    @property
    def activation_bytes(self) -> int:
        """Everything that passes between kernels, read and written, and what is looked up."""
        streamed = self.weight_bytes + self.read_bytes("cache", "state")
        return whole_bytes(self.whole.work.traffic_bytes) - streamed - self.written_bytes("cache", "state")

    @property
    def resident_weight_bytes(self) -> int:
        """Weights that have to be in memory: all of them; of a layout, those of the GPU with most."""
        return weights_on_a_gpu(self.model, self.storage, self.spread.layout)

    @property
    def resident_cache_bytes(self) -> int:
        """Cache and states of the batch once the pass is done, on the GPU with most."""
        kv, layout = self.setting.plain.kv, self.spread.layout
        return cache_on_a_gpu(self.model, self.length, self.tokens.batch, layout, kv, self.source)

    @property
    def length(self) -> int:
        """Tokens of a sequence in the cache once the pass is done; with an encoder, of the decoder."""
        return 1 if self.source and self.phase == "prefill" else self.tokens.seq_kv

    @property
    def capacity_bytes(self) -> int | None:
        """The device's memory as programs see it; None if its file does not say."""
        try:
            return int(total_memory(self.device).value)
        except NotAvailable:
            return None

    @property
    def fits(self) -> bool | None:
        """Whether weights and cache are within that memory; None if it is not known."""
        capacity = self.capacity_bytes
        return None if capacity is None else self.resident_bytes <= capacity

    @property
    def resident_bytes(self) -> int:
        """Weights and cache that have to be in a GPU's memory; activations are not counted."""
        return self.resident_weight_bytes + self.resident_cache_bytes - self.spread.offloaded_bytes


_ANGLES = ("cos, sin", "cos", "sin")
"""Parameters that no checkpoint holds."""


def whole_bytes(count: float) -> int:
    """A count of bytes, or FLOPs; an expected number of experts makes it a fraction."""
    return count if isinstance(count, int) else round(count)
