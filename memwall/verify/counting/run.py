"""The counting run: each algorithm block size by block size, counted beside memwall's formula."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy

from memwall import traffic
from memwall.dtypes import precision
from memwall.ops.attention import attention
from memwall.program import Work
from memwall.traffic import Traffic
from memwall.verify.counting import kernels
from memwall.verify.counting.memory import Array, Buffer, Memory

ELEMENT_BYTES = 2
ROUNDING = 4096 * float(numpy.finfo(numpy.float64).eps)
"""Results are in float64 and may differ from the reference by its rounding alone."""

SEQ, HEAD_DIM, HEADS = 2 * 512, 64, 16 * 64
"""FlashAttention-1's figure 2: GPT-2 medium, 64 sequences of 16 heads."""
FIGURE_BLOCKS = (64, 128, 256, 512)


class Counted(NamedTuple):
    """One algorithm on one shape, counted."""

    algorithm: str
    setting: str
    """Shape and blocks, for people."""
    counted: Traffic
    """What the kernel loaded and stored [B]."""
    formula: Traffic
    """What memwall says it does."""
    dram: Traffic
    """What main memory saw behind the L2; without one the same as counted."""
    error: float
    """Largest difference from the plain result in float64, over its largest value."""

    @property
    def exact(self) -> bool:
        """Whether bytes agree to the last one, and results to rounding."""
        return self.counted == self.formula and self.error <= ROUNDING


def plain_attention(q: Array, k: Array, v: Array, causal: bool = False) -> Array:
    """softmax(q k^T / sqrt(d)) v in float64, nothing clever: the reference."""
    scores = q @ k.T / numpy.sqrt(q.shape[1])
    if causal:
        hidden = numpy.arange(len(k)) > numpy.arange(len(q))[:, None] + len(k) - len(q)
        scores = numpy.where(hidden, -numpy.inf, scores)
    weights: Array = numpy.exp(scores - scores.max(axis=1, keepdims=True))
    result: Array = weights / weights.sum(axis=1, keepdims=True) @ v
    return result


def counting_run(l2_bytes: int = 0, seed: int = 0) -> Iterator[Counted]:
    """Every algorithm in turn.

    Args:
        l2_bytes: capacity of an L2 before main memory; 0: none.
        seed: of the random inputs.
    """
    draw = numpy.random.default_rng(seed).standard_normal
    for make in (_gemms, _softmaxes, _standard, _flash1, _flash2, _decodes):
        yield from make(lambda *shape: draw(shape), l2_bytes)


Draw = Callable[..., Array]


def _counted(
    algorithm: str,
    setting: str,
    l2_bytes: int,
    inputs: tuple[Array, ...],
    expected: Array,
    formula: Traffic,
    kernel: Callable[..., None],
    heads: int = 1,
) -> Counted:
    """Run a kernel on fresh memory; `heads` heads of the same shape cost as many times one."""
    memory = Memory(l2_bytes)
    buffers = [memory.holding(values, ELEMENT_BYTES) for values in inputs]
    result = memory.empty(expected.shape, ELEMENT_BYTES)
    kernel(*buffers, result)
    difference = float(numpy.abs(result.values - expected).max() / numpy.abs(expected).max())
    error = difference if numpy.isfinite(difference) else float("inf")  # an element was never stored
    requested, dram = memory.requested.times(heads), memory.dram.times(heads)
    return Counted(algorithm, setting, requested, formula.times(heads), dram, error)


def _gemms(draw: Draw, l2_bytes: int) -> Iterator[Counted]:
    m, n, k = 96, 80, 112
    a, b = draw(m, k), draw(k, n)
    for name, tile_m, tile_n in (
        ("naive GEMM", 1, 1),
        ("tiled GEMM", 16, 16),
        ("tiled GEMM", 32, 64),
        ("tiled GEMM", 128, 128),
    ):
        formula = traffic.tiled_gemm(m, n, k, tile_m, tile_n, ELEMENT_BYTES, ELEMENT_BYTES)

        def kernel(x: Buffer, y: Buffer, c: Buffer, tile: tuple[int, int] = (tile_m, tile_n)) -> None:
            kernels.tiled_gemm(x, y, c, *tile, tile_k=32)

        setting = f"{m} x {n} x {k}, tile {tile_m} x {tile_n}"
        yield _counted(name, setting, l2_bytes, (a, b), a @ b, formula, kernel)


