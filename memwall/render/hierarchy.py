"""The memory hierarchy as a record and as a page."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.constant import Constant
from memwall.errors import Refusal
from memwall.hierarchy import Level
from memwall.render.bounds import notes_section
from memwall.render.data import Record
from memwall.render.page import Page, Section, Table, star
from memwall.reports.evidence import confession
from memwall.reports.hierarchy import HierarchyReport
from memwall.units import format_bytes, format_bytes_per_s, format_seconds, scaled_binary, significant

Row = HierarchyReport | Refusal
BINARY = ("registers", "smem", "l2", "cache")
"""Sizes of caches and registers are quoted with binary prefixes."""


def record(report: HierarchyReport) -> Record:
    """The report under its documented keys."""
    return {
        "gpu": report.device.name,
        "levels": [_level_record(level) for level in report.levels],
        "assumed": list(report.device.assumed),
        "weak_sources": [
            {"key": each.key, "kind": each.kind, "source": each.source} for each in _weak(report)
        ],
        "defaults": list(report.defaults),
    }


def rows(report: HierarchyReport) -> list[Record]:
    """The levels, each with its GPU and what its numbers rest on."""
    made = []
    for level in report.levels:
        sources = [f"{of}: {kind}, {source}" for of, kind, source in _sources(level)]
        made.append({"gpu": report.device.name, **_level_record(level), "sources": sources})
    return [{**row, "assumed": report.device.assumed, "defaults": report.defaults} for row in made]


def page(report: HierarchyReport) -> Page:
    """The report for people."""
    header = ("level", "scope", "size", "a unit", "bandwidth", "cycles", "latency")
    table = Table([_row(level) for level in report.levels], header, frozenset({2, 3, 4, 5, 6}))
    sources = [(level.name, *source) for level in report.levels for source in _sources(level)]
    return [
        Section(f"memory hierarchy  {report.device.title} ({report.device.name})", table),
        Section("Sources", Table(sources, ("level", "of", "kind", "source"))),
        *notes_section(_notes(report)),
    ]


def compare_page(rows: Sequence[Row]) -> Page:
    """Several devices: a table for each."""
    pages = [page(row) for row in rows if isinstance(row, HierarchyReport)]
    refusals = [f"{row.gpu}: {row.error}" for row in rows if isinstance(row, Refusal)]
    return [*(section for each in pages for section in (each[0], *each[2:])), *notes_section(refusals)]


def _level_record(level: Level) -> Record:
    return {
        "level": level.limit,
        "name": level.name,
        "scope": level.scope,
        "size_bytes": _value(level.size),
        "per_unit_bytes": level.per_unit_bytes,
        "bandwidth_bytes_per_s": _value(level.bandwidth),
        "latency_cycles": level.latency_cycles,
        "far_latency_cycles": level.far_cycles,
        "latency_s": level.latency_s,
        "sources": [{"of": of, "kind": kind, "source": source} for of, kind, source in _sources(level)],
    }


def _value(constant: Constant | None) -> float | None:
    return None if constant is None else constant.value


def _row(level: Level) -> tuple[str, ...]:
    cycles = "-" if level.latency_cycles is None else significant(level.latency_cycles)
    if level.far_cycles is not None:
        cycles += f" to {significant(level.far_cycles)}"
    bandwidth = level.bandwidth
    return (
        level.name,
        level.scope,
        _size(level) + star(bool(level.size and level.size.weak)),
        scaled_binary(level.per_unit_bytes) if level.per_unit_bytes else "-",
        format_bytes_per_s(bandwidth.value) + star(bandwidth.weak) if bandwidth else "-",
        cycles,
        "-" if level.latency_s is None else format_seconds(level.latency_s),
    )


def _size(level: Level) -> str:
    if level.size is None:
        return "-"
    return scaled_binary(level.size.value) if level.limit in BINARY else format_bytes(level.size.value)


def _sources(level: Level) -> list[tuple[str, str, str]]:
    numbers = (("size", level.size), ("bandwidth", level.bandwidth), ("latency", level.latency_source))
    return [
        (of, constant.kind, f"{constant.note}; {constant.source}" if constant.note else constant.source)
        for of, constant in numbers
        if constant is not None
    ]


def _weak(report: HierarchyReport) -> list[Constant]:
    return list({c.key: c for c in report.constants if c.weak}.values())


def _notes(report: HierarchyReport) -> list[str]:
    notes = [f"by default: {', '.join(report.defaults)}"] if report.defaults else []
    notes.append("latency: one dependent load; L2 near and far are the two partitions of a data-centre L2")
    if any(level.name == "L2" and level.bandwidth is None for level in report.levels):
        notes.append("L2's bandwidth is published by no maker, and not measured on this part")
    return [*notes, *map(confession, _weak(report))]
