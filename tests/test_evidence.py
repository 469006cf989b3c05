"""A result confesses to what it rests on: every what-if that moves it is named, and no other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import memwall
from memwall.catalog import HARDWARE
from memwall.errors import UsageError
from memwall.hardware import Device, from_entry, load
from memwall.render.attention import page as attention_page
from memwall.render.attention import record as attention_record
from memwall.reports.attention import attention
from memwall.reports.evidence import remarks, weak
from memwall.reports.roofline import RooflineReport, roofline

ATTENTION: dict[str, Any] = {"op": "attention", "dtype": "fp8", "heads": 32, "head_dim": 64, "seq": 8192}
GEMM: dict[str, Any] = {"op": "gemm", "dtype": "fp16", "m": 4096, "n": 4096, "k": 4096}
GEMV: dict[str, Any] = {"op": "gemv", "dtype": "fp16"}
CASES = [
    ("b200", ATTENTION),  # limited by exponentials: units x rate x clock, and the lanes
    ("h100", GEMM),
    ("rtx-4090", GEMM),  # its peak is taken to the maximum clock
    ("h100", GEMV),
    ("a30", GEMV),
]


def settable(data: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """The numbers that --set can replace."""
    for key, value in data.items():
        if isinstance(value, dict):
            yield from settable(value, f"{prefix}{key}.")
        elif prefix and isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{prefix}{key}", value


def with_change(gpu: str, call: dict[str, Any], changes: dict[str, float]) -> RooflineReport:
    return roofline(gpu=gpu, changes=changes, **call)


@pytest.mark.parametrize(("gpu", "call"), CASES, ids=[f"{gpu}-{call['op']}" for gpu, call in CASES])
def test_a_what_if_is_confessed_to_exactly_when_it_moves_the_result(gpu: str, call: dict[str, Any]) -> None:
    before = roofline(gpu=gpu, **call)
    for path, value in settable(dict(load(gpu).data)):
        if path.startswith(("links", "latency", "silicon", "power", "clocks.base")):
            continue  # of other results
        if path in ("matrix.clock_mhz", "vector.clock_mhz"):
            continue  # refused, as below
        after = with_change(gpu, call, {path: value // 2 or 1})
        moved = (after.bound_time_s, after.bound.ridge_point) != (
            before.bound_time_s,
            before.bound.ridge_point,
        )
        confessed = path in {constant.key for constant in weak([after.bound])}
        assert confessed or not moved, path
        said = any(path in note for note in remarks(after.device, [after.bound]))
        assert said, path  # as resting on it, or as not entering


def test_a_what_if_that_does_not_enter_says_so() -> None:
    report = with_change("h100", GEMM, {"memory.stacks": 6})
    assert "memory.stacks is set by you and does not enter the bound" in remarks(
        report.device, [report.bound]
    )
    assert report.bound_time_s == roofline(gpu="h100", **GEMM).bound_time_s


@pytest.mark.parametrize("group", ["matrix", "vector"])
def test_the_clock_behind_a_published_peak_is_no_lever(group: str) -> None:
    with pytest.raises(UsageError, match="behind the published peaks"):
        load("h100", {f"{group}.clock_mhz": 500})


def test_a_what_if_on_a_term_that_does_not_limit_says_so() -> None:
    call = {"op": "softmax", "rows": 4096, "cols": 4096}
    report = with_change("h100", call, {"unit.count": 66})
    notes = remarks(report.device, [report.bound])
    assert "unit.count is set by you: it enters the term special, which does not limit" in notes


def test_a_rate_that_is_set_does_not_blame_the_peak_beside_it() -> None:
    report = with_change("h100", GEMM, {"matrix.flop_per_clock_per_unit.fp16": 2048})
    assert weak([report.bound]) == []


def test_a_peak_at_maximum_clock_comes_down_to_the_peak_and_both_clocks() -> None:
    rate = load("rtx-4090").peak("fp16").rate
    assert [leaf.key for leaf in rate.leaves] == [
        "matrix.peak_dense_tflops.fp16",
        "matrix.clock_mhz",
        "clocks.max_mhz",
    ]
    assert rate.value == pytest.approx(165.2e12 * 3105 / 2520)


def test_only_a_what_if_slows_a_part_below_its_published_peak() -> None:
    slowed = load("h100", {"clocks.max_mhz": "990"}).vector_peak
    assert slowed is not None
    assert slowed.value == pytest.approx(66.9e12 / 2)
    assert slowed.kind == "assumed"


def test_the_kind_of_a_source_changes_no_number() -> None:
    data = dict(load("rtx-4090").data)
    data["matrix"] = {**data["matrix"], "source": [{"assumed": "by a colleague"}]}
    assert Device(data).peak("fp16").rate.value == load("rtx-4090").peak("fp16").rate.value


@pytest.mark.parametrize("entry", list(HARDWARE.entries()), ids=lambda entry: entry.name)
def test_each_leaf_is_a_number_of_the_file(entry: Any) -> None:
    device = from_entry(entry)
    numbers = dict(settable(dict(device.data)))
    for dtype in device.dtypes():
        for leaf in (*device.peak(dtype).rate.leaves, *device.bandwidth.leaves):
            assert leaf.key in numbers


def test_a_model_whose_dimensions_are_recalled_says_so() -> None:
    recalled, seen = (attention(name, seq=64) for name in ("llama3-405b", "llama3-70b"))
    assert recalled.model is not None
    assert recalled.model.doubt is not None
    assert "* rests on model llama3-405b, recalled, not checked" in str(attention_page(recalled))
    assert attention_record(recalled)["weak_sources"][0]["kind"] == "recalled"
    assert seen.model is not None
    assert seen.model.doubt is None
    assert attention_record(seen)["weak_sources"] == []


# --- the terms of the bound -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gpu", "call", "words"),
    [
        ("rtx-4090", GEMM, "summed in fp16 the peak is 407 TFLOP/s"),  # 330.3 x 3105 / 2520
        ("h100", {**GEMM, "dtype": "fp32"}, "native fp32"),
        ("b200", ATTENTION, "exponentials on their own unit"),
        ("b100", GEMM, "is announced"),
        ("a30", GEMV, "* rests on memory.bandwidth_gb_per_s, recalled"),
        ("h100", {"op": "gemm", "m": 10**5, "n": 10**6, "k": 10**6}, "it does not fit"),
        ("tpu-v6e", {"op": "rmsnorm", "rows": 8, "cols": 8}, "is not published: left out"),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
def test_what_the_bound_takes_for_granted_is_said(gpu: str, call: dict[str, Any], words: str) -> None:
    report = roofline(gpu=gpu, **call)
    notes = remarks(report.device, [report.bound], report.footprint_bytes)
    assert any(words in note for note in notes), notes


def test_a_sound_result_has_nothing_to_confess() -> None:
    report = roofline("gemv", gpu="h100")
    assert remarks(report.device, [report.bound], report.footprint_bytes) == []


# --- from Python ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes", [{"memory.bandwidth_gb_per_s": 4000}, {"memory.bandwidth_gb_per_s": "4e3"}]
)
def test_a_what_if_from_python_is_a_number_or_its_text(changes: dict[str, Any]) -> None:
    assert memwall.gpu("h100", changes).bandwidth.value == 4000e9


@pytest.mark.parametrize(
    "call",
    [(3,), ("h100", [1]), ("h100", {"memory.bandwidth_gb_per_s": float("nan")}), ("h100", {"memory": {}})],
    ids=str,
)
def test_a_device_that_cannot_be_is_a_usage_error(call: tuple[Any, ...]) -> None:
    with pytest.raises(UsageError):
        memwall.gpu(*call)


def test_whatever_counts_is_a_count() -> None:
    assert roofline("gemv", m=numpy.int64(4096), k=4096).flops == 2 * 4096**2  # type: ignore[arg-type]
    assert roofline("gemv", changes={"memory.bandwidth_gb_per_s": 4000}).device.bandwidth.value == 4000e9


@pytest.mark.parametrize(
    "call",
    [
        {"flops": -1e12, "bytes": 1e9},
        {"flops": float("nan"), "bytes": 1e9},
        {"flops": 1e12, "bytes": float("inf")},
        {"flops": "x", "bytes": 1},
        {"op": "gemv", "gpu": None},
        {"op": "gemv", "gpu": ["h100", "h200"]},
        {"op": "gemv", "dtype": None},
        {"op": "gemv", "gpu": load("h100"), "changes": {"memory.bandwidth_gb_per_s": 4000}},
        {"op": "gemv", "m": 4096.5, "k": 1},
        {"op": "gemv", "m": True, "k": 1},
    ],
    ids=str,
)
def test_a_wrong_argument_is_a_usage_error(call: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        memwall.roofline(**call)
