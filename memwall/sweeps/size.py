"""How long a sweep will take and how large its file will be, from its first block."""

from __future__ import annotations

import io
import os
import shutil
from time import perf_counter
from typing import NamedTuple

from memwall.sweeps.files import opened
from memwall.sweeps.plan import LeftOut, Sweep


class Size(NamedTuple):
    """A sweep's cost, as its first block tells it."""

    points: int
    time_s: float
    needed_bytes: float
    free_bytes: int


def expected(sweep: Sweep, blocks: range, form: str, path: str) -> Size:
    """What a run will take: every block as the first one, computed and written to memory.

    A block is under a tenth of a million points, so a sweep of one or a few is not measured.

    Args:
        sweep: what is asked.
        blocks: those that are run.
        form: csv, jsonl or parquet.
        path: where it goes.
    """
    points = sweep.grid.points * len(blocks) // max(sweep.grid.count, 1)
    folder = os.path.dirname(path) or "."
    free_bytes = shutil.disk_usage(folder).free if os.path.isdir(folder) else 0
    if len(blocks) < _FEW:
        return Size(points, 0.0, 0.0, free_bytes)
    began = perf_counter()
    file = io.BytesIO()
    writer = opened(file, form, sweep.columns)
    rows = sweep.rows(blocks.start, LeftOut())
    if rows is not None and rows.length:
        writer.write(rows)
    return Size(
        points, (perf_counter() - began) * len(blocks), float(writer.flush() * len(blocks)), free_bytes
    )


_FEW = 64
"""Blocks below which a sweep is a matter of seconds."""
