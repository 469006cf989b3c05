"""The estimate: its mechanisms worked by hand, never below the bound, one formula for numbers and arrays."""

from __future__ import annotations

import json
import shlex
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_chip import chip

import memwall
from memwall.catalog import HARDWARE
from memwall.cli import run
from memwall.dtypes import precision
from memwall.errors import NotAvailable, UnknownName
from memwall.estimate.choice import choose, generation_of
from memwall.estimate.constants import bands, shipped, shipped_calibrations
from memwall.estimate.estimate import estimate, estimate_kernel, together
from memwall.estimate.families import FAMILIES, run_of
from memwall.estimate.gemm import GemmShape, gemm_time_s
from memwall.estimate.library import NAMES, UNKNOWN, Library, library_named, parse, recognise
from memwall.estimate.plans import plan_of
from memwall.estimate.roof import roof
from memwall.hardware import Device, from_entry
from memwall.ops import registry

DEVICES = HARDWARE.read_each(from_entry)[0]
SHARP = 200.0
"""So sharp a maximum that it is the plain one."""


# --- the mechanisms, by hand


def gemm_constants(**changes: float) -> Any:
    start = plan_of("gemm", "16-bit").start._replace(
        launch_s=0,
        bandwidth_share=1,
        unit_bytes_per_clock=10,
        matrix_share=1,
        edge=0,
        wave_s=0,
        sharpness=SHARP,
    )
    return start._replace(**{"energy_per_flop_j": 0, **changes})


def gemm_shape(m: int, n: int, k: int) -> GemmShape:
    return GemmShape(m, n, k, 1, 2 * (m * k + n * k + m * n), 2 * m * k)


def test_full_waves_of_a_large_product_run_at_the_peak() -> None:
    # 1280 x 1280 is a hundred 128 x 128 tiles: one full wave, so the time is FLOPs / peak.
    shape = gemm_shape(1280, 1280, 16384)
    expected = 2 * 1280 * 1280 * 16384 / 100e12
    assert gemm_time_s(shape, chip(), gemm_constants()) == pytest.approx(expected, rel=0.01)


def test_a_product_of_few_rows_takes_its_bytes() -> None:
    # One row: 20000 x 16384 weights in 16 bits, streamed at 1 TB/s by all units (10 B a clock x 100 x 1 GHz).
    shape = gemm_shape(1, 20000 * 2, 16384)
    assert gemm_time_s(shape, chip(), gemm_constants()) == pytest.approx(shape.traffic_bytes / 1e12, rel=0.02)


def test_the_power_limit_is_energy_over_watts() -> None:
    # 1 pJ a FLOP at 50 W: 50 TFLOP/s, half the peak.
    shape = gemm_shape(12800, 12800, 8192)
    time_s = gemm_time_s(shape, chip(tdp_w=50), gemm_constants(energy_per_flop_j=1e-12))
    assert time_s == pytest.approx(2 * 12800**2 * 8192 / 50e12, rel=0.01)


def test_quantising_activations_costs_its_passes() -> None:
    shape = gemm_shape(1280, 1280, 16384)
    plain, converting = (gemm_time_s(shape, chip(), gemm_constants(convert=c)) for c in (0, 1))
    assert converting - plain == pytest.approx((2 * 1280 * 16384 + 2 * 1280 * 16384) / 1e12)


def test_split_k_fills_units_that_one_tile_would_leave_idle() -> None:
    # One 64 x 64 tile and k = 4096: alone on one unit; in 16 splits on 16 of them, at the price of a sum.
    shape = gemm_shape(64, 64, 4096)
    constants = gemm_constants(split_s=1e-6, unit_bytes_per_clock=100)
    alone_s = 2 * 64 * 64 * 4096 / 1e12
    assert gemm_time_s(shape, chip(), constants) < alone_s / 4


# --- never below the bound; numbers and arrays


@pytest.mark.parametrize("device", DEVICES, ids=lambda device: device.name)
def test_an_estimate_is_never_below_its_bound_on_any_device(device: Device) -> None:
    answered = 0
    for op in registry.ops().values():
        for dtype in ("bf16", "fp16", "fp32", "fp8"):
            try:
                report = memwall.roofline(op.name, gpu=device, dtype=dtype, **dict[str, Any](op.example))
            except NotAvailable:
                continue
            made = report.estimate
            assert made is not None
            assert made.time_s >= report.bound_time_s
            assert made.time_s >= made.bound_time_s
            assert made.time_s < 1000 * report.bound_time_s + 1e-3
            answered += 1
    assert answered


SIZES = st.integers(min_value=1, max_value=20000)


