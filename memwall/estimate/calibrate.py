"""Calibrations from measured launches: which fits there are, and how they fare on what they have not seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy

from memwall.estimate.constants import GENERAL
from memwall.estimate.families import ROWWISE
from memwall.estimate.fit import Fitted, errors_of, fit, refit
from memwall.estimate.library import EAGER, HOST_TIMED, UNKNOWN, Library
from memwall.estimate.plans import plan_of
from memwall.estimate.samples import Array, Sample, rows_in

T = TypeVar("T")
LEAST_ROWS = 10
"""Fewer launches of a library are left to the fit of all."""
LEAST_POOLED = 8
"""Of norms, softmax and elementwise work, of all devices together: of fewer launches nothing is fitted."""
OTHER_LANES = ("cdna", "xe2")
"""Generations whose units are not NVIDIA's: constants in clocks of a unit do not carry to them."""

SHAPES, GPU_OUT, GENERATION_OUT, LIBRARY_OUT = (
    "shapes held out",
    "GPU held out",
    "generation held out",
    "library held out",
)


class Entry(NamedTuple):
    """One fit of a calibration."""

    family: str
    format: str
    library: Library
    gpus: tuple[str, ...]
    fitted: Fitted
    generations: tuple[str, ...] = ()
    """Of its GPUs, where they are of several."""


class HeldOut(NamedTuple):
    """Errors on launches that took no part in the fit."""

    scheme: str
    family: str
    format: str
    gpu: str
    library: Library
    errors: Array


Starts = Mapping[tuple[str, str, str, Library], Any]
"""Constants by generation (or `general`), family, format and library."""


def calibrate(samples: Sequence[Sample]) -> list[Entry]:
    """The fits of a device or a generation: one of all libraries and one of each, by mechanism.

    Args:
        samples: measured launches of devices that share constants.
    """
    entries = []
    for (family, number), group in by(samples, lambda s: (s.family, s.format)).items():
        start = None
        for library, members in _fits_of(group):
            gpus = tuple(sorted({sample.gpu for sample in members}))
            fitted = _fit(members, None if library.kernel == HOST_TIMED else start)
            start = start or fitted.constants
            generations = tuple(sorted({sample.generation for sample in members}))
            entries.append(Entry(family, number, library, gpus, fitted, generations))
    return entries


def _fit(members: Sequence[Sample], start: Any) -> Fitted:
    """A fit; of next to no rows of norms and their like the round numbers, as they are."""
    if members[0].family not in ROWWISE or rows_in(members) >= LEAST_POOLED:
        return fit(members, start)
    constants = start or plan_of(members[0].family, members[0].format).start
    return Fitted(constants, (), rows_in(members), errors_of(members, constants))


def calibration_of(sample: Sample) -> str:
    """The shipped calibration that a launch is fitted in.

    Norms, softmax and elementwise work have constants in clocks of a unit, which are of the implementation:
    all generations are fitted together. Everything else is fitted by generation.
    """
    pooled = sample.family in ROWWISE and sample.generation not in OTHER_LANES
    return GENERAL if pooled else sample.generation


def _fits_of(group: Sequence[Sample]) -> Iterator[tuple[Library, Sequence[Sample]]]:
    """The sets of launches that are fitted together, and the library that each stands for."""
    libraries = by(group, lambda s: s.library)
    if len(libraries) == 1:
        yield from libraries.items()
        return
    pooled = [sample for sample in group if sample.library.kernel not in (HOST_TIMED, EAGER)]
    if pooled:
        yield UNKNOWN, pooled
    for library, members in libraries.items():
        least = LEAST_POOLED if members[0].family in ROWWISE else LEAST_ROWS
        if library.known and rows_in(members) >= least:
            yield library, members


