"""The accuracy report as records and as a page."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.estimate.calibrate import Spread
from memwall.render.data import Record
from memwall.render.page import Lines, Page, Section, Table
from memwall.reports.accuracy import AccuracyReport, Held
from memwall.reports.passes import PassLine

SHOWN = 10
"""Rows below their bound that are named."""


def records(report: AccuracyReport) -> list[Record]:
    """One record a line of the table, then one each of what was held out."""
    lines: list[Record] = [
        {**dict(zip(report.by, line.key, strict=True)), "held_out": None, **_spread_record(line.spread)}
        for line in report.lines
    ]
    held: list[Record] = [
        {
            "op": each.family,
            "dtype": each.format,
            "gpu": each.gpu,
            "library": each.library or None,
            "held_out": each.scheme,
            "rows": each.rows,
            "median": each.median,
            "p90": each.p90,
            "within_25": each.within_25,
        }
        for each in report.held
    ]
    whole: list[Record] = [
        {"op": "pass", "engine": each.key[0], "gpu": each.key[1], **_pass_record(each)}
        for each in report.passes
    ]
    return [*lines, *held, *whole]


def page(report: AccuracyReport) -> Page:
    """The report for people: the rows at hand, then what no fit has seen."""
    header = (*report.by, "rows", "median", "mean", "p90", "within 25 %", "bias")
    rows = [(*line.key, *_spread_texts(line.spread)) for line in report.lines]
    rows.append(("all", *[""] * (len(report.by) - 1), *_spread_texts(report.total)))
    first = len(report.by)
    sections = [
        Section(
            f"Estimate beside measured time, {report.data}",
            Table(rows, header, frozenset(range(first, first + 6))),
        )
    ]
    if report.held:
        sections.append(Section("Held out of the fit", _held_table(report.held)))
    if report.passes:
        sections.append(Section("Whole passes beside measured ones", _pass_table(report.passes)))
    return [*sections, Section("Notes", Lines(_notes(report)))]


def _pass_record(line: PassLine) -> Record:
    return {
        "rows": line.rows,
        "median": line.median,
        "p90": line.p90,
        "within_25": line.within_25,
        "bias": line.bias,
    }


def _pass_table(lines: Sequence[PassLine]) -> Table:
    """By engine and GPU."""
    rows = [
        (
            *each.key,
            str(each.rows),
            *map(_percent, (each.median, each.p90, each.within_25)),
            f"{each.bias:.2f}",
        )
        for each in lines
    ]
    return Table(
        rows, ("engine", "GPU", "rows", "median", "p90", "within 25 %", "bias"), frozenset(range(2, 7))
    )


def _spread_record(spread: Spread) -> Record:
    return dict(spread._asdict())


def _spread_texts(spread: Spread) -> tuple[str, ...]:
    shares = (spread.median, spread.mean, spread.p90, spread.within_25)
    return (str(spread.rows), *(_percent(share) for share in shares), f"{spread.bias:.2f}")


def _held_table(held: Sequence[Held]) -> Table:
    """By mechanism and scheme: medians weighted by rows."""
    groups: dict[tuple[str, str, str], list[Held]] = {}
    for each in held:
        groups.setdefault((each.scheme, each.family, each.format), []).append(each)
    rows = []
    for key, members in sorted(groups.items()):
        count = sum(each.rows for each in members)
        means = [
            sum(each.rows * v for each, v in zip(members, values, strict=True)) / count
            for values in _columns(members)
        ]
        rows.append((*key, str(count), *(_percent(mean) for mean in means)))
    header = ("held out", "mechanism", "format", "rows", "median", "p90", "within 25 %")
    return Table(rows, header, frozenset(range(3, 7)))


def _columns(members: Sequence[Held]) -> tuple[list[float], list[float], list[float]]:
    return (
        [each.median for each in members],
        [each.p90 for each in members],
        [each.within_25 for each in members],
    )


def _notes(report: AccuracyReport) -> list[str]:
    notes = [
        "error: |estimate / measured - 1|; bias: the geometric mean of estimate / measured",
        f"{report.constants} fitted constants in {report.fits} fits serve every row",
    ]
    if report.held:
        notes.append(
            "held out: means over libraries and GPUs, weighted by rows, of each one's median and p90"
        )
    if report.left_out:
        notes.append(f"{report.left_out} rows have no prediction: another operator, or no peak is published")
    if report.beaten:
        named = "; ".join(report.beaten[:SHOWN])
        notes.append(f"{len(report.beaten)} rows are faster than their bound: {named}")
    else:
        notes.append("no row is faster than its bound by more than 2 %")
    return notes


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
