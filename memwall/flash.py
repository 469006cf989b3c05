"""The three generations of FlashAttention: their blocks, and the bytes that they move at each level.

FA1 goes over blocks of keys outside and over rows of queries inside, so that O passes through memory again
for each block of keys. FA2 and FA3 go over blocks of queries outside: O is written once, and K and V are
asked for again by every block of queries; most of that is served by L2.

Blocks run in waves: units x blocks on each at a time, the query blocks of one head after the other. A wave
fetches the K and V of its heads once; a head that straddles two waves is asked for again
(`memwall.retention`).
"""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

from memwall.maths import Count, ceil_div, minimum
from memwall.ops.attention import needed_keys
from memwall.retention import L2
from memwall.traffic import STATISTIC_BYTES, Traffic, flash1, loaded_keys


class Shape(NamedTuple):
    """Attention of so many heads, and what an element of each tensor takes."""

    batch: int
    heads: int
    kv_heads: int
    seq_q: int
    seq_kv: int
    head_dim: int
    head_dim_v: int
    causal: bool = False
    window: int | None = None
    q_bytes: float = 2
    """Of an element of Q, and of O [B]."""
    kv_bytes: float = 2

    @property
    def rows(self) -> int:
        """Query rows of all heads."""
        return self.batch * self.heads * self.seq_q

    @property
    def keys(self) -> int:
        """Keys that some query sees."""
        return int(needed_keys(self.seq_q, self.seq_kv, self.window))

    @property
    def query_bytes(self) -> float:
        """Of Q."""
        return self.rows * self.head_dim * self.q_bytes

    @property
    def output_bytes(self) -> float:
        """Of O."""
        return self.rows * self.head_dim_v * self.q_bytes

    @property
    def key_value_bytes(self) -> float:
        """Of one head's K and V."""
        return self.keys * (self.head_dim + self.head_dim_v) * self.kv_bytes

    @property
    def cache_bytes(self) -> float:
        """Of K and V, each once."""
        return self.batch * self.kv_heads * self.key_value_bytes


class Blocks(NamedTuple):
    """How a kernel cuts the score matrix, and how it loads."""

    block_q: int
    block_kv: int
    per_unit: int
    """Blocks of queries that run on a compute unit at once."""
    loaded_by: str
    """tma or load."""


SIZES = {
    "fa1": ((64, 16, 256), (128, 16, 256)),
    "fa2": ((64, 128, 128), (128, 128, 64), (192, 128, 64), (256, 64, 64)),
    "fa3": ((64, 192, 192), (96, 192, 144), (128, 128, 176), (192, 128, 112), (256, 128, 80)),
}
"""(head_dim up to, block of queries, block of keys), fp16 without dropout. FA1's 16 is its row step.
Source: flash-attention fmha_fwd_hdim64.cu (v0.x), and at 0251105a csrc/flash_attn/src/
flash_fwd_launch_template.h and hopper/tile_size.h; FA2 at 256 on parts with 228 KiB: counted on an H200."""

CAUSAL_SIZES = {"fa3": ((64, 192, 128), (96, 192, 144), (128, 128, 128), (192, 128, 112), (256, 128, 80))}
"""Where a causal kernel has others."""

PER_UNIT = {"fa1": 2, "fa2": 2, "fa3": 1}
"""FA2: 128 threads of 255 registers, two blocks a unit; FA3: one of 384 threads stays on each unit.
Read from launches on an H200."""


def blocks_of(impl: str, shape: Shape, block_q: int | None = None, block_kv: int | None = None) -> Blocks:
    """The blocks that a generation takes for a shape, or those asked for."""
    table = CAUSAL_SIZES.get(impl, SIZES[impl]) if shape.causal else SIZES[impl]
    _, own_q, own_kv = next((row for row in table if shape.head_dim <= row[0]), table[-1])
    by = "tma" if impl == "fa3" else "load"
    return Blocks(block_q or own_q, block_kv or own_kv, PER_UNIT[impl], by)


