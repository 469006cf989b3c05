"""A tile of a product: what it makes of the traffic, of shared memory, and of the waves; and the best one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from memwall import tiles
from memwall.errors import NotPublished, UsageError
from memwall.hardware import Device
from memwall.maths import ceil_div
from memwall.modelled import Question, gemm_product
from memwall.ops import registry
from memwall.reports.case import DEFAULT_DTYPE, DEFAULT_GPU, Case, DeviceLike, Formats, device_of
from memwall.retention import cache_of, loaded_by
from memwall.tiles import Product, Tiling
from memwall.traffic import Traffic, tiled_gemm
from memwall.units import KIBI

SIDES = (64, 128, 192, 256)
"""Sides of tiles that libraries build."""
DEPTHS = (32, 64, 128)
"""Steps of k that libraries build."""
SUM_BYTES = 4
"""Sums are kept in fp32, in registers; on Blackwell in tensor memory."""
LEAST_STAGES = 2
"""One to compute on, one to load."""
ENOUGH_STAGES = 3
"""One to compute on, two on their way: a deeper step is worth it only while so many fit. A choice."""
LARGEST_SIDE = KIBI
REGISTERS_KIB = TENSOR_MEMORY_KIB = 256
"""Of a unit whose file does not say; tensor memory is 512 columns of 128 lanes of 32 bits in the PTX ISA."""
REGISTER_SHARE = 0.75
"""Of a unit's registers, what sums may take: the rest is for addresses and operands. A choice; at 1 there
would be none left."""


class SumsRoom(NamedTuple):
    """Where a unit keeps a tile's sums, and how many bytes of them it can hold."""

    place: str
    """registers or tensor memory."""
    size_bytes: float
    limit_bytes: float
    """What of it sums may take."""


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
    """Of the result."""
    sums_fit: bool
    """Whether registers, or tensor memory, can hold them."""
    tiles: int
    waves: int

    @property
    def smem_bytes(self) -> float:
        """Of all stages."""
        return self.stages * self.stage_bytes

    @property
    def fits(self) -> bool:
        """Whether a unit can hold a stage and the sums."""
        return self.stages > 0 and self.sums_fit


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
    sums_room: SumsRoom
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
    gpu: DeviceLike = DEFAULT_GPU,
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
    choices = (cost(product, each, device, limit_bytes, count) for each in _choices(tiling.tile_k, product.k))
    best = best_of(choices, units)
    naive = tiled_gemm(product.m, product.n, product.k, 1, 1, 1, 0).read_bytes
    each_bytes = (product.a_bytes + product.b_bytes) / 2
    work = case.program.work
    return TileReport(
        device, case, Traffic(naive * each_bytes * count, product.written_bytes * count),
        Traffic(work.read_bytes, work.written_bytes), asked, best, limit_bytes, sums_room(device),
        units, defaults,
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


def sums_room(device: Device) -> SumsRoom:
    """Tensor memory holds nothing but sums and scales; registers hold addresses and operands as well."""
    unit = device.group("unit")
    if "tmem" in device.features or unit.get("tensor_memory_kib"):
        size_bytes = unit.get("tensor_memory_kib", TENSOR_MEMORY_KIB) * KIBI
        return SumsRoom("tensor memory", size_bytes, size_bytes)
    size_bytes = unit.get("registers_kib", REGISTERS_KIB) * KIBI
    return SumsRoom("registers", size_bytes, size_bytes * REGISTER_SHARE)


def best_of(choices: Iterable[TileCost], units: int) -> TileCost | None:
    """The tile of least DRAM traffic among those that fit.

    Of equal ones the one that keeps more units busy, then the one that moves less through L2 in fewer
    waves, then the deepest whose stages still hide the loads.
    """
    fitting = [each for each in choices if each.sums_fit and each.stages >= LEAST_STAGES]

    def rank(each: TileCost) -> tuple[float, ...]:
        hides = min(each.stages, ENOUGH_STAGES)
        moved = each.dram.total_bytes, -min(each.tiles, units), each.l2.total_bytes
        return (*moved, each.waves, -hides, -each.tiling.tile_k)

    return min(fitting, key=rank, default=None)


def cost(product: Product, tiling: Tiling, device: Device, limit_bytes: float, count: int = 1) -> TileCost:
    """What a tile costs: its traffic at each level, its stages, its waves."""
    l2, units = cache_of(device), device.units or 1
    stage = (tiling.tile_m * product.a_bytes + tiling.tile_n * product.b_bytes) * tiling.tile_k
    number = tiling.tiles(product) * count
    places = l2.places(loaded_by(device))
    cluster = 2 if "clusters" in device.features else 1
    sums = tiling.tile_m * tiling.tile_n * SUM_BYTES
    return TileCost(
        tiling,
        tiles.no_reuse(product, tiling).times(count),
        tiles.with_l2(product, tiling, units, l2, places).times(count),
        tiles.through_l2(product, tiling, cluster).times(count),
        stage,
        int(limit_bytes // stage),
        sums,
        sums <= sums_room(device).limit_bytes,
        number,
        int(ceil_div(number, units)),
    )


def _choices(depth: int, k: int) -> Iterator[Tiling]:
    """Tiles that libraries build, and those of the asked depth; none deeper than k needs."""
    depths = [each for each in DEPTHS if each <= max(k, min(DEPTHS))]
    for rows in SIDES:
        for cols in SIDES:
            for each in sorted({*depths, depth}):
                yield Tiling.of(rows, cols, each)


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
        "fits": each.fits,
        "tiles": each.tiles,
        "waves": each.waves,
    }
