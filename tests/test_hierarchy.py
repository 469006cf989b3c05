"""The hierarchy of each device, and the roofline at each level."""

from __future__ import annotations

import json
import shlex

import pytest

from memwall import hardware
from memwall.catalog import HARDWARE
from memwall.cli import run
from memwall.errors import NotPublished, UsageError
from memwall.hierarchy import levels
from memwall.memory.budget import total_memory
from memwall.reports.hierarchy import hierarchy
from memwall.reports.levels import level_roofline

EVERY = sorted(HARDWARE.names())


def level(gpu: str, name: str) -> dict[str, float | None]:
    found = next(each for each in levels(hardware.load(gpu)) if each.name == name)
    return {
        "size": found.size and found.size.value,
        "bandwidth": found.bandwidth and found.bandwidth.value,
        "cycles": found.latency_cycles,
        "latency": found.latency_s,
    }


def test_the_h100_by_hand() -> None:
    assert level("h100", "registers")["size"] == 132 * 256 * 1024
    shared = level("h100", "L1 and shared memory")
    assert shared["bandwidth"] == pytest.approx(132 * 32 * 4 * 1980e6)
    assert shared["latency"] == pytest.approx(29 / 1980e6)
    assert level("h100", "L2")["size"] == 50 * 1024 * 1024
    assert level("h100", "L2")["bandwidth"] is None  # nobody has measured one on this part
    assert level("h100", "HBM3")["bandwidth"] == pytest.approx(3352.32e9)
    assert level("h100", "host memory")["bandwidth"] == 63e9


def test_derived_bandwidths_are_as_measured() -> None:
    """H200: 33.1 TB/s of shared memory, 8.5 of L2. A100: 19.2 TB/s of L1 at 1410 MHz."""
    assert level("h200", "L1 and shared memory")["bandwidth"] == pytest.approx(33.12e12, rel=0.02)
    assert level("h200", "L2")["bandwidth"] == pytest.approx(8.5e12, rel=0.05)
    assert level("a100", "L1 and shared memory")["bandwidth"] == pytest.approx(19.2e12, rel=0.05)


@pytest.mark.parametrize("gpu", EVERY)
def test_levels_grow_and_slow_down_outwards(gpu: str) -> None:
    """Of every device: main memory is larger and slower than L2, and that slower than shared memory."""
    found = levels(hardware.load(gpu))
    assert len(found) >= 3
    inside = [each for each in found if each.name not in ("host memory", "NVMe")]
    rates = [each.bandwidth.value for each in inside if each.bandwidth]
    assert rates == sorted(rates, reverse=True)
    cycles = [each.latency_cycles for each in inside if each.latency_cycles]
    assert cycles == sorted(cycles)
    for each in found:
        for constant in (each.size, each.bandwidth, each.latency_source):
            assert constant is None or constant.source


@pytest.mark.parametrize("gpu", EVERY)
def test_main_memory_is_as_large_as_where_models_are_fitted_into_it(gpu: str) -> None:
    report = hierarchy(gpu)
    main = next(each.size for each in report.levels if each.limit == "hbm")
    assert main == total_memory(report.device)


def test_a_size_without_a_drivers_total_is_marked_as_assumed(capsys: pytest.CaptureFixture[str]) -> None:
    """192 GB on the label are 192 GiB x 0.99 = 204.1 GB to programs."""
    assert run(shlex.split("hierarchy --gpu mi300x")) == 0
    out = capsys.readouterr().out
    assert "204.1 GB *" in out
    assert "192 GiB x 0.99" in out


def test_json_has_a_source_for_each_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shlex.split("hierarchy --gpu h200 --json")) == 0
    document = json.loads(capsys.readouterr().out)
    words = ["registers", "smem", "l2", "hbm", "host", "nvme"]
    assert [each["level"] for each in document["levels"]] == words
    for each in document["levels"]:
        named = {source["of"] for source in each["sources"]}
        assert ("bandwidth" in named) == (each["bandwidth_bytes_per_s"] is not None)
        assert all(source["source"] and source["kind"] for source in each["sources"])


def test_a_what_if_shows(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shlex.split("hierarchy --gpu h100 --set l2.bandwidth_measured_gb_per_s=9000")) == 0
    assert "9 TB/s" in capsys.readouterr().out


@pytest.mark.parametrize("form", ["text", "csv", "markdown", "json"])
def test_every_format(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["hierarchy", "--gpu", "h100,mi300x", "--format", form]) == 0
    assert "h100" in capsys.readouterr().out


def test_an_unknown_gpu_is_answered(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["hierarchy", "--gpu", "h101"]) == 2
    assert "Did you mean" in capsys.readouterr().err


def test_a_level_s_roof_is_intensity_times_bandwidth() -> None:
    report = level_roofline("gemm", gpu="h200", m=4096, n=4096, k=4096)
    flops = 2 * 4096**3
    hbm, l2, smem = report.levels
    assert l2.bytes == 4096 * 4096 * 2 * (16 + 16 + 1)  # tiles of 256 x 256 a cluster, and c
    assert l2.time_s == pytest.approx(l2.bytes / 8.5e12)
    assert smem.bytes == 4096 * 4096 * 2 * (16 + 32 + 16 + 64)  # stored; read by warp groups of 64 rows
    assert hbm.intensity == pytest.approx(flops / hbm.bytes)
    assert report.limited_by == "matrix"
    assert report.limiting.limit == "l2"


@pytest.mark.parametrize("op", ["gemv", "gemm", "attention", "rmsnorm", "softmax", "copy"])
@pytest.mark.parametrize("gpu", ["v100", "a100", "h200", "mi300x"])
def test_every_op_has_its_levels(op: str, gpu: str) -> None:
    from memwall.ops.registry import find

    report = level_roofline(op, gpu=gpu, dtype="fp16", **find(op).example)
    assert [each.limit for each in report.levels][:2] == ["hbm", "l2"]
    for each in report.levels:
        if each.roof_flops_per_s is not None and each.peak_flops_per_s:
            assert each.roof_flops_per_s <= each.peak_flops_per_s


def test_a_stream_is_limited_by_main_memory() -> None:
    report = level_roofline("copy", gpu="h200", rows=16384, cols=8192)
    assert report.limited_by == "hbm"
    assert [each.limit for each in report.levels] == ["hbm", "l2"]


def test_levels_need_an_operator_and_an_l2() -> None:
    with pytest.raises(UsageError, match="operator"):
        level_roofline(None, flops=1e9, bytes=1e9)
    with pytest.raises(NotPublished, match="file"):
        level_roofline("gemm", gpu="tpu-v5e", m=64, n=64, k=64)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    line = "roofline --gpu h200 --op gemm --m 4096 --n 4096 --k 4096 --levels"
    assert run(shlex.split(line)) == 0
    assert "Levels" in capsys.readouterr().out
    assert run(shlex.split(f"{line} --json")) == 0
    document = json.loads(capsys.readouterr().out)
    assert [each["level"] for each in document["levels"]] == ["hbm", "l2", "smem"]
    assert document["limiting_level"] == "l2"
    assert run(shlex.split(f"{line} --gpu a100,h200")) == 0
    assert run(shlex.split("roofline --flops 1e9 --bytes 1e9 --levels")) == 2
