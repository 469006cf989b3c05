"""Nsight Compute: its command, its output, and what is missing where it cannot count.

Each trial runs between two flushes (`kernels.counting`), so in the output the kernels of a trial are those
between one flush and the next; the second flush's own writes are what the trial left dirty in L2.
"""

from __future__ import annotations

import csv
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from memwall.verify.outcome import Counters

READ, WRITTEN, L2 = "dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_bytes.sum"
METRICS = (READ, WRITTEN, L2)
PASSES = "profiler__replayer_passes"
FLUSH = "memwall_flush"
_PLACES = ("/usr/local/cuda/bin", "/opt/nvidia/nsight-compute/*", "/usr/local/cuda-*/bin")
_REASONS = {
    "ERR_NVGPUCTRPERM": "the driver lets only administrators read the counters: run as root, or set "
    "NVreg_RestrictProfilingToAdminUsers=0 for the nvidia module",
    "LibraryNotLoaded": "ncu could not load the driver's profiling library: this machine does not pass it on",
    "No kernels were profiled": "ncu saw no kernel",
}
"""What ncu says, and what it means."""


class KernelCount(NamedTuple):
    """One kernel's row of ncu's output."""

    name: str
    read_bytes: int
    written_bytes: int
    l2_bytes: int
    passes: int
    """How often ncu ran it; more than once, and only the first run was cold."""


def find() -> str | None:
    """Where ncu is: on the PATH, or where CUDA puts it."""
    on_path = shutil.which("ncu")
    if on_path:
        return on_path
    found = (str(path) for place in _PLACES for path in sorted(Path("/").glob(f"{place[1:]}/ncu")))
    return next(found, None)


def command(ncu: str, log: str, worker: Sequence[str]) -> list[str]:
    """The command that counts a worker's profiled kernels, the clocks and caches as they are found."""
    return [
        ncu, "--csv", "--page", "raw", "--print-units", "base",
        "--clock-control", "none", "--cache-control", "none",
        "--profile-from-start", "off", "--target-processes", "all",
        "--metrics", ",".join(METRICS), "--log-file", log, *worker,
    ]  # fmt: skip


def parse(text: str) -> list[KernelCount]:
    """The kernels of ncu's raw CSV page in base units, in the order in which they ran.

    Lines that begin with `==` are ncu's own remarks; the row under the header has the units.
    """
    rows = csv.DictReader(line for line in text.splitlines() if line.startswith('"'))
    return [_count(row) for row in rows if row["ID"]]


def grouped(counts: Iterable[KernelCount]) -> Iterator[Counters | None]:
    """The counts of each trial, in order; None for one that ncu saw no kernel of, or had to run twice.

    A copy by the driver is no kernel.
    """
    inside: list[KernelCount] | None = None
    for count in counts:
        if FLUSH not in count.name:
            if inside is not None:
                inside.append(count)
        elif inside is None:
            inside = []
        else:
            yield _together(inside, left_dirty_bytes=count.written_bytes)
            inside = None


def why_not(output: str) -> str:
    """What ncu's output says is missing, in words; its last complaint where it is none that is known."""
    for sign, reason in _REASONS.items():
        if sign in output:
            return reason
    complaints = [line for line in output.splitlines() if line.startswith("==ERROR==")]
    return complaints[-1].removeprefix("==ERROR==").strip() if complaints else "ncu wrote no counters"


def _count(row: Mapping[str, str]) -> KernelCount:
    return KernelCount(
        row["Kernel Name"],
        _number(row[READ]),
        _number(row[WRITTEN]),
        _number(row[L2]),
        _number(row.get(PASSES) or "1"),
    )


def _number(text: str) -> int:
    """A count as ncu writes it, with commas at the thousands."""
    return round(float(text.replace(",", "")))


def _together(kernels: Sequence[KernelCount], left_dirty_bytes: int) -> Counters | None:
    if not kernels or any(kernel.passes > 1 for kernel in kernels):
        return None
    return Counters(
        sum(kernel.read_bytes for kernel in kernels),
        sum(kernel.written_bytes for kernel in kernels) + left_dirty_bytes,
        sum(kernel.l2_bytes for kernel in kernels),
        tuple(kernel.name for kernel in kernels),
    )
