"""Kernels, programs and fusion on programs small enough to count by hand."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memwall.dtypes import find
from memwall.program import Kernel, Program, Tensor, Work, fuse, kernel_work

QUICK = settings(max_examples=200, deadline=None, derandomize=True)
BF16, FP32 = find("bf16"), find("fp32")
# x -> [first] -> t -> [second, which reads w as well] -> y
X, T, Y = (Tensor(name, (10, 10), BF16) for name in "xty")  # 200 bytes each
W = Tensor("w", (10,), FP32)  # 40 bytes
FIRST = Kernel("first", (X,), (T,), matrix_flops=1000, vector_flops=7, compute="bf16")
SECOND = Kernel("second", (T, W), (Y,), vector_flops=50, special_ops=3)
CHAIN = Program("chain", (FIRST, SECOND))


def test_a_tensor_s_bytes_are_its_stored_bytes() -> None:
    assert (X.bytes, W.bytes) == (200, 40)


def test_a_kernel_moves_its_operands_once() -> None:
    work = kernel_work(SECOND)
    assert (work.read_bytes, work.written_bytes, work.traffic_bytes) == (240, 200, 440)
    assert work.flops_by_engine == {"matrix": 0, "vector": 50, "special": 3}


def test_a_program_knows_its_edge_and_what_passes_inside() -> None:
    assert CHAIN.inputs == (X, W)
    assert CHAIN.intermediates == (T,)
    assert CHAIN.outputs == (Y,)


def test_a_chain_writes_and_reads_back_what_passes() -> None:
    work = CHAIN.work
    assert work.read_bytes == 200 + 40 + 200  # x, w, and t once more
    assert work.written_bytes == 200 + 200  # t, y
    assert work.flops_by_engine == {"matrix": 1000, "vector": 57, "special": 3}
    assert work.matrix_flops == {"bf16": 1000}


def test_fusing_drops_both_passages_and_keeps_the_arithmetic() -> None:
    fused = fuse(CHAIN, "one")
    assert [kernel.name for kernel in fused.kernels] == ["one"]
    assert (fused.work.read_bytes, fused.work.written_bytes) == (240, 200)
    assert fused.work.flops_by_engine == CHAIN.work.flops_by_engine
    assert fused.kernels[0].compute == "bf16"


def test_an_intermediate_that_is_kept_is_still_written_but_not_read_back() -> None:
    kept = Program("chain", (FIRST, SECOND), frozenset({"t"}))
    assert kept.outputs == (T, Y)
    assert (kept.work.read_bytes, kept.work.written_bytes) == (440, 400)
    assert (fuse(kept).work.read_bytes, fuse(kept).work.written_bytes) == (240, 400)


def test_an_input_that_two_kernels_read_is_counted_once_for_the_program() -> None:
    again = Kernel("again", (T, X), (Y,))
    program = Program("shared", (FIRST, again))
    assert program.inputs == (X,)
    assert program.work.read_bytes == 200 + 200  # x once, t read back
    assert sum(kernel_work(k).read_bytes for k in program.kernels) == 600  # by itself each reads x


def test_an_intermediate_that_two_kernels_read_is_read_twice() -> None:
    z = Tensor("z", (5,), BF16)
    program = Program("fan out", (FIRST, SECOND, Kernel("third", (T,), (z,))))
    assert program.work.read_bytes == 200 + 40 + 200 + 200
    assert program.outputs == (Y, z)


def test_fusing_twice_changes_nothing_more() -> None:
    assert fuse(fuse(CHAIN)).work == fuse(CHAIN).work


def test_kernels_that_compute_in_two_formats_are_not_fused() -> None:
    other = Kernel("other", (T,), (Y,), matrix_flops=10, compute="fp8")
    with pytest.raises(ValueError, match="bf16 and fp8"):
        fuse(Program("mixed", (FIRST, other)))


def test_flops_are_the_matrix_ones_where_there_are_any_else_all_others() -> None:
    assert CHAIN.work.flops == 1000
    assert kernel_work(SECOND).flops == 53
    assert kernel_work(Kernel("copy", (X,), (Y,))).flops == 0


COUNTS = st.integers(0, 10**18)
WORKS = st.builds(
    Work,
    COUNTS,
    COUNTS,
    st.dictionaries(st.sampled_from(["bf16", "fp8", "int8"]), COUNTS),
    COUNTS,
    COUNTS,
)


@given(WORKS, WORKS, WORKS)
@QUICK
def test_adding_work_is_associative_and_commutative(a: Work, b: Work, c: Work) -> None:
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a


@given(WORKS, st.integers(1, 50))
@QUICK
def test_repeating_is_adding_so_often_and_sharing_undoes_it(work: Work, count: int) -> None:
    total = Work(0, 0, {}, 0, 0)
    for _ in range(count):
        total = total + work
    assert work.times(count) == total
    assert total.share(count) == work


@given(WORKS, st.integers(1, 50))
@QUICK
def test_the_shares_add_up_to_the_whole(work: Work, parts: int) -> None:
    share = work.share(parts)
    assert share.traffic_bytes * parts == pytest.approx(work.traffic_bytes)
    assert share.flops * parts == pytest.approx(work.flops)


@given(WORKS)
@QUICK
def test_traffic_and_engines_are_sums_of_their_parts(work: Work) -> None:
    assert work.traffic_bytes == work.read_bytes + work.written_bytes
    assert work.flops_by_engine["matrix"] == sum(work.matrix_flops.values())


@given(st.lists(st.integers(1, 64), min_size=2, max_size=6), st.integers(0, 2**6 - 1))
@QUICK
def test_fusing_a_chain_saves_exactly_two_passages_of_each_tensor_between(
    sizes: list[int], kept_bits: int
) -> None:
    tensors = [Tensor(f"t{i}", (size,), BF16) for i, size in enumerate(sizes)]
    kernels = [Kernel(f"k{i}", (a,), (b,)) for i, (a, b) in enumerate(pairwise(tensors))]
    between = tensors[1:-1]
    kept = frozenset(t.name for i, t in enumerate(between) if kept_bits >> i & 1)
    chain = Program("chain", tuple(kernels), kept)
    saved = chain.work.traffic_bytes - fuse(chain).work.traffic_bytes
    assert saved == sum(2 * size * (1 if f"t{i + 1}" in kept else 2) for i, size in enumerate(sizes[1:-1]))
