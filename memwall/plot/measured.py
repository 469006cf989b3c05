"""Measured runs to stand beside predictions: a record of `memwall verify`, or a table of times."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memwall.errors import FileError, NotAvailable, UsageError, shown
from memwall.hardware import Device
from memwall.ops import registry
from memwall.plot.roofline import Run
from memwall.reports.case import DEFAULT_DTYPE
from memwall.reports.roofline import RooflineReport, roofline
from memwall.units import KILO, MEGA
from memwall.verify import record as records

TIMES = {"time_s": 1, "time_ms": KILO, "time_us": MEGA}
"""Columns of a table that hold its times, and how many of their unit are a second."""


def runs(path: str, devices: Sequence[Device], reports: Sequence[RooflineReport]) -> list[Run]:
    """The measured runs of a file on these devices: of the operators shown, or all if none is.

    Args:
        path: a record of `memwall verify`, the name of a GPU that one is shipped for, or a CSV with columns
            op, the operator's dimensions and a time.
        devices: of the picture.
        reports: the operators asked for.

    Raises:
        FileError: missing, or neither.
    """
    found = _of_table(path, devices) if path.lower().endswith(".csv") else _of_record(path, devices)
    if not reports:
        return found
    wanted = [(report.device.name, report.op, dict(report.shape), report.formats) for report in reports]
    return [
        run
        for run in found
        if (run.report.device.name, run.report.op, dict(run.report.shape), run.report.formats) in wanted
    ]


def _of_record(path: str, devices: Sequence[Device]) -> list[Run]:
    kept = records.find(path)
    device = next((device for device in devices if device.name == kept.gpu), None)
    if device is None:
        return []
    found = []
    for outcome in kept.outcomes:
        trial = outcome.trial
        if not outcome.ok or outcome.time_s is None or trial.warm:
            continue
        report = _report(trial.op, device, trial.dtype, trial.dims, trial.causal)
        if report:
            found.append(Run(report, outcome.time_s, trial.kernel))
    return found


def _of_table(path: str, devices: Sequence[Device]) -> list[Run]:
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise FileError(f"{shown(path, 120)}: {reason}", "Name a CSV file or a record") from None
    columns = list(rows[0]) if rows else []
    column = next((name for name in TIMES if name in columns), None)
    if column is None or "op" not in columns:
        raise FileError(
            f"{shown(path, 120)}:1: no column {'op' if column else ' or '.join(TIMES)}",
            "A table has op, the operator's dimensions and time_s, time_ms or time_us",
        )
    return [run for row in rows for run in _runs_of(row, column, devices)]


def _runs_of(row: Mapping[str, str], column: str, devices: Sequence[Device]) -> Iterable[Run]:
    named = row.get("gpu") or ""
    dims = {name: value for name, value in row.items() if value and name in _dimensions(row["op"])}
    for device in devices:
        if named and named != device.name:
            continue
        try:
            time_s = float(row[column]) / TIMES[column]
            sizes = {name: int(float(value)) for name, value in dims.items()}
        except ValueError:
            continue
        causal = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}
        masked = causal.get((row.get("causal") or "").lower())
        report = _report(row["op"], device, row.get("dtype") or DEFAULT_DTYPE, sizes, masked)
        if report and time_s > 0:
            yield Run(report, time_s, row.get("backend") or row.get("kernel") or row["op"])


def _dimensions(op: str) -> Sequence[str]:
    try:
        found = registry.find(op)
    except UsageError:
        return ()
    return (*found.dims, *found.shorthand)


def _report(
    op: str, device: Device, dtype: str, dims: Mapping[str, int], causal: bool | None
) -> RooflineReport | None:
    """The prediction for a run; None where memwall has no such operator, or the device no such engine."""
    try:
        shape: dict[str, Any] = dict(dims)
        return roofline(op, gpu=device, dtype=dtype, causal=causal, **shape)
    except (UsageError, NotAvailable):
        return None
