"""Bank conflicts and coalescing, as records and as pages."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.access import BANKS, LINE_BYTES, SECTOR_BYTES, WORD_BYTES, conflict
from memwall.errors import Refusal
from memwall.render.bounds import compared_notes, notes_section
from memwall.render.data import Record
from memwall.render.page import Lines, Page, Section, Table
from memwall.reports.access import AccessReport, BanksReport
from memwall.units import format_bytes_per_s, scaled_binary, significant


class BanksView:
    """Shows bank conflicts."""

    def record(self, report: BanksReport, /) -> Record:
        """The report under its documented keys."""
        found = report.found
        return {
            "gpu": report.device.name,
            "shape": {"rows": report.rows, "cols": report.cols},
            "access": report.access,
            "element_bytes": report.element_bytes,
            "pad": report.pad,
            "conflict_degree": found.degree,
            "conflict_degree_without_pad": report.unpadded.degree,
            "passes": found.passes,
            "least_passes": found.least_passes,
            "efficiency": found.efficiency,
            "least_pad": report.least_pad,
            "tile_bytes": report.tile_bytes,
            "padding_bytes": report.padding_bytes,
            "peak_bytes_per_s": report.peak_bytes_per_s,
            "effective_bytes_per_s": _effective(report),
            "defaults": list(report.defaults),
        }

    def page(self, report: BanksReport, /) -> Page:
        """The report for people."""
        found = report.found
        facts: list[tuple[str, ...]] = [
            ("conflict degree", f"{found.degree}-way" if found.degree > 1 else "1, no conflict"),
            ("passes", str(found.passes), f"{found.least_passes} without conflicts"),
            ("bandwidth left", f"{_percent(found.efficiency)}", _rate(report)),
            (
                "tile",
                scaled_binary(report.tile_bytes),
                f"{scaled_binary(report.padding_bytes)} of it padding",
            ),
        ]
        pads = sorted({0, 1, 2, report.pad, *([report.least_pad] if report.least_pad is not None else [])})
        rows = []
        for pad in pads:
            with_pad = conflict(report.rows, report.cols, report.access, report.element_bytes, pad)
            size = report.rows * (report.cols + pad) * report.element_bytes
            mark = "<- asked" if pad == report.pad else ""
            rows.append((str(pad), str(with_pad.degree), str(with_pad.passes), scaled_binary(size), mark))
        table = Table(rows, ("pad", "degree", "passes", "tile", ""), frozenset({0, 1, 2, 3}))
        sections = [Section(self._heading(report), Table(facts)), Section("Padding", table)]
        return [*sections, *_steps(report), *notes_section(_bank_notes(report))]

    def compare_page(self, rows: Sequence[BanksReport | Refusal], /) -> Page:
        """Several devices: the rate that is left."""
        first = next(row for row in rows if isinstance(row, BanksReport))
        table = [
            (row.gpu, "-", "-")
            if isinstance(row, Refusal)
            else (row.device.name, str(row.found.degree), _rate(row))
            for row in rows
        ]
        notes = compared_notes(rows, lambda row: ())
        heading = self._heading(first).partition("  on ")[0]
        return [Section(heading, Table(table, ("GPU", "degree", "left"))), *notes_section(notes)]

    def _heading(self, report: BanksReport) -> str:
        tile = f"{report.rows} x {report.cols} + {report.pad}"
        what = f"banks  {report.access} of a {tile} tile  {report.element_bytes} B elements"
        return f"{what}  on {report.device.title} ({report.device.name})"


class AccessView:
    """Shows a warp's request."""

    def record(self, report: AccessReport, /) -> Record:
        """The report under its documented keys."""
        found = report.found
        return {
            "gpu": report.device.name,
            "pattern": report.pattern,
            "element_bytes": report.element_bytes,
            "stride": report.stride,
            "offset": report.offset,
            "useful_bytes": found.useful_bytes,
            "sectors": found.sectors,
            "lines": found.lines,
            "efficiency": found.sector_efficiency,
            "line_efficiency": found.line_efficiency,
            "memory_efficiency": found.atom_efficiency,
            "bandwidth_bytes_per_s": report.bandwidth_bytes_per_s,
            "effective_bytes_per_s": report.effective_bytes_per_s,
            "defaults": list(report.defaults),
        }

    def page(self, report: AccessReport, /) -> Page:
        """The report for people."""
        found = report.found
        facts: list[tuple[str, ...]] = [
            ("useful", f"{found.useful_bytes} B", "by 32 threads"),
            ("sectors", str(found.sectors), f"of {SECTOR_BYTES} B: {_percent(found.sector_efficiency)} used"),
            ("lines", str(found.lines), f"of {LINE_BYTES} B: {_percent(found.line_efficiency)} used"),
            (
                "effective bandwidth",
                format_bytes_per_s(report.effective_bytes_per_s),
                f"of {format_bytes_per_s(report.bandwidth_bytes_per_s)}, sectors counted",
            ),
        ]
        return [Section(self._heading(report), Table(facts)), *notes_section(_access_notes(report))]

    def compare_page(self, rows: Sequence[AccessReport | Refusal], /) -> Page:
        """Several devices: the rate that is left."""
        first = next(row for row in rows if isinstance(row, AccessReport))
        table = [
            (row.gpu, "-", "-", "-")
            if isinstance(row, Refusal)
            else (
                row.device.name,
                str(row.found.sectors),
                str(row.found.lines),
                format_bytes_per_s(row.effective_bytes_per_s),
            )
            for row in rows
        ]
        header = ("GPU", "sectors", "lines", "effective bandwidth")
        heading = self._heading(first).partition("  on ")[0]
        notes = compared_notes(rows, lambda row: ())
        return [Section(heading, Table(table, header, frozenset({1, 2, 3}))), *notes_section(notes)]

    def _heading(self, report: AccessReport) -> str:
        stride = f", stride {report.stride}" if report.pattern == "strided" else ""
        offset = f", from element {report.offset}" if report.offset else ""
        what = f"access  {report.pattern}{stride}{offset}  {report.element_bytes} B elements"
        return f"{what}  on {report.device.title} ({report.device.name})"