def without_reuse(shape: Shape, blocks: Blocks) -> Traffic:
    """FA2's and FA3's loads: every block of queries its own K and V. `traffic.flash2` for all heads.

    read  = Q + batch heads keys (head_dim + head_dim_v) element,   keys = sum of each block's
    write = O
    """
    pairs_of_rows = shape.batch * shape.heads * visited_keys(shape, blocks)
    read = shape.query_bytes + pairs_of_rows * (shape.head_dim + shape.head_dim_v) * shape.kv_bytes
    return Traffic(read, shape.output_bytes)


def visited_keys(shape: Shape, blocks: Blocks) -> int:
    """Keys that the query blocks of one head load, added up."""
    q_blocks = _query_blocks(shape, blocks)
    if shape.window is not None and shape.window < shape.seq_kv:
        return q_blocks * min(shape.seq_kv, shape.window + blocks.block_q + blocks.block_kv)
    return int(loaded_keys(shape.seq_q, shape.seq_kv, blocks.block_q, blocks.block_kv, shape.causal))


IN_STEP_KEYS = 3500
"""How many keys two neighbouring blocks walk along in step. Counted on an H200: with an FA3-class kernel L2
hands out half of what the units receive at 2048 keys, 0.65 at 4096, 0.78 at 8192, 0.89 at 16384."""


def through_l2(shape: Shape, blocks: Blocks) -> Traffic:
    """Bytes that L2 hands out: without reuse, but two neighbours that ask for a line together get it at once.

        read = Q + K, V without reuse x (1 - min(1, IN_STEP_KEYS / keys) / 2)      by TMA, no mask

    Blocks that stay on their unit and load by TMA walk along K and V in step with the neighbour's, at
    first; so an FA3-class kernel with blocks of 128 rows asks like one of up to 256. With a causal mask
    neighbours differ in length, and blocks that load by themselves are not in step: all loads count. When
    decoding, the queries that share a head of K and V are one block.
    """
    if shape.seq_q == 1:  # the queries of a group are the rows of one block
        return Traffic(shape.query_bytes + shape.cache_bytes, shape.output_bytes)
    full = without_reuse(shape, blocks)
    if blocks.loaded_by != "tma" or shape.causal or shape.seq_q <= blocks.block_q:
        return full
    together = minimum(1, IN_STEP_KEYS / shape.keys) / 2
    repeated = full.read_bytes - shape.query_bytes
    return Traffic(shape.query_bytes + repeated * (1 - together), full.written_bytes)


CROSSED_AGAIN = 0.5
"""Of a shared line that lies in the far partition, the share of loads that find no copy near by, when each
block loads for itself. Counted on an H200 for FA2: 0.4 to 0.7."""


def counted_l2(shape: Shape, blocks: Blocks, l2: L2) -> float:
    """What the counter `lts__t_bytes` is expected to show: the bytes, and those that cross the partitions.

    A streamed byte crosses half of the time; shared lines that are loaded by TMA once; those that blocks load
    by themselves, half of the far ones.

    An H200 counted 2.79e9 for FA2 and 1.36e9 to 1.46e9 for an FA3-class kernel (4096, 32 heads of 128, no
    mask):

    >>> shape, cache = Shape(1, 32, 32, 4096, 4096, 128, 128), L2(62914560, 2)
    >>> [round(counted_l2(shape, blocks_of(impl, shape), cache) / 1e9, 2) for impl in ("fa2", "fa3")]
    [2.77, 1.4]
    """
    moved = float(through_l2(shape, blocks).total_bytes)
    if l2.partitions == 1:
        return moved
    if shape.seq_q == 1:
        return moved * l2.crossing
    if blocks.loaded_by == "load":
        return moved * (1 + CROSSED_AGAIN / 2)
    return moved + shape.cache_bytes + (shape.query_bytes + shape.output_bytes) * (l2.crossing - 1)


