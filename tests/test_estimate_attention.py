"""The mechanisms of attention's estimates, worked by hand."""

from __future__ import annotations

from typing import Any

import pytest
from toy_chip import chip

import memwall
from memwall.dtypes import precision
from memwall.estimate.choice import choose
from memwall.estimate.decode import DecodeShape, decode_time_s
from memwall.estimate.families import run_of
from memwall.estimate.library import Library
from memwall.estimate.plans import plan_of
from memwall.estimate.prefill import PrefillShape, masked_tiles, prefill_time_s
from memwall.ops import registry
from memwall.ops.attention import visible_pairs

SHARP = 200.0
"""So sharp a maximum that it is the plain one."""

CHIP = chip(l2_bytes_per_s=6e12)


def decode_constants(**changes: float) -> Any:
    start = plan_of("decode", "16-bit").start._replace(
        launch_s=0,
        bandwidth_share=1,
        cta_s=0,
        combine_s=0,
        matrix_share=1,
        sharpness=SHARP,
        most_splits=1,
    )
    return start._replace(**changes)


def decode_shape(batch: int, keys: int, heads: int = 1, kv_heads: int = 1) -> DecodeShape:
    return DecodeShape(batch, heads, kv_heads, keys, 128, 128, 512, batch * kv_heads * keys * 512, False)


def test_one_unsplit_sequence_takes_as_long_as_one_cta_reads_it() -> None:
    # 8192 keys of 512 B at 10 B a clock and 1 GHz: 4.19 MB / 10 GB/s.
    time_s = decode_time_s(decode_shape(1, 8192), CHIP, decode_constants(cta_bytes_per_clock=10))
    assert time_s == pytest.approx(8192 * 512 / 10e9)


def test_splits_share_a_sequence() -> None:
    constants = decode_constants(cta_bytes_per_clock=10, most_splits=8)
    assert decode_time_s(decode_shape(1, 8192), CHIP, constants) == pytest.approx(8192 * 512 / 80e9)


def test_many_sequences_take_the_bandwidth() -> None:
    shape = decode_shape(512, 8192)
    assert decode_time_s(shape, CHIP, decode_constants()) == pytest.approx(
        shape.traffic_bytes / 1e12, rel=0.01
    )


def test_keys_in_l2_come_at_its_share_of_the_ports() -> None:
    shape, constants = decode_shape(512, 8192), decode_constants(l2_share=0.5, cta_bytes_per_clock=1000)
    assert decode_time_s(shape, CHIP, constants, warm=True) == pytest.approx(
        shape.traffic_bytes / 3e12, rel=0.01
    )


def test_a_unit_takes_more_ctas_than_it_holds_in_turns() -> None:
    # 400 sequences on 100 units of 2 CTAs: two turns of 1024 keys x 512 B at 2 B a clock, and 1 us for each.
    constants = decode_constants(cta_bytes_per_clock=2, cta_s=1e-6)
    time_s = decode_time_s(decode_shape(400, 1024), CHIP, constants)
    assert time_s == pytest.approx(2 * (1024 * 512 / 2e9 + 1e-6))


def test_a_kernel_for_shared_keys_alone_leaves_others_unsplit() -> None:
    constants = decode_constants(cta_bytes_per_clock=10, most_splits=8, split_group=2)
    alone = decode_time_s(decode_shape(1, 8192), CHIP, constants)
    shared = decode_time_s(decode_shape(1, 8192, heads=2), CHIP, constants)
    assert (alone, shared) == pytest.approx((8192 * 512 / 10e9, 8192 * 512 / 80e9))


def test_heads_run_one_by_one_on_the_lanes_where_the_matrix_kernel_does_not_serve() -> None:
    # 64 query heads of one group: 64 x 8192 keys x 256 elements, but each CTA at half of 10 a clock: 419 us.
    constants = decode_constants(plain_per_clock=10, most_group=32)
    time_s = decode_time_s(decode_shape(1, 8192, heads=64), CHIP, constants)
    assert time_s == pytest.approx(8192 * 256 / 5e9)
    full = decode_time_s(decode_shape(100, 8192, heads=64), CHIP, constants)
    assert full == pytest.approx(6400 * 8192 * 256 / (100 * 10e9))


