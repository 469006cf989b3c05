"""The estimate: what a good kernel takes, what that rests on, and how far off such estimates have been.

`estimate` takes a program of `memwall.ops`, `estimate_kernel` one kernel of it; a pass is the sum of its
kernels (`together`). An estimate below its bound cannot happen: the larger of the two is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from memwall.estimate.chip import Chip
from memwall.estimate.choice import ARCHITECTURE, PHYSICS, choose
from memwall.estimate.constants import Fit
from memwall.estimate.eager import CHAINED, launched
from memwall.estimate.families import FAMILIES, ROWWISE, Run, run_of
from memwall.estimate.library import UNKNOWN, Library, of_rows
from memwall.estimate.roof import roof
from memwall.hardware import Device
from memwall.maths import Count, maximum
from memwall.program import Kernel, Program, Tensor, kernel_work
from memwall.units import significant


class Estimate(NamedTuple):
    """The expected time of a kernel, or of several one after the other."""

    time_s: Count
    bound_time_s: Count
    """The sum of the kernels' own bounds, which the estimate is not below."""
    basis: str
    """physics, architecture default, or calibrated: GPU; of several kernels the weakest."""
    error_p50: float | None
    """Half of such estimates have been closer than this to the measured time, relative."""
    error_p90: float | None
    """Nine in ten have been."""
    parts: tuple[Part, ...]
    kernel: str = ""
    """Whose kernel norms, softmax and elementwise work are estimated for; empty of everything else."""

    @property
    def rests_on(self) -> str:
        """In words: the basis, and how far off such estimates have been."""
        basis = f"{self.basis}{f' ({self.kernel})' if self.kernel else ''}"
        if self.error_p50 is None or self.error_p90 is None:
            return basis
        half, most = (f"{significant(100 * error, 2)} %" for error in (self.error_p50, self.error_p90))
        return f"{basis}: half within {half}, nine in ten within {most}"


class Part(NamedTuple):
    """One kernel of an estimate."""

    kernel: str
    run: Run
    fit: Fit
    time_s: Count


def estimate(
    program: Program,
    device: Device,
    library: Library = UNKNOWN,
    warm: Count = False,
    masked: bool = False,
    own: Sequence[Fit] = (),
) -> Estimate:
    """The expected time of a program, its kernels one after the other.

    Args:
        program: what runs; its dimensions may be arrays, all of one mechanism.
        device: where.
        library: which implementation, as far as it is known.
        warm: whether the operands are in L2 already.
        masked: causal attention unfused: its scores are masked in a pass of their own.
        own: a user's calibration.

    Raises:
        NotAvailable: the device has no peak for the program's format.
    """
    launches = launched([*program.kernels, *_mask_pass(program, masked)], library)
    made = together(
        estimate_kernel(kernel, device, library, follows or warm, own) for kernel, follows in launches
    )
    return made._replace(kernel=_meant(made.parts, library))


def _meant(parts: Sequence[Part], library: Library) -> str:
    """Whose kernel is estimated, said where libraries differ and a name is easily left out."""
    if len(parts) == 1 and parts[0].run.family == "gemm":
        return _meant_product(parts[0], library)
    if any(part.run.family not in ROWWISE for part in parts):
        return ""
    if library.kernel in CHAINED and len(parts) > 1:
        return f"{library.kernel}'s chain of {len(parts)} kernels"
    taken = parts[0].fit.library
    if not library.known:
        return f"{taken}'s kernel, as no library is named" if taken.known else "no library is named"
    if not taken.known or of_rows(library) != taken:
        return f"no rows of {library}: {f'{taken}' if taken.known else 'all libraries together'}"
    return f"{taken}'s kernel"


def _meant_product(part: Part, library: Library) -> str:
    """Whose product stands for one of which nothing is named, where that is not all libraries together."""
    taken = part.fit.library
    if library.known or not taken.known:
        return ""
    constants = part.fit.constants
    quantising = bool(constants.convert or constants.convert_row_clocks)
    return f"{taken}'s kernel{' and its quantising pass' if quantising else ''}, as no library is named"


def estimate_kernel(
    kernel: Kernel,
    device: Device,
    library: Library = UNKNOWN,
    warm: Count = False,
    own: Sequence[Fit] = (),
    follows: bool = False,
    eager: bool = False,
) -> Estimate:
    """The expected time of one kernel; arguments as `estimate`.

    In a pass it `follows` another, and reads what that has just written, from L2 as far as it fits there:
    that quickens norms and their like, not products, whose weights come from memory. The bound stays. A
    compiler has made the norms of a pass, unless it is `eager`.
    """
    run = run_of(kernel)
    family = FAMILIES[run.family]
    if run.family in ROWWISE:
        library = of_rows(library, follows and not eager)
    choice = choose(run.family, run.format, device, library, own)
    chip = Chip.of(device, run.compute)
    bound_s = roof(kernel_work(kernel), device, warm).time_s
    quick = warm if run.family not in ROWWISE or not follows else True
    time_s = maximum(family.time_s(run.shape, chip, choice.fit.constants, quick), bound_s)
    part = Part(kernel.name, run, choice.fit, time_s)
    return Estimate(time_s, bound_s, choice.basis, choice.error_p50, choice.error_p90, (part,))


def estimate_in_pass(
    kernel: Kernel, device: Device, library: Library = UNKNOWN, own: Sequence[Fit] = (), eager: bool = False
) -> Estimate:
    """The expected time of one kernel of a pass."""
    return estimate_kernel(kernel, device, library, own=own, follows=True, eager=eager)


def together(estimates: Iterable[Estimate], counts: Sequence[float] | None = None) -> Estimate:
    """Kernels one after the other, each `counts` times: times add, the weakest basis counts.

    The error is the mean of the kernels' own, weighted by their time: they err together or, at best, less.
    """
    each = list(estimates)
    repeats = counts or [1] * len(each)
    time_s = sum(n * e.time_s for n, e in zip(repeats, each, strict=True))
    bound_s = sum(n * e.bound_time_s for n, e in zip(repeats, each, strict=True))
    basis = weakest(each) or PHYSICS
    parts = tuple(part for e in each for part in e.parts)
    return Estimate(
        time_s, bound_s, basis, _mean(each, repeats, "error_p50"), _mean(each, repeats, "error_p90"), parts
    )


def weakest(estimates: Iterable[Estimate]) -> str | None:
    """What the one that rests on least rests on; None without any."""
    return min((each.basis for each in estimates), key=_strength, default=None)


def _strength(basis: str) -> int:
    return {PHYSICS: 0, ARCHITECTURE: 1}.get(basis, 2)


def _mean(each: Sequence[Estimate], repeats: Sequence[float], field: str) -> float | None:
    """An error weighted by time; of arrays the plain mean."""
    errors = [getattr(e, field) for e in each]
    if any(error is None for error in errors):
        return None
    if any(hasattr(e.time_s, "__len__") for e in each):
        return float(sum(errors) / len(errors))
    total = sum(n * e.time_s for n, e in zip(repeats, each, strict=True))
    return float(sum(n * e.time_s * error for n, e, error in zip(repeats, each, errors, strict=True)) / total)


def _mask_pass(program: Program, masked: bool) -> list[Kernel]:
    """Reading the scores, adding the mask, writing them back."""
    scores = next((t for t in program.intermediates if t.name == "S"), None) if masked else None
    if scores is None:
        return []
    return [Kernel("mask", (scores,), (Tensor("masked S", scores.shape, scores.dtype),))]
