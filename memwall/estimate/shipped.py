"""The calibrations that memwall ships, made anew from the rows that it ships."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy

from memwall.estimate.calibrate import (
    GENERATION_OUT,
    GPU_OUT,
    LIBRARY_OUT,
    SHAPES,
    Entry,
    HeldOut,
    Spread,
    by,
    calibrate,
    calibration_of,
    held_out,
    spread,
)
from memwall.estimate.choice import ARCHITECTURE, LIBRARY_UNKNOWN, PHYSICS
from memwall.estimate.constants import GENERAL
from memwall.estimate.families import ROWWISE
from memwall.estimate.fit import fit
from memwall.estimate.library import HOST_TIMED, UNKNOWN
from memwall.estimate.samples import Sample

OWN = ("h200",)
"""Devices with a calibration of their own beside their generation's: caches cold, graphs replayed."""

BASES = {GPU_OUT: ARCHITECTURE, GENERATION_OUT: PHYSICS, LIBRARY_OUT: LIBRARY_UNKNOWN}
"""What an estimate rests on when a part of the data has been left out so."""


class Calibration(NamedTuple):
    """One file of fits."""

    name: str
    gpus: tuple[str, ...]
    entries: Sequence[Entry]


class Band(NamedTuple):
    """How far off a family's estimates have been on one basis."""

    family: str
    basis: str
    spread: Spread


class Shipped(NamedTuple):
    """Everything that is made from the shipped rows."""

    calibrations: Sequence[Calibration]
    held_out: Sequence[HeldOut]
    bands: Sequence[Band]


def rebuild(samples: Sequence[Sample]) -> Shipped:
    """Every calibration, and the errors with parts of the data held out; takes minutes of all cores."""
    generations = by(samples, calibration_of)
    pooled = generations.pop(GENERAL)
    owned = {name: [s for s in _owned(samples, name) if calibration_of(s) != GENERAL] for name in OWN}
    named = {**generations, **owned}
    families = list(by(samples, lambda s: (s.family, s.format)).values())
    with ProcessPoolExecutor() as pool:
        made = pool.map(_calibration, named, named.values())
        general = pool.map(_general, families)
        every = pool.map(calibrate, by(pooled, lambda s: s.family).values())
        entries = [entry for each in (*general, *every) for entry in each]
        calibrations = [*made, Calibration(GENERAL, (), entries)]
        starts = {
            (each.name, entry.family, entry.format, entry.library): entry.fitted.constants
            for each in calibrations
            for entry in each.entries
        }
        left = pool.map(held_out, families, [starts] * len(families))
        out = [each for found in left for each in found]
    return Shipped(calibrations, [*_shapes_out(calibrations), *out], bands_of(out))


def _owned(samples: Sequence[Sample], gpu: str) -> list[Sample]:
    """A device's launches of the kinds that others of its generation have as well: else its fit is theirs."""
    own = [sample for sample in samples if sample.gpu == gpu]
    generations = {sample.generation for sample in own}
    others = [sample for sample in samples if sample.gpu != gpu and sample.generation in generations]
    shared = {(sample.family, sample.format) for sample in others}
    return [sample for sample in own if (sample.family, sample.format) in shared]


def _shapes_out(calibrations: Sequence[Calibration]) -> list[HeldOut]:
    """The errors of launches while their fold was held out."""
    return [
        HeldOut(SHAPES, e.family, e.format, " ".join(e.gpus), e.library, e.fitted.errors)
        for calibration in calibrations
        for e in calibration.entries
        if calibration.name != GENERAL or e.family in ROWWISE
    ]


def _calibration(name: str, members: Sequence[Sample]) -> Calibration:
    return Calibration(name, tuple(sorted({sample.gpu for sample in members})), calibrate(members))


def _general(members: Sequence[Sample]) -> list[Entry]:
    """The fit of one mechanism and format over all generations, where each has its own."""
    if members[0].family in ROWWISE:
        return []
    pooled = [sample for sample in members if sample.library.kernel != HOST_TIMED]
    return [Entry(pooled[0].family, pooled[0].format, UNKNOWN, (), fit(pooled))] if pooled else []


def bands_of(left: Sequence[HeldOut]) -> list[Band]:
    """The spread of errors by family and basis."""
    groups: dict[tuple[str, str], list[HeldOut]] = {}
    for each in left:
        groups.setdefault((each.family, BASES[each.scheme]), []).append(each)
    return [
        Band(family, basis, spread(numpy.concatenate([each.errors for each in members])))
        for (family, basis), members in sorted(groups.items())
    ]
