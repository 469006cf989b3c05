"""A table of kernels, each with its bound and its estimate: one row in, one row out, in order."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from memwall.dtypes import precision
from memwall.errors import FileError, MemwallError, NotPublished, shown
from memwall.estimate import tables
from memwall.estimate.own import own_fits
from memwall.estimate.predict import Prediction, predict
from memwall.estimate.rows import Row, try_row
from memwall.hardware import load
from memwall.modelled import Modelled, Question, modelled
from memwall.ops import registry
from memwall.reports.predict_collectives import CollectiveRows, is_collective
from memwall.units import MICRO

Cells = Mapping[str, str]
EXAMPLE = 'One a line: {"op": "gemm", "m": 8, "n": 8, "k": 8}'

ADDED = (
    "flops",
    "read_bytes",
    "written_bytes",
    "arithmetic_intensity",
    "dram_read_bytes",
    "dram_written_bytes",
    "l2_bytes",
    "regime",
    "bound_us",
    "estimate_us",
    "basis",
    "error_p50",
    "error_p90",
    "error",
)
"""The columns that a prediction adds."""


class Cases(NamedTuple):
    """A table as it was read: its columns, and its rows as text."""

    columns: Sequence[str]
    rows: Sequence[Cells]
    faults: Mapping[int, FileError] = MappingProxyType({})
    """Rows that could not be read, by their place; such a one has no cells."""


class PredictReport(NamedTuple):
    """A table and its predictions, row by row."""

    cases: Cases
    predictions: Sequence[Prediction | MemwallError]
    bytes_moved: Sequence[Modelled | None]
    """Modelled, L2 cold; None where a row has no prediction or its device's file no L2."""

    @property
    def failed(self) -> int:
        """How many rows could not be predicted, or have no estimate."""
        return sum(isinstance(each, MemwallError) or bool(each.unknown) for each in self.predictions)

    @property
    def columns(self) -> list[str]:
        """The table's own columns, and those that a prediction adds."""
        return [*self._own_names.values(), *ADDED]

    @property
    def _own_names(self) -> dict[str, str]:
        """The table's columns by what they are called beside the added ones: none is lost."""
        taken = {*self.cases.columns, *ADDED}
        return {name: _free(name, taken) if name in ADDED else name for name in self.cases.columns}

    def records(self) -> Iterator[dict[str, Any]]:
        """Every row with its prediction under the added columns."""
        called = self._own_names
        for cells, prediction, moved in zip(self.cases.rows, self.predictions, self.bytes_moved, strict=True):
            own = {name: cells.get(column, "") for column, name in called.items()}
            yield {**own, **_added(prediction, moved)}


def _free(name: str, taken: Container[str]) -> str:
    while name in taken:
        name = f"given_{name}"
    return name


def predict_cases(cases: Cases, gpu: str | None = None, calibration: str | None = None) -> PredictReport:
    """The predictions of a table.

    Args:
        cases: the table.
        gpu: the device of rows that name none.
        calibration: a user's calibration file.

    Raises:
        FileError: the calibration is not one.
        UsageError: it is of other GPUs than those of the table; or there is no such `gpu`.
    """
    if gpu is not None:
        load(gpu)  # a misspelt one is the command's fault, not each row's
    rows = [cases.faults.get(place) or try_row(cells, gpu) for place, cells in enumerate(cases.rows)]
    devices = {row.device.name: row.device for row in rows if isinstance(row, Row)}
    own = own_fits(calibration, *devices.values())
    predictions = predict(rows, own)
    moved = [
        None if isinstance(row, MemwallError) or isinstance(answer, MemwallError) else _moved(row)
        for row, answer in zip(rows, predictions, strict=True)
    ]
    links = CollectiveRows(gpu)
    found = [
        links.predict(cells) if is_collective(cells) else answer
        for cells, answer in zip(cases.rows, predictions, strict=True)
    ]
    return PredictReport(cases, found, moved)


def _moved(row: Row) -> Modelled | None:
    """What a row's kernels are expected to move, L2 cold."""
    dims, formats = dict(row.dims), _formats(row.dtype, row.weight, row.kv, row.out)
    impl = row.impl or (row.library.kernel if row.library.kernel in row.op.impls else None)
    program = registry.build(row.op, dims, formats, row.causal, impl)
    try:
        return modelled(Question(row.op.name, dims, formats, program, row.causal, impl), row.device)
    except NotPublished:
        return None


_formats = cache(precision)


def _added(prediction: Prediction | MemwallError, moved: Modelled | None) -> dict[str, Any]:
    if isinstance(prediction, MemwallError):
        return {**dict.fromkeys(ADDED), "error": str(prediction)}
    p = prediction
    traffic = p.read_bytes + p.written_bytes
    return {
        "flops": _whole(p.flops),
        "read_bytes": _whole(p.read_bytes),
        "written_bytes": _whole(p.written_bytes),
        "arithmetic_intensity": _short(p.flops / traffic) if traffic else None,
        "dram_read_bytes": moved and round(moved.dram.read_bytes),
        "dram_written_bytes": moved and round(moved.dram.written_bytes),
        "l2_bytes": moved and round(moved.l2.total_bytes),
        "regime": p.regime,
        "bound_us": _short(p.bound_time_s / MICRO),
        "estimate_us": None if p.estimate_time_s is None else _short(p.estimate_time_s / MICRO),
        "basis": p.basis,
        "error_p50": _rounded(p.error_p50),
        "error_p90": _rounded(p.error_p90),
        "error": p.unknown,
    }


def _whole(value: float) -> int | float:
    return int(value) if value == int(value) else value


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def _rounded(error: float | None) -> float | None:
    """As finely as calibrations say it: a thousandth; a mean of several has binary dust behind it."""
    return None if error is None else round(error, 3)


def read_csv(text: str, where: str) -> Cases:
    """A CSV table with a header; a row with too many cells is a row with a fault.

    Raises:
        FileError: no header, or no row under it fits.
    """
    table = tables.read(text, where)
    faults = {place: line.fault for place, line in enumerate(table.lines) if line.fault}
    if faults and len(faults) == len(table.lines):
        raise faults[0]
    return Cases(table.columns, [line.cells for line in table.lines], faults)


def read_json_lines(text: str, where: str) -> Cases:
    """One JSON object a line; a line that is none is a row with a fault, and costs no other its answer.

    Raises:
        FileError: no line is one, or there is no line.
    """
    import json

    columns: dict[str, None] = {}
    rows: list[Cells] = []
    faults: dict[int, FileError] = {}
    for number, line in enumerate(text.removeprefix(tables.MARK).splitlines(), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if not isinstance(record, dict):
            faults[len(rows)] = FileError(
                f"{where}:{number}: not a JSON object: {shown(line)}",
                EXAMPLE,
            )
            record = {}
        columns.update(dict.fromkeys(record))
        rows.append({name: _cell(value) for name, value in record.items()})
    if not rows:
        raise FileError(f"{where}: no JSON object in it", EXAMPLE)
    if len(faults) == len(rows):
        raise faults[0]
    return Cases(list(columns), rows, faults)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return str(int(value)) if isinstance(value, bool) else str(value)
