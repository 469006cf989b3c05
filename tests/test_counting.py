"""The counting run: algorithms in numpy over a memory that counts, against formulas worked out apart."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import sympy

from memwall import traffic
from memwall.dtypes import precision
from memwall.ops.attention import attention
from memwall.traffic import Traffic
from memwall.verify.counting import kernels
from memwall.verify.counting.memory import SECTOR_BYTES, Array, Memory
from memwall.verify.counting.run import ROUNDING, Counted, counting_run, plain_attention

E = 2  # bytes an element
RANDOM = numpy.random.default_rng(20)
RUN = list(counting_run())


def softmax(x: Array) -> Array:
    """The plain one: the reference of this file."""
    weights = numpy.exp(x - x.max(axis=-1, keepdims=True))
    quotient: Array = weights / weights.sum(axis=-1, keepdims=True)
    return quotient


def close(result: Array, expected: Array) -> bool:
    return bool(numpy.abs(result - expected).max() <= ROUNDING * numpy.abs(expected).max())


def head(seq_q: int, seq_kv: int, d: int, d_v: int) -> tuple[Array, Array, Array]:
    draw = RANDOM.standard_normal
    return draw((seq_q, d)), draw((seq_kv, d)), draw((seq_kv, d_v))


@pytest.mark.parametrize("counted", RUN, ids=lambda c: f"{c.algorithm}, {c.setting}")
def test_the_run_is_exact(counted: Counted) -> None:
    assert counted.exact


@pytest.mark.parametrize(
    ("block", "printed_gb"),
    [(64, 6.578), (128, 3.356), (256, 1.744), (512, 0.939)],  # read off the figure's vectors, +-0.005 GB
)
def test_flash1_moves_what_its_paper_draws(block: int, printed_gb: float) -> None:
    rows = [c for c in RUN if c.setting.endswith(f"B_c {block}")]
    figure, full = sorted(rows, key=lambda c: c.counted.total_bytes)
    assert figure.counted.total_bytes / 1e9 == pytest.approx(printed_gb, abs=0.005)
    # Algorithm 1 in full, by hand: 3T + 3 tensors of N d halves, and (4T + 2) N statistics of 4 bytes.
    turns = 1024 // block
    by_hand = (3 * turns + 3) * 1024 * 64 * 2 + (4 * turns + 2) * 1024 * 4
    assert full.counted.total_bytes == 1024 * by_hand


@pytest.mark.parametrize(("block_q", "block_k"), list(itertools.product((16, 48, 100), (16, 64, 96))))
@pytest.mark.parametrize(("seq_q", "seq_kv"), [(200, 200), (1, 333), (77, 300)])
@pytest.mark.parametrize("causal", [True, False])
def test_flash2_at_every_block_size(
    block_q: int, block_k: int, seq_q: int, seq_kv: int, causal: bool
) -> None:
    d, d_v = 24, 16
    inputs = head(seq_q, seq_kv, d, d_v)
    memory = Memory()
    q, k, v = (memory.holding(x, E) for x in inputs)
    o = memory.empty((seq_q, d_v), E)
    kernels.flash2(q, k, v, o, block_q, block_k, causal)
    assert close(o.values, plain_attention(*inputs, causal=causal))
    assert memory.requested == traffic.flash2(seq_q, seq_kv, d, d_v, block_q, block_k, E, causal=causal)


@pytest.mark.parametrize(("block_q", "block_k"), list(itertools.product((16, 100), (16, 64, 100))))
def test_flash1_at_every_block_size(block_q: int, block_k: int) -> None:
    inputs = head(230, 230, 24, 24)
    memory = Memory()
    q, k, v = (memory.holding(x, E) for x in inputs)
    o = memory.empty((230, 24), E)
    kernels.flash1(q, k, v, o, block_q, block_k)
    assert close(o.values, plain_attention(*inputs))
    assert memory.requested == traffic.flash1(230, 24, block_k, E)


@pytest.mark.parametrize(("tile_m", "tile_n"), list(itertools.product((1, 7, 32, 64), repeat=2)))
def test_gemm_at_every_tile(tile_m: int, tile_n: int) -> None:
    a, b = RANDOM.standard_normal((50, 30)), RANDOM.standard_normal((30, 40))
    memory = Memory()
    c = memory.empty((50, 40), 4)
    kernels.tiled_gemm(memory.holding(a, E), memory.holding(b, E), c, tile_m, tile_n, tile_k=16)
    assert close(c.values, a @ b)
    assert memory.requested == traffic.tiled_gemm(50, 40, 30, tile_m, tile_n, E, 4)


def test_naive_gemm_by_hand() -> None:
    assert traffic.tiled_gemm(8, 16, 32, 1, 1, 4, 4) == Traffic(2 * 8 * 16 * 32 * 4, 8 * 16 * 4)


@pytest.mark.parametrize("splits", [1, 2, 3, 7])
def test_decode_at_every_split(splits: int) -> None:
    inputs = head(4, 211, 24, 16)  # four query heads on one KV head
    memory = Memory()
    o = memory.empty((4, 16), E)
    q, k, v = (memory.holding(x, E) for x in inputs)
    kernels.split_decode(q, k, v, o, splits, block_k=32)
    assert close(o.values, softmax(inputs[0] @ inputs[1].T / numpy.sqrt(24)) @ inputs[2])
    assert memory.requested == traffic.split_decode(4, 211, 24, 16, splits, E)


def test_no_reuse_and_compulsory_are_the_two_ends() -> None:
    """With one block of queries a head loads its keys once: flash2 is the operator's compulsory traffic."""
    program = attention(1, 64, 512, 512, precision=precision("bf16"), causal=False)
    once = traffic.flash2(512, 512, 64, 64, 512, 128, E, causal=False)
    assert once == Traffic(program.work.read_bytes, program.work.written_bytes)
    assert traffic.flash2(512, 512, 64, 64, 64, 128, E, causal=False).read_bytes > once.read_bytes