def _softmaxes(draw: Draw, l2_bytes: int) -> Iterator[Counted]:
    rows, cols = 24, 997
    x = draw(rows, cols)
    weights = numpy.exp(x - x.max(axis=1, keepdims=True))
    expected = weights / weights.sum(axis=1, keepdims=True)
    for block in (128, 512):
        formula = traffic.online_softmax(rows, cols, ELEMENT_BYTES)

        def kernel(source: Buffer, result: Buffer, size: int = block) -> None:
            kernels.online_softmax(source, result, size)

        setting = f"{rows} x {cols}, block {block}"
        yield _counted("online softmax", setting, l2_bytes, (x,), expected, formula, kernel)


def _head(draw: Draw) -> tuple[Array, Array, Array]:
    return draw(SEQ, HEAD_DIM), draw(SEQ, HEAD_DIM), draw(SEQ, HEAD_DIM)


def _standard(draw: Draw, l2_bytes: int) -> Iterator[Counted]:
    head = _head(draw)
    for causal in (False, True):

        def kernel(q: Buffer, k: Buffer, v: Buffer, o: Buffer, masked: bool = causal) -> None:
            kernels.standard_attention(q, k, v, o, masked)

        program = attention(
            1, HEAD_DIM, SEQ, SEQ, precision=precision("bf16"), causal=causal, impl="standard"
        )
        expected = plain_attention(*head, causal=causal)
        setting = f"{SEQ} tokens of {HEAD_DIM}, {'causal' if causal else 'no mask'}"
        yield _counted(
            "standard attention", setting, l2_bytes, head, expected, compulsory(program.work), kernel
        )


def _flash1(draw: Draw, l2_bytes: int) -> Iterator[Counted]:
    """As in its paper's figure 2, and its algorithm 1 in full."""
    head = _head(draw)
    expected = plain_attention(*head)
    counts = (("FA1, figure's count", False), ("FA1, algorithm 1", True))
    for name, in_full in counts:
        formula_of = traffic.flash1 if in_full else traffic.flash1_figure
        for block in FIGURE_BLOCKS:

            def kernel(
                q: Buffer, k: Buffer, v: Buffer, o: Buffer, size: int = block, full: bool = in_full
            ) -> None:
                kernels.flash1(q, k, v, o, block_q=min(size, HEAD_DIM), block_k=size, in_full=full)

            formula = formula_of(SEQ, HEAD_DIM, block, ELEMENT_BYTES)
            setting = f"{HEADS} heads, {SEQ} tokens of {HEAD_DIM}, B_c {block}"
            yield _counted(name, setting, l2_bytes, head, expected, formula, kernel, HEADS)


def _flash2(draw: Draw, l2_bytes: int) -> Iterator[Counted]:
    head = _head(draw)
    for causal in (False, True):
        expected = plain_attention(*head, causal=causal)
        for block_q, block_k in ((64, 64), (128, 64), (128, 128), (192, 176)):

            def kernel(
                q: Buffer,
                k: Buffer,
                v: Buffer,
                o: Buffer,
                sizes: tuple[int, int] = (block_q, block_k),
                masked: bool = causal,
            ) -> None:
                kernels.flash2(q, k, v, o, *sizes, causal=masked)

            formula = traffic.flash2(
                SEQ, SEQ, HEAD_DIM, HEAD_DIM, block_q, block_k, ELEMENT_BYTES, causal=causal
            )
            mask = "causal" if causal else "no mask"
            setting = f"{SEQ} tokens of {HEAD_DIM}, {mask}, {block_q} x {block_k}"
            yield _counted("FA2", setting, l2_bytes, head, expected, formula, kernel)


def _decodes(draw: Draw, l2_bytes: int) -> Iterator[Counted]:
    group, keys = 8, 4000
    q, k, v = draw(group, HEAD_DIM), draw(keys, HEAD_DIM), draw(keys, HEAD_DIM)
    for splits in (1, 4, 16):

        def kernel(query: Buffer, key: Buffer, value: Buffer, o: Buffer, parts: int = splits) -> None:
            kernels.split_decode(query, key, value, o, parts, block_k=128)

        formula = traffic.split_decode(group, keys, HEAD_DIM, HEAD_DIM, splits, ELEMENT_BYTES)
        setting = f"{group} heads on {keys} keys of {HEAD_DIM}, {splits} splits"
        yield _counted(
            "split-KV decode", setting, l2_bytes, (q, k, v), plain_attention(q, k, v), formula, kernel
        )


def compulsory(work: Work) -> Traffic:
    """A program's compulsory traffic."""
    return Traffic(work.read_bytes, work.written_bytes)
