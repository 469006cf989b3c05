"""Advice on a pass: each number is that of the pass asked again."""

from __future__ import annotations

import pytest

from memwall.reports.step import StepReport, step
from memwall.reports.steps import Step


def advice(report: StepReport, action: str) -> list[Step]:
    return [each for each in report.advice if each.action == action]


def test_narrower_linear_layers_gain_what_the_pass_says() -> None:
    [found] = advice(step("llama3-70b", context=4096), "quantisation")
    four = step("llama3-70b", context=4096, weight_dtype="int4-g128")
    assert found.bound_time_s == four.whole.time_s
    assert "fp8 linear layers" in found.text
    without_fp8 = step("llama3-70b", gpu="a100", context=4096)
    assert "fp8" not in advice(without_fp8, "quantisation")[0].text


def test_narrow_weights_and_caches_are_not_told_to_be_narrowed() -> None:
    report = step("llama3-8b", context=100000, batch=8, weight_dtype="int4-g128", kv_dtype="fp8")
    assert not advice(report, "quantisation")
    assert not advice(report, "KV cache")
    wide = step("llama3-8b", context=100000, batch=8, weight_dtype="int4-g128")
    assert advice(wide, "KV cache")[0].bound_time_s == report.whole.time_s


def test_a_prefill_gains_from_fp8_and_not_from_stored_bits() -> None:
    [found] = advice(step("llama3-8b", seq=8192), "quantisation")
    assert "int4" not in found.text
    assert found.bound_time_s == step("llama3-8b", seq=8192, dtype="fp8").whole.time_s


def test_the_batch_is_the_first_that_is_compute_bound() -> None:
    report = step("llama3-8b", context=64)
    [found] = advice(report, "batch")
    assert found.at is not None
    _, batch = found.at
    assert step("llama3-8b", context=64, batch=batch).whole.limited_by == "matrix"
    assert step("llama3-8b", context=64, batch=batch - 1).whole.limited_by == "hbm"


def test_long_contexts_stay_memory_bound_and_near_the_rate_of_their_caches() -> None:
    report = step("llama3-8b", context=32768)
    [found] = advice(report, "batch")
    assert found.at is None
    cache = 131072 * 32768  # bytes a sequence
    rate = float(found.text.rpartition("towards ")[2].split()[0])
    assert rate == pytest.approx(3352.32e9 / cache, rel=0.01)
    assert step("llama3-8b", context=32768, batch=10000).tokens_per_s < rate * 1.01


def test_an_unfused_pass_is_told_to_fuse() -> None:
    report = step("llama3-8b", seq=8192, impl="standard", eager=True)
    flash, fused = advice(report, "fusion")
    assert flash.bound_time_s == step("llama3-8b", seq=8192, eager=True).whole.time_s
    assert fused.bound_time_s == step("llama3-8b", seq=8192, impl="standard").whole.time_s
