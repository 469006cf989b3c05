"""The roofline at each level of memory: bytes, intensity and roof at main memory, L2 and shared memory.

    time of a level = its bytes / its bandwidth,   roof = min(peak, intensity x bandwidth)

Main memory and L2 have the modelled bytes (`memwall.modelled`). Through shared memory pass the stores of
what L2 hands out, and what the matrix instructions read: each warp (group) reads its rows of a and all
columns of b,

    gemm       reads = m n k (1 / columns + 1 / rows) element,   rows x columns of one warp group's product
    attention  K and V, once for each warp group's rows

64 rows x the tile's columns by a warp group (WGMMA), 64 x 64 by a warp before; streams do not use it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from memwall import flash, tiles
from memwall.errors import UsageError
from memwall.hardware import Device
from memwall.hierarchy import l2_bandwidth, shared_bandwidth
from memwall.modelled import Modelled, Question, attention_shape, gemm_product, generation, modelled
from memwall.reports.modelled import question_of
from memwall.reports.roofline import RooflineReport, roofline

WARP_ROWS = 64
"""Rows of a matrix instruction's product that share a read of b: of a warp group (WGMMA), or of a warp's
tile."""


class LevelRoof(NamedTuple):
    """One level's roof."""

    limit: str
    """hbm, l2 or smem."""
    bytes: float
    bandwidth_bytes_per_s: float | None
    """None if not known."""
    flops: float
    peak_flops_per_s: float | None
    source: str

    @property
    def intensity(self) -> float | None:
        """FLOPs a byte of this level."""
        return self.flops / self.bytes if self.bytes else None

    @property
    def time_s(self) -> float | None:
        """Bytes / bandwidth [s]."""
        return self.bytes / self.bandwidth_bytes_per_s if self.bandwidth_bytes_per_s else None

    @property
    def roof_flops_per_s(self) -> float | None:
        """The rate that this level allows, at most the peak [FLOP/s]."""
        if self.time_s is None or self.intensity is None:
            return None
        reached = self.flops / self.time_s if self.time_s else float("inf")
        return min(reached, self.peak_flops_per_s) if self.peak_flops_per_s else reached


class LevelsReport(NamedTuple):
    """A roofline, and its roofs level by level."""

    base: RooflineReport
    modelled: Modelled
    levels: tuple[LevelRoof, ...]

    @property
    def device(self) -> Device:
        """The device."""
        return self.base.device

    @property
    def limiting(self) -> LevelRoof:
        """The level that takes longest."""
        return max(self.levels, key=lambda level: level.time_s or 0.0)

    @property
    def limited_by(self) -> str:
        """The limiting level, or the engine that takes longer than every level."""
        engines = [term for term in self.base.bound.terms if term.limit != "hbm"]
        slowest = max(engines, key=lambda term: term.time_s, default=None)
        if slowest and slowest.time_s > (self.limiting.time_s or 0.0):
            return slowest.limit
        return self.limiting.limit


def level_roofline(op: str | None = None, **options: Any) -> LevelsReport:
    """The roofline of an operator at each level; arguments as `roofline`.

    Raises:
        UsageError: FLOPs and bytes were given instead of an operator.
        NotPublished: the device's file has no L2.
    """
    base = roofline(op, **options)
    case = base.case
    if case is None:
        raise UsageError("--levels needs an operator: bare bytes are of one level", "Try --op gemm --levels")
    question = question_of(case)
    model = modelled(question, base.device)
    return LevelsReport(base, model, _roofs(base, question, model))


def _roofs(base: RooflineReport, question: Question, model: Modelled) -> tuple[LevelRoof, ...]:
    device, flops = base.device, float(base.bound.work.flops)
    peak = base.bound.peak.value if base.bound.peak else None
    main = LevelRoof(
        "hbm", model.dram.total_bytes, device.bandwidth.value, flops, peak, device.bandwidth.source
    )
    l2 = l2_bandwidth(device)
    middle = LevelRoof(
        "l2",
        model.l2.total_bytes,
        l2.value if l2 else None,
        flops,
        peak,
        l2.source if l2 else "not published",
    )
    shared = shared_bandwidth(device)
    through = shared_bytes(question, model, device)
    rate = shared.value if shared else None
    near = LevelRoof("smem", through, rate, flops, peak, shared.note if shared else "not known")
    return (main, middle, *([near] if through else []))


def shared_bytes(question: Question, model: Modelled, device: Device) -> float:
    """Bytes through shared memory: what is stored into it, and what the matrix instructions read [B]."""
    if question.op in ("gemm", "gemv", "batched_gemm", "grouped_gemm"):
        product, count = gemm_product(question)
        tiling = tiles.library_tiling(product)
        stored = tiles.no_reuse(product, tiling).read_bytes
        columns = tiling.tile_n if "wgmma" in device.features else WARP_ROWS
        a, b = product.operands
        read = a * -(-product.n // columns) + b * -(-product.m // WARP_ROWS)
        return float(count * (stored + read))
    if question.op == "attention" and question.impl != "standard":
        shape = attention_shape(question)
        blocks = flash.blocks_of(generation(question.impl, device), shape)
        loads = flash.through_l2(shape, blocks._replace(loaded_by="load")).read_bytes
        groups = max(1.0, min(blocks.block_q, shape.seq_q) / WARP_ROWS)
        return float(loads * (1 + groups))
    return 0.0
