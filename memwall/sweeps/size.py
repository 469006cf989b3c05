"""How long a sweep will take and how large its file will be, from a few of its blocks."""

from __future__ import annotations

import io
import os
import shutil
from time import perf_counter
from typing import NamedTuple

from memwall.sweeps.files import opened
from memwall.sweeps.grid import blocks_of
from memwall.sweeps.left_out import LeftOut
from memwall.sweeps.planned import Planned
from memwall.sweeps.stream import points_of


class Size(NamedTuple):
    """A sweep's cost, as a few blocks tell it."""

    points: int
    time_s: float
    needed_bytes: float
    free_bytes: int


def expected(sweep: Planned, blocks: range, form: str | None, path: str | None) -> Size:
    """What a run will take: every block as the first, the middle and the last one, computed and written.

    A block is under a tenth of a million points, so a sweep of one or a few is not measured.

    Args:
        sweep: what is asked.
        blocks: those that are run.
        form: csv, jsonl or parquet; None: rows are not written.
        path: where they go; None: to no disk.
    """
    points, count = points_of(sweep, blocks), blocks_of(blocks)
    folder = os.path.dirname(path or "") or "."
    free_bytes = shutil.disk_usage(folder).free if os.path.isdir(folder) else 0
    if count < _FEW:
        return Size(points, 0.0, 0.0, free_bytes)
    sweep.rows(blocks.start, LeftOut())  # what is loaded once
    began, sampled_bytes = perf_counter(), 0
    sample = (blocks[0], blocks[count // 2], blocks[-1])
    for number in sample:
        rows = sweep.rows(number, LeftOut())
        if form and rows is not None and rows.length:
            writer = opened(io.BytesIO(), form, sweep.columns)
            writer.write(rows)
            sampled_bytes += writer.flush()
    share = count / len(sample)
    return Size(points, (perf_counter() - began) * share, sampled_bytes * share, free_bytes)


_FEW = 64
"""Blocks below which a sweep is a matter of seconds."""
