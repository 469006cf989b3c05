"""One step of advice, and the two kinds that carry a new bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from memwall.bound import Bound
from memwall.errors import MemwallError
from memwall.hardware import Device
from memwall.units import format_bytes, format_flops_per_s, format_seconds

WORTHWHILE = 0.95  # a step that saves less than a twentieth is not worth a line


class Step(NamedTuple):
    """One thing to do."""

    action: str
    """Its kind: fusion, batch, quantisation, coalescing, tiles, registers ..."""
    text: str
    bound_time_s: float | None = None
    """The bound once it is done."""
    at: tuple[str, int] | None = None
    """The dimension and its value where the regime changes."""


def faster(action: str, text: str, now: Bound, then: Bound) -> Step | None:
    """A step that moves fewer bytes, if it gains enough."""
    if then.time_s > WORTHWHILE * now.time_s:
        return None
    saved = format_bytes(now.work.traffic_bytes - then.work.traffic_bytes)
    return Step(action, f"{text}: {saved} less, {format_seconds(then.time_s)}", then.time_s)


def narrower(
    action: str, what: str, choices: Sequence[tuple[str, Callable[[Device], Bound]]], now: Bound
) -> Step | None:
    """The times with narrower formats, those that gain enough; one that the device lacks is left out."""
    found = []
    for name, bound_on in choices:
        try:
            then = bound_on(now.device)
        except MemwallError:
            continue
        if then.time_s <= WORTHWHILE * now.time_s:
            found.append((name, then))
    if not found:
        return None
    best = min(then.time_s for _, then in found)
    return Step(action, "; ".join(_narrowed(name, what, now, then) for name, then in found), best)


def _narrowed(name: str, what: str, now: Bound, then: Bound) -> str:
    """fp8 weights: 0.50x the bytes, 20.03 us."""
    ratio = then.work.traffic_bytes / now.work.traffic_bytes
    rate = f"{format_flops_per_s(then.peak.value)}, " if then.peak and now.regime == "compute-bound" else ""
    regime = "" if then.regime == now.regime else f", then {then.regime}"
    return f"{name} {what}: {rate}{ratio:.2f}x the bytes, {format_seconds(then.time_s)}{regime}"
