"""Advice: each step's number by another route, in the documented order, for every kernel anywhere."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from memwall import dtypes
from memwall.catalog import HARDWARE
from memwall.hardware import Device, from_entry, load
from memwall.ops import registry
from memwall.reports.advice import LARGEST_BATCH, crossover
from memwall.reports.case import Case, Formats
from memwall.reports.roofline import RooflineReport, roofline
from memwall.reports.steps import Step

H100 = load("h100")
DEVICES = {entry.name: from_entry(entry) for entry in HARDWARE.entries()}
every_device = pytest.mark.parametrize("device", DEVICES.values(), ids=DEVICES.keys())
BANDWIDTH, BF16, FP8 = 3352.32e9, 989.4e12, 1978.9e12

MEMORY_ORDER = (
    "fusion",
    "batch",
    "quantisation",
    "KV compression",
    "coalescing",
    "tiles",
    "async copies",
)
"""First what removes bytes altogether, then what amortises or narrows them, then how to move them well."""
COMPUTE_ORDER = ("batch", "tile efficiency", "registers", "exponentials", "narrower dtype")
"""First what stops helping, then how to fill the engine, then a faster engine."""


def steps(op: str, **call: Any) -> dict[str, Step]:
    """The steps on H100 by their action."""
    advice = roofline(op, **{"gpu": H100, **call}).advice
    return {step.action: step for step in advice}


# --- numbers by another route ---------------------------------------------------------------------------


def test_a_gemv_is_told_its_batch_and_its_narrower_weights() -> None:
    advice = steps("gemv")
    assert list(advice) == ["batch", "quantisation", "coalescing", "async copies"]
    # R m k / (m k - R (m + k)) = 318.06 at R = 989.4e12 / 3352.32e9
    assert advice["batch"].at == ("batch", 319)
    assert "batch 319" in advice["batch"].text
    # (67108864 + 32768) / 3352.32e9 and (33554432 + 1048576 + 32768) / 3352.32e9
    assert advice["quantisation"].text == (
        "fp8 weights: 0.50x the bytes, 20.03 us; int4-g128 weights: 0.26x the bytes, 10.33 us"
    )
    assert advice["quantisation"].bound_time_s == pytest.approx(34635776 / BANDWIDTH)


def test_bytes_in_flight_cover_the_latency() -> None:
    # Little's law: 3352.32e9 x 685 cycles / 1980 MHz = 1159782 bytes, over 132 SM 8786 = 8.58 KiB
    text = steps("gemv")["async copies"].text
    assert text.startswith("Keep 1.16 MB in flight, 8.58 KiB a compute unit")
    assert text.endswith("(TMA)")


@pytest.mark.parametrize(("dtype", "element", "waste"), [("bf16", 16, 16), ("fp32", 32, 8), ("fp8", 8, 32)])
def test_scattered_loads_waste_the_rest_of_a_32_byte_sector(dtype: str, element: int, waste: int) -> None:
    text = steps("copy", rows=64, cols=64, dtype=dtype)["coalescing"].text
    assert f"each {element}-bit element is up to {waste} times" in text


def test_a_large_gemm_is_told_where_its_regime_began_its_tiles_and_a_faster_format() -> None:
    advice = steps("gemm", m=4096, n=4096, k=4096)
    assert list(advice) == ["batch", "tile efficiency", "registers", "narrower dtype"]
    # m = R n k / (n k - R (n + k)) = 344.83
    assert advice["batch"].at == ("m", 345)
    # 32 x 16 tiles of 128 x 256 over 132 SM: 4 waves of 132 = 528 places
    assert advice["tile efficiency"].text == "512 tiles of 128x256 on 132 compute units: 4 waves, 97 % full"
    # 128 x 256 x 4 bytes of a 256 KiB register file
    assert advice["registers"].text.startswith("A 128x256 tile holds 128 KiB of 32-bit sums, of 256 KiB of")
    # 137438953472 / 1978.9e12; (2 x 4096^2 + 2 x 4096^2) / (6 x 4096^2)
    assert advice["narrower dtype"].text.startswith("fp8 operands: 1.979 PFLOP/s, 0.67x the bytes, 69.45 us")
    assert advice["narrower dtype"].bound_time_s == pytest.approx(137438953472 / FP8)


def test_experts_are_told_how_many_rows_each_needs() -> None:
    # for one expert R n k / (n k - R (n + k)) = 321.6, whatever their number
    for experts in (1, 8):
        advice = steps("grouped_gemm", experts=experts, m=128, n=28672, k=4096)
        assert advice["batch"].at == ("m", 322)


def test_blackwell_keeps_its_sums_in_tensor_memory() -> None:
    text = steps("gemm", gpu="b200", m=8192, n=8192, k=8192)["registers"].text
    assert "of 256 KiB of tensor memory a unit" in text


def test_what_is_no_gpu_is_told_nothing_of_tiles_and_sectors() -> None:
    big = steps("gemm", gpu="tpu-v6e", m=8192, n=8192, k=8192)
    assert not {"tile efficiency", "registers"} & set(big)
    assert "coalescing" not in steps("gemv", gpu="tpu-v6e")
    assert "coalescing" not in steps("gemv", gpu="mi300x")  # the 32-byte sector is NVIDIA's


def test_exponentials_that_limit_are_named() -> None:
    # fp8 at head_dim 64 on a B200: 4 x 64 FLOPs a pair at 4500e12 take 57 fs, an exponential about 100
    advice = steps("attention", gpu="b200", dtype="fp8", heads=32, head_dim=64, seq=8192)
    assert "exponentials" in advice


@pytest.mark.parametrize(
    ("gpu", "dtype", "faster"),
    [
        ("v100", "fp32", ["fp16"]),
        ("a100", "fp32", ["tf32", "bf16", "fp16"]),
        ("h100", "bf16", ["fp8", "int8"]),
    ],
)
def test_a_narrower_format_is_one_that_the_device_has(gpu: str, dtype: str, faster: list[str]) -> None:
    text = steps("gemm", gpu=gpu, dtype=dtype, m=8192, n=8192, k=8192)["narrower dtype"].text
    assert [part.split(" ")[0] for part in text.split("; ")] == faster


def test_a_thin_gemm_is_told_what_tiles_without_a_cache_move() -> None:
    # a is read for each of 16 column tiles, b once: 16 x 131072 + 33554432 + 131072
    assert steps("gemm", m=16, n=4096, k=4096)["tiles"].text.endswith("move 35.78 MB")


def test_two_kernels_are_told_to_become_one() -> None:
    plane = 2 * 4096 * 8192
    advice = steps("silu_mul", rows=4096, cols=8192, impl="eager")
    assert advice["fusion"].bound_time_s == pytest.approx(3 * plane / BANDWIDTH)  # 5 planes before
    assert (
        advice["fusion"].text == "One kernel instead of 2 keeps silu(gate) on chip: 134.2 MB less, 60.06 us"
    )
    assert advice["quantisation"].bound_time_s == pytest.approx(5 * plane / 2 / BANDWIDTH)


def test_standard_attention_is_told_to_become_flash() -> None:
    advice = steps("attention", heads=64, kv_heads=8, head_dim=128, seq=4096, impl="standard")
    # flash, causal: 64 x 8390656 x 512 FLOPs; S and P, 2^31 bytes each, both ways, are saved
    assert advice["fusion"].bound_time_s == pytest.approx(64 * 8390656 * 512 / BF16)
    assert advice["fusion"].text == "One kernel instead of 3 keeps S and P on chip: 8.59 GB less, 277.9 us"


def test_a_norm_is_told_to_join_the_kernel_before_it() -> None:
    plane = 2 * 4096 * 8192
    advice = steps("rmsnorm", rows=4096, cols=8192)
    assert advice["fusion"].bound_time_s == pytest.approx((plane + 16384) / BANDWIDTH)  # weight and y
    assert advice["quantisation"].bound_time_s == pytest.approx((2 * plane + 16384) / 2 / BANDWIDTH)


def test_decoding_is_told_to_compress_the_cache() -> None:
    advice = steps("attention", heads=64, kv_heads=8, head_dim=128, seq_q=1, seq_kv=8192)
    cache, rest = 2 * 8 * 8192 * 128, 2 * 2 * 64 * 128  # elements of K and V; bytes of Q and O
    assert advice["KV compression"].text == (
        "fp8 K and V: 0.50x the bytes, 5.014 us; nvfp4 K and V: 0.28x the bytes, 2.825 us"
    )
    assert advice["KV compression"].bound_time_s == pytest.approx((cache * 4.5 / 8 + rest) / BANDWIDTH)


def test_any_flops_and_bytes_are_told_how_far_the_ridge_is() -> None:
    # the ridge 295.14 over 262.5; 420 over the ridge
    (memory,) = roofline(gpu=H100, flops=4.2e12, bytes=1.6e10).advice
    assert "1.12 times fewer bytes" in memory.text
    (compute,) = roofline(gpu=H100, flops=4.2e12, bytes=1e10).advice
    assert "grow 1.42 times" in compute.text
    assert roofline(gpu=H100, flops=0, bytes=1).advice == ()


# --- crossovers -----------------------------------------------------------------------------------------

LAYERS = {
    "gemv": ({"m": 8192, "k": 8192}, "batch"),
    "gemm": ({"m": 1, "n": 28672, "k": 8192}, "m"),
    "grouped_gemm": ({"experts": 8, "m": 1, "n": 4096, "k": 14336}, "m"),
}


def case_of(op: str, dims: dict[str, int], dtype: str, weight: str | None = None) -> Case:
    found = registry.find(op)
    return Case(found, registry.resolve(found, dims)[0], Formats(dtype, weight))


def check_crossover(case: Case, device: Device, dim: str) -> None:
    """One less is memory-bound; none means that not even the largest is compute-bound."""
    at = crossover(case, device, dim)
    regime = {
        n: case.sized(**{dim: n}).bound(device).regime for n in {1, (at or 2) - 1, at or LARGEST_BATCH} - {0}
    }
    assert regime[at or LARGEST_BATCH] == ("compute-bound" if at else "memory-bound")
    assert not at or at == 1 or regime[at - 1] == "memory-bound"


@every_device
def test_a_crossover_is_the_first_value_that_is_compute_bound(device: Device) -> None:
    for op, (dims, dim) in LAYERS.items():
        for dtype in set(device.dtypes()) & set(dtypes.names()):
            for weight in (None, "int4-g128"):
                check_crossover(case_of(op, dims, dtype, weight), device, dim)


@pytest.mark.parametrize(
    "device", [d for d in DEVICES.values() if "bf16" in d.dtypes()], ids=lambda d: d.name
)
def test_a_gemv_s_crossover_is_the_closed_form(device: Device) -> None:
    # 2 m k B / (2 (m k + B (m + k))) > R  <=>  B > R m k / (m k - R (m + k)), where that is positive
    ridge = device.peak("bf16").rate.value / device.bandwidth.value
    room = 8192**2 - ridge * 2 * 8192
    case = case_of("gemv", {"m": 8192, "k": 8192}, "bf16")
    at = crossover(case, device, "batch")
    if room <= 0:
        assert at is None
    else:
        assert at == int(ridge * 8192**2 / room) + 1


@given(
    st.sampled_from([d for d in DEVICES.values() if set(d.dtypes()) & set(dtypes.names())]),
    st.sampled_from(list(LAYERS)),
    st.integers(1, 20000),
    st.integers(1, 20000),
)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_a_crossover_is_found_by_walking_to_it(device: Device, op: str, outputs: int, inputs: int) -> None:
    dims, dim = LAYERS[op]
    sized = {
        name: outputs if name == "n" or (name == "m" and op == "gemv") else v for name, v in dims.items()
    }
    dtype = next(d for d in device.dtypes() if d in dtypes.names())
    case = case_of(op, {**sized, "k": inputs}, dtype)
    at = crossover(case, device, dim)
    walk = [n for n in range(1, 600) if case.sized(**{dim: n}).bound(device).regime == "compute-bound"]
    assert (walk[0] if walk else None) == (at if at is not None and at < 600 else None)
    assert walk == list(range(walk[0], 600)) if walk else True  # once compute-bound, always


# --- every kernel, everywhere -----------------------------------------------------------------------------


def check(report: RooflineReport) -> None:
    """The steps stand in the documented order, say something, and none is slower than now."""
    order = MEMORY_ORDER if report.regime == "memory-bound" else COMPUTE_ORDER
    places = [order.index(step.action) for step in report.advice]
    assert places == sorted(places)
    for step in report.advice:
        assert step.text
        assert not re.search(r"\b(nan|inf|None)\b", step.text)
        if step.bound_time_s is not None:
            assert 0 < step.bound_time_s <= report.bound_time_s
        if step.at is not None:
            name, value = step.at
            assert f"{name} {value}" in step.text


@every_device
def test_no_kernel_s_advice_fails_or_slows_it_down(device: Device) -> None:
    for op in registry.ops().values():
        for dtype in set(device.dtypes()) & set(dtypes.names()):
            for impl in (None, *op.impls[1:2]):
                check(roofline(op.name, gpu=device, dtype=dtype, impl=impl, **op.example))  # type: ignore[arg-type]


STORING = {
    "weight_dtype": ("gemm", "gemv", "batched_gemm", "grouped_gemm", "expert_gemm", "gather"),
    "kv_dtype": ("attention", "mla", "rope_cache"),
}
"""The operators that have a tensor of that kind; every one has a result."""


@pytest.mark.parametrize("op", registry.ops().values(), ids=registry.ops().keys())
@given(data=st.data())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_no_shape_or_format_makes_advice_fail(op: registry.Op, data: st.DataObject) -> None:
    sizes = st.integers(1, 9) | st.integers(1, 2**15) | st.sampled_from([2**k for k in range(1, 21)])
    shape: dict[str, Any] = {name: 2 * data.draw(sizes, label=name) for name in op.required}
    if "seq_q" in shape:
        shape["seq_kv"] += shape["seq_q"]
    if op.name == "route":
        shape["experts"] += shape["top_k"]
    device = data.draw(st.sampled_from([d for d in DEVICES.values() if d.dtypes()]))
    computable = [dtype for dtype in dtypes.names() if dtypes.find(dtype).engine in device.dtypes()]
    assume(computable)
    stored: dict[str, Any] = {
        kind: data.draw(st.none() | st.sampled_from(dtypes.names()), label=kind)
        for kind in ("weight_dtype", "kv_dtype", "out_dtype")
        if op.name in STORING.get(kind, registry.ops())
    }
    check(
        roofline(
            op.name,
            gpu=device,
            dtype=data.draw(st.sampled_from(computable)),
            impl=data.draw(st.sampled_from((None, *op.impls))),
            **stored,
            **shape,
        )
    )


@pytest.mark.parametrize("weight", ["fp8", "int4-g128", "nvfp4"])
def test_weights_that_are_already_narrow_are_not_told_to_widen(weight: str) -> None:
    for device in DEVICES.values():
        if "bf16" not in device.dtypes():
            continue
        report = roofline("gemv", gpu=device, weight_dtype=weight)
        check(report)
        narrower = [step for step in report.advice if step.action == "quantisation"]
        assert all("fp8 weights" not in step.text for step in narrower)
