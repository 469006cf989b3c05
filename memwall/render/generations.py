"""The generations of flash attention side by side, as a record and as a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memwall.errors import Refusal
from memwall.hardware import Device
from memwall.render.attention import facts, heading, shape_record
from memwall.render.bounds import compared_notes, notes_section
from memwall.render.data import Record
from memwall.render.page import Page, Section, Table
from memwall.reports.generations import OUTER, Generation, GenerationsReport, runs_as
from memwall.units import format_bytes, format_flops, scaled, scaled_binary, significant

Row = GenerationsReport | Refusal


def record(report: GenerationsReport) -> Record:
    """The report under its documented keys."""
    back = report.backward
    return {
        **shape_record(report.base),
        **{each.impl: _generation_record(each) for each in report.generations},
        "backward": {
            "flops": back.matrix_flops,
            "flops_ratio": back.ratio,
            "recomputed_flops": back.recomputed_flops,
            "standard_state_bytes": back.saved_bytes,
            "flash_state_bytes": back.kept_bytes,
        },
        "asymptote_bytes": report.asymptote_bytes,
        "smem_limit_bytes": report.smem_limit_bytes,
        "defaults": list(report.base.defaults),
        "notes": _notes(report),
    }


def page(report: GenerationsReport) -> Page:
    """The report for people."""
    made = report.generations
    rows = [(name, *(of(each) for each in made)) for name, of in _ROWS.items()]
    kept = [row for row in rows if any(cell != "-" for cell in row[1:])]
    table = Table(kept, ("", *(each.impl for each in made)), frozenset(range(1, len(made) + 1)))
    sections = [
        Section(heading(report.base), Table(facts(report.base))),
        Section("", table),
        Section("Backward pass", Table(_backward(report))),
    ]
    return [*sections, *notes_section(_notes(report))]


def compare_page(rows: Sequence[Row]) -> Page:
    """Several devices: what each generation reads from main memory there."""
    first = next(row for row in rows if isinstance(row, GenerationsReport))
    header = ("GPU", *(f"{each.impl}, DRAM" for each in first.generations), "runs")
    table = [_compare_row(row, len(first.generations)) for row in rows]
    right = frozenset(range(1, len(first.generations) + 1))
    return [
        Section(heading(first.base).partition("  on ")[0], Table(facts(first.base))),
        Section("", Table(table, header, right)),
        *notes_section(compared_notes(rows, _own_notes)),
    ]


def _compare_row(row: Row, columns: int) -> tuple[str, ...]:
    if isinstance(row, Refusal):
        return (row.gpu, *["-"] * (columns + 1))
    moved = (format_bytes(each.dram.total_bytes) for each in row.generations)
    return (row.device.name, *moved, row.generations[-1].runs_as)


def _generation_record(each: Generation) -> Record:
    blocks = each.blocks
    return {
        "runs_as": each.runs_as,
        "lacks": list(each.lacks),
        "outer_loop": OUTER[each.runs_as],
        "block_q": blocks.block_q if blocks else None,
        "block_kv": blocks.block_kv if blocks else None,
        "smem_bytes": each.smem_bytes if blocks else None,
        "compulsory_bytes": each.compulsory.total_bytes,
        "dram_read_bytes": each.dram.read_bytes,
        "dram_written_bytes": each.dram.written_bytes,
        "no_reuse_bytes": each.no_reuse.total_bytes,
        "l2_bytes": each.l2.total_bytes,
        "l2_counter_bytes": each.l2_counter_bytes,
        "figure_bytes": each.figure_bytes,
        "computed_pairs": each.computed_pairs,
        "visible_pairs": each.visible_pairs,
        "square_pairs": each.square_pairs,
        "exp_ops": each.exp_ops,
        "rescale_flops": each.rescale_flops,
        "state_bytes": each.state_bytes,
    }


def _blocks(each: Generation) -> str:
    return f"{each.blocks.block_q} x {each.blocks.block_kv}" if each.blocks else "-"


def _skipped(each: Generation) -> str:
    """What of the square a mask saves."""
    share = 1 - each.computed_pairs / each.square_pairs
    return f"{significant(100 * share, 3)} %" if each.visible_pairs < each.square_pairs else "-"


_ROWS: dict[str, Callable[[Generation], str]] = {
    "outer loop over": lambda each: OUTER[each.runs_as].partition(":")[0],
    "block, queries x keys": _blocks,
    "tiles in shared memory": lambda each: scaled_binary(each.smem_bytes) if each.blocks else "-",
    "DRAM, compulsory": lambda each: format_bytes(each.compulsory.total_bytes),
    "DRAM, with this L2": lambda each: format_bytes(each.dram.total_bytes),
    "  read": lambda each: format_bytes(each.dram.read_bytes),
    "  written": lambda each: format_bytes(each.dram.written_bytes),
    "no reuse": lambda each: format_bytes(each.no_reuse.total_bytes),
    "  as the paper's figure": lambda each: format_bytes(each.figure_bytes) if each.figure_bytes else "-",
    "L2 to the units": lambda each: format_bytes(each.l2.total_bytes),
    "L2 counter, expected": lambda each: format_bytes(each.l2_counter_bytes),
    "skipped by the mask": _skipped,
    "exponentials": lambda each: scaled(each.exp_ops, "op"),
    "rescaling of O": lambda each: format_flops(each.rescale_flops) if each.blocks else "-",
    "kept for backward": lambda each: format_bytes(each.state_bytes),
    "runs here as": lambda each: each.runs_as,
}


def _backward(report: GenerationsReport) -> list[tuple[str, ...]]:
    back = report.backward
    ratio = f"{significant(back.ratio, 3)}x the forward pass"
    rows: list[tuple[str, ...]] = [
        ("matrix FLOPs", format_flops(back.matrix_flops), ratio),
        ("of it recomputed", format_flops(back.recomputed_flops), "S once more"),
        ("standard keeps", format_bytes(back.saved_bytes), "P"),
        ("flash keeps", format_bytes(back.kept_bytes), "one log-sum-exp a row"),
    ]
    if report.asymptote_bytes is not None and report.smem_limit_bytes:
        limit = scaled_binary(report.smem_limit_bytes)
        rows.append(("N^2 d^2 / M", format_bytes(report.asymptote_bytes), f"FA1's asymptote, M = {limit}"))
    return rows


def _notes(report: GenerationsReport) -> list[str]:
    notes = [f"by default: {', '.join(report.base.defaults)}"] if report.base.defaults else []
    notes += [
        "compulsory: each tensor once; no reuse: each block of queries loads its own K and V",
        "with this L2: modelled, L2 cold; blocks run in waves, and a wave reads its heads' K and V once",
        "the counter lts__t_bytes also counts what crosses between the two partitions of a data-centre L2",
    ]
    if any(each.runs_as == "fa1" for each in report.generations):
        notes.append(
            "fa1: algorithm 1 in full; the paper's figure leaves out the statistics and the first write of O;"
            " both without a mask"
        )
    return [*notes, *_own_notes(report)]


def needs_more(impl: str, device: Device) -> list[str]:
    """What a generation needs that the device lacks, and which runs instead; nothing if it runs."""
    instead, lacks = runs_as(impl, device)
    missing = " and ".join(name.upper() if name != "cp_async" else "cp.async" for name in lacks)
    return [f"{impl} needs {missing}, which {device.title} lacks: {instead} runs"] if lacks else []


def _own_notes(report: GenerationsReport) -> list[str]:
    notes = []
    for each in report.generations:
        notes += needs_more(each.impl, report.device)
        limit = report.smem_limit_bytes
        if limit and each.smem_bytes > limit:
            needs, has = scaled_binary(each.smem_bytes), scaled_binary(limit)
            notes.append(
                f"{each.impl}'s tiles take {needs}, a block may have {has}: smaller blocks are needed"
            )
    return notes
