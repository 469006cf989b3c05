"""Nsight Compute's output, read: a real one, of an H200, without the columns of the driver's attributes."""

from __future__ import annotations

from pathlib import Path

import pytest

from memwall.verify import ncu
from memwall.verify.ncu import KernelCount

REAL = (Path(__file__).with_name("data") / "ncu_h200.csv").read_text(encoding="utf-8")


def count(name: str, read: int = 0, written: int = 0, passes: int = 1) -> KernelCount:
    return KernelCount(name, read, written, 2 * read, passes)


def test_a_real_output() -> None:
    copy, nothing, gemv, split_gemv, standard = ncu.grouped(ncu.parse(REAL))
    assert nothing is None  # the driver's copy is no kernel
    assert copy
    assert copy.kernels == ("copy",)
    assert copy.dram_read_bytes == pytest.approx(512 * 4096 * 4, rel=0.01)
    assert copy.dram_written_bytes == pytest.approx(512 * 4096 * 4, rel=0.15)  # all of it left dirty in L2
    assert gemv
    assert gemv.dram_read_bytes == pytest.approx(2 * (8192 * 8192 + 8192), rel=0.01)
    assert split_gemv
    assert split_gemv.kernels == ("gemv_kernel", "add_splits_kernel")
    assert standard
    assert len(standard.kernels) == 3
    scores = 32 * 4096 * 4096 * 2
    assert standard.dram_written_bytes == pytest.approx(2 * scores + 32 * 4096 * 128 * 2, rel=0.05)


def test_kernels_belong_to_the_trial_between_two_flushes() -> None:
    counts = [
        count("stray", 999),
        count("memwall_flush", 5, 7), count("a", 10, 20), count("b", 1, 2), count("memwall_flush", 5, 3),
        count("memwall_flush", 5, 7), count("memwall_flush", 5, 7),
        count("memwall_flush", 5, 7), count("c", 4, 0), count("memwall_flush", 5, 0),
    ]  # fmt: skip
    first, second, third = ncu.grouped(counts)
    assert first == (11, 20 + 2 + 3, 22, ("a", "b"))  # what the second flush wrote back is the trial's
    assert second is None
    assert third
    assert third.dram_written_bytes == 0


def test_a_kernel_that_ran_twice_was_not_cold() -> None:
    counts = [count("memwall_flush"), count("a", 10, passes=2), count("memwall_flush")]
    assert list(ncu.grouped(counts)) == [None]


@pytest.mark.parametrize(
    ("output", "says"),
    [
        ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission", "only administrators"),
        ("==ERROR== Failed to initialize the profiler: LibraryNotLoaded", "profiling library"),
        ("==WARNING== No kernels were profiled.", "saw no kernel"),
        ("==PROF== ok\n==ERROR== Something new", "Something new"),
        ("", "no counters"),
    ],
)
def test_what_is_missing_is_said(output: str, says: str) -> None:
    assert says in ncu.why_not(output)


def test_the_command_leaves_clocks_and_caches_alone() -> None:
    command = " ".join(ncu.command("ncu", "log.csv", ["python", "-m", "worker"]))
    assert "--clock-control none --cache-control none --profile-from-start off" in command
    assert "dram__bytes_read.sum,dram__bytes_write.sum,lts__t_bytes.sum" in command
    assert command.endswith("--log-file log.csv python -m worker")
