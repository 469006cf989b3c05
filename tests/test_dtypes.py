"""Number formats: stored bits, scales, and the formats of a program's operands."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memwall import dtypes
from memwall.dtypes import Dtype, bytes_of, find, precision
from memwall.errors import NotAvailable, UnknownName

QUICK = settings(max_examples=200, deadline=None, derandomize=True)


BITS = {
    "fp64": 64,
    "fp32": 32,
    "tf32": 32,  # stored as fp32
    "bf16": 16,
    "fp16": 16,
    "fp8": 8,
    "fp6": 6,
    "fp4": 4,
    "int8": 8,
    "int4": 4,
    "nvfp4": 4.5,  # 4 + 8/16
    "mxfp4": 4.25,  # 4 + 8/32
    "mxfp6": 6.25,  # 6 + 8/32
    "mxfp8": 8.25,  # 8 + 8/32
    "fp8-128x128": 8 + 32 / 128**2,
    "int4-g32": 4.5,  # 4 + 16/32
    "int4-g64": 4.25,  # 4 + 16/64
    "int4-g128": 4.125,  # 4 + 16/128
    "int4-g128-zp": 4.15625,  # 4 + (16 + 4)/128
    "int8-g128": 8.125,  # 8 + 16/128
    "q8_0": 8.5,  # GGML's block_q8_0: 34 bytes for 32 elements
    "q4_0": 4.5,  # GGML's block_q4_0: 18 bytes for 32 elements
    "q6_k": 6.5625,  # GGML's block_q6_K: 210 bytes for 256 elements
    # 144 bytes for 256 elements in q4_k; of 218.1 M weights a Llama 3 8B layer, half of its 62.9 M of values
    # and downs in q6_k: 4.5 + 0.1442 x 2.0625 = 4.797, in 256ths
    "q4_k_m": 4 + 204 / 256,
    "int4-g32-zp16": 5,  # 4 + (16 + 16)/32
    "int32": 32,
    "int64": 64,
}


@pytest.mark.parametrize("name", BITS)
def test_a_format_stores_so_many_bits(name: str) -> None:
    assert find(name).bits_per_element == BITS[name]


def test_every_format_is_in_the_table_above() -> None:
    assert list(BITS) == dtypes.names()


@pytest.mark.parametrize(
    ("shape", "name", "stored"),
    [
        ((8192, 8192), "bf16", 134217728),  # 2 x 67108864
        ((8192, 8192), "fp8", 67108864),
        ((3, 5), "int8", 15),
        ((1, 1), "fp8", 1),
        ((3, 5), "fp32", 60),
        ((3, 5), "fp64", 120),
        ((1, 1), "int4", 1),  # half a byte is a byte
        ((3, 3), "int4", 5),  # 36 bits, packed over the rows: 4.5 bytes
        ((4096, 4096), "int4-g128", 8650752),  # 8388608 + 4096 rows x 32 groups x 2 bytes
        ((1, 128), "int4-g128", 66),  # 64 + 2
        ((1, 129), "int4-g128", 69),  # 64.5 -> 65, and a second group for the last element
        ((3, 129), "int4-g128", 206),  # 1548 bits -> 194; 3 rows x 2 groups x 2 bytes = 12
        ((1, 128), "int4-g128-zp", 67),  # 64 + 20 bits -> 3
        ((2, 128), "int4-g128-zp", 133),  # 128 + 40 bits
        ((1, 32), "int4-g32", 18),
        ((1, 64), "int4-g64", 34),
        ((2, 256), "int8-g128", 520),  # 512 + 2 x 2 x 2
        ((1, 32), "q8_0", 34),
        ((1, 32), "q4_0", 18),
        ((1, 33), "q8_0", 37),  # 33 + 2 blocks x 2
        ((3, 17), "nvfp4", 32),  # 204 bits -> 26; 3 rows x 2 blocks x 1
        ((16, 16), "nvfp4", 144),  # 128 + 16
        ((2, 33), "mxfp4", 37),  # 264 bits = 33; 2 x 2
        ((1, 32), "mxfp6", 25),  # 24 + 1
        ((1, 5), "mxfp6", 5),  # 30 bits -> 4, and a scale
        ((2, 32), "mxfp8", 66),
        ((7168, 7168), "fp8-128x128", 7168**2 + 56 * 56 * 4),
        ((576, 7168), "fp8-128x128", 576 * 7168 + 5 * 56 * 4),  # 4.5 squares high: five rows of scales
        ((3, 129, 1), "fp8-128x128", 3 * 129 + 3 * 2 * 4),  # each matrix has its own
        ((5,), "nvfp4", 4),  # 20 bits -> 3, and a scale
        ((2, 3, 4, 16), "nvfp4", 216),  # 24 rows of 8 + 1 bytes
        ((2**21, 2**21), "fp64", 2**45),
    ],
)
def test_a_tensor_takes_so_many_bytes(shape: tuple[int, ...], name: str, stored: int) -> None:
    assert bytes_of(shape, find(name)) == stored


FORMATS = st.sampled_from([find(name) for name in dtypes.names()])
SHAPES = st.lists(st.integers(1, 300), min_size=1, max_size=4).map(tuple)


@given(SHAPES, FORMATS)
@QUICK
def test_bytes_are_the_rows_blocks_counted_one_by_one(shape: tuple[int, ...], dtype: Dtype) -> None:
    *outer, rows, cols = (1, *shape)
    across = len(range(0, cols, dtype.block)) if dtype.scale_bits else 0
    blocks = math.prod(outer) * len(range(0, rows, dtype.block_rows)) * across
    payload = math.ceil(Fraction(math.prod(shape) * dtype.bits, 8))
    scales = math.ceil(Fraction(blocks * dtype.scale_bits, 8))
    assert bytes_of(shape, dtype) == payload + scales


@given(SHAPES, FORMATS)
@QUICK
def test_bytes_are_at_least_the_format_s_bits_an_element(shape: tuple[int, ...], dtype: Dtype) -> None:
    elements = math.prod(shape)
    assert bytes_of(shape, dtype) >= elements * dtype.bits_per_element / 8
    # rows and columns that the block divides: exact up to one byte of payload and one of scales
    even = (*shape, dtype.block_rows, dtype.block)
    assert bytes_of(even, dtype) <= math.prod(even) * dtype.bits_per_element / 8 + 2


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("BF16", "bf16"),
        (" bfloat16 ", "bf16"),
        ("half", "fp16"),
        ("float32", "fp32"),
        ("e4m3", "fp8"),
        ("fp8_e5m2", "fp8"),
        ("INT4_G128", "int4-g128"),
        ("Q8_0", "q8_0"),
        ("q8-0", "q8_0"),
        ("double", "fp64"),
    ],
)
def test_a_format_is_found_however_it_is_spelt(spelling: str, name: str) -> None:
    assert find(spelling).name == name


@pytest.mark.parametrize(
    ("typo", "near"), [("bf61", "bf16"), ("fp88", "fp8"), ("nvpf4", "nvfp4"), ("int4-g182", "int4-g128")]
)
def test_an_unknown_format_names_the_nearest(typo: str, near: str) -> None:
    with pytest.raises(UnknownName, match=f"unknown dtype '{typo}'") as refused:
        find(typo)
    assert near in refused.value.hint.split("?")[0]
    assert "The list: fp64, fp32" in refused.value.hint


@pytest.mark.parametrize("junk", ["", "   ", "\n", "x" * 10_000, "\x00", "bf16,fp8"])
def test_junk_is_an_unknown_format_and_the_message_stays_short(junk: str) -> None:
    with pytest.raises(UnknownName) as refused:
        find(junk)
    assert len(refused.value.message) < 100


def test_operands_default_to_the_activations_format() -> None:
    formats = precision("bf16")
    assert [d.name for d in formats] == ["bf16"] * 5
    assert formats.compute == "bf16"


@pytest.mark.parametrize(
    ("dtype", "result"),
    [
        *((small, "bf16") for small in ("fp8", "fp6", "fp4", "nvfp4", "mxfp4")),
        *(("int8", "int32"), ("int4", "int32"), ("tf32", "fp32"), ("fp16", "fp16"), ("fp64", "fp64")),
    ],
)
def test_a_product_s_result_is_16_bit_for_small_floats_and_32_for_integers(dtype: str, result: str) -> None:
    assert precision(dtype).result.name == result
    assert precision(dtype).plain.name == dtype  # elementwise kernels write what they read


def test_each_operand_may_have_its_own_format() -> None:
    formats = precision("bf16", weight="int4-g128", kv="fp8", out="fp32")
    assert [d.name for d in formats] == ["bf16", "int4-g128", "fp8", "fp32", "fp32"]


@pytest.mark.parametrize(
    ("dtype", "out", "scores"),
    [
        ("bf16", None, 16),
        ("fp16", None, 16),
        ("fp8", None, 16),
        ("int8", None, 16),
        ("nvfp4", None, 16),
        ("tf32", None, 32),
        ("fp32", None, 32),
        ("fp64", None, 64),
        ("bf16", "fp32", 16),  # the output's format is not the scores'
        ("fp32", "bf16", 32),
    ],
)
def test_scores_are_stored_like_the_activations_but_never_below_16_bits(
    dtype: str, out: str | None, scores: int
) -> None:
    assert precision(dtype, out=out).scores.bits == scores


@pytest.mark.parametrize("name", [n for n in dtypes.names() if find(n).engine is None])
def test_a_storage_format_does_not_compute_and_says_what_to_type(name: str) -> None:
    with pytest.raises(NotAvailable, match="storage format") as refused:
        _ = precision(name).compute
    assert refused.value.hint == f"Try --dtype bf16 --weight-dtype {name}"
    assert refused.value.exit_code == 4


def test_every_engine_is_one_that_a_hardware_file_may_name() -> None:
    assert {find(name).engine for name in dtypes.names()} - {None} <= dtypes.ENGINES
