"""A calibration made of measured rows: of a GPU of the user's, or all that memwall ships."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy

from memwall import hardware
from memwall.errors import UsageError
from memwall.estimate import measurements, shipped
from memwall.estimate.calibrate import Entry, Spread, by, calibrate, spread
from memwall.estimate.samples import rows_in, samples_of
from memwall.hardware import Device

LEAST_ROWS = 8


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
    samples = samples_of(own)
    rows = rows_in(samples)
    if rows < LEAST_ROWS:
        raise UsageError(
            f"{rows} measured rows of {device.name} are too few for a calibration",
            f"It takes {LEAST_ROWS} at least: rows of predict's columns and time_us, and gpu {device.name}",
        )
    left_out = dict(reading.left_out)
    several = len(own) - rows
    if several:
        left_out["several kernels, or a format that the device does not compute in"] = several
    return CalibrationReport(device, source, rows, left_out, calibrate(samples))


def rebuilt() -> shipped.Shipped:
    """Every shipped calibration, from the shipped rows."""
    return shipped.rebuild(samples_of(measurements.read_shipped().measured))
