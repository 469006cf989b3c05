"""Derivations as a record and as a page."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.errors import Refusal
from memwall.explain.report import Explanation, Line
from memwall.render import roofline as plain
from memwall.render.bounds import compared_notes, notes_section
from memwall.render.data import Record
from memwall.render.page import LaidOut, Page, Section, Table
from memwall.units import (
    format_bytes,
    format_flops,
    format_flops_per_s,
    format_seconds,
    scaled,
    significant,
)

Row = Explanation | Refusal


def record(report: Explanation) -> Record:
    """The report under its documented keys."""
    base = report.base
    return {
        "gpu": base.device.name,
        "op": base.op,
        "shape": dict(base.shape),
        "dtype": base.formats.dtype,
        "symbols": {
            symbol: {"dimension": name, "value": value} for symbol, (name, value) in report.symbols.items()
        },
        "quantities": [line._asdict() for line in report.lines],
        "defaults": list(base.defaults),
    }


def rows(report: Explanation) -> list[Record]:
    """The quantities, each with what was asked."""
    base = report.base
    of = {
        "gpu": base.device.name,
        "op": base.op,
        "shape": dict(base.shape),
        "dtype": base.formats.dtype,
    }
    return [{**of, **line._asdict(), "defaults": base.defaults} for line in report.lines]


def page(report: Explanation) -> Page:
    """The report for people: a quantity a paragraph."""
    heading = plain.page(report.base)[0].heading
    facts = [(symbol, name, str(value)) for symbol, (name, value) in report.symbols.items()]
    sections = [Section(heading, Table(facts))]
    sections += [Section(_title(line), LaidOut(_body(line, report.latex))) for line in report.lines]
    notes = ["formulas are what memwall's own functions return for symbols, printed"]
    if report.base.defaults:
        notes.insert(0, f"by default: {', '.join(report.base.defaults)}")
    return [*sections, *notes_section(notes)]


def compare_page(rows: Sequence[Row]) -> Page:
    """Several devices: each result."""
    made = [row for row in rows if isinstance(row, Explanation)]
    names = [line.quantity for line in made[0].lines]
    table = []
    for number, name in enumerate(names):
        cells = [_result(row.lines[number]) if number < len(row.lines) else "-" for row in made]
        table.append((name, made[0].lines[number].formula, *cells))
    header = ("quantity", "formula", *(row.device.name for row in made))
    heading = plain.page(made[0].base)[0].heading.partition("  on ")[0]
    body = Table(table, header, frozenset(range(2, len(header))))
    return [Section(heading, body), *notes_section(compared_notes(rows, lambda row: ()))]


def _title(line: Line) -> str:
    return f"{line.quantity}: {_result(line)}"


def _body(line: Line, latex: bool) -> list[str]:
    name = f"{line.symbol} = " if line.symbol else ""
    shown = [f"{name}{line.latex if latex else line.formula}"]
    if line.substitution != line.formula:
        shown.append(
            f"{' ' * max(0, len(name) - 2)}= {line.substitution}" if name else f"= {line.substitution}"
        )
    shown.append(f"assumes: {line.assumption}")
    if line.source:
        shown.append(f"source: {line.source}")
    return shown


def _result(line: Line) -> str:
    formats = {"B": format_bytes, "FLOP": format_flops, "FLOP/s": format_flops_per_s, "s": format_seconds}
    if line.unit in formats:
        return formats[line.unit](line.value)
    if line.unit == "op":
        return scaled(line.value, "op")
    return f"{significant(line.value)} {line.unit}"
