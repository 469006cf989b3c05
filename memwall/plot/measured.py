"""Measured runs to stand beside predictions: a record of `memwall verify`, or a table of times."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from memwall.errors import FileError, NotAvailable, UsageError, shown
from memwall.estimate import measurements
from memwall.hardware import Device
from memwall.plot import notes
from memwall.plot.roofline import Run, label
from memwall.reports.accuracy import TOLERANCE, nothing
from memwall.reports.roofline import RooflineReport, roofline
from memwall.verify import record as records


class Runs(NamedTuple):
    """What was found in a file."""

    found: list[Run]
    left_out: Mapping[str, int]
    """Why other runs are not drawn, and how many."""

    shipped: bool = False
    """Whether memwall's own record: what it leaves out is no fault of the reader's."""

    @property
    def notes(self) -> list[str]:
        """What a reader of the picture has to know of its runs."""
        return [*self.warnings, *(notes.left_out(self.left_out) if self.shipped else [])]

    @property
    def warnings(self) -> list[str]:
        """What the owner of the file has to know."""
        beaten = [
            f"{run.name}, {label(run.report)} on {run.report.device.name}" for run in self.found if run.above
        ]
        return [
            *notes.beaten(beaten, "measured run"),
            *(() if self.shipped else notes.left_out(self.left_out)),
        ]


def runs(path: str, devices: Sequence[Device], reports: Sequence[RooflineReport]) -> Runs:
    """The measured runs of a file on these devices: of the operators shown, or all if none is.

    Runs on warm data are left out: what L2 holds is not bound by main memory.

    Args:
        path: a record of `memwall verify`, the name of a GPU that one is shipped for, or measured tables as
            `memwall accuracy` reads it.
        devices: of the picture; the first is that of tables that name none.
        reports: the operators asked for.

    Raises:
        FileError: missing, neither, or without any row that can be read.
    """
    left_out: Counter[str] = Counter()
    table = path.lower().endswith(".csv") or os.path.isdir(path)
    found = _of_table(path, devices, left_out) if table else _of_record(path, devices, left_out)
    if reports:
        wanted = [_key(report) for report in reports]
        drawn = [run for run in found if _key(run.report) in wanted]
        if len(found) > len(drawn):
            left_out["of other operators or shapes"] = len(found) - len(drawn)
        found = drawn
    return Runs(found, left_out, not (table or os.path.exists(path)))


def _key(report: RooflineReport) -> tuple[Any, ...]:
    causal = report.case.causal if report.case else None
    return report.device.name, report.op, dict(report.shape), report.formats, bool(causal)


def _of_record(path: str, devices: Sequence[Device], left_out: Counter[str]) -> list[Run]:
    try:
        kept = records.find(path)
    except FileError as error:
        hint = error.hint.replace("--replay", "--measured")
        raise FileError(error.message, hint) from None
    device = next((device for device in devices if device.name == kept.gpu), None)
    found = []
    for outcome in kept.outcomes:
        trial = outcome.trial
        if device is None:
            left_out[f"of {shown(kept.gpu)}, which is not drawn"] += 1
        elif not outcome.ok or outcome.time_s is None:
            left_out["that did not run"] += 1
        elif trial.warm:
            left_out[_WARM] += 1
        else:
            report = _report(trial.op, device, trial.dims, dtype=trial.dtype, causal=trial.causal)
            found += _run(report, outcome.time_s, trial.kernel, left_out)
    return found


def _of_table(path: str, devices: Sequence[Device], left_out: Counter[str]) -> list[Run]:
    named = {device.name: device for device in devices}
    found = []
    reading = measurements.read(path, devices[0].name)
    if not reading.measured:
        raise FileError(nothing(path, reading.left_out, 0), "Columns of predict, and time_us")
    left_out.update(reading.left_out)
    for row, time_s in reading.measured:
        device = named.get(row.device.name)
        if device is None or row.warm:
            left_out[_WARM if device else f"of {row.device.name}, which is not drawn"] += 1
            continue
        formats = {"dtype": row.dtype, "weight_dtype": row.weight, "kv_dtype": row.kv, "out_dtype": row.out}
        report = _report(row.op.name, device, dict(row.dims), causal=row.causal, **formats)
        found += _run(report, time_s, f"a run of {row.op.name}", left_out)
    return found


_WARM = "on warm data, which main memory does not bound"


def _run(report: RooflineReport | str, time_s: float, name: str, left_out: Counter[str]) -> list[Run]:
    if isinstance(report, str):
        left_out[report] += 1
        return []
    return [Run(report, time_s, name, report.bound_time_s > TOLERANCE * time_s)]


def _report(op: str, device: Device, dims: Mapping[str, int], **settings: Any) -> RooflineReport | str:
    """The prediction for a run; else why there is none: no such operator, no such engine."""
    try:
        given: dict[str, Any] = {**settings, **dims}
        return roofline(op, gpu=device, **given)
    except (UsageError, NotAvailable) as error:
        return error.message