@pytest.mark.parametrize(
    "formula",
    [
        lambda n: traffic.tiled_gemm(n, 2 * n, 96, 32, 64, E, 4),
        lambda n: traffic.online_softmax(n, 1000, E),
        lambda n: traffic.flash1(n, 64, 48, E),
        lambda n: traffic.flash1_figure(n, 64, 48, E),
        lambda n: traffic.split_decode(n, 4000, 64, 64, 4, E),
    ],
)
def test_a_formula_means_the_same_for_a_number_an_array_and_a_symbol(
    formula: Callable[[Any], Traffic],
) -> None:
    sizes = numpy.array([1.0, 47.0, 48.0, 4096.0])
    n = sympy.Symbol("n", positive=True, integer=True)
    arrays, symbols = formula(sizes), formula(n)
    for index, size in enumerate(sizes):
        exact = formula(int(size))
        assert arrays.read_bytes[index] == exact.read_bytes == symbols.read_bytes.subs(n, int(size))
        assert arrays.written_bytes[index] == exact.written_bytes == symbols.written_bytes.subs(n, int(size))


def test_loaded_keys_by_hand() -> None:
    # Queries 0..9 in blocks of 4 end at keys 4, 8, 10; in blocks of 3 keys that is 6, 9, 10.
    assert traffic.loaded_keys(10, 10, 4, 3, causal=True) == 6 + 9 + 10
    assert traffic.loaded_keys(10, 10, 4, 3, causal=False) == 3 * 10
    assert traffic.loaded_keys(2, 12, 2, 5, causal=True) == 12


def flash2_through(l2_bytes: int) -> Memory:
    memory = Memory(l2_bytes)
    q, k, v = (memory.holding(x, E) for x in head(256, 256, 32, 32))
    kernels.flash2(q, k, v, memory.empty((256, 32), E), 32, 64)
    return memory


def test_an_l2_lets_through_between_everything_and_each_tensor_once() -> None:
    tensor = 256 * 32 * E
    reads = [
        flash2_through(size).dram.read_bytes for size in (0, tensor // 2, tensor, 4 * tensor, 16 * tensor)
    ]
    assert reads == sorted(reads, reverse=True)
    assert reads[0] == flash2_through(0).requested.read_bytes  # no L2: all of it
    assert reads[-1] == 3 * tensor  # everything fits: Q, K and V once
    assert flash2_through(16 * tensor).dram.written_bytes == tensor  # O, once it is written back


def test_l2_evicts_the_least_recently_used_sector() -> None:
    memory = Memory(l2_bytes=2 * SECTOR_BYTES)
    x = memory.holding(numpy.arange(3.0), SECTOR_BYTES)  # one element a sector
    for i in (0, 1, 0, 2, 0, 1):  # misses: 0, 1, 2 (evicts 1), 1 (evicts 2)
        x[i : i + 1]
    assert memory.dram == Traffic(4 * SECTOR_BYTES, 0)
    x[0:1] = 5.0  # a store fetches nothing and is written back once
    x[0:1] = 6.0
    assert memory.dram == Traffic(4 * SECTOR_BYTES, SECTOR_BYTES)


def test_a_sector_is_the_least_that_memory_moves() -> None:
    memory = Memory(l2_bytes=8 * SECTOR_BYTES)
    x = memory.holding(numpy.zeros((4, 16)), E)
    x[:, 3:4]  # two bytes of each row
    assert memory.requested.read_bytes == 4 * E
    assert memory.dram.read_bytes == 4 * SECTOR_BYTES


def test_what_a_kernel_forgets_to_store_is_not_a_number() -> None:
    assert numpy.isnan(Memory().empty((2, 2), E).values).all()
