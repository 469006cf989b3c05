"""A calibration made of measured rows: of a GPU of the user's, or all that memwall ships."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy

from memwall import hardware
from memwall.errors import UsageError
from memwall.estimate import measurements, shipped
from memwall.estimate.calibrate import Entry, Spread, by, calibrate, spread
from memwall.estimate.fit import FOLDS
from memwall.estimate.library import HOST_TIMED
from memwall.estimate.samples import Sample, rows_in, samples_of
from memwall.hardware import Device
from memwall.reports.accuracy import TOLERANCE

LEAST_ROWS = 2 * FOLDS
"""Two launches in each fold that is held out: of fewer, an error says nothing, and of one it is nought."""
BEATEN = "faster than their bound by more than 2 %: no measurement of that kernel"


class CalibrationReport(NamedTuple):
    """The fits of one GPU's measured rows."""

    device: Device
    source: str
    rows: int
    left_out: Mapping[str, int]
    """Why rows were left out, and how many."""
    entries: Sequence[Entry]

    @property
    def fitted(self) -> int:
        """How many constants were fitted."""
        return sum(len(entry.fitted.fitted) for entry in self.entries)

    @property
    def held_out(self) -> Spread:
        """How far off the launches were, each held out of the fit of its library, else of that of all."""
        errors = []
        for group in by(self.entries, lambda entry: (entry.family, entry.format)).values():
            libraries = [entry for entry in group if entry.library.known]
            covered = sum(entry.fitted.rows for entry in libraries)
            every = covered == group[0].fitted.rows or len(libraries) == len(group)
            errors += [entry.fitted.errors for entry in (libraries if every else group[:1])]
        return spread(numpy.concatenate(errors))


def calibration(path: str, gpu: str, source: str | None = None) -> CalibrationReport:
    """The constants of a GPU from a table of measured rows.

    Args:
        path: a CSV file or a folder of them.
        gpu: the GPU; rows of others are left out.
        source: where the rows come from, for the file; the path if not given.

    Raises:
        UsageError: too few rows to fit anything.
        FileError: the table cannot be read.
    """
    device = hardware.load(gpu)
    return calibration_of(measurements.read(path, device.name), device, source or path)


def calibration_of(reading: measurements.Reading, device: Device, source: str) -> CalibrationReport:
    """The constants of a GPU from measured rows; rows of others are left out.

    Raises:
        UsageError: too few rows to fit anything.
    """
    own = [each for each in reading.measured if each.row.device.name == device.name]
    samples, beaten = _possible(samples_of(own))
    rows = rows_in(samples)
    reasons = dict(reading.left_out) | ({BEATEN: beaten} if beaten else {})
    if rows < LEAST_ROWS:
        left = "".join(f"; left out: {count} {why}" for why, count in list(reasons.items())[:2])
        raise UsageError(
            f"{rows} measured rows of {device.name} are too few for a calibration{left}",
            f"It takes {LEAST_ROWS} at least: rows of predict's columns and time_us, and gpu {device.name}",
        )
    enough, few = _enough(samples)
    if not enough:
        raise UsageError(
            f"{device.name}: {rows} measured rows, of no mechanism {LEAST_ROWS}: too few for a calibration",
            f"It takes {LEAST_ROWS} at least of one: {', '.join(few)}",
        )
    left_out = {**reasons, **few}
    several = len(own) - rows - beaten
    if several:
        left_out["several kernels, or a format that the device does not compute in"] = several
    return CalibrationReport(device, source, rows_in(enough), left_out, calibrate(enough))


def _possible(samples: Sequence[Sample]) -> tuple[list[Sample], int]:
    """The launches that are not faster than their bound, and how many others there are."""
    kept = [sample.where(sample.bound_s <= TOLERANCE * sample.time_s) for sample in samples]
    return [sample for sample in kept if len(sample.time_s)], rows_in(samples) - rows_in(kept)


def _enough(samples: Sequence[Sample]) -> tuple[list[Sample], dict[str, int]]:
    """The launches of mechanisms with rows enough to be fitted and held out, and how many the others have.

    Where each launch is alone of its kind, no fold holds out a part: they are left out too.
    Times from the host are counted apart, as they are fitted apart.
    """
    served: set[Hashable] = set()
    few: dict[str, int] = {}
    for kind, members in by(samples, _kind).items():
        rows = rows_in(members)
        if rows >= LEAST_ROWS and any(len(sample.time_s) > 1 for sample in members):
            served.add(kind)
            continue
        family, number, _ = kind
        what = family if number == "any" else f"{family} {number}"
        why = f"fewer than {LEAST_ROWS} rows" if rows < LEAST_ROWS else "no two rows alike but in size"
        few[f"{what}: {why}"] = few.get(f"{what}: {why}", 0) + rows
    return [sample for sample in samples if _kind(sample) in served], few


def _kind(sample: Sample) -> tuple[str, str, bool]:
    return sample.family, sample.format, sample.library.kernel == HOST_TIMED


def rebuilt() -> shipped.Shipped:
    """Every shipped calibration, from the shipped rows."""
    return shipped.rebuild(samples_of(measurements.read_shipped().measured))
