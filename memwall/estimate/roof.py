"""The bound of work whose amounts may be arrays, caches warm or cold."""

from __future__ import annotations

from typing import NamedTuple

from memwall.bound import Term, terms_of
from memwall.constant import Constant
from memwall.estimate.chip import L2_PORT_BYTES
from memwall.hardware import Device
from memwall.maths import Count, maximum, where
from memwall.program import Work


class Roof(NamedTuple):
    """The least time, and what sets it."""

    time_s: Count
    limited_by: Count
    """A term's name; an array of them for arrays."""


def roof(work: Work, device: Device, warm: Count = False) -> Roof:
    """The largest term of work on a device.

    Args:
        work: bytes and operations; arrays are taken element by element.
        device: peaks and bandwidth.
        warm: whether everything is in L2 already; then the L2's port bounds the bytes, not the memory.

    Raises:
        NotAvailable: the device has no peak for the work's format.
    """
    hbm, *others = terms_of(work, device)
    l2 = _l2_term(work, device)
    memory_s = where(warm, l2.time_s if l2 else 0 * hbm.time_s, hbm.time_s)
    limited_by = where(warm, "l2", "hbm")
    time_s = memory_s
    for engine, engine_s in _by_engine(others).items():
        limited_by = where(engine_s > time_s, engine, limited_by)
        time_s = maximum(time_s, engine_s)
    return Roof(time_s, limited_by)


def _by_engine(terms: list[Term]) -> dict[str, Count]:
    """The time of each engine: terms that share one add up."""
    times: dict[str, Count] = {}
    for term in terms:
        times[term.limit] = times.get(term.limit, 0) + term.time_s
    return times


def _l2_term(work: Work, device: Device) -> Term | None:
    clock = device.clock
    if clock is None or not device.units:
        return None
    rate = device.units * L2_PORT_BYTES * clock.value
    constant = Constant("l2.port", rate, "derived", "units x 64 B x maximum clock")
    return Term("l2", work.traffic_bytes, rate, (constant,))
