"""What L2 lets through to main memory of a kernel whose blocks share operands.

Blocks start in waves, as many at a time as fit on the GPU. Those of one wave walk along the same panels
together and fetch each once; the next wave finds what L2 still holds. `memwall.verify.counting` runs the same
waves over a simulated L2, and the verifier holds them against an H200's counters.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from memwall.maths import ceil_div
from memwall.traffic import Traffic

Panels: TypeAlias = dict[tuple[str, int], int]
"""What a wave shares, by name, and its size."""


def tiled_gemm_dram(
    m: int,
    n: int,
    k: int,
    tile_m: int,
    tile_n: int,
    group: int,
    resident: int,
    kept_bytes: float,
    element_bytes: int,
    result_bytes: int,
) -> Traffic:
    """What of a tiled product's loads reaches main memory, when tiles that run together share them in L2.

    Tiles are started in bands of `group` rows of tiles, column by column within a band, `resident` at a
    time. Those of one wave walk along k together, so each row panel and column panel of the wave is fetched
    once, unless L2 still has it from an earlier wave:

        read = sum over waves of the panels, tile_m k or tile_n k elements each, that L2 does not have

    Args:
        m: rows of a and c.
        n: columns of b and c.
        k: the dimension summed over.
        tile_m: rows of the output tile of one block.
        tile_n: its columns.
        group: rows of tiles in a band.
        resident: blocks that run at once: compute units times blocks on each.
        kept_bytes: what L2 keeps between waves [B]. Of an L2 in two partitions that is half: each keeps its
            own copy of what both sides read.
        element_bytes: stored size of an element of a and of b [B].
        result_bytes: stored size of an element of c [B].

    An H200 counted 147.4e6 and 9.303e9 bytes read for bf16 4096^3 and 16384^3 in tiles of 128 x 256, bands
    of 16, where 67e6 and 1.07e9 are compulsory:

    >>> [f"{tiled_gemm_dram(s, s, s, 128, 256, 16, 132, 31e6, 2, 2).read_bytes:.4g}" for s in (4096, 16384)]
    ['1.489e+08', '9.303e+09']
    """
    rows, cols = ceil_div(m, tile_m), ceil_div(n, tile_n)
    tiles = [
        (row, col)
        for band in range(0, rows, group)
        for col in range(cols)
        for row in range(band, min(band + group, rows))
    ]
    waves = []
    for start in range(0, len(tiles), resident):
        wave = tiles[start : start + resident]
        panels = {("row", row): min(tile_m, m - row * tile_m) * k for row, _ in wave}
        waves.append(panels | {("col", col): min(tile_n, n - col * tile_n) * k for _, col in wave})
    fetched = _fetched(waves, kept_bytes / element_bytes)
    return Traffic(fetched * element_bytes, m * n * result_bytes)


def flash2_dram(
    heads: int,
    group: int,
    seq_q: int,
    seq_kv: int,
    head_dim: int,
    block_q: int,
    resident: int,
    kept_bytes: float,
    element_bytes: int,
) -> Traffic:
    """The most that flash attention reads from main memory: query blocks in waves, all in step.

    Query blocks start head by head, `resident` at a time. Those of one wave that share a KV head walk along
    its keys together, so it is fetched once. A head whose blocks fall into two waves is fetched again, unless
    L2 still has it: what passes in between is the K and V of both waves, and a wave's Q and O.

        read = Q + sum over waves of K and V of the KV heads that L2 does not have

    The least is compulsory: blocks that have fallen out of step find what the blocks before them left.

    Args:
        heads: query heads of all sequences.
        group: query heads that share a KV head.
        seq_q: query tokens.
        seq_kv: key tokens.
        head_dim: elements of a head, of Q, K, V and O alike.
        block_q: queries a block.
        resident: blocks that run at once: compute units times blocks on each.
        kept_bytes: what L2 keeps between waves [B]; half of an L2 in two partitions.
        element_bytes: stored size of an element [B].

    32 heads of 256 with 4096 tokens on an H200: 201.3e6 bytes are compulsory, and three different kernels
    were counted at 209e6 to 216e6:

    >>> f"{flash2_dram(32, 1, 4096, 4096, 256, 128, 132, 31e6, 2).read_bytes:.4g}"
    '2.307e+08'
    """
    blocks = ceil_div(seq_q, block_q)
    cache = 2 * seq_kv * head_dim
    starts = range(0, heads * blocks, resident)
    waves: list[Panels] = []
    for start in starts:
        last = min(start + resident, heads * blocks) - 1
        kv_heads = range(start // blocks // group, last // blocks // group + 1)
        waves.append({("kv", kv_head): cache for kv_head in kv_heads})
    private = 2 * resident * block_q * head_dim
    fetched = _fetched(waves, kept_bytes / element_bytes, private)
    queries = heads * seq_q * head_dim
    return Traffic((queries + fetched) * element_bytes, queries * element_bytes)


def _fetched(waves: Iterable[Panels], kept_size: float, private: int = 0) -> int:
    """What waves fetch: all of their panels, but for those that earlier waves left in L2.

    A panel is still there if no more than L2 keeps has passed since a wave last used it: the panels of the
    waves between, those that both ends share, and half of the rest at either end, since a wave reaches the
    same place of a panel half-way through on average; and each wave's private data.
    """
    total = 0
    history: list[Panels] = []
    last_used: dict[tuple[str, int], int] = {}
    for index, panels in enumerate(waves):
        oldest = min((last_used[panel] for panel in panels if panel in last_used), default=index)
        found: set[tuple[str, int]] = set()
        between: Panels = {}
        for age, before in enumerate(reversed(history[oldest:]), start=1):
            if _passed(before, panels, between) + age * private > kept_size:
                break
            found |= before.keys() & panels.keys()
            between |= before
        total += sum(size for panel, size in panels.items() if panel not in found)
        history.append(panels)
        last_used |= dict.fromkeys(panels, index)
    return total


def _passed(before: Panels, now: Panels, between: Panels) -> float:
    """What passes from one wave's use of a panel to another's."""
    ends = {panel: size for panel, size in (before | now).items() if panel not in between}
    shared = sum(size for panel, size in ends.items() if panel in before and panel in now)
    return sum(between.values()) + shared + (sum(ends.values()) - shared) / 2
