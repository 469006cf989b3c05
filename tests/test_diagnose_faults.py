"""Damaged exports and values that cannot be: they are named, and nothing is judged by them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from memwall.cli import run

TIME, READ, WRITTEN = "gpu__time_duration.sum", "dram__bytes_read.sum", "dram__bytes_write.sum"
HITS = "lts__t_sector_hit_rate.pct"
COPY = {TIME: ("us", "50"), READ: ("Mbyte", "100"), WRITTEN: ("Mbyte", "100")}


def export(
    folder: Path,
    cells: dict[str, tuple[str, str]],
    device: str = "NVIDIA H200",
    capability: str = "9.0",
) -> str:
    """A raw page of one kernel; each metric with its unit and its text."""
    names = ["ID", "Kernel Name", "Device", "CC", "device__attribute_display_name", *cells]
    units = ["", "", "", "", "", *(unit for unit, _ in cells.values())]
    values = ["0", "k", "0", capability, device, *(text for _, text in cells.values())]
    path = folder / "report.csv"
    path.write_text("".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in (names, units, values)))
    return str(path)


def kernel(capsys: pytest.CaptureFixture[str], *line: str) -> dict[str, Any]:
    assert run(["diagnose", *line, "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["kernels"]
    return dict(found)


def status(found: dict[str, Any], name: str) -> str:
    return str(next(check["status"] for check in found["checks"] if check["name"] == name))


@pytest.mark.parametrize(
    ("name", "unit", "text", "says"),
    [
        (READ, "parsec", "150.2", "unknown unit 'parsec'"),
        (READ, "us", "150.2", "unknown unit 'us'"),
        (TIME, "us", "abc", "'abc' is no number"),
        (TIME, "", "50", "without a unit"),
        (HITS, "Mbyte", "50", "unknown unit 'Mbyte'"),
        (WRITTEN, "Mbyte", "inf", "'inf' is no number"),
    ],
)
def test_an_unreadable_cell_is_named_and_not_zero(
    name: str, unit: str, text: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = export(tmp_path, {**COPY, name: (unit, text)})
    found = kernel(capsys, path)
    assert found["unreadable"] == [f"{name}: {says}"]
    if name in (READ, WRITTEN):
        assert found["dram_bytes"] is None
    assert run(["diagnose", path]) == 0
    assert f"unreadable: {name}: {says}" in capsys.readouterr().out


def test_not_collected_is_not_unreadable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = kernel(capsys, export(tmp_path, {**COPY, HITS: ("%", "n/a")}))
    assert found["unreadable"] == []
    assert status(found, "L2 hit rate") == "missing"


@pytest.mark.parametrize(
    ("name", "unit", "text", "check", "says"),
    [
        (TIME, "us", "1", "memory bandwidth", "is the GPU right? pass --gpu"),  # 200 MB in 1 us: 200 TB/s
        (TIME, "us", "-5", "memory bandwidth", "impossible: a time of -5 us"),
        (TIME, "us", "0", "memory bandwidth", "impossible: a time of 0"),
        (HITS, "%", "150", "L2 hit rate", "l2_hit_share of 150 % is more than the whole"),
        (HITS, "%", "-3", "L2 hit rate", "l2_hit_share of -3 % is negative"),
        (READ, "Mbyte", "-100", "memory bandwidth", "is negative"),
    ],
)
def test_what_cannot_be_is_said_and_not_judged(
    name: str, unit: str, text: str, check: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = export(tmp_path, {**COPY, name: (unit, text)})
    found = kernel(capsys, path)
    assert status(found, check) == "impossible"
    assert says in found["impossible"][0]["text"]
    assert run(["diagnose", path]) == 0
    assert says in capsys.readouterr().out


def test_noise_is_possible(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """4.9 TB/s of 4.8, and a hit rate of 100.4 %."""
    found = kernel(capsys, export(tmp_path, {**COPY, TIME: ("us", "40.7"), HITS: ("%", "100.4")}))
    assert found["impossible"] == []
    assert status(found, "memory bandwidth") == status(found, "L2 hit rate") == "ok"


@pytest.mark.parametrize(("device", "capability"), [("NVIDIA FooBar", "9.0"), ("", "8.0")])
def test_a_gpu_that_is_not_known_is_asked_for(
    device: str, capability: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = export(tmp_path, COPY, device, capability)
    assert run(["diagnose", path]) == 2
    err = capsys.readouterr().err
    assert "--gpu" in err
    assert (device or capability) in err
    assert run(["diagnose", path, "--gpu", "h200"]) == 0


def test_the_default_gpu_where_nothing_speaks_against_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["diagnose", export(tmp_path, {**COPY, TIME: ("us", "80")}, device="")]) == 0
    assert "by default: GPU h100" in capsys.readouterr().out


GEMM = ("--op", "gemm", "--m", "4096", "--n", "4096", "--k", "4096")


@pytest.mark.parametrize(("time", "beaten"), [("200", True), ("435", False), ("500", False)])
def test_a_bound_that_is_beaten_is_another_question(
    time: str, beaten: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """2 x 4096^3 / 312e12 = 440.5 us; 435 us is within what clocks differ by."""
    path = export(tmp_path, {**COPY, TIME: ("us", time)}, "NVIDIA A100-SXM4-80GB", "8.0")
    assert run(["diagnose", path, *GEMM, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["predicted"]["impossible"]
    assert (said is not None) is beaten
    assert run(["diagnose", path, *GEMM]) == 0
    assert ("a bound cannot be beaten: another op, shape" in capsys.readouterr().out) is beaten


CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"


def test_conflicts_without_their_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = kernel(capsys, export(tmp_path, {**COPY, CONFLICTS: ("", "1,234,567")}))
    (check,) = (each for each in found["checks"] if each["name"] == "bank conflicts")
    assert check["status"] == "note"
    assert "conflicts counted" in check["text"]
    assert "1234567" in check["text"].replace(",", "").replace(" ", "")
    assert "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum" in check["text"]
    none = kernel(capsys, export(tmp_path, {**COPY, CONFLICTS: ("", "0")}))
    assert status(none, "bank conflicts") == "ok"


def test_the_csv_has_a_row_a_kernel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = export(tmp_path, {**COPY, HITS: ("%", "150"), READ: ("parsec", "1")})
    with open(path, "a", encoding="utf-8") as file:
        file.write('"1","k2","0","9.0","NVIDIA H200","60","1","100","50"\n')
    assert run(["diagnose", path, "--format", "csv"]) == 0
    first, second = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (first["kernel"], second["kernel"]) == ("k", "k2")
    assert (first["checks.l2_hit_rate"], second["checks.l2_hit_rate"]) == ("impossible", "ok")
    assert float(second["time_s"]) == pytest.approx(60e-6)
    assert "unknown unit 'parsec'" in first["unreadable"]
    assert first["steps"]


def test_plain_counts_of_instructions_are_flops(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An FMA is two: 2 x 1e9 + 1e6 + 1e6; the FMAs alone are no total."""
    counts = {
        f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum": ("inst", count)
        for op, count in (("ffma", "1,000,000,000"), ("fadd", "1000000"), ("fmul", "1000000"))
    }
    found = kernel(capsys, export(tmp_path, {**COPY, **counts}))
    assert found["flops"] == 2.002e9
    assert found["engine"] == "lanes"
    assert found["achieved_flops_per_s"] == pytest.approx(2.002e9 / 50e-6)
    first = dict(list(counts.items())[:1])
    assert kernel(capsys, export(tmp_path, {**COPY, **first}))["flops"] is None
