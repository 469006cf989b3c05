"""The counting run as records and as a page."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.render.data import Record
from memwall.render.page import Lines, Page, Section, Table
from memwall.units import format_bytes, significant
from memwall.verify.counting.run import Counted

_HEADER = ("algorithm", "shape", "read", "written", "formula", "exact", "error")


def records(counted: Sequence[Counted]) -> list[Record]:
    """A record a run."""
    return [
        {
            "algorithm": each.algorithm,
            "setting": each.setting,
            "read_bytes": each.counted.read_bytes,
            "written_bytes": each.counted.written_bytes,
            "formula_read_bytes": each.formula.read_bytes,
            "formula_written_bytes": each.formula.written_bytes,
            "dram_read_bytes": each.dram.read_bytes,
            "dram_written_bytes": each.dram.written_bytes,
            "error": each.error,
            "exact": each.exact,
        }
        for each in counted
    ]


def page(counted: Sequence[Counted], l2_bytes: int = 0) -> Page:
    """The run for people; with an L2, what main memory behind it sees."""
    rows = [_row(each, bool(l2_bytes)) for each in counted]
    header = (*_HEADER, "memory read", "memory written") if l2_bytes else _HEADER
    right = frozenset(range(2, len(header))) - {5}
    exact = sum(each.exact for each in counted)
    notes = [
        f"{exact} of {len(counted)} are exact: bytes to the last one, results to the rounding of float64",
        "counted: bytes that the kernels load and store; elements of 2 bytes, statistics of 4",
    ]
    if l2_bytes:
        notes.append(
            f"memory: behind an L2 of {format_bytes(l2_bytes)}, least recently used sector out first"
        )
    return [Section("The counting run", Table(rows, header, right)), Section("Notes", Lines(notes))]


def _row(each: Counted, with_l2: bool) -> tuple[str, ...]:
    cells = (
        each.algorithm,
        each.setting,
        format_bytes(each.counted.read_bytes),
        format_bytes(each.counted.written_bytes),
        format_bytes(each.formula.total_bytes),
        "yes" if each.exact else "no",
        significant(each.error, 2),
    )
    if not with_l2:
        return cells
    return (*cells, format_bytes(each.dram.read_bytes), format_bytes(each.dram.written_bytes))
