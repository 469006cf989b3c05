"""What a kernel that works in tiles asks of the memory: operands again for every tile.

Compulsory traffic (`Program.work`) has every tensor cross once. A kernel that works tile by tile asks
for its operands again for every tile; that is what passes between L2 and the compute units, and what is here.
How much of it goes on to main memory depends on what L2 still holds: `memwall.l2`.

Sizes are in elements, `element_bytes` is the stored size of one. Each formula is what the kernel of the
same name in `memwall.verify.counting` is counted to load and store, byte for byte.
"""

from __future__ import annotations

from dataclasses import dataclass

from memwall.maths import Count, ceil_div, floor_sum

STATISTIC_BYTES = 4
"""Running maxima, sums and partial results are kept in fp32."""


@dataclass(frozen=True)
class Traffic:
    """Bytes through one boundary between two levels."""

    read_bytes: Count
    written_bytes: Count

    @property
    def total_bytes(self) -> Count:
        """Bytes read plus bytes written."""
        return self.read_bytes + self.written_bytes

    def __add__(self, other: Traffic) -> Traffic:
        """Both, one after the other."""
        return Traffic(self.read_bytes + other.read_bytes, self.written_bytes + other.written_bytes)

    def times(self, count: Count) -> Traffic:
        """So many repetitions: heads, sequences."""
        return Traffic(self.read_bytes * count, self.written_bytes * count)


def tiled_gemm(
    m: Count, n: Count, k: Count, tile_m: Count, tile_n: Count, element_bytes: Count, result_bytes: Count
) -> Traffic:
    """A product whose tiles each load their own rows of a and columns of b.

        read  = (m k ceil(n / tile_n) + n k ceil(m / tile_m)) element_bytes
        write = m n result_bytes

    A tile of 1 x 1 is the naive kernel, one output a thread: 2 m n k loads.

    Args:
        m: rows of a and c, in c[m,n] = a[m,k] b[k,n].
        n: columns of b and c.
        k: the dimension summed over.
        tile_m: rows of the output tile that one block computes.
        tile_n: its columns.
        element_bytes: stored size of an element of a and of b [B].
        result_bytes: stored size of an element of c [B].

    >>> tiled_gemm(4096, 4096, 4096, 1, 1, 4, 4).read_bytes  # naive: 2 x 4096^3 x 4
    549755813888
    >>> tiled_gemm(4096, 4096, 4096, 128, 256, 2, 2).read_bytes  # 16 + 32 times 33.5 MB
    1610612736
    """
    read = m * k * ceil_div(n, tile_n) + n * k * ceil_div(m, tile_m)
    return Traffic(read * element_bytes, m * n * result_bytes)


def online_softmax(rows: Count, cols: Count, element_bytes: Count) -> Traffic:
    """Softmax of rows too long to keep on chip: one pass for maximum and sum together, one to scale.

        read = 2 rows cols element_bytes,   write = rows cols element_bytes

    Source: Milakov and Gimelshein 2018, arXiv:1805.02867, algorithm 3: three accesses an element, where
    the safe softmax has four.
    """
    return Traffic(2 * rows * cols * element_bytes, rows * cols * element_bytes)


def flash1_figure(seq: Count, head_dim: Count, block_k: Count, element_bytes: Count) -> Traffic:
    """FlashAttention-1's traffic of one head as its paper's figure 2 counts it.

        T = ceil(seq / block_k)
        read  = seq head_dim (2 + T + T - 1)      K and V once; Q for each block of keys, O from the second on
        write = seq head_dim T                    O
        both  = seq head_dim (3 T + 1)

    It leaves out the statistics l and m and the initialisation of O.

    Args:
        seq: tokens, queries and keys alike.
        head_dim: elements a head.
        block_k: keys a block, the paper's B_c.
        element_bytes: stored size of an element [B].

    GPT-2 medium, 64 sequences of 16 heads, fp16, blocks of 64 to 512: 6.58, 3.36, 1.74, 0.94 GB.
    Source: Dao et al. 2022, arXiv:2205.14135, figure 2, middle.
    """
    tensor = seq * head_dim * element_bytes
    blocks = ceil_div(seq, block_k)
    return Traffic(tensor * (2 * blocks + 1), tensor * blocks)


