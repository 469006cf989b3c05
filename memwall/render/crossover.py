"""Changes of regime, as a record and as a page."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.bound import Bound
from memwall.crossover import Crossing
from memwall.errors import Refusal
from memwall.render.bounds import compared_notes, evidence_record, mark, notes_section
from memwall.render.data import Record
from memwall.render.page import Page, Section, Table
from memwall.reports.crossover import CrossoverReport
from memwall.reports.evidence import remarks
from memwall.units import format_seconds, significant

Row = CrossoverReport | Refusal


def record(report: CrossoverReport) -> Record:
    """The report under its documented keys."""
    crossing = report.crossing
    below = crossing.below if crossing else report.first
    above = crossing.above if crossing else report.last
    return {
        "gpu": report.device.name,
        "op": report.op,
        "vary": report.vary,
        "shape": dict(report.shape),
        "dtype": report.dtype,
        "from": report.least,
        "to": report.most,
        "at": crossing.at if crossing else None,
        "regime_below": below.regime,
        "regime_above": above.regime,
        "limited_by_below": below.limited_by,
        "limited_by_above": above.limited_by,
        "bound_time_s": above.time_s if crossing else None,
        "arithmetic_intensity": above.arithmetic_intensity if crossing else None,
        "ridge_point": above.ridge_point,
        "crossings": [_crossing_record(each) for each in report.crossings],
        **evidence_record(report.device, [report.first, report.last]),
        "defaults": list(report.defaults),
    }


def page(report: CrossoverReport) -> Page:
    """The report for people."""
    rows = [
        (f"{report.vary} {report.least}", *_cells(report.first)),
        *((f"{report.vary} {each.at}", *_cells(each.above)) for each in report.crossings),
    ]
    header = ("from", "regime", "limited by", "bound time", "FLOP/B")
    crossing = report.crossing
    facts = [("regime changes at", _where(report))]
    if crossing:
        facts.append(("", f"{crossing.below.regime} up to {report.vary} {crossing.at - 1}"))
    table = Table(rows, header, frozenset({3, 4}))
    return [
        Section(_heading(report), Table(facts)),
        Section("", table),
        *notes_section(_notes(report)),
    ]


def compare_page(rows: Sequence[Row]) -> Page:
    """Several devices side by side."""
    first = next(row for row in rows if isinstance(row, CrossoverReport))
    header = ("GPU", f"{first.vary}", "below", "above", "bound time there", "ridge FLOP/B")
    table = Table([_compare_row(row) for row in rows], header, frozenset({1, 4, 5}))
    heading = _heading(first).partition("  on ")[0]
    return [Section(heading, table), *notes_section(compared_notes(rows, _own_notes))]


def _compare_row(row: Row) -> tuple[str, ...]:
    if isinstance(row, Refusal):
        return (row.gpu, *["-"] * 5)
    crossing = row.crossing
    ridge = row.first.ridge_point
    return (
        row.device.name,
        str(crossing.at) if crossing else "-",
        crossing.below.regime if crossing else row.first.regime,
        crossing.above.regime if crossing else "-",
        format_seconds(crossing.above.time_s) + mark([crossing.above]) if crossing else "-",
        "-" if ridge is None else significant(ridge),
    )


def _crossing_record(each: Crossing) -> Record:
    return {
        "at": each.at,
        "regime_below": each.below.regime,
        "regime_above": each.above.regime,
        "limited_by_below": each.below.limited_by,
        "limited_by_above": each.above.limited_by,
        "bound_time_s": each.above.time_s,
        "arithmetic_intensity": each.above.arithmetic_intensity,
    }


def _cells(bound: Bound) -> tuple[str, ...]:
    intensity = bound.arithmetic_intensity
    return (
        bound.regime,
        bound.limited_by,
        format_seconds(bound.time_s) + mark([bound]),
        "-" if intensity is None else significant(intensity),
    )


def _where(report: CrossoverReport) -> str:
    crossing = report.crossing
    if crossing is None:
        return f"nowhere from {report.least} to {report.most}: {report.first.regime}"
    return f"{report.vary} {crossing.at}, {crossing.above.regime} from there on"


def _heading(report: CrossoverReport) -> str:
    shape = " ".join(f"{name}={value}" for name, value in report.shape.items())
    what = f"crossover  {report.op} {shape}  {report.dtype}  varying {report.vary}"
    return f"{what}  on {report.device.title} ({report.device.name})"


def _notes(report: CrossoverReport) -> list[str]:
    notes = [f"by default: {', '.join(report.defaults)}"] if report.defaults else []
    return [*notes, *_own_notes(report)]


def _own_notes(report: CrossoverReport) -> list[str]:
    return remarks(report.device, [report.first, report.last])