def test_too_few_tiles_of_keys_go_to_the_lanes() -> None:
    # A quarter of 100 units: 24 tiles of 128 keys are too few, 25 are not.
    constants = decode_constants(plain_per_clock=0.1, least_group=1, least_fill=0.25, most_splits=128)
    few, enough = (decode_time_s(decode_shape(1, 128 * n), CHIP, constants) for n in (24, 25))
    assert few > 10 * enough


def prefill_shape(keys: int) -> PrefillShape:
    pairs = visible_pairs(keys, keys)
    return PrefillShape(1, 8, 8, keys, keys, 128, 128, pairs, 4 * 8 * keys * 128 * 2)


def test_a_pass_over_q_k_and_v_reads_from_l2_what_is_there() -> None:
    start = plan_of("prefill", "16-bit").start
    without, once = (start._replace(prepare=prepare) for prepare in (0.0, 1.0))
    shape, qkv_bytes = prefill_shape(1024), 3 * 8 * 1024 * 128 * 2
    cold, warm = (
        prefill_time_s(shape, CHIP, once, where) - prefill_time_s(shape, CHIP, without, where)
        for where in (False, True)
    )
    assert (cold, warm) == pytest.approx((2 * qkv_bytes / 1e12, 2 * qkv_bytes / 1.2e12))


def test_small_heads_have_a_rate_of_their_own() -> None:
    start = plan_of("prefill", "16-bit").start
    half = start._replace(small=0.5)
    large = prefill_shape(4096)
    small = large._replace(head_dim=64, head_dim_v=64)
    assert prefill_time_s(large, CHIP, half) == prefill_time_s(large, CHIP, start)
    assert prefill_time_s(small, CHIP, half) > 1.3 * prefill_time_s(small, CHIP, start)


@pytest.mark.parametrize(("seq_q", "seq_kv"), [(4096, 4096), (1024, 8192), (128, 128)])
@pytest.mark.parametrize("rows", [64, 128])
@pytest.mark.parametrize("cols", [64, 128])
def test_masked_tiles_are_those_below_the_diagonal(seq_q: int, seq_kv: int, rows: int, cols: int) -> None:
    counted = 0
    for block in range(seq_q // rows):
        last_key = seq_kv - seq_q + (block + 1) * rows
        counted += -(-last_key // cols)
    tiles = masked_tiles(visible_pairs(seq_q, seq_kv), seq_q, seq_kv, rows, cols)
    assert tiles == pytest.approx(counted, rel=0.02)


def test_a_library_is_served_by_its_engine_before_another_engine_on_the_same_gpu() -> None:
    # An H200's own rows call FA3 by themselves; vLLM's calls of it were measured on an H100.
    h200 = memwall.gpu("h200")
    in_vllm, alone = (choose("decode", "16-bit", h200, Library("fa3", engine)) for engine in ("vllm", None))
    assert (str(in_vllm.fit.library), in_vllm.basis) == ("fa3/vllm", "architecture default")
    assert (str(alone.fit.library), alone.basis) == ("fa3", "calibrated: h200")


@pytest.mark.parametrize(("gpu", "kernel"), [("h200", "fa3"), ("l40s", "fa2")])
def test_flash_attention_without_a_version_is_the_generations(gpu: str, kernel: str) -> None:
    choice = choose("decode", "16-bit", memwall.gpu(gpu), Library("flash-attn", "sglang"))
    assert choice.fit.library.kernel == kernel


@pytest.mark.parametrize(("kv", "number"), [("bf16", "16-bit"), ("fp8", "fp8")])
def test_latent_prefill_goes_by_the_format_of_its_cache(kv: str, number: str) -> None:
    op = registry.ops()["attention"]
    given = {"batch": 1, "heads": 8, "kv_heads": 8, "seq_q": 512, "seq_kv": 512, "head_dim": 192}
    dims, _ = registry.resolve(op, {**given, "head_dim_v": 128})
    (kernel,) = registry.build(op, dims, precision("bf16", kv=kv), True, "fa3").kernels
    found = run_of(kernel)
    assert (found.family, found.format, found.compute) == ("mla_prefill", number, "bf16")


def test_launches_full_enough_are_left_to_the_unsplit_kernel() -> None:
    # 100 units: 160 sequences are left whole, 159 are split in two, of 4 CTAs a unit.
    constants = decode_constants(slots=4, most_splits=128, whole_from=1.6, combine_s=1.0)
    split, whole = (decode_time_s(decode_shape(n, 1024), CHIP, constants) for n in (159, 160))
    assert (split > 1.0, whole < 0.1) == (True, True)
