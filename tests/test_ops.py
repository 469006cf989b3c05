"""Every operator's counts, worked by hand."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import pytest

from memwall.dtypes import precision
from memwall.errors import UnknownName, UsageError
from memwall.ops import registry
from memwall.program import Program


class Counts(NamedTuple):
    """What an operator asks for."""

    read: int
    written: int
    matrix: int = 0
    vector: int = 0
    special: int = 0


def program(op: str, dims: dict[str, int], **how: Any) -> Program:
    found = registry.find(op)
    full, _ = registry.resolve(found, dims)
    settings = {key: how.pop(key) for key in ("causal", "impl") if key in how}
    return registry.build(found, full, precision(how.pop("dtype", "bf16"), **how), **settings)


def counts(op: str, dims: dict[str, int], **how: Any) -> Counts:
    work = program(op, dims, **how).work
    by_engine = work.flops_by_engine
    return Counts(
        work.read_bytes, work.written_bytes, *(by_engine[e] for e in ("matrix", "vector", "special"))
    )


SMALL = {"m": 3, "n": 5, "k": 7}
PLANE = {"rows": 3, "cols": 5}  # 15 elements, 30 bytes in bf16
HEADS = {"heads": 4, "kv_heads": 2, "head_dim": 8, "seq_q": 3, "seq_kv": 5}
ONE_HEAD = {"heads": 1, "head_dim": 128, "seq": 4096}
STATES = {"heads": 4, "key_heads": 2, "key_dim": 8, "value_dim": 2, "seq": 3, "batch": 2}
LATENT = {"heads": 128, "seq_kv": 8192, "batch": 8}

# fmt: off
CASES: dict[str, tuple[str, dict[str, int], dict[str, Any], Counts]] = {
    # 2 x 3 x 5 x 7 = 210 FLOPs; a 3 x 7 and b 5 x 7 in; c 3 x 5 out.
    "gemm bf16": ("gemm", SMALL, {}, Counts(42 + 70, 30, 210)),
    "gemm fp32": ("gemm", SMALL, {"dtype": "fp32"}, Counts(84 + 140, 60, 210)),
    "gemm tf32 is stored as fp32": ("gemm", SMALL, {"dtype": "tf32"}, Counts(84 + 140, 60, 210)),
    "gemm fp8 writes 16 bits": ("gemm", SMALL, {"dtype": "fp8"}, Counts(21 + 35, 30, 210)),
    "gemm fp8 writes fp8 if told": ("gemm", SMALL, {"dtype": "fp8", "out": "fp8"}, Counts(56, 15, 210)),
    "gemm int8 writes 32 bits": ("gemm", SMALL, {"dtype": "int8"}, Counts(56, 60, 210)),
    # a: 3 rows of 17: 204 bits -> 26, and 2 blocks a row -> 6; b: 340 bits -> 43, and 10; c 2 x 15.
    "gemm nvfp4, odd": ("gemm", {"m": 3, "n": 5, "k": 17}, {"dtype": "nvfp4"}, Counts(32 + 53, 30, 510)),
    # a: 3 x 129 x 2; b: 5 x 129 x 4 bits = 322.5 -> 323, and 5 rows x 2 groups x 2 bytes; c 2 x 15.
    "gemm int4-g128 weights, odd": (
        "gemm", {"m": 3, "n": 5, "k": 129}, {"weight": "int4-g128"}, Counts(774 + 343, 30, 3870)),
    # 2 x 4096^3; three tensors of 2 x 4096^2 = 33554432 bytes.
    "gemm 4096": ("gemm", {"m": 4096, "n": 4096, "k": 4096}, {}, Counts(67108864, 33554432, 137438953472)),
    # 2 x 2^63 = 2^64, which wraps to 0 in 64 bits; three tensors of 2 x 2^42.
    "gemm 2^21": ("gemm", {"m": 2**21, "n": 2**21, "k": 2**21}, {}, Counts(2**44, 2**43, 2**64)),
    "gemm 1x1x1": ("gemm", {"m": 1, "n": 1, "k": 1}, {}, Counts(4, 2, 2)),
    # 2 x 5 x 7 FLOPs a vector; w 5 x 7; x 2 x 7; y 2 x 5.
    "gemv, two vectors": ("gemv", {"m": 5, "k": 7, "batch": 2}, {}, Counts(70 + 28, 20, 140)),
    # w 2 x 67108864; x and y 2 x 8192 each: the sum is 134250496.
    "gemv 8192": ("gemv", {}, {}, Counts(134217728 + 16384, 16384, 134217728)),
    "gemv fp8 weights": ("gemv", {}, {"weight": "fp8"}, Counts(67108864 + 16384, 16384, 134217728)),
    # 4 bits: 33554432, and 8192 rows x 64 groups x 2 bytes = 1048576.
    "gemv int4 weights": ("gemv", {}, {"weight": "int4-g128"}, Counts(34603008 + 16384, 16384, 134217728)),
    # 33 columns are two blocks of 32: w 5 x 33 x 4 bits -> 83 and 10 scales; x 132 bits -> 17 and 2; y 10.
    "gemv mxfp4, odd": ("gemv", {"m": 5, "k": 33}, {"dtype": "mxfp4"}, Counts(83 + 10 + 17 + 2, 10, 330)),
    # two products, each with its own b.
    "batched_gemm": ("batched_gemm", {"batch": 2, **SMALL}, {}, Counts(84 + 140, 60, 420)),
    "grouped_gemm": ("grouped_gemm", {"experts": 4, **SMALL}, {}, Counts(168 + 280, 120, 840)),
    # weights 4 x 5 rows of 7: 560 bits -> 70, and 20 rows x 1 group x 2 bytes.
    "grouped_gemm int4-g128": (
        "grouped_gemm", {"experts": 4, **SMALL}, {"weight": "int4-g128"}, Counts(168 + 110, 120, 840)),
    # 4 FLOPs an element; an exp an element and a reciprocal a row.
    "softmax": ("softmax", PLANE, {}, Counts(30, 30, 0, 60, 18)),
    "softmax fp32": ("softmax", PLANE, {"dtype": "fp32"}, Counts(60, 60, 0, 60, 18)),
    "softmax 1x1": ("softmax", {"rows": 1, "cols": 1}, {}, Counts(2, 2, 0, 4, 2)),
    # 4 x 15 + 2 x 3; weight 5 x 2 bytes; an rsqrt a row.
    "rmsnorm": ("rmsnorm", PLANE, {}, Counts(30 + 10, 30, 0, 66, 3)),
    # 7 x 15 + 3 x 3; weight and bias.
    "layernorm": ("layernorm", PLANE, {}, Counts(30 + 20, 30, 0, 114, 3)),
    # one add an element more; x, residual in; h, y out.
    "residual_rmsnorm": ("residual_rmsnorm", PLANE, {}, Counts(60 + 10, 60, 0, 81, 3)),
    "residual_rmsnorm eager": (
        "residual_rmsnorm", PLANE, {"impl": "eager"}, Counts(60 + 30 + 10, 60, 0, 81, 3)),
    "residual_layernorm": ("residual_layernorm", PLANE, {}, Counts(60 + 20, 60, 0, 129, 3)),
    "residual_layernorm eager": (
        "residual_layernorm", PLANE, {"impl": "eager"}, Counts(60 + 30 + 20, 60, 0, 129, 3)),
    "copy": ("copy", PLANE, {}, Counts(30, 30)),
    "copy bf16 to fp32": ("copy", PLANE, {"out": "fp32"}, Counts(30, 60)),
    "read_sum": ("read_sum", PLANE, {}, Counts(30, 2, 0, 15)),
    "add": ("add", PLANE, {}, Counts(60, 30, 0, 15)),
    # x^2, x^3, 0.044715 x^3 + x (2), scale, 1 +, x times, half: 8; one tanh.
    "gelu": ("gelu", PLANE, {}, Counts(30, 30, 0, 120, 15)),
    # 1 +, gate times, up times: 3; exp and reciprocal: 2.
    "silu_mul": ("silu_mul", PLANE, {}, Counts(60, 30, 0, 45, 30)),
    "silu_mul eager": ("silu_mul", PLANE, {"impl": "eager"}, Counts(60 + 30, 60, 0, 45, 30)),
    # 24 elements are 12 pairs of 6 FLOPs; a table of 3 x 4 fp32 numbers.
    "rope": ("rope", {"rows": 3, "heads": 2, "head_dim": 4}, {}, Counts(48 + 48, 48, 0, 72)),
    # three 8-byte ids and three rows of 10 bytes.
    "gather": ("gather", {"rows": 3, "cols": 5, "vocab": 100}, {}, Counts(24 + 30, 30)),
    "gather from two rows": ("gather", {"rows": 3, "cols": 5, "vocab": 2}, {}, Counts(24 + 20, 30)),
    "gather int8": ("gather", {"rows": 3, "cols": 5, "vocab": 9}, {"weight": "int8"}, Counts(24 + 15, 30)),
    # q, o: 4 heads x 3 x 8; K, V: 2 x 5 x 8; 15 scores a head.
    # 2 x 4 x 15 x 16 = 1920; vector 4 x 60 + 96; special 60 + 12 rows.
    "attention": ("attention", HEADS, {}, Counts(192 + 160 + 160, 192, 1920, 336, 72)),
    # the three queries see 3, 4 and 5 keys: 12 pairs; vector 4 x 48 + 96; special 48 + 12.
    "attention causal": ("attention", HEADS, {"causal": True}, Counts(512, 192, 1536, 288, 60)),
    # the query at key 3 sees keys 2 and 3, and so on: 6 pairs; keys 2 to 5, four of them, are read.
    "attention window 2": (
        "attention", {**HEADS, "window": 2}, {"causal": True}, Counts(192 + 128 + 128, 192, 768, 192, 36)),
    # S and P, 60 elements each, written and read back: 2 x 120 bytes each way.
    "attention standard": (
        "attention", HEADS, {"impl": "standard"}, Counts(512 + 240, 192 + 240, 1920, 336, 72)),
    "attention standard ignores the mask": (
        "attention", HEADS, {"impl": "standard", "causal": True}, Counts(752, 432, 1920, 336, 72)),
    "attention fp8 cache": ("attention", HEADS, {"kv": "fp8"}, Counts(192 + 80 + 80, 192, 1920, 336, 72)),
    # values of 4: 2 x 60 x (8 + 4); V 80 bytes, O 96; vector 240 + 48.
    "attention, values of 4": (
        "attention", {**HEADS, "head_dim_v": 4}, {}, Counts(192 + 160 + 80, 96, 1440, 288, 72)),
    "attention 1x1": ("attention", {"heads": 1, "head_dim": 1, "seq": 1}, {}, Counts(6, 2, 4, 5, 2)),
    # one head, 4096 tokens of 128: Q, K, V, O are 1 MiB each; 4 x 4096^2 x 128 = 2^33;
    # vector 4 x 2^24 + 2^19; special 2^24 + 4096.
    "attention 4096, flash": (
        "attention", ONE_HEAD, {}, Counts(3145728, 1048576, 8589934592, 67633152, 16781312)),
    # S and P are 2 x 4096^2 = 33554432 bytes each: the sum is 138412032.
    "attention 4096, standard": (
        "attention", ONE_HEAD, {"impl": "standard"},
        Counts(3145728 + 67108864, 1048576 + 67108864, 8589934592, 67633152, 16781312)),
    # 2 x 8 x 128 heads x 8192 keys x (576 + 512) = 2 b h S 1088; q 2 x 8 x 128 x 576;
    # latent 2 x 8 x 8192 x 576; o 2 x 8 x 128 x 512; vector 4 x 8388608 + 524288; special 8388608 + 1024.
    "mla": ("mla", LATENT, {}, Counts(1179648 + 75497472, 1048576, 18253611008, 34078720, 8389632)),
    "mla fp8 latent": (
        "mla", LATENT, {"kv": "fp8"}, Counts(1179648 + 37748736, 1048576, 18253611008, 34078720, 8389632)),
    # two new tokens see 9 and 10 keys: 19 pairs; 2 x 4 x 19 x 1088; q 4 x 2 x 576 x 2; latent 10 x 576 x 2.
    "mla, two tokens": (
        "mla", {"heads": 4, "seq_q": 2, "seq_kv": 10}, {},
        Counts(9216 + 11520, 8192, 165376, 4 * 76 + 4096, 84)),
    # S and P: 4 x 2 x 10 x 2 bytes each way, all 20 pairs; the latent is read once for the program.
    "mla standard": (
        "mla", {"heads": 4, "seq_q": 2, "seq_kv": 10}, {"impl": "standard"},
        Counts(9216 + 11520 + 320, 8192 + 320, 174080, 4 * 80 + 4096, 88)),
    # 2 heads of 4 in 3 tokens: 24 elements in and out, 3 FLOPs each; the table 3 x 4 fp32. Eager:
    # negate half (24, 24 bytes), concatenate (48, 48), two products (48 + half the table, 48), add (96, 48).
    "rope eager": (
        "rope", {"rows": 3, "heads": 2, "head_dim": 4}, {"impl": "eager"},
        Counts(24 + 48 + 2 * (48 + 24) + 96, 24 + 48 + 2 * 48 + 48, 0, 72)),
    # q 3 x 16, k 3 x 8, v 3 x 4 elements of 2 bytes, the table 3 x 4 of 4; Q 16-bit, K and V fp8.
    "rope_cache": (
        "rope_cache", {"rows": 3, "heads": 4, "kv_heads": 2, "head_dim": 4, "head_dim_v": 2}, {"kv": "fp8"},
        Counts(96 + 48 + 24 + 48, 96 + 24 + 12, 0, 3 * 3 * 6 * 4)),
    # one exp and one reciprocal, 1 + and a product; gate and x in.
    "sigmoid_mul": ("sigmoid_mul", PLANE, {}, Counts(60, 30, 0, 30, 30)),
    "sigmoid_mul eager": ("sigmoid_mul", PLANE, {"impl": "eager"}, Counts(60 + 30, 30 + 30, 0, 30, 30)),
    # 3 x 8 scores; 3 x 2 weights of 16 bits, ids of 32; softmax's 4 and a comparison; 24 exp, 3 reciprocals.
    "route": (
        "route", {"rows": 3, "experts": 8, "top_k": 2}, {}, Counts(48, 12 + 24, 0, 120, 27)),
    # three tokens in six pairs over four experts: a 3 x 7, four w of 5 x 7, c 6 x 5.
    "expert_gemm": (
        "expert_gemm", {"tokens": 3, "rows": 6, "experts": 4, "n": 5, "k": 7}, {},
        Counts(42 + 280, 60, 2 * 6 * 35)),
    "moe_dispatch": ("moe_dispatch", {**PLANE, "top_k": 2}, {}, Counts(30 + 24, 60)),
    "moe_combine": ("moe_combine", {**PLANE, "top_k": 2}, {}, Counts(60 + 12, 30, 0, 60)),
    # 2 sequences of 3 tokens, 4 heads of 8 x 2, 2 key heads: q and k 2 x 6 x 16, v and o 6 x 8, gates 6 x 8
    # elements of 2 bytes; the states 2 x 64 of 4 bytes, 6 FLOPs an element and token, decayed once.
    "delta_rule": (
        "delta_rule", STATES, {}, Counts(384 + 96 + 96 + 512, 96 + 512, 6 * 3 * 128, 128, 24)),
    "linear_attention": (
        "linear_attention", STATES, {}, Counts(384 + 96 + 48 + 512, 96 + 512, 4 * 3 * 128, 128, 24)),
    # x and dt 2 x 6 x 5, B and C 2 x 6 x 4 elements of 2 bytes; 2 x 5 x 4 states of 4 bytes.
    "selective_scan": (
        "selective_scan", {"channels": 5, "state": 4, "seq": 3, "batch": 2}, {},
        Counts(120 + 96 + 160, 60 + 160, 0, 6 * 120, 120)),
    # x 6 x 5; weight 5 x 4; three past tokens of 2 x 5 channels, 4 bytes each.
    "causal_conv": (
        "causal_conv", {"channels": 5, "taps": 4, "seq": 3, "batch": 2}, {},
        Counts(60 + 40 + 120, 60 + 120, 0, 2 * 30 * 4)),
    "gated_recurrence": (
        "gated_recurrence", {"channels": 5, "seq": 3, "batch": 2}, {},
        Counts(180 + 10 + 40, 60 + 40, 0, 90, 180)),
    # 15 scores compared, 3 ids of 8 bytes.
    "argmax": ("argmax", PLANE, {}, Counts(30, 24, 0, 15)),
}
# fmt: on


@pytest.mark.parametrize("case", CASES)
def test_counts_are_those_worked_by_hand(case: str) -> None:
    op, dims, how, expected = CASES[case]
    assert counts(op, dims, **how) == expected


@pytest.mark.parametrize("name", list(registry.ops()))
def test_every_operator_has_hand_worked_counts(name: str) -> None:
    assert any(op == name for op, *_ in CASES.values())


# DRAM reads of one cold run on an H200 SXM, Nsight Compute's dram__bytes_read.sum (torch 2.11, CUDA 13,
# cuDNN 9.19, bf16). Each kernel reads its operands at least once, streams hardly more.
THIRTY_TWO = {"heads": 32, "head_dim": 128, "seq": 4096}
# fmt: off
COUNTED: dict[str, tuple[str, dict[str, int], dict[str, Any], int, float]] = {
    "gemm": ("gemm", {"m": 1, "n": 28672, "k": 4096}, {}, 234899712, 1.001),
    "gemm, 32 rows": ("gemm", {"m": 32, "n": 8192, "k": 28672}, {}, 473486080, 1.005),
    "softmax": ("softmax", {"rows": 16384, "cols": 8192}, {}, 268461568, 1.001),
    "gelu": ("gelu", {"rows": 16384, "cols": 8192}, {}, 268438016, 1.001),
    "add": ("add", {"rows": 16384, "cols": 8192}, {}, 536887040, 1.001),
    "silu_mul, two kernels": ("silu_mul", {"rows": 16384, "cols": 8192}, {"impl": "eager"}, 805359360, 1.001),
    "read_sum": ("read_sum", {"rows": 16384, "cols": 8192}, {}, 268445696, 1.001),
    "grouped_gemm": ("grouped_gemm", {"experts": 8, "m": 128, "n": 28672, "k": 4096}, {}, 1901797376, 1.01),
    "attention, cuDNN": ("attention", THIRTY_TWO, {}, 100694272, 1.001),
    "attention, FlashAttention-2": ("attention", THIRTY_TWO, {}, 104596992, 1.04),
    "attention, three kernels": (
        "attention", THIRTY_TWO, {"impl": "standard"}, 2261207040, 1.006),
    "attention, grouped": (
        "attention", {"heads": 64, "kv_heads": 8, "head_dim": 128, "seq": 4096}, {}, 83890944, 1.001),
    "attention, decode": (
        "attention", {"heads": 64, "kv_heads": 8, "head_dim": 128, "batch": 16, "seq_q": 1, "seq_kv": 16384},
        {}, 1074029568, 1.001),
}
# fmt: on


@pytest.mark.parametrize("case", COUNTED)
def test_compulsory_reads_lie_just_below_what_was_counted(case: str) -> None:
    op, dims, how, counted, ratio = COUNTED[case]
    predicted = program(op, dims, **how).work.read_bytes
    assert predicted <= counted <= ratio * predicted


def test_whole_traffic_of_one_head_lies_below_what_was_counted() -> None:
    # The same counters, reads and writes over 32 heads of 4096 tokens: standard 139.5e6 a head,
    # cuDNN's flash 4.75e6, FlashAttention-2 5.04e6 (writes hold earlier dirty lines as well).
    shape = {"heads": 1, "head_dim": 128, "seq": 4096}
    standard = program("attention", shape, impl="standard").work.traffic_bytes
    flash = program("attention", shape).work.traffic_bytes
    assert standard < (2261207040 + 2201913344) / 32 < 1.01 * standard
    assert flash < (100694272 + 51308032) / 32 < (104596992 + 56841984) / 32 < 1.21 * flash


def test_gemm_and_gemv_are_the_same_product() -> None:
    gemv = counts("gemv", {"m": 11, "k": 13, "batch": 3}, weight="fp8")
    assert gemv == counts("gemm", {"m": 3, "n": 11, "k": 13}, weight="fp8")


def test_a_batch_of_one_is_a_gemm_and_equal_experts_are_a_batch() -> None:
    assert counts("batched_gemm", {"batch": 1, **SMALL}) == counts("gemm", SMALL)
    assert counts("grouped_gemm", {"experts": 6, **SMALL}) == counts("batched_gemm", {"batch": 6, **SMALL})


def test_a_residual_norm_is_an_add_and_a_norm() -> None:
    for norm in ("rmsnorm", "layernorm"):
        add, alone = counts("add", PLANE), counts(norm, PLANE)
        both = Counts(*(a + b for a, b in zip(add, alone, strict=True)))
        assert counts(f"residual_{norm}", PLANE, impl="eager") == both


# --- the registry -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("matmul", "gemm"),
        ("MatVec", "gemv"),
        ("batched-gemm", "batched_gemm"),
        ("rms_norm", "rmsnorm"),
        ("residual+norm", "residual_rmsnorm"),
        ("flash_attention", "attention"),
        ("elementwise_add", "add"),
        ("embedding", "gather"),
        (" softmax ", "softmax"),
    ],
)
def test_an_operator_is_found_however_it_is_spelt(spelling: str, name: str) -> None:
    assert registry.find(spelling).name == name


@pytest.mark.parametrize(
    ("typo", "near"),
    [("gem", "gemm"), ("atention", "attention"), ("sofmax", "softmax"), ("layernrom", "layernorm")],
)
def test_an_unknown_operator_names_the_nearest(typo: str, near: str) -> None:
    with pytest.raises(UnknownName, match=f"unknown op '{typo}'") as refused:
        registry.find(typo)
    assert near in refused.value.hint
    assert refused.value.exit_code == 2


def test_no_name_or_alias_means_two_operators() -> None:
    names = [n for op in registry.ops().values() for n in (op.name, *op.aliases)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("op", registry.ops().values(), ids=lambda op: op.name)
def test_an_operator_s_example_and_command_work(op: registry.Op) -> None:
    dims, defaulted = registry.resolve(op, op.example)
    assert not defaulted
    assert registry.build(op, dims, precision("bf16")).work.traffic_bytes > 0
    assert op.command().startswith(f"memwall roofline --op {op.name} --")


@pytest.mark.parametrize("op", registry.ops().values(), ids=lambda op: op.name)
def test_each_missing_dimension_is_named_with_an_example(op: registry.Op) -> None:
    full, _ = registry.resolve(op, op.example)
    for name in op.required:
        dims = {key: value for key, value in full.items() if key != name}
        with pytest.raises(UsageError, match=f"{op.name} needs --{registry.flag(name)}") as refused:
            registry.resolve(op, dims)
        assert op.command() in refused.value.hint


@pytest.mark.parametrize("op", registry.ops().values(), ids=lambda op: op.name)
def test_a_dimension_of_another_operator_is_refused(op: registry.Op) -> None:
    with pytest.raises(UsageError, match=f"{op.name} has no --nonsense-dim"):
        registry.resolve(op, {**op.example, "nonsense_dim": 3})


@pytest.mark.parametrize("size", [0, -1, 2.0, 1.5, float("nan"), True, "4096", 10**15 + 1, 10**4000])
def test_a_size_that_is_no_count_is_refused(size: Any) -> None:
    with pytest.raises(UsageError, match="gemm: m must be a whole number from 1 to 1e15") as refused:
        registry.resolve(registry.find("gemm"), {"m": size, "n": 1, "k": 1})
    assert len(refused.value.message) < 120


def test_a_default_shape_is_used_whole_and_said() -> None:
    gemv = registry.find("gemv")
    assert registry.resolve(gemv, {}) == ({"m": 8192, "k": 8192, "batch": 1}, True)
    assert registry.resolve(gemv, {"batch": 32}) == ({"m": 8192, "k": 8192, "batch": 32}, True)
    with pytest.raises(UsageError, match="gemv needs --k"):
        registry.resolve(gemv, {"m": 64})


@pytest.mark.parametrize(
    ("op", "setting", "option"),
    [("gemm", {"causal": True}, "--causal"), ("gemm", {"impl": "flash"}, "--impl")],
)
def test_a_setting_that_the_operator_lacks_is_refused(op: str, setting: dict[str, Any], option: str) -> None:
    with pytest.raises(UsageError, match=f"{op} has no {option}"):
        program(op, SMALL, **setting)


@pytest.mark.parametrize("name", [op.name for op in registry.ops().values() if op.impls])
def test_an_unknown_implementation_lists_the_known(name: str) -> None:
    op = registry.find(name)
    with pytest.raises(UsageError, match="no implementation 'fa9'") as refused:
        program(name, dict(op.example), impl="fa9")
    assert refused.value.hint.endswith(f"Choose from: {', '.join(op.impls)}")


@pytest.mark.parametrize(
    ("heads", "kv_heads", "suggested"), [(64, 7, 4), (64, 65, 64), (7, 2, 1), (40, 16, 10), (64, 10**14, 64)]
)
def test_kv_heads_that_do_not_divide_heads_are_refused_with_ones_that_do(
    heads: int, kv_heads: int, suggested: int
) -> None:
    with pytest.raises(UsageError, match=f"{kv_heads} KV heads do not divide {heads} heads") as refused:
        program("attention", {"heads": heads, "kv_heads": kv_heads, "head_dim": 64, "seq": 8})
    assert refused.value.hint.endswith(f"try --kv-heads {suggested}")
    assert program("attention", {"heads": heads, "kv_heads": suggested, "head_dim": 64, "seq": 8})


def test_kv_heads_without_heads_asks_for_heads() -> None:
    with pytest.raises(UsageError, match="attention needs --heads"):
        program("attention", {"kv_heads": 8, "head_dim": 64, "seq": 8})


@pytest.mark.parametrize("op", ["attention", "mla"])
def test_more_queries_than_keys_are_refused(op: str) -> None:
    with pytest.raises(UsageError, match="9 queries are more than the 8 keys") as refused:
        program(op, {"heads": 4, "head_dim": 64, "seq_q": 9, "seq_kv": 8})
    assert refused.value.hint.endswith("try --seq-kv 9")


def test_rope_refuses_half_a_pair() -> None:
    with pytest.raises(UsageError, match="head_dim must be even, not 127"):
        program("rope", {"rows": 1, "heads": 1, "head_dim": 127})


# --- documentation ------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", registry.ops().values(), ids=lambda op: op.name)
def test_an_operator_s_docstring_explains_each_parameter_and_names_its_source(op: registry.Op) -> None:
    doc = op.build.__doc__ or ""
    arguments = doc.partition("Args:")[2]
    assert arguments
    for name in op.parameters:
        assert re.search(rf"^\s+{name}: \S", arguments, re.MULTILINE), name
    assert re.search(r"^\s*Source: \S.*\.$", doc, re.MULTILINE | re.DOTALL)
    assert "FLOPs" in doc
    assert "read" in doc
