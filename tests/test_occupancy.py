"""Occupancy: CUDA's own rules from 7.0 to 12.1, a table by hand, and the limits that a profiler reports."""

from __future__ import annotations

import csv
import json
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwall import hardware
from memwall.cli import run
from memwall.errors import NotAvailable, UsageError
from memwall.occupancy import Launch, allocated_shared_bytes, occupancy, sm_of
from memwall.reports.occupancy import occupancy as report

KIB = 1024
BY_CAPABILITY = {
    "7.0": "v100", "7.5": "t4", "8.0": "a100", "8.6": "rtx-3090", "8.7": "jetson-orin", "8.9": "l4",
    "9.0": "h100",
    "10.0": "b200", "10.3": "b300", "11.0": "jetson-thor", "12.0": "rtx-5090", "12.1": "gb10",
}  # fmt: skip

# Worked by hand from the Programming Guide's table and cuda_occupancy.h's rules: (capability, threads,
# registers, shared bytes) -> (blocks, what limits). Registers: ceil(r x 32 / 256) x 256 a warp, 16384 a
# partition.
CASES = [
    # 8 warps; 64 x 32 = 2048 a warp, 8 warps a partition, 32 of an SM: 4 blocks of 8.
    ("7.0", 256, 64, 0, 4, {"registers"}),
    ("7.5", 256, 32, 0, 4, {"warps"}),  # 32 warps: 4 x 8
    ("8.0", 256, 32, 0, 8, {"warps", "registers"}),  # 64 warps: 8; registers 16 a partition, 64: 8
    ("8.6", 256, 32, 0, 6, {"warps"}),  # 48 warps: 6
    ("8.7", 256, 32, 0, 6, {"warps"}),
    ("8.9", 1024, 32, 0, 1, {"warps"}),  # 48 / 32 = 1, though registers would take 2
    ("9.0", 256, 64, 64 * KIB, 3, {"shared_memory"}),  # 65 KiB with the reserved one: 228 / 65 = 3
    ("10.0", 256, 64, 64 * KIB, 3, {"shared_memory"}),
    ("10.3", 128, 168, 0, 3, {"registers"}),  # 5376 a warp: 3 a partition, 12 of an SM, 3 blocks of 4
    ("11.0", 128, 32, 0, 12, {"warps"}),
    ("12.0", 256, 64, 48 * KIB, 2, {"shared_memory"}),  # 49 KiB: 100 / 49 = 2
    ("12.1", 32, 16, 0, 24, {"blocks"}),
    # Granularity. 52 registers: 1664 round up to 1792; 9 fit a partition of 16384, 36 warps, 9 blocks of 4.
    ("9.0", 128, 52, 0, 9, {"registers"}),
    # 33 registers: 1056 round up to 1280: 12 a partition, 48 warps.
    ("8.0", 128, 33, 0, 12, {"registers"}),
    # A block of 5 warps: 40 registers, 1280: 12 a partition, 48 warps / 5 = 9.
    ("8.0", 160, 40, 0, 9, {"registers"}),
    # Shared memory is handed out in 256 bytes before 8.0 and nothing is reserved: 96 KiB / 24 KiB = 4.
    ("7.0", 64, 32, 24 * KIB, 4, {"shared_memory"}),
    ("7.0", 64, 32, 24 * KIB - 255, 4, {"shared_memory"}),
    ("7.0", 64, 32, 24 * KIB + 1, 3, {"shared_memory"}),
    ("7.5", 64, 32, 64 * KIB, 1, {"shared_memory"}),
    # From 8.0: 163 KiB and the reserved one fill the SM; 40 KiB + 1 fit 164 KiB four times, one byte more
    # three.
    ("8.0", 64, 32, 163 * KIB, 1, {"shared_memory"}),
    ("8.0", 64, 32, 40 * KIB, 4, {"shared_memory"}),
    ("8.0", 64, 32, 40 * KIB + 1, 3, {"shared_memory"}),
    ("8.6", 64, 32, 49 * KIB, 2, {"shared_memory"}),
    ("9.0", 384, 168, 227 * KIB, 1, {"registers", "shared_memory"}),
    ("9.0", 32, 8, 0, 32, {"blocks"}),
    ("7.5", 32, 8, 0, 16, {"blocks"}),
    ("9.0", 128, 255, 0, 2, {"registers"}),  # 8192 a warp: 2 a partition, 8 warps
    ("9.0", 1024, 64, 0, 1, {"registers"}),  # 32 warps of 2048: 32 fit
]  # fmt: skip


