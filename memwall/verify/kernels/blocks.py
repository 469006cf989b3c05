"""The blocks of the Triton kernels: what a launch uses is what its predicted traffic is worked out from.

Nothing is imported here, so that the prediction needs no GPU.
"""

from __future__ import annotations

from typing import NamedTuple

from memwall.maths import ceil_div

GEMV_BLOCK_M, GEMV_BLOCK_K = 16, 256
DECODE_BLOCK_K = 32
_PROGRAMS_PER_UNIT = 4
_MOST_SPLITS = 128  # their partial results of a head are combined by one program


class FlashBlocks(NamedTuple):
    """The tile of scores, and how Triton runs it."""

    block_q: int
    block_k: int
    warps: int
    stages: int


class GemmTile(NamedTuple):
    """The output tile of a program, and the order of the tiles."""

    tile_m: int
    tile_n: int
    tile_k: int
    group: int
    """Rows of tiles that are worked on together."""
    warps: int
    stages: int


GEMM = GemmTile(256, 128, 64, 8, 8, 3)


def flash_blocks(head_dim: int) -> FlashBlocks:
    """Tiles that fit in registers and shared memory for a head of that size."""
    return FlashBlocks(128, 64, 8, 3 if head_dim <= 128 else 2)


def gemv_splits(row_blocks: int, k: int, units: int) -> int:
    """How often to split the sum, so that every compute unit has a few programs to overlap."""
    wanted = ceil_div(_PROGRAMS_PER_UNIT * units, row_blocks)
    return int(max(1, min(wanted, ceil_div(k, 4 * GEMV_BLOCK_K)))) if row_blocks < 2 * units else 1


def decode_splits(kv_heads: int, seq_kv: int, units: int) -> tuple[int, int]:
    """(splits, keys in each): enough programs for every compute unit, and no split without keys.

    Args:
        kv_heads: KV heads of all sequences.
        seq_kv: keys of each.
        units: compute units.
    """
    blocks = ceil_div(seq_kv, DECODE_BLOCK_K)
    wanted = max(1, min(blocks, _MOST_SPLITS, ceil_div(_PROGRAMS_PER_UNIT * units, kv_heads)))
    span = ceil_div(blocks, wanted)
    return int(ceil_div(blocks, span)), int(span * DECODE_BLOCK_K)
