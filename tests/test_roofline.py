"""The roofline bound: hand-worked numbers, each term by another route, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memwall import dtypes
from memwall.bound import bound, kernel_bounds
from memwall.catalog import HARDWARE
from memwall.errors import NotAvailable, NotPublished, UnknownName, UnsupportedDtype, UsageError
from memwall.hardware import Device, from_entry, load
from memwall.program import Kernel, Program, Tensor, Work
from memwall.reports.roofline import RooflineReport, roofline

QUICK = settings(max_examples=150, deadline=None, derandomize=True)
H100 = load("h100")
DEVICES = {entry.name: from_entry(entry) for entry in HARDWARE.entries()}

# H100 SXM5 from its data: 5120 bits x 5.238 Gbit/s / 8; 132 SM x 4096 FLOP/clock x 1830 MHz, and twice
# that in fp8; 132 x 256 x 1980 MHz of fp32 lanes; 132 x 16 exponentials x 1980 MHz.
BANDWIDTH = 3352.32e9
BF16, FP8 = 989.4e12, 1978.9e12
LANES = 66.9e12
EXPS = 132 * 16 * 1980e6


def toy(**parts: Any) -> Device:
    """A device of 1 TFLOP/s in bf16 and 10 GB/s, so that numbers can be read off."""
    source = [{"seen": "this test"}]
    data = {
        "name": "toy",
        "title": "Toy",
        "architecture": "none",
        "segment": "datacenter",
        "status": "available",
        "matrix": {"peak_dense_tflops": {"bf16": 1, "fp8": 2}, "source": source},
        "memory": {"bandwidth_gb_per_s": 10, "source": source},
    }
    for name, part in parts.items():
        data[name] = {"source": source, **part} if isinstance(part, dict) else part
    return Device({key: value for key, value in data.items() if value is not None})


FULL = toy(
    vector={"peak_tflops": {"fp32": 0.12}},
    special={"exp_per_clock_per_unit": 10},
    unit={"count": 1},
    clocks={"max_mhz": 1000},
)
"""A toy with 0.12 TFLOP/s of lanes and 1e10 exponentials a second."""


def work(**amounts: Any) -> Work:
    """Work of nothing but the amounts named."""
    nothing: dict[str, Any] = {
        "read_bytes": 0,
        "written_bytes": 0,
        "matrix_flops": {},
        "vector_flops": 0,
        "special_ops": 0,
    }
    return Work(**{**nothing, **amounts})


# --- numbers worked by hand -----------------------------------------------------------------------------


def test_a_large_gemm_on_h100_is_compute_bound() -> None:
    result = roofline("gemm", gpu=H100, m=4096, n=4096, k=4096)
    assert result.flops == 137438953472  # 2 x 4096^3
    assert result.traffic_bytes == 100663296  # 3 x 2 x 4096^2
    assert result.bound.arithmetic_intensity == pytest.approx(1365.33, abs=0.005)  # 4096 / 3
    assert result.bound.ridge_point == pytest.approx(295.14, abs=0.005)  # 989.4e12 / 3352.32e9
    assert result.regime == "compute-bound"
    assert result.bound.limited_by == "matrix"
    assert result.bound_time_s == pytest.approx(138.91e-6, abs=0.005e-6)  # 137438953472 / 989.4e12
    assert result.bound.attainable_flops_per_s == pytest.approx(BF16)


def test_a_gemv_on_h100_is_memory_bound() -> None:
    result = roofline("gemv", gpu=H100)
    assert result.flops == 134217728  # 2 x 8192^2
    assert result.traffic_bytes == 134250496  # 2 x 8192^2 + 2 x 2 x 8192
    assert result.regime == "memory-bound"
    assert result.bound.limited_by == "hbm"
    assert result.bound_time_s == pytest.approx(40.047e-6, abs=0.0005e-6)  # 134250496 / 3352.32e9
    assert result.bound.attainable_flops_per_s == pytest.approx(134217728 / 134250496 * BANDWIDTH)


@pytest.mark.parametrize(
    ("weight", "microseconds"),
    [
        ("fp8", 20.03),  # (67108864 + 32768) / 3352.32e9
        ("int4-g128", 10.33),  # (33554432 + 1048576 + 32768) / 3352.32e9
        ("q8_0", 21.28),  # (67108864 + 8192 x 256 blocks x 2 + 32768) / 3352.32e9
    ],
)
def test_narrower_weights_shorten_a_gemv(weight: str, microseconds: float) -> None:
    result = roofline("gemv", gpu=H100, weight_dtype=weight)
    assert result.bound_time_s == pytest.approx(microseconds * 1e-6, abs=0.005e-6)
    assert result.flops == 134217728


def test_a_gemv_becomes_compute_bound_at_319_vectors() -> None:
    # 2 m k B FLOPs over 2 (m k + B (m + k)) bytes equals R at B = R m k / (m k - R (m + k)) = 318.06
    ridge, mk, m_and_k = BF16 / BANDWIDTH, 8192 * 8192, 8192 + 8192
    assert ridge * mk / (mk - ridge * m_and_k) == pytest.approx(318.06, abs=0.005)
    regimes = [roofline("gemv", gpu=H100, batch=batch).regime for batch in (318, 319)]
    assert regimes == ["memory-bound", "compute-bound"]


@pytest.mark.parametrize(
    ("dtype", "peak"), [("bf16", 989.4), ("fp8", 1978.9), ("tf32", 494.7), ("fp64", 66.9), ("fp32", 66.9)]
)
def test_a_large_gemm_takes_its_flops_over_the_format_s_peak(dtype: str, peak: float) -> None:
    result = roofline("gemm", gpu=H100, dtype=dtype, m=8192, n=8192, k=8192)
    assert result.bound_time_s == pytest.approx(2 * 8192**3 / (peak * 1e12))
    assert result.bound.limited_by == ("vector" if dtype == "fp32" else "matrix")  # no fp32 matrix path


def test_streams_take_their_bytes_over_the_bandwidth() -> None:
    shape = {"rows": 16384, "cols": 8192}  # 268435456 bytes in bf16
    times = {op: roofline(op, gpu=H100, **shape).bound_time_s for op in ("copy", "add", "rmsnorm")}  # type: ignore[arg-type]
    assert times["copy"] == pytest.approx(2 * 268435456 / BANDWIDTH)
    assert times["add"] == pytest.approx(3 * 268435456 / BANDWIDTH)
    assert times["rmsnorm"] == pytest.approx((2 * 268435456 + 16384) / BANDWIDTH)


def test_a_stream_without_flops_has_no_ridge_and_no_rate() -> None:
    result = roofline("copy", gpu=H100, rows=64, cols=64).bound
    assert (result.ridge_point, result.peak, result.attainable_flops_per_s) == (None, None, 0)
    assert result.arithmetic_intensity == 0
    assert result.regime == "memory-bound"


def test_any_flops_and_bytes_have_a_roofline() -> None:
    result = roofline(gpu=H100, flops=4.2e12, bytes=1.6e10)
    assert result.bound.arithmetic_intensity == 262.5  # below the ridge of 295.14
    assert result.regime == "memory-bound"
    assert result.bound_time_s == pytest.approx(1.6e10 / BANDWIDTH)
    assert roofline(gpu=H100, flops=4.2e12, bytes=1e10).bound_time_s == pytest.approx(4.2e12 / BF16)
    assert roofline(gpu=H100, flops=4.2e12, bytes=1e10, dtype="fp8").bound_time_s == pytest.approx(
        1e10 / BANDWIDTH
    )


def test_flops_without_bytes_and_bytes_without_flops_are_ordinary() -> None:
    flops = roofline(gpu=H100, flops=BF16, bytes=0)
    assert flops.bound_time_s == pytest.approx(1)
    assert flops.regime == "compute-bound"
    assert flops.bound.arithmetic_intensity is None
    traffic = roofline(gpu=H100, flops=0, bytes=BANDWIDTH)
    assert traffic.bound_time_s == pytest.approx(1)
    assert traffic.regime == "memory-bound"
    assert traffic.bound.arithmetic_intensity == 0


def test_kernels_in_turn_are_each_bound_by_themselves() -> None:
    result = roofline("silu_mul", gpu=H100, rows=4096, cols=8192, impl="eager")
    plane = 2 * 4096 * 8192
    assert [name for name, _ in result.kernels] == ["silu", "mul"]
    assert [each.time_s for _, each in result.kernels] == pytest.approx(
        [2 * plane / BANDWIDTH, 3 * plane / BANDWIDTH]
    )
    assert result.kernels_bound_time_s == pytest.approx(5 * plane / BANDWIDTH)
    assert result.bound_time_s == pytest.approx(5 * plane / BANDWIDTH)


# --- terms, one at a time -------------------------------------------------------------------------------


def test_each_term_is_an_amount_over_a_rate_and_the_longest_binds() -> None:
    asked = work(
        read_bytes=3e9, written_bytes=1e9, matrix_flops={"bf16": 2e11}, vector_flops=6e9, special_ops=1e9
    )
    result = bound(asked, FULL)
    times = {term.limit: term.time_s for term in result.terms}
    assert times == pytest.approx(
        {
            "hbm": 0.4,  # 4e9 / 10e9
            "matrix": 0.2,  # 2e11 / 1e12
            "vector": 0.05,  # 6e9 / 0.12e12
            "special": 0.075,  # (1e9 + 6e9 / 12) / (1e10 + 0.12e12 / 12)
        }
    )
    assert [term.limit for term in result.terms] == ["hbm", "matrix", "special", "vector"]
    assert result.time_s == pytest.approx(0.4)


def test_two_formats_take_their_times_together_on_the_one_matrix_unit() -> None:
    result = bound(work(matrix_flops={"bf16": 1e12, "fp8": 1e12}), toy())
    assert result.time_s == pytest.approx(1 + 0.5)
    assert [term.limit for term in result.terms] == ["matrix"]
    assert result.limiting.amount == 2e12


def test_matrix_work_in_fp32_shares_the_lanes_with_vector_work() -> None:
    result = bound(work(matrix_flops={"fp32": 6e9}, vector_flops=6e9), FULL)
    assert result.time_s == pytest.approx(0.1)  # 12e9 / 0.12e12
    assert [term.limit for term in result.terms] == ["vector"]


@given(st.floats(0, 1e12), st.floats(1e6, 1e12))
@QUICK
def test_exponentials_are_split_between_their_unit_and_the_lanes_at_best(vector: float, exps: float) -> None:
    # By search: e exponentials are emulated on the lanes, 12 FLOPs each; the two units run side by side.
    steps = 2000
    shares = [exps * i / steps for i in range(steps + 1)]
    best = min(max((exps - e) / 1e10, (vector + 12 * e) / 0.12e12) for e in shares)
    found = bound(work(vector_flops=vector, special_ops=exps), FULL).time_s
    assert found <= best * (1 + 1e-12)
    # the search's grid is off by at most one step on either unit
    assert found >= best - exps / steps / 1e10


def test_softmax_on_h100_could_emulate_some_exponentials() -> None:
    # rows x cols = 2^30: the special unit alone would take 2^30 / 4.18e12 = 257 us
    result = roofline("softmax", gpu=H100, rows=2**15, cols=2**15)
    special = next(term for term in result.bound.terms if term.limit == "special")
    elements = 2**30
    emulated = (elements + 2**15 + 4 * elements / 12) / (EXPS + LANES / 12)
    assert special.time_s == pytest.approx(emulated)
    assert special.time_s < elements / EXPS
    assert result.bound_time_s == pytest.approx(4 * elements / BANDWIDTH)  # still memory-bound


def test_an_engine_without_a_published_rate_is_left_out_and_said() -> None:
    result = bound(work(read_bytes=10, vector_flops=5, special_ops=3), toy())
    assert result.unknown == ("vector", "special")
    assert [term.limit for term in result.terms] == ["hbm"]
    assert bound(work(read_bytes=10), toy()).unknown == ()
    assert bound(work(read_bytes=10, vector_flops=5, special_ops=3), FULL).unknown == ()


def test_a_tie_is_memory_bound() -> None:
    result = bound(work(read_bytes=10_000, matrix_flops={"bf16": 1_000_000}), toy())
    assert result.arithmetic_intensity == result.ridge_point == 100
    assert result.regime == "memory-bound"


@given(st.integers(1, 10**6), st.integers(1, 10**8))
@QUICK
def test_with_one_engine_and_one_memory_the_regime_is_the_side_of_the_ridge(traffic: int, flops: int) -> None:
    result = bound(work(read_bytes=traffic, matrix_flops={"bf16": flops}), toy())
    assert (result.regime == "memory-bound") == (flops * 10**10 <= traffic * 10**12)  # exact integers
    assert result.ridge_point == 100


def test_kernel_bounds_count_what_each_kernel_moves_by_itself() -> None:
    a, t, y = (Tensor(n, (1000,), dtypes.find("bf16")) for n in "aty")
    program = Program("p", (Kernel("one", (a,), (t,)), Kernel("two", (t, a), (y,))))
    times = [each.time_s for _, each in kernel_bounds(program, toy())]
    assert times == pytest.approx([4000 / 10e9, 6000 / 10e9])
    assert bound(program.work, toy()).time_s == pytest.approx(8000 / 10e9)  # `a` comes in once


# --- which constant counts ------------------------------------------------------------------------------


def test_the_driver_s_bandwidth_beats_the_marketed_one() -> None:
    both = toy(memory={"bandwidth_gb_per_s": 10, "bandwidth_driver_gb_per_s": 11})
    assert both.bandwidth.value == 11e9
    assert both.bandwidth.key == "memory.bandwidth_driver_gb_per_s"
    assert toy().bandwidth.value == 10e9


@pytest.mark.parametrize(
    ("segment", "peak"), [("datacenter", 1e12), ("consumer", 1.5e12), ("workstation", 1.5e12)]
)
def test_geforce_and_workstation_parts_run_above_the_clock_behind_their_peak(
    segment: str, peak: float
) -> None:
    device = toy(
        segment=segment,
        matrix={"peak_dense_tflops": {"bf16": 1}, "clock_mhz": 2000},
        clocks={"max_mhz": 3000},
    )
    assert device.peak("bf16").rate.value == pytest.approx(peak)


@pytest.mark.parametrize("segment", ["datacenter", "consumer"])
def test_lanes_and_exponentials_are_taken_at_maximum_clock(segment: str) -> None:
    device = toy(
        segment=segment,
        vector={"peak_tflops": {"fp32": 0.1}, "clock_mhz": 500},
        special={"exp_per_clock_per_unit": 10},
        unit={"count": 3},
        clocks={"max_mhz": 1000},
    )
    lanes, exps = device.vector_peak, device.special_rate
    assert lanes is not None
    assert exps is not None
    assert lanes.value == pytest.approx(0.2e12)
    assert exps.value == pytest.approx(3 * 10 * 1e9)


def test_a_device_without_a_matrix_unit_multiplies_on_its_lanes() -> None:
    device = toy(matrix=None, vector={"peak_tflops": {"fp32": 1, "fp16": 2}})
    assert device.peak("fp16").engine == "vector"
    assert bound(work(matrix_flops={"fp16": 2e12}), device).limited_by == "vector"


def test_lanes_do_not_stand_in_for_a_matrix_unit_that_lacks_the_format() -> None:
    device = toy(vector={"peak_tflops": {"fp32": 1, "fp16": 2}})
    with pytest.raises(NotPublished, match="no fp16 peak is published"):
        device.peak("fp16")
    assert device.peak("fp32").engine == "vector"


@pytest.mark.parametrize(
    ("change", "microseconds"),
    [
        ({"memory.bandwidth_gb_per_s": "6704.64"}, 20.0235),  # twice the bandwidth, half of 40.047
        ({"memory.bandwidth_gb_per_s": "1000"}, 134.250),
        ({"memory.pin_rate_gbit_per_s": "10.476"}, 20.0235),  # twice the pins' rate
        ({"matrix.peak_dense_tflops.bf16": "1"}, 134.218),  # 134217728 / 1e12
    ],
    ids=str,
)
def test_a_what_if_changes_the_bound_and_is_confessed(change: dict[str, str], microseconds: float) -> None:
    result = roofline("gemv", gpu="h100", changes=change)
    assert result.bound_time_s == pytest.approx(microseconds * 1e-6, rel=1e-4)
    assert any(constant.kind == "assumed" and constant.weak for constant in result.bound.rests_on)


def test_a_result_names_the_constants_that_it_rests_on() -> None:
    keys = [constant.key for constant in roofline("gemv", gpu=H100).bound.rests_on]
    assert keys == ["memory.bandwidth_driver_gb_per_s", "matrix.peak_dense_tflops.bf16"]


# --- what is refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES.values(), ids=DEVICES.keys())
def test_a_device_computes_a_format_or_says_which_it_can(device: Device) -> None:
    for name in dtypes.names():
        engine = dtypes.find(name).engine
        if engine in device.dtypes():
            assert roofline("gemv", gpu=device, dtype=name).bound_time_s > 0
        elif engine:
            check_refusal(device, name)


def check_refusal(device: Device, dtype: str) -> None:
    """The hint names a format that the device computes in, or where to see that it has none."""
    with pytest.raises((UnsupportedDtype, NotPublished)) as refused:
        roofline("gemv", gpu=device, dtype=dtype)
    assert refused.value.exit_code == 4
    _, _, offered = refused.value.hint.partition("Try --dtype ")
    if offered:
        assert roofline("gemv", gpu=device, dtype=offered).bound_time_s > 0
    else:
        assert refused.value.hint == f"See memwall gpu show {device.name}"
        assert not set(device.dtypes()) & set(dtypes.names())


@pytest.mark.skipif("v100" not in DEVICES, reason="hardware/v100.yaml is not here")
def test_v100_has_no_bf16_and_offers_fp16() -> None:
    with pytest.raises(UnsupportedDtype, match="no bf16 matrix path") as refused:
        roofline("gemv", gpu="v100")
    assert refused.value.hint == "Try --dtype fp16"


@pytest.mark.parametrize(
    ("call", "error", "says", "hint"),
    [
        ({"op": "gemv", "dtype": "nvfp4"}, UnsupportedDtype, "no nvfp4 matrix path", "Try --dtype fp8"),
        ({"op": "gemv", "dtype": "int4"}, UnsupportedDtype, "no int4 matrix path", "Try --dtype int8"),
        ({"op": "gemv", "dtype": "int4-g128"}, NotAvailable, "storage format", "--weight-dtype int4-g128"),
        (
            {"op": "gemm", "dtype": "q8_0", "m": 1, "n": 1, "k": 1},
            NotAvailable,
            "storage",
            "--weight-dtype q8_0",
        ),
        ({"op": "gemv", "dtype": "bf61"}, UnknownName, "unknown dtype 'bf61'", "bf16"),
        ({"op": "gemv", "weight_dtype": "int5"}, UnknownName, "unknown dtype 'int5'", "int"),
        ({"op": "gemvv"}, UnknownName, "unknown op 'gemvv'", "gemv"),
        ({"op": "gemv", "gpu": "h1000"}, UnknownName, "unknown GPU 'h1000'", "h100"),
        ({"op": "gemm", "m": 4}, UsageError, "gemm needs --n, --k", "memwall roofline --op gemm --m 4096"),
        ({"op": "gemm", "m": 4, "n": 4, "k": 0}, UsageError, "k must be a whole number", "memwall roofline"),
        ({"op": "gemv", "seq": 4}, UsageError, "gemv has no --seq", "--m, --k, --batch"),
        ({"op": "gemv", "causal": True}, UsageError, "gemv has no --causal", "memwall op show gemv"),
        ({"op": "gemv", "flops": 1.0}, UsageError, "leave out --op", "leave out both"),
        ({}, UsageError, "say which kernel", "--op gemv"),
        ({"flops": 1e9}, UsageError, "say which kernel", "--flops 4.2e12 --bytes 1.6e10"),
        ({"flops": 0, "bytes": 0}, UsageError, "takes no time", "--flops 4.2e12"),
        ({"flops": 1, "bytes": 1, "dtype": "int32"}, NotAvailable, "storage format", "--dtype bf16"),
    ],
    ids=lambda value: "-".join(map(str, value.values())) or "nothing" if isinstance(value, dict) else None,
)
def test_what_cannot_be_is_refused_with_what_to_do(
    call: dict[str, Any], error: type[NotAvailable | UsageError], says: str, hint: str
) -> None:
    with pytest.raises(error) as refused:
        roofline(**call)
    assert type(refused.value) is error
    assert says in refused.value.message
    assert hint in refused.value.hint


def test_the_public_names_are_those_of_the_reports() -> None:
    assert isinstance(roofline("gemv"), RooflineReport)
    assert roofline("gemv").device.name == "h100"  # the default
