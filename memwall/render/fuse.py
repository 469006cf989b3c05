"""Fusions as a record and as a page."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.errors import Refusal
from memwall.render.bounds import compared_notes, notes_section
from memwall.render.data import Record
from memwall.render.page import Page, Section, Table
from memwall.reports.fuse import FuseReport, Way
from memwall.units import format_bytes, format_seconds, significant

Row = FuseReport | Refusal


def record(report: FuseReport) -> Record:
    """The report under its documented keys."""
    return {
        "gpu": report.device.name,
        "chain": report.chain.name,
        "shape": {"tokens": report.tokens, "hidden": report.hidden, "width": report.width},
        "dtype": report.formats.dtype,
        "weight_dtype": report.formats.weight,
        "unfused": _way_record(report, report.unfused),
        "best": _way_record(report, report.best),
        "all_fused": _way_record(report, report.all_fused),
        "fusions": [_way_record(report, way) for way in report.ways],
        "defaults": list(report.defaults),
    }


def page(report: FuseReport) -> Page:
    """The report for people."""
    header = ("kernels", "traffic", "saved", "bound time", "no longer in memory", "")
    rows = [_row(report, way) for way in report.ways if way.legal or way is report.all_fused]
    table = Table(rows, header, frozenset({1, 2, 3}))
    best, unfused = report.best, report.unfused
    faster = significant(unfused.time_s / best.time_s, 3)
    fewer = significant(unfused.traffic_bytes / best.traffic_bytes, 3)
    facts = [
        ("unfused", format_bytes(unfused.traffic_bytes), format_seconds(unfused.time_s)),
        ("best", format_bytes(best.traffic_bytes), format_seconds(best.time_s)),
        ("saves", f"{fewer}x fewer bytes", f"{faster}x less time"),
    ]
    return [
        Section(_heading(report), Table(facts)),
        Section("Ways to join neighbours", table),
        *notes_section(_notes(report)),
    ]


def compare_page(rows: Sequence[Row]) -> Page:
    """Several devices: the best way on each."""
    first = next(row for row in rows if isinstance(row, FuseReport))
    header = ("GPU", "unfused", "best", "faster", "kernels")
    table = Table([_compare_row(row) for row in rows], header, frozenset({1, 2, 3}))
    notes = compared_notes(rows, lambda row: ())
    return [Section(_heading(first).partition("  on ")[0], table), *notes_section(notes)]


def _compare_row(row: Row) -> tuple[str, ...]:
    if isinstance(row, Refusal):
        return (row.gpu, "-", "-", "-", "-")
    best, unfused = row.best, row.unfused
    return (
        row.device.name,
        format_seconds(unfused.time_s),
        format_seconds(best.time_s),
        f"{significant(unfused.time_s / best.time_s, 3)}x",
        "; ".join(best.kernels),
    )


def _way_record(report: FuseReport, way: Way) -> Record:
    return {
        "kernels": list(way.kernels),
        "legal": way.legal,
        "obstacles": list(way.fusion.obstacles),
        "read_bytes": way.read_bytes,
        "written_bytes": way.written_bytes,
        "traffic_bytes": way.traffic_bytes,
        "saved_bytes": report.unfused.traffic_bytes - way.traffic_bytes,
        "vanishing": [tensor.name for tensor in way.fusion.vanishing],
        "bound_time_s": way.time_s,
        "speedup": report.unfused.time_s / way.time_s,
    }


def _row(report: FuseReport, way: Way) -> tuple[str, ...]:
    saved = report.unfused.traffic_bytes - way.traffic_bytes
    mark = "<- best" if way is report.best else "" if way.legal else "not legal"
    return (
        "; ".join(way.kernels),
        format_bytes(way.traffic_bytes),
        format_bytes(saved) if saved else "-",
        format_seconds(way.time_s),
        ", ".join(tensor.name for tensor in way.fusion.vanishing) or "-",
        mark,
    )


def _heading(report: FuseReport) -> str:
    shape = f"tokens={report.tokens} hidden={report.hidden} width={report.width}"
    what = f"fuse {report.chain.name}  {shape}  {report.formats.text}"
    return f"{what}  on {report.device.title} ({report.device.name})"


def _notes(report: FuseReport) -> list[str]:
    notes = [f"by default: {', '.join(report.defaults)}"] if report.defaults else []
    notes.append("bound time: the kernels one after the other, each by its own roofline")
    illegal = [way for way in report.ways if not way.legal]
    reasons = dict.fromkeys(reason for way in illegal for reason in way.fusion.obstacles)
    return [*notes, *(f"not legal: {reason}" for reason in reasons)]
