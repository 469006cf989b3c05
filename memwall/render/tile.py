"""Tiles as records and as pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memwall.errors import Refusal
from memwall.render.bounds import compared_notes, notes_section
from memwall.render.data import Record
from memwall.render.page import Page, Section, Table, numbers
from memwall.reports.attention_tile import AttentionTile, AttentionTileReport
from memwall.reports.tile import TileCost, TileReport, tile_record
from memwall.units import format_bytes, scaled_binary, significant


class TileView:
    """Shows a product's tile."""

    def record(self, report: TileReport, /) -> Record:
        """The report under its documented keys."""
        return {
            "gpu": report.device.name,
            "op": report.case.op.name,
            "shape": dict(report.case.dims),
            "dtype": report.case.formats.dtype,
            "naive_bytes": report.naive.total_bytes,
            "compulsory_bytes": report.compulsory.total_bytes,
            **tile_record(report.asked),
            "last_wave_share": report.last_wave_share,
            "wave_efficiency": report.wave_efficiency,
            "smem_limit_bytes": report.smem_limit_bytes,
            "accumulator_limit_bytes": report.sums_room.limit_bytes,
            "best": tile_record(report.best) if report.best else None,
            "defaults": list(report.defaults),
            "notes": _notes(report),
        }

    def page(self, report: TileReport, /) -> Page:
        """The report for people."""
        columns = [("asked", report.asked), *([("best", report.best)] if report.best else [])]
        names = {SUMS: f"sums in {report.sums_room.place}"}
        rows = [(names.get(name, name), *(of(cost) for _, cost in columns)) for name, of in _ROWS.items()]
        facts: list[tuple[str, ...]] = [
            ("naive", format_bytes(report.naive.total_bytes), "a thread an output, nothing shared"),
            ("compulsory", format_bytes(report.compulsory.total_bytes), "each operand once"),
            (
                "waves",
                f"{report.asked.waves} of {report.units} tiles",
                f"the last {_percent(report.last_wave_share)} full, all {_percent(report.wave_efficiency)}",
            ),
        ]
        return [
            Section(self._heading(report), Table(facts)),
            Section("", numbers(rows, ("", *(name for name, _ in columns)))),
            *notes_section(_notes(report)),
        ]

    def compare_page(self, rows: Sequence[TileReport | Refusal], /) -> Page:
        """Several devices: the tile asked for, and the best there."""
        first = next(row for row in rows if isinstance(row, TileReport))
        header = ("GPU", "tiled", "DRAM", "L2", "waves", "stages", "best tile", "DRAM")
        table = Table([_compare_row(row) for row in rows], header, frozenset({1, 2, 3, 4, 5, 7}))
        notes = compared_notes(rows, lambda row: ())
        return [Section(self._heading(first).partition("  on ")[0], table), *notes_section(notes)]

    def _heading(self, report: TileReport) -> str:
        case = report.case
        what = f"tile {_name(report.asked)}  {case.op.name} {case.shape_text}  {case.formats.text}"
        return f"{what}  on {report.device.title} ({report.device.name})"


class AttentionTileView:
    """Shows attention's tiles."""

    def record(self, report: AttentionTileReport, /) -> Record:
        """The report under its documented keys."""
        return {
            "gpu": report.device.name,
            "op": "attention",
            "shape": {"head_dim": report.shape.head_dim, "head_dim_v": report.shape.head_dim_v},
            "dtype": report.formats.dtype,
            "causal": report.shape.causal,
            "smem_limit_bytes": report.smem_limit_bytes,
            "tiles": {each.impl: _attention_record(report, each) for each in report.tiles},
            "defaults": list(report.defaults),
        }

    def page(self, report: AttentionTileReport, /) -> Page:
        """The report for people."""
        header = ("", "queries x keys", "Q", "K", "V", "O", "m, l", "all", "stages")
        rows = [_attention_row(report, each) for each in report.tiles]
        limit = scaled_binary(report.smem_limit_bytes)
        mask = "causal" if report.shape.causal else "no mask"
        heading = (
            f"tiles  attention head_dim {report.shape.head_dim}  {report.formats.text}  {mask}"
            f"  on {report.device.title} ({report.device.name})"
        )
        notes = [f"by default: {', '.join(report.defaults)}"] if report.defaults else []
        notes += [
            f"a block may have {limit} of shared memory; stages: pairs of K and V that fit beside the rest",
            "fa2 and fa3 keep O, and the rows' maxima m and sums l, in registers",
        ]
        table = Table(rows, header, frozenset(range(1, len(header))))
        return [Section(heading, table), *notes_section(notes)]

    def compare_page(self, rows: Sequence[AttentionTileReport | Refusal], /) -> Page:
        """Several devices: the stages that fit."""
        first = next(row for row in rows if isinstance(row, AttentionTileReport))
        header = ("GPU", "limit", *(f"{each.impl}, stages" for each in first.tiles))
        table = []
        for row in rows:
            if isinstance(row, Refusal):
                table.append((row.gpu, *["-"] * (len(header) - 1)))
            else:
                stages = (str(row.stages(each)) for each in row.tiles)
                table.append((row.device.name, scaled_binary(row.smem_limit_bytes), *stages))
        notes = compared_notes(rows, lambda row: ())
        right = frozenset(range(1, len(header)))
        return [Section("tiles  attention", Table(table, header, right)), *notes_section(notes)]


