"""How far estimates are from measured times: of rows at hand, and of launches that no fit has seen."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy

from memwall.dtypes import find
from memwall.errors import FileError, MemwallError, shown
from memwall.estimate import constants, measurements
from memwall.estimate.calibrate import Spread, spread
from memwall.estimate.datafiles import shipped_tables
from memwall.estimate.engine import engines
from memwall.estimate.own import own_fits
from memwall.estimate.predict import Prediction, predict
from memwall.estimate.rows import Row
from memwall.estimate.samples import Measured
from memwall.hardware import load
from memwall.reports import passes
from memwall.reports.passes import PassLine

TOLERANCE = 1.02
"""A bound may exceed a measured time by so much: clocks and timers are no better."""
KEYS = ("op", "dtype", "gpu", "basis")


class Line(NamedTuple):
    """Errors of rows that have some of KEYS in common."""

    key: tuple[str, ...]
    spread: Spread


class Held(NamedTuple):
    """Errors of launches that took no part in the fit, as the calibrations came with them."""

    scheme: str
    family: str
    format: str
    gpu: str
    library: str
    rows: int
    median: float
    p90: float
    within_25: float


class AccuracyReport(NamedTuple):
    """Predictions beside measured times."""

    data: str
    by: tuple[str, ...]
    lines: Sequence[Line]
    total: Spread
    beaten: Sequence[str]
    """Rows that were faster than their bound: there should be none."""
    left_out: int
    """Rows without a prediction."""
    held: Sequence[Held]
    """Of the shipped rows; empty for others."""
    fits: int
    constants: int
    """Fitted, in all calibrations together."""
    passes: Sequence[PassLine] = ()
    """Whole passes, by engine; of the shipped rows."""


def accuracy(
    data: str | None = None,
    by: Sequence[str] = ("op", "dtype"),
    gpu: str | None = None,
    calibration: str | None = None,
) -> AccuracyReport:
    """The errors of estimates against measured rows.

    Args:
        data: a file or folder of measured rows; the shipped ones if not given.
        by: which of KEYS a line of the table has in common.
        gpu: the GPU of tables that name none.
        calibration: a user's calibration file.

    Raises:
        FileError: nothing there can be read, or the calibration is not one.
        UsageError: it is of other GPUs than those of the rows; or there is no such `gpu`.
    """
    if gpu is not None:
        load(gpu)
    reading = measurements.read(data, gpu) if data else measurements.read_shipped()
    rows: list[Row | MemwallError] = [each.row for each in reading.measured]
    devices = {each.row.device.name: each.row.device for each in reading.measured}
    own = own_fits(calibration, *devices.values())
    groups: dict[tuple[str, ...], list[float]] = {}
    beaten, missing = [], sum(reading.left_out.values())
    for each, answer in zip(reading.measured, predict(rows, own), strict=True):
        if isinstance(answer, MemwallError):
            missing += 1
            continue
        if answer.bound_time_s > TOLERANCE * each.time_s:
            beaten.append(f"{each.row.device.name} {label(each.row)} {dict(each.row.dims)}")
        if answer.estimate_time_s is None:
            missing += 1
            continue
        key = tuple(_keys(each, answer)[name] for name in by)
        groups.setdefault(key, []).append(answer.estimate_time_s / each.time_s - 1)
    if not groups:
        raise FileError(nothing(data or "", reading.left_out, len(rows)), "Columns of predict, and time_us")
    lines = [Line(key, spread(numpy.array(errors))) for key, errors in sorted(groups.items())]
    every = numpy.array([error for errors in groups.values() for error in errors])
    fits = [fit for name in constants.shipped_calibrations() for fit in constants.shipped(name)]
    return AccuracyReport(
        data or "the shipped rows",
        tuple(by),
        lines,
        spread(every),
        beaten,
        missing,
        () if data else _held(),
        len(fits),
        sum(len(fit.fitted) for fit in fits) + sum(engine.fitted for engine in engines()),
        () if data else _passes(),
    )


def nothing(data: str, left_out: Mapping[str, int], rows: int) -> str:
    """Why a table has no row to compare."""
    reasons = [*left_out, *(["no row of it has an estimate"] if rows else [])] or ["it has no rows"]
    return f"{shown(data, 120)}: nothing to compare: {'; '.join(reasons[:3])}"


def _passes() -> tuple[PassLine, ...]:
    """Decoding with one sequence and with several, and decoders in PyTorch."""
    alone = [each for each in passes.decoding() if each.batch == 1]
    several = [each._replace(gpu="batch 16, 64") for each in passes.decoding() if each.batch > 1]
    every = [*alone, *several, *passes.decoders()]
    return tuple(passes.lines(every))


def label(row: Row) -> str:
    """What a row is about, for people: attention in prefill and in decode are two things."""
    if row.op.name == "attention":
        dims = dict(row.dims)
        if row.impl == "standard":
            return "attention, standard"
        phase = "decode" if dims["seq_q"] == 1 else "prefill"
        return f"{phase} attention" if dims["head_dim"] == dims["head_dim_v"] else "prefill MLA"
    return "decode MLA" if row.op.name == "mla" else row.op.name


def _keys(each: Measured, answer: Prediction) -> dict[str, str]:
    row = each.row
    weight = f"w{find(row.weight).bits}" if row.weight else row.dtype
    return {
        "op": label(row),
        "dtype": f"{weight}, KV {row.kv}" if row.kv else weight,
        "gpu": row.device.name,
        "basis": (answer.basis or "").partition(":")[0],
    }


def _held() -> list[Held]:
    text = dict(shipped_tables(constants.FOLDER)).get("held_out.csv", "")
    return [_held_line(cells) for cells in csv.DictReader(io.StringIO(text))]


def _held_line(cells: dict[str, Any]) -> Held:
    return Held(
        cells["scheme"],
        cells["family"],
        cells["format"],
        cells["gpu"],
        cells["library"],
        int(cells["rows"]),
        float(cells["median"]),
        float(cells["p90"]),
        float(cells["within_25"]),
    )
