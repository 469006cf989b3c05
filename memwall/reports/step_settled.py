"""All that settles the kernels of a pass: its phase and tokens, formats, layout, and one GPU's part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from memwall.errors import UsageError
from memwall.estimate.engine import Engine, engine_named, engines
from memwall.hardware import Device
from memwall.models.model import Model, Storage
from memwall.models.passes import Tokens
from memwall.models.step.launch import Setting
from memwall.ops.attention import IMPLS
from memwall.parallel.layout import Layout
from memwall.parallel.shard import shard
from memwall.reports.case import Formats
from memwall.reports.step_layout import layout_of, part_of
from memwall.reports.step_setting import fastest, formats_of, phase_of, setting_of, tokens_of


class Settled(NamedTuple):
    """What a pass is asked for, made definite."""

    phase: str
    tokens: Tokens
    """Of all GPUs together."""
    source: int
    """Tokens of the encoder; 0 without one."""
    formats: Formats
    storage: Storage
    layout: Layout
    part: Model
    """What one GPU runs of the model."""
    setting: Setting
    """Of one GPU, in the form of attention that its device runs fastest."""
    engine: Engine | None
    """Whose step of decoding it is, where one is named."""


def settled(model: Model, device: Device, asked: Mapping[str, Any]) -> Settled:
    """The pass that arguments of `memwall.step` mean; its batch and lengths may be of any kind of number.

    Raises:
        UsageError: an unknown name, a shape that cannot be, or a layout that the model does not have.
        NotAvailable: the device has no peak for that format, or the model has no such phase.
    """
    impl, eager, merged = asked.get("impl", "flash"), asked.get("eager", False), asked.get("merged", False)
    check_impl(impl)
    seq, context = asked.get("seq"), asked.get("context")
    phase = phase_of(model, asked.get("phase"), seq, context)
    tokens, source = tokens_of(model, phase, asked["batch"], seq, context, asked.get("source_tokens"))
    engine, computed = _engine(asked.get("engine"), model, device, phase, asked.get("dtype"))
    formats, storage = formats_of(model, device, computed, asked.get("weight_dtype"), asked.get("kv_dtype"))
    layout = layout_of(model, device, asked)
    part = shard(model, layout)
    setting = setting_of(device, formats, storage, tokens, phase)._replace(source=source, impl=impl)
    setting = part_of(setting, layout, tokens)._replace(eager=eager, merged=merged or not eager)
    chosen = fastest(part, setting, device)
    return Settled(phase, tokens, source, formats, storage, layout, part, chosen, engine)


def _engine(
    name: str | None, model: Model, device: Device, phase: str, dtype: str | None
) -> tuple[Engine | None, str | None]:
    """Whose step of decoding it is, and what it computes in where neither user nor checkpoint says.

    Raises:
        UsageError: it does not run on such a device.
    """
    engine = engine_named(name)
    if engine and not engine.runs_on(device):
        named = ", ".join(each.name for each in engines() if each.runs_on(device))
        raise UsageError(f"--engine {engine.name} does not run on {device.title}", f"Those that do: {named}")
    own = engine.dtype if engine and not model.storage else None
    return engine if phase == "decode" else None, dtype or own


def check_impl(impl: str) -> None:
    """Whether attention is implemented so.

    Raises:
        UsageError: it is not.
    """
    if impl not in IMPLS:
        raise UsageError(f"attention has no implementation '{impl}'", f"Choose from: {', '.join(IMPLS)}")
