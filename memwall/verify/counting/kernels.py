"""The kernels of the counting run, in the order in which a GPU's would load, compute and store.

What is indexed (`q[i:j]`) is memory and is counted; every other name is on chip. Blocks at the edge
are shorter, as masked loads make them. Rows of statistics are columns, so that they broadcast.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy

from memwall.verify.counting.memory import Array, Buffer, Memory

FP32_BYTES = 4


def blocks(length: int, size: int) -> Iterator[slice]:
    """Consecutive slices of `size`, the last one shorter."""
    return (slice(start, min(start + size, length)) for start in range(0, length, size))


def tiled_gemm(a: Buffer, b: Buffer, c: Buffer, tile_m: int, tile_n: int, tile_k: int) -> None:
    """The product c = a b, one output tile at a time; tiles of 1 x 1 are the naive kernel."""
    (m, k), n = a.shape, b.shape[1]
    for rows in blocks(m, tile_m):
        for cols in blocks(n, tile_n):
            total = numpy.zeros((rows.stop - rows.start, cols.stop - cols.start))
            for step in blocks(k, tile_k):
                total += a[rows, step] @ b[step, cols]
            c[rows, cols] = total


def concurrent_gemm(
    a: Buffer, b: Buffer, c: Buffer, tile_m: int, tile_n: int, tile_k: int, group: int, resident: int
) -> None:
    """The product c = a b as a GPU runs it: `resident` tiles at a time, all at the same step of k.

    Tiles start in bands of `group` rows of tiles, column by column within a band.
    """
    (m, k), n = a.shape, b.shape[1]
    bands = [list(blocks(m, tile_m))[i : i + group] for i in range(0, -(-m // tile_m), group)]
    tiles = [(rows, cols) for band in bands for cols in blocks(n, tile_n) for rows in band]
    for start in range(0, len(tiles), resident):
        wave = tiles[start : start + resident]
        totals = [numpy.zeros((r.stop - r.start, s.stop - s.start)) for r, s in wave]
        for step in blocks(k, tile_k):
            for (rows, cols), total in zip(wave, totals, strict=True):
                total += a[rows, step] @ b[step, cols]
        for (rows, cols), total in zip(wave, totals, strict=True):
            c[rows, cols] = total


def online_softmax(x: Buffer, y: Buffer, block: int) -> None:
    """Two passes over each row: maximum and sum together, then the quotient."""
    rows, cols = x.shape
    for row in range(rows):
        maximum, total = -numpy.inf, 0.0
        for part in blocks(cols, block):
            values = x[row, part]
            risen = max(maximum, float(values.max()))
            total = total * numpy.exp(maximum - risen) + float(numpy.exp(values - risen).sum())
            maximum = risen
        for part in blocks(cols, block):
            y[row, part] = numpy.exp(x[row, part] - maximum) / total


def standard_attention(q: Buffer, k: Buffer, v: Buffer, o: Buffer, causal: bool) -> None:
    """Three kernels of one head, S and P between them in memory, masked or not the whole square."""
    memory, seq_q, seq_kv = q.memory, q.shape[0], k.shape[0]
    s = memory.empty((seq_q, seq_kv), q.element_bytes)
    p = memory.empty((seq_q, seq_kv), q.element_bytes)
    s[:] = _masked(q[:] @ k[:].T / numpy.sqrt(q.shape[1]), 0, seq_kv - seq_q, 0, causal)
    scores = s[:]
    weights = numpy.exp(scores - scores.max(axis=1, keepdims=True))
    p[:] = weights / weights.sum(axis=1, keepdims=True)
    o[:] = p[:] @ v[:]


def flash1(
    q: Buffer, k: Buffer, v: Buffer, o: Buffer, block_q: int, block_k: int, in_full: bool = True
) -> None:
    """FlashAttention-1, its algorithm 1: the outer loop over blocks of keys, O rescaled in memory.

    Args:
        q: queries of one head.
        k: its keys.
        v: its values.
        o: the result.
        block_q: the paper's B_r.
        block_k: the paper's B_c.
        in_full: l and m in memory and O initialised there; else as the paper's figure 2 counts, which
            has the statistics on chip and reads no O before the first block wrote it.
    """
    memory, (seq, head_dim) = (q.memory if in_full else Memory()), q.shape
    l = memory.empty((seq, 1), FP32_BYTES)  # noqa: E741 - the paper's name
    m = memory.empty((seq, 1), FP32_BYTES)
    if in_full:
        o[:] = 0.0
    l[:], m[:] = 0.0, -numpy.inf
    for keys in blocks(seq, block_k):
        kj, vj = k[keys], v[keys]
        for rows in blocks(seq, block_q):
            first = keys.start == 0 and not in_full
            qi, li, mi = q[rows], l[rows], m[rows]
            oi = numpy.zeros((rows.stop - rows.start, head_dim)) if first else o[rows]
            s = qi @ kj.T / numpy.sqrt(head_dim)
            new = numpy.maximum(mi, s.max(axis=1, keepdims=True))
            p = numpy.exp(s - new)
            total = numpy.exp(mi - new) * li + p.sum(axis=1, keepdims=True)
            o[rows] = (numpy.exp(mi - new) * li * oi + p @ vj) / total
            l[rows], m[rows] = total, new


def flash2(
    q: Buffer, k: Buffer, v: Buffer, o: Buffer, block_q: int, block_k: int, causal: bool = False
) -> None:
    """FlashAttention-2: the outer loop over blocks of queries, O on chip until it is done."""
    (seq_q, head_dim), seq_kv = q.shape, k.shape[0]
    offset = seq_kv - seq_q  # queries stand at the end of the keys
    for rows in blocks(seq_q, block_q):
        qi = q[rows]
        last = offset + rows.stop if causal else seq_kv
        state = _empty_state(len(qi), v.shape[1])
        for keys in blocks(seq_kv, block_k):
            if keys.start >= last:
                break
            s = qi @ k[keys].T / numpy.sqrt(head_dim)
            state = _absorb(state, _masked(s, rows.start, offset, keys.start, causal), v[keys])
        total, _, oi = state
        o[rows] = oi / total


def split_decode(q: Buffer, k: Buffer, v: Buffer, o: Buffer, splits: int, block_k: int) -> None:
    """One token of the query heads that share a KV head; each split leaves a partial result in memory."""
    group, head_dim, head_dim_v = q.shape[0], q.shape[1], v.shape[1]
    partial = q.memory.empty((splits, group, head_dim_v), FP32_BYTES)
    log_sums = q.memory.empty((splits, group, 1), FP32_BYTES)
    bounds = numpy.linspace(0, k.shape[0], splits + 1).astype(int)
    for split, (start, stop) in enumerate(pairwise(bounds)):
        queries = q[:]
        state = _empty_state(group, head_dim_v)
        for part in blocks(stop - start, block_k):
            keys = slice(start + part.start, start + part.stop)
            state = _absorb(state, queries @ k[keys].T / numpy.sqrt(head_dim), v[keys])
        total, maximum, oi = state
        partial[split], log_sums[split] = oi / total, maximum + numpy.log(total)
    logs = log_sums[:]
    weights = numpy.exp(logs - logs.max(axis=0))
    o[:] = (weights * partial[:]).sum(axis=0) / weights.sum(axis=0)


State = tuple[Array, Array, Array]
"""Sum, maximum and unnormalised output of the keys seen so far."""


def _empty_state(rows: int, head_dim_v: int) -> State:
    return numpy.zeros((rows, 1)), numpy.full((rows, 1), -numpy.inf), numpy.zeros((rows, head_dim_v))


def _absorb(state: State, s: Array, values: Array) -> State:
    """The online softmax: one more block of scores, and of the values that they weigh."""
    total, maximum, oi = state
    new = numpy.maximum(maximum, s.max(axis=1, keepdims=True))
    p, shrink = numpy.exp(s - new), numpy.exp(maximum - new)
    return shrink * total + p.sum(axis=1, keepdims=True), new, shrink * oi + p @ values


def _masked(s: Array, first_query: int, offset: int, first_key: int, causal: bool) -> Array:
    """Scores with the keys after each query at minus infinity."""
    if not causal:
        return s
    positions = offset + first_query + numpy.arange(s.shape[0])[:, None]
    return numpy.where(first_key + numpy.arange(s.shape[1]) <= positions, s, -numpy.inf)