def held_out(samples: Sequence[Sample], starts: Starts) -> list[HeldOut]:
    """Every mechanism and format with each GPU, each generation and each library left out in turn.

    Args:
        samples: measured launches.
        starts: the constants of the whole, whose choices are kept, by what they were fitted to.
    """
    found: list[HeldOut] = []
    for (name, family, number), group in by(
        samples, lambda s: (calibration_of(s), s.family, s.format)
    ).items():
        place = (name, family, number)
        found += _leaving(group, lambda s: s.gpu, GPU_OUT, place, starts)
        found += _leaving(group, lambda s: s.library, LIBRARY_OUT, place, starts)
    for (family, number), group in by(samples, lambda s: (s.family, s.format)).items():
        place = (GENERAL, family, number)
        found += _leaving(group, lambda s: s.generation, GENERATION_OUT, place, starts)
    return found


def _leaving(
    group: Sequence[Sample],
    key: Callable[[Sample], Any],
    scheme: str,
    place: tuple[str, str, str],
    starts: Starts,
) -> list[HeldOut]:
    """Each part left out, and predicted by the fit of its library on the rest, else by that of all."""
    parts = by(group, key)
    found = []
    for name, left in parts.items() if len(parts) > 1 else ():
        if scheme == GPU_OUT and _alone(left[0], group):
            continue
        rest = [sample for sample in group if key(sample) != name and _serving(sample, place[0])]
        for library, members in by(left, lambda s: s.library).items():
            same = [sample for sample in rest if sample.library == library and library.known]
            alike = [s for s in rest if (s.library.kernel == EAGER) == (library.kernel == EAGER)]
            seen = same if rows_in(same) >= LEAST_ROWS else alike
            start = _start(place, library if seen is same else UNKNOWN, starts)
            if library.kernel == HOST_TIMED or rows_in(alike) < LEAST_ROWS or start is None:
                continue
            new = not same or (left[0].family in ROWWISE and seen is not same)
            if scheme != LIBRARY_OUT and library.known and new:
                continue  # nothing is left of its library: that is another question, LIBRARY_OUT's
            constants = refit(seen, start)
            found += [
                HeldOut(scheme, s.family, s.format, s.gpu, s.library, errors_of([_blind(s, rest)], constants))
                for s in members
            ]
    return found


def _alone(sample: Sample, group: Sequence[Sample]) -> bool:
    """Whether its GPU is the only one of its generation: without it that generation is out."""
    return {s.gpu for s in group if s.generation == sample.generation} == {sample.gpu}


def _serving(sample: Sample, name: str) -> bool:
    """Whether a launch may take part in a shipped calibration's fit."""
    if sample.library.kernel == HOST_TIMED:
        return False
    return not (name == GENERAL and sample.family in ROWWISE and sample.generation in OTHER_LANES)


def _blind(sample: Sample, rest: Sequence[Sample]) -> Sample:
    """The launch on a chip of which nothing is known that was read off its own generation's rows."""
    if sample.family not in ROWWISE or any(other.generation == sample.generation for other in rest):
        return sample
    return sample._replace(chip=sample.chip._replace(stream_ratio=1.0))


def _start(place: tuple[str, str, str], library: Library, starts: Starts) -> Any:
    """The constants of a library there, else of all libraries, else of the only one."""
    exact = starts.get((*place, library), starts.get((*place, UNKNOWN)))
    return exact or next((value for key, value in starts.items() if key[:3] == place), None)


def by(samples: Iterable[T], key: Callable[[T], Any]) -> dict[Any, list[T]]:
    """Samples, or what else, by a key, in the order in which the keys appear."""
    groups: dict[Any, list[T]] = {}
    for sample in samples:
        groups.setdefault(key(sample), []).append(sample)
    return groups


class Spread(NamedTuple):
    """How errors are spread: of |predicted / measured - 1|, and of its sign."""

    rows: int
    median: float
    mean: float
    p90: float
    within_25: float
    """The share of launches within 25 %."""
    bias: float
    """The geometric mean of predicted / measured."""


NEAR = 0.25


def spread(errors: Array) -> Spread:
    """The summary of errors."""
    off = numpy.abs(errors)
    return Spread(
        len(errors),
        float(numpy.median(off)),
        float(off.mean()),
        float(numpy.quantile(off, 0.9)),
        float((off <= NEAR).mean()),
        float(numpy.exp(numpy.log1p(errors).mean())),
    )
