"""The time of flash attention over many queries: matrix time plus exp time for each pair of tiles.

A block of `rows` queries meets its tiles of `cols` keys one after the other:

    tile    = 2 rows cols (d + dv) / (peak boost matrix_share / units) + rows cols / (exp rate)
    block   = tiles of its row, up to the diagonal when causal, x tile + block_s
    evenly  = all blocks / units          longest = the block with most tiles
    memory  = (Q, K, V, O once) / (bandwidth bandwidth_share)
    power   = FLOPs x energy / TDP
    time    = launch + max(evenly, longest, memory) + tail longest min(1, blocks / units)
              + prepare x 2 (Q + K + V) / bandwidth            and max with power

The exponentials of a tile wait for its scores and the next product waits for them; overlap between two
tiles hides part of it, which is in exp_share: 1.5 everywhere, because times of whole launches do not tell
it from matrix_share. Causal blocks differ in length, and the last ones run
alone (tail). Engines that pack Q, K and V first pay for a pass over them (prepare), from L2 where they are
there already.

Source: Shah et al. 2024, arXiv:2407.08608 (FlashAttention-3, section 3.1: 16 exp a clock and SM against
matrix rates); matrix plus exp time is within a few per cent of its H100 figures.
"""

from __future__ import annotations

from typing import NamedTuple

from memwall.estimate.chip import Chip
from memwall.maths import Count, ceil_div, maximum, minimum, smooth_maximum, where


class PrefillShape(NamedTuple):
    """One launch of attention with several queries a sequence."""

    batch: Count
    heads: Count
    kv_heads: Count
    seq_q: Count
    seq_kv: Count
    head_dim: Count
    head_dim_v: Count
    pairs: Count
    """Of query and key that the mask leaves, one head's."""
    traffic_bytes: Count


class PrefillConstants(NamedTuple):
    """What differs between architectures and libraries."""

    launch_s: float
    bandwidth_share: float
    matrix_share: float
    """Of the matrix peak at maximum clock."""
    exp_share: float
    """Exponentials a clock and unit, in parts of the unit's rate; above 1 where tiles overlap."""
    block_s: float
    """Loading Q, storing O."""
    tail: float
    """Of the longest block, that the end of a causal launch waits."""
    prepare: float
    """Passes over Q, K and V before the kernel."""
    energy_per_flop_j: float
    rows: float
    """Queries a block."""
    cols: float
    """Keys a tile."""
    small: float
    """Of matrix_share, what is left below head_dim 128."""
    wide: float
    """Of matrix_share, what is left from head_dim 192 on."""
    sharpness: float


USUAL_HEAD, WIDE_HEAD = 128, 192
QKV_BYTES = 2
L2_SHARE = 0.2
"""Of the rate of L2's ports, what Q, K and V come at from there."""
EVEN_TAIL = 0.3
"""Without a mask blocks are alike, and less of the tail is waited for."""


def prefill_time_s(shape: PrefillShape, chip: Chip, c: PrefillConstants, warm: Count = False) -> Count:
    """The time of the launch [s].

    Args:
        shape: what attends to what.
        chip: the device, with the peak of the format that computes.
        c: the constants.
        warm: whether Q, K and V are in L2 already.
    """
    s = shape
    masked = s.pairs < s.seq_q * s.seq_kv
    blocks, heads = ceil_div(s.seq_q, c.rows), s.batch * s.heads
    tile_s = _tile_s(s, chip, c)
    most = ceil_div(s.seq_kv, c.cols)
    tiles = where(masked, masked_tiles(s.pairs, s.seq_q, s.seq_kv, c.rows, c.cols), blocks * most)
    evenly = heads * (tiles * tile_s + blocks * c.block_s) / chip.units
    longest = most * tile_s + c.block_s
    memory = s.traffic_bytes / _stream(chip, c.bandwidth_share, warm)
    busy = smooth_maximum(maximum(evenly, longest), memory, c.sharpness)
    alone = longest * minimum(1.0, heads * blocks / chip.units)
    busy = busy + c.tail * where(masked, 1.0, EVEN_TAIL) * alone
    flops = 2 * heads * s.pairs * (s.head_dim + s.head_dim_v)
    power = flops * c.energy_per_flop_j / chip.tdp_w if chip.tdp_w else 0 * flops
    qkv = s.batch * s.head_dim * (s.heads * s.seq_q + 2 * s.kv_heads * s.seq_kv) * QKV_BYTES
    prepare = c.prepare * 2 * qkv / _stream(chip, 1.0, warm)
    return c.launch_s + smooth_maximum(busy, power, c.sharpness) + prepare


def _stream(chip: Chip, share: float, warm: Count) -> Count:
    """Bytes a second from memory, or from L2 where they are there already."""
    memory = chip.bandwidth_bytes_per_s * share
    return where(warm, max(memory, chip.l2_bytes_per_s * L2_SHARE), memory)


def _tile_s(s: PrefillShape, chip: Chip, c: PrefillConstants) -> Count:
    """Matrix time plus exp time of one tile on one unit."""
    flops_per_s = chip.peak_flops_per_s * chip.boost * c.matrix_share / chip.units
    flops_per_s = flops_per_s * where(
        s.head_dim >= WIDE_HEAD, c.wide, where(s.head_dim < USUAL_HEAD, c.small, 1.0)
    )
    exp_per_s = chip.exp_per_clock_per_unit * chip.clock_hz * c.exp_share
    return c.rows * c.cols * (2 * (s.head_dim + s.head_dim_v) / flops_per_s + 1 / exp_per_s)


def masked_tiles(pairs: Count, seq_q: Count, seq_kv: Count, rows: float, cols: float) -> Count:
    """Tiles of one head that a mask leaves, over all blocks of queries.

    Each block computes the pairs of its rows, the half of its diagonal square that is masked, and what
    rounds its keys up to whole tiles:

        (pairs + seq_q (rows - 1) / 2) / (rows cols) + blocks max(cols - rows, 0) / (2 cols)

    >>> masked_tiles(4096 * 4097 // 2, 4096, 4096, 128, 128)  # 1 + 2 + ... + 32
    528.0
    """
    blocks = ceil_div(seq_q, rows)
    full = blocks * ceil_div(seq_kv, cols)
    rounding = blocks * max(cols - rows, 0) / (2 * cols)
    return minimum((pairs + seq_q * (rows - 1) / 2) / (rows * cols) + rounding, full)
