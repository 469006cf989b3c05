"""How long a sweep will take and how large its file will be, from a few of its blocks."""

from __future__ import annotations

import io
import os
import shutil
from time import perf_counter
from typing import NamedTuple

from memwall.sweeps.files import opened
from memwall.sweeps.left_out import LeftOut
from memwall.sweeps.planned import Planned


class Size(NamedTuple):
    """A sweep's cost, as a few blocks tell it."""

    points: int
    time_s: float
    needed_bytes: float
    free_bytes: int


def expected(sweep: Planned, blocks: range, form: str | None, path: str | None) -> Size:
    """What a run will take: every block as the first, the middle and the last one, computed and written.

    A block is under a tenth of a million points, so a sweep of one or a few is not timed, and its first block
    is only written where the disk may be too small.

    Args:
        sweep: what is asked.
        blocks: those that are run.
        form: csv, jsonl or parquet; None: rows are not written.
        path: where they go; None: to no disk.
    """
    count, points = count_of(blocks), points_of(sweep, blocks)
    folder = os.path.dirname(path or "") or "."
    free_bytes = shutil.disk_usage(folder).free if os.path.isdir(folder) else 0
    if count < _FEW:
        roomy = path is None or points * len(sweep.columns) * _CELL_BYTES <= free_bytes
        if roomy or not count:
            return Size(points, 0.0, 0.0, free_bytes)
        return Size(points, 0.0, _written_bytes(sweep, blocks.start, form) * float(count), free_bytes)
    sweep.rows(blocks.start, LeftOut())  # what is loaded once
    sample = (blocks.start, blocks.start + count // 2, blocks.stop - 1)
    began = perf_counter()
    sampled_bytes = sum(_written_bytes(sweep, number, form) for number in sample)
    share = count / len(sample)
    return Size(points, (perf_counter() - began) * share, sampled_bytes * share, free_bytes)


def _written_bytes(sweep: Planned, number: int, form: str | None) -> int:
    """What a block takes in a file, once it is computed."""
    rows = sweep.rows(number, LeftOut())
    if not form or rows is None or not rows.length:
        return 0
    writer = opened(io.BytesIO(), form, sweep.columns)
    writer.write(rows)
    return writer.flush()


def count_of(blocks: range) -> int:
    """How many blocks; `len` ends at 2^63."""
    return blocks.stop - blocks.start


def points_of(sweep: Planned, blocks: range) -> int:
    """How many points those blocks have."""
    return sweep.grid.begins(blocks.stop) - sweep.grid.begins(blocks.start)


_CELL_BYTES = 32
"""More than a number or a name takes in any format."""
_FEW = 64
"""Blocks below which a sweep is a matter of seconds."""