@pytest.mark.parametrize(("capability", "threads", "registers", "shared", "blocks", "limiting"), CASES)
def test_the_rules_by_hand(
    capability: str, threads: int, registers: int, shared: int, blocks: int, limiting: set[str]
) -> None:
    sm = sm_of(hardware.load(BY_CAPABILITY[capability]))
    assert sm.capability == tuple(map(int, capability.split(".")))
    found = occupancy(sm, Launch(threads, registers, shared))
    assert (found.blocks_per_sm, set(found.limiting)) == (blocks, limiting)
    assert found.occupancy == blocks * -(-threads // 32) / sm.warps


def reported() -> list[dict[str, int]]:
    path = Path(__file__).parent / "counted" / "h200_launches.csv"
    with path.open() as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return [{key: int(value) for key, value in row.items()} for row in rows]


@pytest.mark.parametrize("row", reported(), ids=lambda row: "-".join(map(str, list(row.values())[:3])))
def test_the_profiler_reports_the_same_limits(row: dict[str, int]) -> None:
    sm = sm_of(hardware.load("h200"))
    launch = Launch(row["threads"], row["registers"], row["smem_bytes"])
    limits = occupancy(sm, launch).limits
    assert limits["warps"] == row["by_warps"]
    assert limits["blocks"] == row["by_blocks"]
    assert limits["registers"] == row["by_registers"]
    assert allocated_shared_bytes(sm, launch) == row["allocated_smem_bytes"]


@given(st.integers(1, 1024), st.integers(1, 64), st.integers(0, 99 * KIB))
def test_asking_for_more_never_lets_more_blocks_in(threads: int, registers: int, shared: int) -> None:
    for gpu in ("v100", "a100", "h100", "rtx-5090"):
        sm = sm_of(hardware.load(gpu))
        shared = min(shared, sm.shared_per_block_bytes - 1)
        now = occupancy(sm, Launch(threads, registers, shared))
        assert 0 < now.occupancy <= 1
        assert occupancy(sm, Launch(threads, registers, shared + 1)).blocks_per_sm <= now.blocks_per_sm
        if registers < 64:
            assert occupancy(sm, Launch(threads, registers + 1, shared)).blocks_per_sm <= now.blocks_per_sm


def test_beyond_255_registers_are_spilled() -> None:
    found = report(128, 300, gpu="h100").found
    assert found.launch.spilled_bytes == 45 * 4
    assert found.blocks_per_sm == report(128, 255, gpu="h100").found.blocks_per_sm
    assert any("spilled" in line for line in report(128, 300, gpu="h100").advice)


def test_advice_lets_one_more_block_in() -> None:
    advice = report(256, 64, 64 * KIB, gpu="h100").advice
    assert advice == ("4 blocks by shared memory need at most 56 KiB a block",)
    assert report(256, 64, 56 * KIB, gpu="h100").found.blocks_per_sm == 4
    assert "3 blocks by registers need at most 168 a thread" in report(128, 255).advice[0]
    assert report(128, 168).found.blocks_per_sm == 3


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shlex.split("occupancy --gpu h100 --registers 64 --threads 256 --smem 64KiB --json")) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["occupancy"] == 0.375
    assert document["blocks_per_sm"] == 3
    assert document["limited_by"] == "shared_memory"


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        ("--threads 2048", 2, "1 to 1024"),
        ("--threads 0", 2, "--threads"),
        ("", 2, "--threads"),
        ("--threads 128 --smem 300KiB", 4, "227 KiB"),
        ("--threads 128 --smem many", 2, "--smem"),
        ("--threads 1024 --registers 128", 4, "--registers 64"),
        ("--threads 128 --gpu mi300x", 4, "compute capability"),
        ("--threads 128 --gpu p100", 4, "7.0 to 12.1"),
    ],
)
def test_mistakes_are_answered(
    command: str, code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["occupancy", *shlex.split(command)]) == code
    assert says in capsys.readouterr().err


def test_several_gpus_stand_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shlex.split("occupancy --gpu v100,h100,mi300x --threads 128")) == 0
    out = capsys.readouterr().out
    assert "mi300x: AMD" in out


def test_errors_name_what_to_type() -> None:
    with pytest.raises(UsageError, match="1024"):
        report(1025)
    with pytest.raises(NotAvailable, match="227 KiB"):
        report(128, 32, 228 * KIB, gpu="h100")