def through_dram(shape: Shape, blocks: Blocks, units: int, l2: L2) -> Traffic:
    """What of it reaches main memory, with an L2 of this size, cold.

        read  = Q + K, V (1 + again x missed)
        write = O
        again = (L - gcd(L, B)) / B for a run of L blocks that share K and V, B = units x blocks on each

    An H200 counted 104.6e6 for FA2 and 100.7e6 for an FA3-class kernel of the same shape, 100.7e6 compulsory:

    >>> shape, cache = Shape(1, 32, 32, 4096, 4096, 128, 128), L2(62914560, 2)
    >>> [round(through_dram(shape, blocks_of(i, shape), 132, cache).read_bytes / 1e6) for i in ("fa2", "fa3")]
    [103, 101]
    """
    again = read_again(shape, blocks, units, l2)
    return Traffic(dram_reads(shape.query_bytes, shape.cache_bytes, again), shape.output_bytes)


def dram_reads(queries: Count, cache: Count, again: Count) -> Count:
    """Bytes from main memory: Q + K, V (1 + again)."""
    return queries + cache * (1 + again)


def read_again(shape: Shape, blocks: Blocks, units: int, l2: L2) -> float:
    """How often K and V come from main memory after the first time."""
    q_blocks = _query_blocks(shape, blocks)
    at_once = units * blocks.per_unit
    total = shape.batch * shape.heads * q_blocks
    windowed = shape.window is not None and shape.window < shape.seq_kv
    if total <= at_once or shape.seq_q == 1 or windowed:
        return 0.0
    group = shape.heads // shape.kv_heads
    # Query blocks come first, then sequences, then heads: a group's heads stand a batch apart.
    run, times, apart = (
        (group * q_blocks, 1, 0) if shape.batch == 1 else (q_blocks, group, shape.batch * q_blocks)
    )
    pairs = min(at_once / run + 1, shape.batch * shape.kv_heads)
    if shape.batch > 1 and apart <= at_once:  # a wave has all sequences of some heads
        run, times = apart * (group - 1) + q_blocks, 1
        pairs = min(at_once / (apart * group) + 1, shape.kv_heads) * shape.batch
    straddled = min((run - gcd(run, at_once)) / at_once, total / at_once)
    wave = _wave_bytes(shape, blocks, at_once, pairs, l2)
    between = (times - 1) * l2.missed(wave * apart / at_once)
    return times * straddled * l2.missed(wave) + between


def _wave_bytes(shape: Shape, blocks: Blocks, at_once: int, pairs: float, l2: L2) -> float:
    """Bytes of L2 that one wave passes through: its heads' K and V, its rows of Q and O."""
    rows = at_once * blocks.block_q * (shape.head_dim + shape.head_dim_v) * shape.q_bytes
    return pairs * shape.key_value_bytes * l2.places(blocks.loaded_by) + rows


def fa1_dram(shape: Shape, blocks: Blocks, units: int, l2: L2) -> Traffic:
    """FA1 with an L2 behind it: its algorithm 1, of which Q, O and statistics come again if L2 lost them.

    One block a head; units x blocks on each heads run at once, and each passes over its Q and O once for
    every block of keys.
    """
    full = fa1_full(shape, blocks)
    tensor = shape.query_bytes + shape.output_bytes + 2 * shape.rows * STATISTIC_BYTES
    first = Traffic(
        shape.query_bytes + shape.cache_bytes, shape.output_bytes + 2 * shape.rows * STATISTIC_BYTES
    )
    heads = shape.batch * shape.heads
    live = min(heads, units * blocks.per_unit) * tensor / heads
    missed = l2.missed(live)
    return Traffic(
        first.read_bytes + (full.read_bytes - first.read_bytes) * missed,
        first.written_bytes + (full.written_bytes - first.written_bytes) * missed,
    )


def fa1_full(shape: Shape, blocks: Blocks) -> Traffic:
    """FA1's algorithm 1 without any reuse, all heads: `traffic.flash1`."""
    head = flash1(shape.seq_q, shape.head_dim, blocks.block_kv, shape.q_bytes)
    return head.times(shape.batch * shape.heads)


def _query_blocks(shape: Shape, blocks: Blocks) -> int:
    return int(ceil_div(shape.seq_q, blocks.block_q))