def _percent(share: float) -> str:
    return f"{significant(100 * share, 3)} %"


def _effective(report: BanksReport) -> float | None:
    peak = report.peak_bytes_per_s
    return peak * report.found.efficiency if peak else None


def _rate(report: BanksReport) -> str:
    effective = _effective(report)
    return f"{format_bytes_per_s(effective)} over all units" if effective else ""


def _steps(report: BanksReport) -> list[Section]:
    if report.found.degree == 1:
        return []
    if report.least_pad is None:
        line = "1. layout: padding does not help: swizzle the columns by the row, or split the element"
    else:
        size = report.rows * (report.cols + report.least_pad) * report.element_bytes
        line = (
            f"1. padding: --pad {report.least_pad} leaves no conflict:"
            f" {scaled_binary(size)} instead of {scaled_binary(report.tile_bytes)}"
        )
    return [Section("Next steps", Lines([line]))]


def _bank_notes(report: BanksReport) -> list[str]:
    notes = [f"by default: {', '.join(report.defaults)}"] if report.defaults else []
    return [*notes, f"{BANKS} banks of {WORD_BYTES} bytes; threads that read the same word share it"]


def _access_notes(report: AccessReport) -> list[str]:
    notes = [f"by default: {', '.join(report.defaults)}"] if report.defaults else []
    found = report.found
    notes.append("L2 fetches sectors; what its other parts hold may serve the next request, if it comes soon")
    if found.atom_efficiency < found.sector_efficiency:
        rate = format_bytes_per_s(report.bandwidth_bytes_per_s * found.atom_efficiency)
        notes.append(f"HBM hands over 64 bytes for a lone sector (counted on an H200): then {rate}")
    return notes