@settings(max_examples=60, deadline=None)
@given(
    m=SIZES, n=SIZES, k=SIZES, gpu=st.sampled_from(["h100", "h200", "b200", "a100", "rtx-4090", "tpu-v5e"])
)
def test_a_gemm_estimate_is_never_below_its_bound(m: int, n: int, k: int, gpu: str) -> None:
    report = memwall.roofline("gemm", gpu=gpu, m=m, n=n, k=k)
    assert report.estimate is not None
    assert report.estimate.time_s >= report.bound_time_s


SHAPES = {
    "gemm": [{"m": m, "n": 4096, "k": 8192} for m in (1, 17, 128, 5000)],
    "attention": [
        {"heads": 32, "kv_heads": 8, "head_dim": 128, "head_dim_v": 128, "seq_q": 1, "seq_kv": s, "batch": 4}
        for s in (100, 4096, 65536)
    ],
    "rmsnorm": [{"rows": r, "cols": 4096} for r in (1, 300, 70000)],
    "softmax": [{"rows": 300, "cols": c} for c in (512, 1024, 1025, 70000)],
    "mla": [
        {"heads": 128, "seq_kv": s, "seq_q": 1, "head_dim": 576, "head_dim_v": 512, "batch": 8}
        for s in (128, 9000)
    ],
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("gpu", ["h200", "l40s", "gb300"])
def test_arrays_give_what_numbers_give(name: str, gpu: str) -> None:
    op, device, formats = registry.find(name), memwall.gpu(gpu), precision("bf16")
    shapes = SHAPES[name]
    arrays = {key: numpy.array([shape[key] for shape in shapes], dtype=float) for key in shapes[0]}
    together_s = estimate(registry.build(op, arrays, formats), device).time_s
    alone_s = [estimate(registry.build(op, dict(shape), formats), device).time_s for shape in shapes]
    assert together_s == pytest.approx(alone_s, rel=1e-12)


def test_kernels_add_up_and_the_weakest_basis_counts() -> None:
    gemm = registry.build(registry.find("gemm"), {"m": 64, "n": 4096, "k": 4096}, precision("bf16")).kernels[
        0
    ]
    known = estimate_kernel(gemm, memwall.gpu("h100"))
    unknown = estimate_kernel(gemm, memwall.gpu("tpu-v5e"))
    both = together([known, unknown], [3, 1])
    assert both.time_s == pytest.approx(3 * known.time_s + unknown.time_s)
    assert (known.basis, unknown.basis, both.basis) == ("calibrated: h100", "physics", "physics")


def test_causal_attention_unfused_masks_its_scores_in_a_pass_of_its_own() -> None:
    plain, masked = (
        memwall.roofline(
            "attention", gpu="h200", impl="standard", causal=causal, heads=32, head_dim=128, seq=4096
        ).estimate
        for causal in (False, True)
    )
    assert plain is not None
    assert masked is not None
    scores_bytes = 32 * 4096 * 4096 * 2
    assert masked.time_s - plain.time_s > 2 * scores_bytes / 4.8e12


def test_warm_operands_are_bound_by_l2_and_not_by_memory() -> None:
    work = registry.build(registry.find("copy"), {"rows": 1024, "cols": 1024}, precision("bf16")).work
    cold, warm = (roof(work, memwall.gpu("h200"), warm) for warm in (False, True))
    assert (cold.limited_by, warm.limited_by) == ("hbm", "l2")
    assert warm.time_s == pytest.approx(2 * 2 * 1024 * 1024 / (132 * 64 * 1980e6))


# --- which constants


def test_each_kernel_of_the_operators_has_a_mechanism() -> None:
    for op in registry.ops().values():
        dims, _ = registry.resolve(op, op.example)
        for impl in op.impls or (None,):
            for kernel in registry.build(op, dims, precision("bf16"), impl=impl).kernels:
                assert run_of(kernel).family in FAMILIES


@pytest.mark.parametrize(
    ("gpu", "basis"),
    [
        ("h100", "calibrated: h100"),
        ("h200", "calibrated: h200"),
        ("gh200", "architecture default"),
        ("rtx-4090", "architecture default"),
        ("rtx-pro-6000", "architecture default"),
        ("gb300", "architecture default"),
        ("tpu-v5e", "physics"),
    ],
)
def test_the_basis_says_what_the_constants_were_fitted_on(gpu: str, basis: str) -> None:
    choice = choose("gemm", "16-bit", memwall.gpu(gpu), UNKNOWN)
    assert choice.basis == basis
    assert choice.error_p50 is not None
    assert choice.error_p90 is not None
    assert 0 < choice.error_p50 < choice.error_p90 < 5


def test_constants_of_another_number_format_are_not_called_calibrated() -> None:
    assert choose("grouped_gemm", "16-bit", memwall.gpu("h200"), UNKNOWN).basis == "calibrated: h200"
    assert choose("grouped_gemm", "int8", memwall.gpu("h200"), UNKNOWN).basis == "architecture default"


def test_times_from_the_host_serve_no_other_kernel() -> None:
    for gpu in ("mi210", "mi300x", "a100"):
        for family in ("gemm", "activation"):
            assert choose(family, "16-bit", memwall.gpu(gpu), UNKNOWN).fit.library.kernel != "host-timed"


def test_a_named_library_has_its_own_constants_and_an_unknown_one_a_wider_band() -> None:
    device = memwall.gpu("h100")
    named = choose("decode", "16-bit", device, Library("fa3", "vllm"))
    unknown = choose("decode", "16-bit", device, UNKNOWN)
    assert named.fit.library == Library("fa3", "vllm")
    assert named.error_p50 is not None
    assert unknown.error_p50 is not None
    assert named.error_p50 < unknown.error_p50


@pytest.mark.parametrize(
    ("name", "library"),
    [
        ("vllm_flash_attn_fa3|vllm_0.24.0", "fa3/vllm"),
        ("torch_flow|trtllm_1.3.0rc20", "trtllm"),
        ("vllm_flashinfer_trtllmdecode|vllm_0.24.0", "flashinfer-trtllm/vllm"),
        ("flash_attention|sglang_0.5.14", "flash-attn/sglang"),
        ("CutlassFP8ScaledMMLinearKernel|vllm_0.24.0", "cutlass/vllm"),
        ("cudnn", "cudnn"),
        ("cublasLt", "cublas"),
        ("cublass", ""),
        ("fa33", ""),
        ("tritonx", ""),
        ("cuBLASLt", "cublas"),
        ("TensorRT-LLM", "trtllm"),
        ("FlashAttention-3", "fa3"),
        ("PyTorch", "torch"),
        ("liger_triton", "liger"),
        ("torch eager", "eager/torch"),
        ("q_proj", ""),
        ("", ""),
    ],
)
def test_libraries_are_recognised_inside_names(name: str, library: str) -> None:
    assert str(recognise(name)) == library
    assert parse(library) == recognise(name)


# --- the calibrations


@pytest.mark.parametrize("name", shipped_calibrations())
def test_a_shipped_calibration_is_complete_and_modest(name: str) -> None:
    for fit in shipped(name):
        assert fit.family in FAMILIES
        assert fit.rows >= 2 * len(fit.fitted), "no constant for a row"
        assert fit.error_p50 is not None
        assert fit.error_p90 is not None
        values = fit.constants._asdict()
        assert set(fit.fitted) <= set(values)
        assert all(value >= 0 for value in values.values())
        assert values.get("bandwidth_share", 0) <= 1
        assert values.get("matrix_share", 0) <= 1


def test_every_generation_that_a_device_names_is_a_file() -> None:
    assert {generation_of(device) for device in DEVICES} <= set(shipped_calibrations())


def test_there_is_a_band_for_each_basis() -> None:
    assert {basis for _, basis in bands()} == {"architecture default", "physics", "library unknown"}


def test_fa1_has_no_estimate_and_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    """It moves ten times the bytes of the kernels that were measured: their estimate is not its own."""
    line = "--op attention --impl fa1 --heads 32 --head-dim 128"
    assert run(shlex.split(f"roofline {line} --seq 4096")) == 0
    assert "no estimate: no measured FA1 kernel" in capsys.readouterr().out
    assert run(shlex.split(f"roofline {line} --seq 4096 --json")) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["estimate_time_s"] is None
    assert document["bound_time_s"] > 0
    assert run(shlex.split(f"roofline {line} --seq 4096 --bound-only")) == 0
    assert "no estimate" not in capsys.readouterr().out
    assert run(shlex.split(f"sweep {line} --seq 1024,4096 --estimate")) == 4
    assert "no measured FA1 kernel" in capsys.readouterr().err


def test_a_library_misspelt_by_a_letter_has_the_right_one_offered() -> None:
    with pytest.raises(UnknownName, match="Did you mean cublas"):
        library_named("cublass")


@pytest.mark.parametrize("more", [(), ("--bound-only",)])
def test_a_misspelt_library_is_refused(more: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    for line in ("roofline --op gemv", "step --model llama3-8b --context 64", "attention --heads 8 --seq 64"):
        assert run([*line.split(), "--library", "nonsense", *more]) == 2
        said = capsys.readouterr().err
        assert "unknown library" in said
        assert "cublas" in said
    with pytest.raises(UnknownName):
        memwall.roofline("gemv", library="nonsense")


@pytest.mark.parametrize("name", NAMES)
def test_every_listed_library_is_one(name: str) -> None:
    assert name in library_named(name)
