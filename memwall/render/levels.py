"""The roofline at each level, as a record and as a page."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.errors import Refusal
from memwall.render import roofline as plain
from memwall.render.bounds import compared_notes, notes_section
from memwall.render.data import Record
from memwall.render.page import Page, Section, Table
from memwall.reports.levels import LevelRoof, LevelsReport
from memwall.units import (
    format_bytes,
    format_bytes_per_s,
    format_flops_per_s,
    format_seconds,
    significant,
)

Row = LevelsReport | Refusal


def record(report: LevelsReport) -> Record:
    """The roofline's keys, with `levels` and what limits among them."""
    return {
        **plain.record(report.base),
        "levels": [_level_record(level) for level in report.levels],
        "limiting_level": report.limiting.limit,
        "levels_limited_by": report.limited_by,
        "dram_read_bytes": report.modelled.dram.read_bytes,
        "dram_written_bytes": report.modelled.dram.written_bytes,
        "l2_bytes": report.modelled.l2.total_bytes,
        "l2_counter_bytes": report.modelled.l2_counter_bytes,
        "modelled_assumes": report.modelled.assumes,
    }


def page(report: LevelsReport) -> Page:
    """The roofline's page, with a table of levels after its terms."""
    first, terms, *rest = plain.page(report.base)
    header = ("level", "bytes", "FLOP/B", "bandwidth", "roof", "time", "")
    rows = [_row(level, report) for level in report.levels]
    table = Section("Levels", Table(rows, header, frozenset({1, 2, 3, 4, 5})))
    notes = notes_section(_notes(report))
    return [first, terms, table, *rest[:-1], *_merged(rest[-1:], notes)]


def compare_page(rows: Sequence[Row]) -> Page:
    """Several devices: each level's time."""
    first = next(row for row in rows if isinstance(row, LevelsReport))
    header = ("GPU", "hbm", "l2", "smem", "limits")
    table = [_compare_row(row) for row in rows]
    heading = plain.page(first.base)[0].heading.partition("  on ")[0]
    return [
        Section(heading, Table(table, header, frozenset({1, 2, 3}))),
        *notes_section(compared_notes(rows, _notes)),
    ]


def _compare_row(row: Row) -> tuple[str, ...]:
    if isinstance(row, Refusal):
        return (row.gpu, "-", "-", "-", "-")
    times = {level.limit: level.time_s for level in row.levels}
    cells = (times.get(name) for name in ("hbm", "l2", "smem"))
    return (row.device.name, *("-" if t is None else format_seconds(t) for t in cells), row.limited_by)


def _level_record(level: LevelRoof) -> Record:
    return {
        "level": level.limit,
        "bytes": level.bytes,
        "arithmetic_intensity": level.intensity,
        "bandwidth_bytes_per_s": level.bandwidth_bytes_per_s,
        "roof_flops_per_s": level.roof_flops_per_s,
        "time_s": level.time_s,
        "source": level.source,
    }


def _row(level: LevelRoof, report: LevelsReport) -> tuple[str, ...]:
    rate, roof, time_s = level.bandwidth_bytes_per_s, level.roof_flops_per_s, level.time_s
    return (
        level.limit,
        format_bytes(level.bytes),
        "-" if level.intensity is None else significant(level.intensity),
        "-" if rate is None else format_bytes_per_s(rate),
        "-" if roof is None else format_flops_per_s(roof),
        "-" if time_s is None else format_seconds(time_s),
        "<- limits" if level is report.limiting else "",
    )


def _merged(old: Sequence[Section], new: Sequence[Section]) -> list[Section]:
    """Two sections of notes as one."""
    lines = [line for section in (*old, *new) for line in getattr(section.body, "lines", ())]
    return notes_section(lines)


def _notes(report: LevelsReport) -> list[str]:
    notes = [
        f"levels: modelled bytes, L2 cold; {report.modelled.assumes}",
        f"of all engines and levels {report.limited_by} limits",
    ]
    if any(level.limit == "l2" and level.bandwidth_bytes_per_s is None for level in report.levels):
        notes.append("L2's bandwidth is not measured on this part: its roof is left out")
    else:
        notes.append("L2's roof is a measured bandwidth, not a bound")
    return notes
