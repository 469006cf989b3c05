"""Occupancy as a record and as a page."""

from __future__ import annotations

from collections.abc import Sequence

from memwall import occupancy as rules
from memwall.errors import Refusal
from memwall.render.bounds import compared_notes, notes_section
from memwall.render.data import Record
from memwall.render.page import Lines, Page, Section, Table
from memwall.reports.occupancy import OccupancyReport
from memwall.units import scaled_binary, significant

Row = OccupancyReport | Refusal


def record(report: OccupancyReport) -> Record:
    """The report under its documented keys."""
    found = report.found
    launch = found.launch
    return {
        "gpu": report.device.name,
        "compute_capability": ".".join(map(str, found.sm.capability)),
        "threads": launch.threads,
        "registers": launch.registers,
        "smem_bytes": launch.shared_bytes,
        "occupancy": found.occupancy,
        "blocks_per_sm": found.blocks_per_sm,
        "warps_per_sm": found.warps_per_sm,
        "max_warps_per_sm": found.sm.warps,
        "limited_by": found.limiting[0],
        "limits_tied": list(found.limiting),
        "limits": found.limits,
        "allocated_registers": rules.allocated_registers(launch),
        "allocated_smem_bytes": rules.allocated_shared_bytes(found.sm, launch),
        "spilled_bytes_per_thread": launch.spilled_bytes,
        "blocks_on_device": report.blocks_on_device,
        "defaults": list(report.defaults),
        "advice": list(report.advice),
    }


def page(report: OccupancyReport) -> Page:
    """The report for people."""
    found = report.found
    launch, sm = found.launch, found.sm
    percent = f"{significant(100 * found.occupancy, 3)} %"
    facts = [
        ("occupancy", percent, f"{found.warps_per_sm} of {sm.warps} warps an SM"),
        ("blocks an SM", str(found.blocks_per_sm), f"limited by {' and '.join(map(_words, found.limiting))}"),
    ]
    if report.blocks_on_device:
        facts.append(("blocks at once", str(report.blocks_on_device), f"on {report.device.units} SMs"))
    rows = [
        ("warps", f"{launch.warps} a block", f"{sm.warps}", str(found.limits["warps"])),
        ("blocks", "1", str(sm.blocks), str(found.limits["blocks"])),
        (
            "registers",
            f"{rules.allocated_registers(launch)} a block",
            str(sm.registers),
            str(found.limits["registers"]),
        ),
        (
            "shared memory",
            f"{scaled_binary(rules.allocated_shared_bytes(sm, launch))} a block",
            scaled_binary(sm.shared_bytes),
            str(found.limits["shared_memory"]),
        ),
    ]
    table = Table(rows, ("resource", "taken", "an SM has", "blocks"), frozenset({1, 2, 3}))
    sections = [Section(_heading(report), Table(facts)), Section("Limits", table)]
    if report.advice:
        sections.append(
            Section("Next steps", Lines([f"{i}. {line}" for i, line in enumerate(report.advice, 1)]))
        )
    return [*sections, *notes_section(_notes(report))]


def compare_page(rows: Sequence[Row]) -> Page:
    """Several devices side by side."""
    first = next(row for row in rows if isinstance(row, OccupancyReport))
    header = ("GPU", "capability", "blocks", "warps", "occupancy", "limited by")
    table = Table([_compare_row(row) for row in rows], header, frozenset({2, 3, 4}))
    return [
        Section(_heading(first).partition("  on ")[0], table),
        *notes_section(compared_notes(rows, lambda row: ())),
    ]


def _compare_row(row: Row) -> tuple[str, ...]:
    if isinstance(row, Refusal):
        return (row.gpu, *["-"] * 5)
    found = row.found
    return (
        row.device.name,
        ".".join(map(str, found.sm.capability)),
        str(found.blocks_per_sm),
        f"{found.warps_per_sm} of {found.sm.warps}",
        f"{significant(100 * found.occupancy, 3)} %",
        " and ".join(map(_words, found.limiting)),
    )


def _words(name: str) -> str:
    return name.replace("_", " ")


def _heading(report: OccupancyReport) -> str:
    launch = report.found.launch
    asked = (
        f"{launch.threads} threads  {launch.registers} registers  {scaled_binary(launch.shared_bytes)} shared"
    )
    return f"occupancy  {asked}  on {report.device.title} ({report.device.name})"


def _notes(report: OccupancyReport) -> list[str]:
    notes = [f"by default: {', '.join(report.defaults)}"] if report.defaults else []
    sm = report.found.sm
    reserved = f", {scaled_binary(sm.reserved_bytes)} of it reserved" if sm.reserved_bytes else ""
    notes.append(
        f"registers go out in {rules.REGISTERS_A_WARP} a warp and partition, shared memory in"
        f" {sm.shared_unit_bytes} bytes a block{reserved}"
    )
    return notes
