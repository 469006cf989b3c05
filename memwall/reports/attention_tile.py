"""The tiles of flash attention against the shared memory that a block may have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from memwall import flash
from memwall.errors import UsageError
from memwall.hardware import Device
from memwall.ops import registry
from memwall.ops.attention import settled_mask
from memwall.reports.case import DEFAULT_DTYPE, DEFAULT_GPU, DeviceLike, Formats, device_of
from memwall.reports.tile import LARGEST_SIDE, limits
from memwall.traffic import STATISTIC_BYTES

GENERATIONS = ("fa1", "fa2", "fa3")


class AttentionTile(NamedTuple):
    """One block of queries with one block of keys."""

    impl: str
    block_q: int
    block_kv: int
    q_bytes: float
    k_bytes: float
    v_bytes: float
    o_bytes: float
    statistics_bytes: int
    """The rows' running maxima and sums."""

    @property
    def total_bytes(self) -> float:
        """Of all five."""
        return self.q_bytes + self.k_bytes + self.v_bytes + self.o_bytes + self.statistics_bytes

    @property
    def stage_bytes(self) -> float:
        """One more K and V, to load while the last are worked on."""
        return self.k_bytes + self.v_bytes


class AttentionTileReport(NamedTuple):
    """The tiles asked for, and those of each generation."""

    device: Device
    shape: flash.Shape
    formats: Formats
    tiles: tuple[AttentionTile, ...]
    smem_limit_bytes: float
    defaults: tuple[str, ...]

    def stages(self, each: AttentionTile) -> int:
        """Pairs of K and V tiles that fit beside Q, O and the statistics; 0 if not even one does."""
        room = self.smem_limit_bytes - (each.total_bytes - each.stage_bytes)
        return max(0, int(room // each.stage_bytes))


def attention_tile(
    tile: tuple[int, int] | None = None,
    *,
    gpu: DeviceLike = DEFAULT_GPU,
    dtype: str = DEFAULT_DTYPE,
    kv_dtype: str | None = None,
    causal: bool | None = None,
    changes: Mapping[str, str | float] | None = None,
    defaults: tuple[str, ...] = (),
    **shape: int | None,
) -> AttentionTileReport:
    """Q, K, V and O tiles of FA1, FA2 and FA3, and of a tile of one's own, against a block's limit.

    Args:
        tile: queries and keys a block.
        gpu: a device, or its name or file.
        dtype: format of Q and O.
        kv_dtype: format of K and V.
        causal: the mask; some generations have other blocks with one.
        changes: what-ifs.
        defaults: what the caller assumed.
        shape: heads, head_dim and seq; one head of 4096 tokens unless given.

    Raises:
        UsageError, NotAvailable: as they say.
    """
    device = device_of(gpu, changes)
    formats = Formats.named(dtype, kv=kv_dtype)
    given = {"heads": 1, **{name: size for name, size in shape.items() if size is not None}}
    if not given.keys() & {"seq", "seq_q", "seq_kv"}:
        given["seq"] = 4 * LARGEST_SIDE
    dims, _ = registry.resolve(registry.find("attention"), given)
    precision = formats.precision
    whole = flash.Shape(
        dims["batch"], dims["heads"], dims["kv_heads"], dims["seq_q"], dims["seq_kv"], dims["head_dim"],
        dims["head_dim_v"], settled_mask(dims, causal), dims.get("window"),
        precision.activation.bits_per_element / 8, precision.kv.bits_per_element / 8,
    )  # fmt: skip
    limit_bytes, _ = limits(device)
    made = []
    if tile:
        if not all(1 <= size <= LARGEST_SIDE for size in tile):
            raise UsageError(f"a tile's sides are 1 to {LARGEST_SIDE}", "Try --tile 64x64")
        made.append(_tile("yours", whole, *tile))
    for impl in GENERATIONS:
        blocks = flash.blocks_of(impl, whole)
        made.append(_tile(impl, whole, blocks.block_q, blocks.block_kv))
    return AttentionTileReport(device, whole, formats, tuple(made), limit_bytes, defaults)


def _tile(impl: str, shape: flash.Shape, block_q: int, block_kv: int) -> AttentionTile:
    return AttentionTile(
        impl,
        block_q,
        block_kv,
        block_q * shape.head_dim * shape.q_bytes,
        block_kv * shape.head_dim * shape.kv_bytes,
        block_kv * shape.head_dim_v * shape.kv_bytes,
        block_q * shape.head_dim_v * shape.q_bytes,
        2 * block_q * STATISTIC_BYTES,
    )
