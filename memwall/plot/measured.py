"""Measured runs to stand beside predictions: a record of `memwall verify`, or a table of times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memwall.errors import NotAvailable, UsageError
from memwall.estimate import measurements
from memwall.hardware import Device
from memwall.plot.roofline import Run
from memwall.reports.roofline import RooflineReport, roofline
from memwall.verify import record as records


def runs(path: str, devices: Sequence[Device], reports: Sequence[RooflineReport]) -> list[Run]:
    """The measured runs of a file on these devices: of the operators shown, or all if none is.

    Runs on warm data are left out: what L2 holds is not bound by main memory.

    Args:
        path: a record of `memwall verify`, the name of a GPU that one is shipped for, or a measured table as
            `memwall accuracy` reads it.
        devices: of the picture; the first is that of tables that name none.
        reports: the operators asked for.

    Raises:
        FileError: missing, or neither.
    """
    found = _of_table(path, devices) if path.lower().endswith(".csv") else _of_record(path, devices)
    if not reports:
        return found
    wanted = [_key(report) for report in reports]
    return [run for run in found if _key(run.report) in wanted]


def _key(report: RooflineReport) -> tuple[Any, ...]:
    causal = report.case.causal if report.case else None
    return report.device.name, report.op, dict(report.shape), report.formats, bool(causal)


def _of_record(path: str, devices: Sequence[Device]) -> list[Run]:
    kept = records.find(path)
    device = next((device for device in devices if device.name == kept.gpu), None)
    found = []
    for outcome in kept.outcomes if device else ():
        trial = outcome.trial
        if outcome.ok and outcome.time_s is not None and not trial.warm and device:
            report = _report(trial.op, device, trial.dims, dtype=trial.dtype, causal=trial.causal)
            found += [Run(report, outcome.time_s, trial.kernel)] if report else []
    return found


def _of_table(path: str, devices: Sequence[Device]) -> list[Run]:
    named = {device.name: device for device in devices}
    found = []
    for row, time_s in measurements.read(path, devices[0].name).measured:
        device = named.get(row.device.name)
        if device is None or row.warm:
            continue
        formats = {"dtype": row.dtype, "weight_dtype": row.weight, "kv_dtype": row.kv, "out_dtype": row.out}
        report = _report(row.op.name, device, dict(row.dims), causal=row.causal, **formats)
        found += [Run(report, time_s, f"a run of {row.op.name}")] if report else []
    return found


def _report(op: str, device: Device, dims: Mapping[str, int], **settings: Any) -> RooflineReport | None:
    """The prediction for a run; None where memwall has no such operator, or the device no such engine."""
    try:
        given: dict[str, Any] = {**settings, **dims}
        return roofline(op, gpu=device, **given)
    except (UsageError, NotAvailable):
        return None
