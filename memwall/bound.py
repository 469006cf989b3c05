"""The roofline: the least time that a device needs for a piece of work. Read this file first.

    time = max(bytes / bandwidth, matrix FLOPs / matrix peak, vector FLOPs / vector peak, ...)

Each term assumes that everything else costs nothing and overlaps perfectly, so no real kernel is
faster than the largest: it is a bound, made of physics and published or driver-reported peaks, and
is never calibrated. Comparing the terms' times, not an intensity with a ridge, makes work
without FLOPs or without bytes ordinary; with one engine and one memory level the two agree.

Source: Williams, Waterman and Patterson 2009, CACM 52(4), "Roofline".
"""

from __future__ import annotations

from typing import NamedTuple

from memwall.constant import Constant
from memwall.hardware import Device
from memwall.program import Program, Work, kernel_work

REGIMES = {
    "hbm": "memory-bound",
    "l2": "memory-bound",
    "smem": "memory-bound",
    "matrix": "compute-bound",
    "vector": "compute-bound",
    "special": "compute-bound",
    "link": "link-bound",
    "launch": "latency-bound",
}

# An exponential can also be computed on the vector lanes, by range reduction and a cubic, and fast
# kernels do (FlashAttention-4 on Blackwell): so the special-function unit alone is no bound. The
# cheapest form counted here is 6 lane instructions (round, subtract, three multiply-adds, exponent
# insert), which at two FLOPs an instruction is 12 FLOPs of vector peak.
EMULATED_EXP_FLOPS = 12


class Term(NamedTuple):
    """One thing that takes time."""

    limit: str
    """hbm, matrix, vector or special."""
    amount: float
    """Bytes, FLOPs or operations."""
    rate: float
    """The amount that the device manages in a second."""
    rests_on: tuple[Constant, ...]

    @property
    def time_s(self) -> float:
        """Amount / rate [s]."""
        return self.amount / self.rate


class Bound(NamedTuple):
    """The bound of a piece of work on a device, with every term kept."""

    work: Work
    device: Device
    terms: tuple[Term, ...]
    """Largest time first."""
    unknown: tuple[str, ...]
    """Engines that the work uses and whose rate is not published: left out, so the bound still holds."""

    @property
    def limiting(self) -> Term:
        """The term that takes longest."""
        return self.terms[0]

    @property
    def time_s(self) -> float:
        """The least time that the work can take [s]."""
        return self.limiting.time_s

    @property
    def limited_by(self) -> str:
        """hbm, matrix, vector or special."""
        return self.limiting.limit

    @property
    def regime(self) -> str:
        """memory-bound or compute-bound."""
        return REGIMES[self.limited_by]

    @property
    def arithmetic_intensity(self) -> float | None:
        """FLOPs a byte of compulsory traffic; None without bytes."""
        traffic = self.work.traffic_bytes
        return float(self.work.flops / traffic) if traffic else None

    @property
    def peak(self) -> Constant | None:
        """The peak of the engine that does the work's FLOPs [FLOP/s]; None without FLOPs."""
        if self.work.matrix_flops:
            main = max(self.work.matrix_flops, key=lambda dtype: self.work.matrix_flops[dtype])
            return self.device.peak(main).rate
        return self.device.vector_peak if self.work.vector_flops else None

    @property
    def ridge_point(self) -> float | None:
        """Peak / bandwidth: the intensity at which compute and memory take equally long."""
        return self.peak.value / self.device.bandwidth.value if self.peak else None

    @property
    def attainable_flops_per_s(self) -> float:
        """Flops / time: the highest rate that the roofs allow [FLOP/s]."""
        return float(self.work.flops / self.time_s)

    @property
    def rests_on(self) -> tuple[Constant, ...]:
        """The constants behind the time and the ridge: change one and a printed number moves."""
        constants = [*self.limiting.rests_on, self.device.bandwidth]
        if self.peak:
            constants.append(self.peak)
        return tuple({constant.key: constant for constant in constants}.values())

    @property
    def leaves(self) -> tuple[Constant, ...]:
        """The numbers of the device's file that those constants come down to."""
        return _leaves(self.rests_on)

    def terms_with(self, key: str) -> tuple[str, ...]:
        """The terms that a number of the device's file enters."""
        return tuple(
            term.limit for term in self.terms if key in {leaf.key for leaf in _leaves(term.rests_on)}
        )


def bound(work: Work, device: Device) -> Bound:
    """The roofline bound of work on a device.

    Args:
        work: bytes through memory and operations by engine.
        device: peaks and bandwidth.

    Raises:
        UnsupportedDtype, NotPublished: the device has no peak for the work's format.
    """
    terms = terms_of(work, device)
    vector = device.vector_peak
    unknown = [] if vector or not work.vector_flops else ["vector"]
    if work.special_ops and not (vector and device.special_rate):
        unknown.append("special")
    busy = _merged([term for term in terms if term.amount])
    busy.sort(key=lambda term: term.time_s, reverse=True)
    return Bound(work, device, tuple(busy), tuple(unknown))


def terms_of(work: Work, device: Device) -> list[Term]:
    """What takes time, the main memory first; the work may be of arrays.

    Raises:
        UnsupportedDtype, NotPublished: the device has no peak for the work's format.
    """
    terms = [Term("hbm", work.traffic_bytes, device.bandwidth.value, (device.bandwidth,))]
    terms += _matrix_terms(work, device)
    vector = device.vector_peak
    if vector:
        terms.append(Term("vector", work.vector_flops, vector.value, (vector,)))
    return terms + _special_term(work, device, terms)


def kernel_bounds(program: Program, device: Device) -> tuple[tuple[str, Bound], ...]:
    """Each kernel's own bound; their sum is the program's if nothing overlaps."""
    return tuple((kernel.name, bound(kernel_work(kernel), device)) for kernel in program.kernels)


def _leaves(constants: tuple[Constant, ...]) -> tuple[Constant, ...]:
    return tuple({leaf.key: leaf for constant in constants for leaf in constant.leaves}.values())


def _matrix_terms(work: Work, device: Device) -> list[Term]:
    terms = []
    for dtype, flops in work.matrix_flops.items():
        engine, peak = device.peak(dtype)
        terms.append(Term(engine, flops, peak.value, (peak,)))
    return terms


def _special_term(work: Work, device: Device, others: list[Term]) -> list[Term]:
    """Special functions on their own unit and, emulated, on the lanes beside the lanes' other work.

    With x emulated:  special - x <= s t   and   lanes + c x <= v t,  so
        t >= (lanes + c special) / (v + c s)
    """
    vector, special = device.vector_peak, device.special_rate
    none = isinstance(work.special_ops, int) and work.special_ops == 0
    if none or not (vector and special):
        return []
    lanes = vector.value * sum(term.time_s for term in others if term.limit == "vector")
    amount = work.special_ops + lanes / EMULATED_EXP_FLOPS
    rate = special.value + vector.value / EMULATED_EXP_FLOPS
    return [Term("special", amount, rate, (special, vector))]


def _merged(terms: list[Term]) -> list[Term]:
    """One term an engine: work that shares an engine takes its times together."""
    merged: dict[str, Term] = {}
    for term in terms:
        before = merged.get(term.limit)
        if before:
            time_s = before.time_s + term.time_s
            amount = before.amount + term.amount
            term = Term(term.limit, amount, amount / time_s, before.rests_on + term.rests_on)
        merged[term.limit] = term
    return list(merged.values())
