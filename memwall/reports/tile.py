"""A tile of a product: what it makes of the traffic, of shared memory, and of the waves; and the best one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from memwall import tiles
from memwall.errors import NotPublished, UsageError
from memwall.hardware import Device
from memwall.maths import ceil_div
from memwall.modelled import Question, gemm_product
from memwall.ops import registry
from memwall.reports.case import DEFAULT_DTYPE, DEFAULT_GPU, Case, Formats, device_of
from memwall.retention import cache_of, loaded_by
from memwall.tiles import Product, Tiling
from memwall.traffic import Traffic, tiled_gemm
from memwall.units import KIBI

SIDES = (64, 128, 192, 256)
"""Sides of tiles that libraries build."""
SUM_BYTES = 4
"""Sums are kept in fp32, in registers."""
LEAST_STAGES = 2
"""One to compute on, one to load."""
LARGEST_SIDE = KIBI
REGISTER_SHARE = 0.75
"""Of a unit's registers, what sums may take: the rest is for addresses and operands. A choice, not a
limit."""


class TileCost(NamedTuple):
    """What one tile costs."""

    tiling: Tiling
    no_reuse: Traffic
    """Every tile loads its own panels."""
    dram: Traffic
    l2: Traffic
    stage_bytes: float
    """One step of k: the tile's rows of a and columns of b [B]."""
    stages: int
    """Steps that fit into a block's shared memory at once."""
    sums_bytes: int
    """Of the result, in registers."""
    tiles: int
    waves: int

    @property
    def smem_bytes(self) -> float:
        """Of all stages."""
        return self.stages * self.stage_bytes


class TileReport(NamedTuple):
    """A tile of a product on a device, and the one that moves least."""

    device: Device
    case: Case
    naive: Traffic
    """One output a thread, without shared memory."""
    compulsory: Traffic
    asked: TileCost
    best: TileCost | None
    smem_limit_bytes: float
    units: int
    defaults: tuple[str, ...]

    @property
    def last_wave_share(self) -> float:
        """How full the last wave is."""
        left = self.asked.tiles % self.units
        return left / self.units if left else 1.0

    @property
    def wave_efficiency(self) -> float:
        """Tiles / places in all waves."""
        return self.asked.tiles / (self.asked.waves * self.units)


def tile(
    op: str = "gemm",
    tile: tuple[int, int, int] | None = None,
    *,
    gpu: str | Device = DEFAULT_GPU,
    dtype: str = DEFAULT_DTYPE,
    weight_dtype: str | None = None,
    changes: Mapping[str, str | float] | None = None,
    defaults: tuple[str, ...] = (),
    **shape: int | None,
) -> TileReport:
    """What a tile of a matrix product costs on a device, and the tile that moves least.

    Args:
        op: gemm, gemv, batched_gemm or grouped_gemm.
        tile: rows, columns and depth of the tile; the modelled library's unless given.
        gpu: a device, or its name or file.
        dtype: format of a and b.
        weight_dtype: storage format of b.
        changes: what-ifs.
        defaults: what the caller assumed.
        shape: the operator's dimensions.

    Raises:
        UsageError, NotAvailable: as they say.
    """
    device = device_of(gpu, changes)
    formats = Formats.named(dtype, weight_dtype)
    operator = registry.find(op)
    dims, _ = registry.resolve(operator, shape)
    case = Case(operator, dims, formats)
    question = Question(operator.name, dims, formats.precision, case.program)
    product, count = gemm_product(question)
    limit_bytes, units = limits(device)
    tiling = Tiling.of(*tile) if tile else tiles.library_tiling(product)
    _check(tiling)
    asked = cost(product, tiling, device, limit_bytes, count)
    choices = [cost(product, each, device, limit_bytes, count) for each in _choices(device, tiling.tile_k)]
    fitting = [each for each in choices if each.stages >= LEAST_STAGES]
    best = min(fitting, key=lambda c: (c.dram.total_bytes, c.l2.total_bytes, c.waves), default=None)
    naive = tiled_gemm(product.m, product.n, product.k, 1, 1, 1, 0).read_bytes
    each_bytes = (product.a_bytes + product.b_bytes) / 2
    work = case.program.work
    return TileReport(
        device, case, Traffic(naive * each_bytes * count, product.written_bytes * count),
        Traffic(work.read_bytes, work.written_bytes), asked, best, limit_bytes, units, defaults,
    )  # fmt: skip


def limits(device: Device) -> tuple[float, int]:
    """Shared memory that a block may have [B], and how many units there are.

    Raises:
        NotPublished: one of them is not in the device's file.
    """
    unit = device.group("unit")
    key = next((k for k in ("shared_memory_per_block_kib", "shared_memory_kib") if unit.get(k)), None)
    if key is None or not device.units or not device.l2_bytes:
        raise NotPublished(
            f"{device.title}: its file lacks unit.shared_memory_kib, unit.count or l2.capacity_mib",
            "Try --gpu h100",
        )
    return unit[key] * KIBI, device.units


def cost(product: Product, tiling: Tiling, device: Device, limit_bytes: float, count: int = 1) -> TileCost:
    """What a tile costs: its traffic at each level, its stages, its waves."""
    l2, units = cache_of(device), device.units or 1
    stage = (tiling.tile_m * product.a_bytes + tiling.tile_n * product.b_bytes) * tiling.tile_k
    number = tiling.tiles(product) * count
    places = l2.places(loaded_by(device))
    cluster = 2 if "clusters" in device.features else 1
    return TileCost(
        tiling,
        tiles.no_reuse(product, tiling).times(count),
        tiles.with_l2(product, tiling, units, l2, places).times(count),
        tiles.through_l2(product, tiling, cluster).times(count),
        stage,
        int(limit_bytes // stage),
        tiling.tile_m * tiling.tile_n * SUM_BYTES,
        number,
        int(ceil_div(number, units)),
    )


def _choices(device: Device, depth: int) -> Iterator[Tiling]:
    """Tiles whose sums leave room in the registers; the band is as wide as the assumed library's."""
    registers = device.group("unit").get("registers_kib", 256) * KIBI * REGISTER_SHARE
    for rows in SIDES:
        for cols in SIDES:
            if rows * cols * SUM_BYTES <= registers:
                yield Tiling.of(rows, cols, depth)


def _check(tiling: Tiling) -> None:
    for name, size in (("rows", tiling.tile_m), ("columns", tiling.tile_n), ("depth", tiling.tile_k)):
        if not 1 <= size <= LARGEST_SIDE:
            raise UsageError(f"a tile's {name} are 1 to {LARGEST_SIDE}, not {size}", "Try --tile 128x256x64")


def tile_record(each: TileCost) -> dict[str, Any]:
    """A tile under its documented keys."""
    return {
        "tile_m": each.tiling.tile_m,
        "tile_n": each.tiling.tile_n,
        "tile_k": each.tiling.tile_k,
        "tiled_bytes": each.no_reuse.total_bytes,
        "dram_read_bytes": each.dram.read_bytes,
        "dram_written_bytes": each.dram.written_bytes,
        "l2_bytes": each.l2.total_bytes,
        "stage_bytes": each.stage_bytes,
        "stages": each.stages,
        "smem_bytes": each.smem_bytes,
        "accumulator_bytes": each.sums_bytes,
        "tiles": each.tiles,
        "waves": each.waves,
    }
