"""What to do next about a pass's attention: fuse it, then what its regime asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memwall.bound import Bound
from memwall.dtypes import find
from memwall.hardware import Device
from memwall.reports.attention import AttentionReport, attention
from memwall.reports.steps import Step, faster, narrower


def next_steps(report: AttentionReport) -> tuple[Step, ...]:
    """Flash instead of standard; then a smaller cache, or a faster format."""
    standard, flash = report.wholes
    steps = [faster("fusion", "flash instead of standard keeps S and P on chip", standard, flash)]
    if flash.regime == "memory-bound":
        kept = report.formats.kv or report.formats.dtype
        steps.append(narrower("KV compression", "K and V", _choices(report, "kv", kept), flash))
    else:
        choices = _choices(report, "dtype", report.formats.dtype)
        steps.append(narrower("narrower dtype", "operands", choices, flash))
    return tuple(step for step in steps if step)


Choice = tuple[str, Callable[[Device], Bound]]


def _choices(report: AttentionReport, which: str, now: str) -> list[Choice]:
    names = [name for name in ("fp8", "nvfp4") if find(name).bits_per_element < find(now).bits_per_element]
    return [(name, _flash_with(report, which, name)) for name in names]


def _flash_with(report: AttentionReport, which: str, name: str) -> Callable[[Device], Bound]:
    """The pass's flash bound with one format replaced."""
    formats = report.formats._replace(**{which: name})
    shape: dict[str, Any] = dict(report.given)

    def bound_on(device: Device) -> Bound:
        again = attention(
            report.model,
            gpu=device,
            dtype=formats.dtype,
            kv_dtype=formats.kv,
            causal=report.causal,
            **shape,
        )
        return again.flash.whole

    return bound_on
