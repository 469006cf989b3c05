"""Whether a file holds a whole sweep already: as many rows, and the same at both its ends."""

from __future__ import annotations

import os

from memwall.sweeps.files import arrow, csv_lines, json_lines
from memwall.sweeps.left_out import LeftOut
from memwall.sweeps.planned import Planned
from memwall.sweeps.rows import Rows
from memwall.sweeps.size import points_of

_CHUNK_BYTES = 1 << 22


def complete(sweep: Planned, blocks: range, path: str, form: str) -> bool:
    """Whether a file is provably what this sweep writes: never so of a sweep with a condition.

    Args:
        sweep: what is asked.
        blocks: those of the run.
        path: the file.
        form: csv, jsonl or parquet.
    """
    if sweep.condition or not blocks or not os.path.isfile(path):
        return False
    ends = [sweep.rows(number, LeftOut()) for number in (blocks.start, blocks.stop - 1)]
    first, last = ends
    if first is None or last is None or first.length != sweep.grid.block(blocks.start).points:
        return False
    count = points_of(sweep, blocks)
    if form == "parquet":
        return _same_parquet(path, first, last, count)
    header = ",".join(sweep.columns) + "\n" if form == "csv" else ""
    text = csv_lines if form == "csv" else json_lines
    return _same_lines(path, (header + text(first)).encode(), text(last).encode(), count + bool(header))


def _same_lines(path: str, head: bytes, tail: bytes, count: int) -> bool:
    with open(path, "rb") as file:
        if file.read(len(head)) != head:
            return False
        file.seek(max(os.path.getsize(path) - len(tail), 0))
        if file.read() != tail:
            return False
        file.seek(0)
        lines = 0
        while chunk := file.read(_CHUNK_BYTES):
            lines += chunk.count(b"\n")
    return lines == count


def _same_parquet(path: str, first: Rows, last: Rows, count: int) -> bool:
    pa, pq = arrow()
    try:
        file = pq.ParquetFile(path)
        if file.metadata.num_rows != count or file.schema_arrow.names != list(first.columns):
            return False
        head = next(file.iter_batches(batch_size=first.length)).to_pylist()
        final = file.read_row_group(file.num_row_groups - 1)
    except (OSError, pa.ArrowException):
        return False
    tail = final.slice(max(final.num_rows - last.length, 0)).to_pylist()
    return bool(head == first.records() and tail == last.records())