SUMS = "sums"
_ROWS: dict[str, Callable[[TileCost], str]] = {
    "tile": lambda cost: f"{cost.tiling.tile_m}x{cost.tiling.tile_n}x{cost.tiling.tile_k}",
    "tiled, no L2": lambda cost: format_bytes(cost.no_reuse.total_bytes),
    "DRAM, with this L2": lambda cost: format_bytes(cost.dram.total_bytes),
    "  read": lambda cost: format_bytes(cost.dram.read_bytes),
    "L2 to the units": lambda cost: format_bytes(cost.l2.total_bytes),
    "shared memory, a stage": lambda cost: scaled_binary(cost.stage_bytes),
    "stages": lambda cost: str(cost.stages),
    SUMS: lambda cost: scaled_binary(cost.sums_bytes) + ("" if cost.sums_fit else ", does not fit"),
    "tiles": lambda cost: str(cost.tiles),
    "waves": lambda cost: str(cost.waves),
}


def _name(cost: TileCost) -> str:
    return f"{cost.tiling.tile_m}x{cost.tiling.tile_n}x{cost.tiling.tile_k}"


def _percent(share: float) -> str:
    return f"{significant(100 * share, 3)} %"


def _compare_row(row: TileReport | Refusal) -> tuple[str, ...]:
    if isinstance(row, Refusal):
        return (row.gpu, *["-"] * 7)
    asked, best = row.asked, row.best
    return (
        row.device.name,
        format_bytes(asked.no_reuse.total_bytes),
        format_bytes(asked.dram.total_bytes),
        format_bytes(asked.l2.total_bytes),
        str(asked.waves),
        str(asked.stages) if asked.fits else "does not fit",
        _name(best) if best else "-",
        format_bytes(best.dram.total_bytes) if best else "-",
    )


def _attention_row(report: AttentionTileReport, each: AttentionTile) -> tuple[str, ...]:
    sizes = (each.q_bytes, each.k_bytes, each.v_bytes, each.o_bytes, each.statistics_bytes, each.total_bytes)
    stages = report.stages(each)
    return (
        each.impl,
        f"{each.block_q} x {each.block_kv}",
        *map(scaled_binary, sizes),
        str(stages) if stages else "does not fit",
    )


def _attention_record(report: AttentionTileReport, each: AttentionTile) -> Record:
    return {
        "block_q": each.block_q,
        "block_kv": each.block_kv,
        "q_bytes": each.q_bytes,
        "k_bytes": each.k_bytes,
        "v_bytes": each.v_bytes,
        "o_bytes": each.o_bytes,
        "statistics_bytes": each.statistics_bytes,
        "smem_bytes": each.total_bytes,
        "stages": report.stages(each),
        "fits": report.stages(each) > 0,
    }


def _notes(report: TileReport) -> list[str]:
    notes = [f"by default: {', '.join(report.defaults)}"] if report.defaults else []
    limit = scaled_binary(report.smem_limit_bytes)
    band = report.asked.tiling.band
    notes.append(f"order assumed: row by row in bands of {band} columns of tiles; a block may have {limit}")
    if report.asked.stages == 0:
        needs = scaled_binary(report.asked.stage_bytes)
        notes.append(f"it does not fit: one stage takes {needs}; a smaller depth or a smaller tile does")
    elif report.asked.stages == 1:
        notes.append("one stage: loading waits for computing; two overlap them")
    if not report.asked.sums_fit:
        notes.append(_sums_note(report))
    if report.best:
        notes.append(
            "best: least DRAM traffic among tiles of 64 to 256, 32 to 128 deep or as asked, whose sums fit, "
            "2 stages"
        )
    return notes


def _sums_note(report: TileReport) -> str:
    """Why the asked tile's sums do not fit."""
    room = report.sums_room
    needs, has, limit = map(scaled_binary, (report.asked.sums_bytes, room.size_bytes, room.limit_bytes))
    kept = f", {limit} of them for sums" if room.limit_bytes < room.size_bytes else ""
    return (
        f"it does not fit: its sums take {needs}, a unit has {has} of {room.place}{kept}; a smaller tile does"
    )