def flash1(
    seq: Count,
    head_dim: Count,
    block_k: Count,
    element_bytes: Count,
    statistic_bytes: Count = STATISTIC_BYTES,
) -> Traffic:
    """FlashAttention-1's traffic of one head, its algorithm 1 in full.

        T = ceil(seq / block_k)
        read  = 2 seq head_dim + T (2 seq head_dim + 2 seq)    K, V; for each block of keys Q, O and l, m
        write = (T + 1) (seq head_dim + 2 seq)                 O, l, m; once more to initialise them

    The outer loop goes over blocks of keys, so O is read and written again for each of them.

    Args:
        seq: tokens, queries and keys alike.
        head_dim: elements a head.
        block_k: keys a block, the paper's B_c; its B_r changes no traffic.
        element_bytes: stored size of an element of Q, K, V, O [B].
        statistic_bytes: of l and m [B].

    Source: Dao et al. 2022, arXiv:2205.14135, algorithm 1, lines 2 to 15.
    """
    tensor = seq * head_dim * element_bytes
    statistics = 2 * seq * statistic_bytes
    blocks = ceil_div(seq, block_k)
    return Traffic(2 * tensor + blocks * (2 * tensor + statistics), (blocks + 1) * (tensor + statistics))


def loaded_keys(seq_q: int, seq_kv: int, block_q: int, block_k: Count, causal: bool) -> Count:
    """Keys that the query blocks of one head load, added up, each block of keys whole.

        sum over query blocks i of min(seq_kv, block_k ceil(last_i / block_k)),
        last_i = seq_kv - seq_q + min(seq_q, (i + 1) block_q);  without a mask seq_kv each

    >>> loaded_keys(4096, 4096, 128, 128, causal=False), loaded_keys(4096, 4096, 128, 128, causal=True)
    (131072, 67584)
    """
    blocks = ceil_div(seq_q, block_q)
    if not causal:
        return blocks * seq_kv
    # All but the last block end at first + (i + 1) block_q; those that reach into the last, partial block of
    # keys load all that there are, as the last does.
    first, whole = seq_kv - seq_q, seq_kv - seq_kv % block_k
    before = min(blocks - 1, max(0, (whole - first) // block_q))
    rounded = floor_sum(before, block_k, block_q, first + block_q + block_k - 1)
    return block_k * rounded + (blocks - before) * seq_kv


def flash2(
    seq_q: int,
    seq_kv: int,
    head_dim: Count,
    head_dim_v: Count,
    block_q: int,
    block_k: Count,
    element_bytes: Count,
    *,
    causal: bool,
) -> Traffic:
    """FlashAttention-2's traffic of one query head without any reuse of K and V.

        read  = (seq_q head_dim + keys (head_dim + head_dim_v)) element_bytes
        write = seq_q head_dim_v element_bytes

    with `loaded_keys`: every block of queries loads its own keys and values. This is what passes between
    L2 and the compute units; what L2 keeps between the blocks does not go on to memory.

    Args:
        seq_q: query tokens, aligned with the end of the key tokens.
        seq_kv: key tokens.
        head_dim: elements of a query and key head.
        head_dim_v: elements of a value head.
        block_q: rows of the tile of scores.
        block_k: its columns.
        element_bytes: stored size of an element [B].
        causal: skip the blocks of keys after a block's last query.

    Source: Dao 2023, arXiv:2307.08691, algorithm 1; the log-sum-exp, which a backward pass needs, is not
    written here.
    """
    keys = loaded_keys(seq_q, seq_kv, block_q, block_k, causal)
    read = seq_q * head_dim + keys * (head_dim + head_dim_v)
    return Traffic(read * element_bytes, seq_q * head_dim_v * element_bytes)


def split_decode(
    group: Count, seq_kv: Count, head_dim: Count, head_dim_v: Count, splits: Count, element_bytes: Count
) -> Traffic:
    """One decode token of one KV head, its keys split over so many blocks, then combined.

        read  = splits group head_dim e + seq_kv (head_dim + head_dim_v) e + splits group (head_dim_v + 1) 4
        write = splits group (head_dim_v + 1) 4 + group head_dim_v e

    The partial results, an unnormalised output and a log-sum-exp in fp32, are written and read back.

    Args:
        group: query heads that share the KV head.
        seq_kv: keys.
        head_dim: elements of a query and key head.
        head_dim_v: elements of a value head.
        splits: blocks that share the keys.
        element_bytes: e, the stored size of an element [B].

    Source: Dao, Haziza, Massa and Sizov 2023, "Flash-Decoding for long-context inference".
    """
    partial = splits * group * (head_dim_v + 1) * STATISTIC_BYTES
    queries = splits * group * head_dim * element_bytes
    cache = seq_kv * (head_dim + head_dim_v) * element_bytes
    return Traffic(queries + cache + partial, partial + group * head_dim_v * element_bytes)
