"""Rows to CSV, JSON lines or Parquet as they come, and on from where an earlier run stopped.

What is written goes under a name of its own, `out.partial.csv` for out.csv, and takes the final name when it
is whole. A run that is stopped leaves it readable, and beside it what to go on with.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any, BinaryIO, Protocol

import numpy as np

from memwall.errors import NotAvailable
from memwall.sweeps.rows import YES_OR_NO, Coded, Column, Rows, Word, joined, numbers

SUFFIXES = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
ROW_GROUP_ROWS = 524_288
"""Rows together in a row group of Parquet."""


class Writer(Protocol):
    """Takes rows to a file."""

    def write(self, rows: Rows) -> None:
        """More rows."""

    def flush(self) -> int:
        """Hand everything to the file; where it ends [B]."""

    def finish(self) -> None:
        """The last of it, so that the file can be read."""


class Lines:
    """A line a row: CSV or JSON lines."""

    def __init__(self, file: BinaryIO, columns: Sequence[str], form: str, begun: bool) -> None:
        self._file = file
        self._text = csv_lines if form == "csv" else json_lines
        if form == "csv" and not begun:
            self._put(",".join(columns) + "\n")

    def write(self, rows: Rows) -> None:
        """More rows."""
        self._put(self._text(rows))

    def flush(self) -> int:
        """Hand everything to the file; where it ends [B]."""
        return self._file.tell()

    def finish(self) -> None:
        """There is nothing left to write."""

    def _put(self, text: str) -> None:
        rest = memoryview(text.encode())
        while rest:  # an unbuffered file takes what it can
            rest = rest[self._file.write(rest) :]


def csv_lines(rows: Rows) -> str:
    """Rows as lines of CSV."""
    columns = [_cells(column, rows.length) for column in rows.columns.values()]
    return "".join(",".join(row) + "\n" for row in zip(*columns, strict=True))


def _cells(column: Column, count: int) -> Sequence[str]:
    if isinstance(column, Word):
        return [_cell(column.text or "")] * count
    if isinstance(column, Coded):
        texts = [_cell(_written(text)) for text in column.texts]
        return [texts[code] for code in column.codes.tolist()]
    return ["" if value is None else repr(value) for value in numbers(column)]


def _written(value: str | bool | None) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value or ""


def json_lines(rows: Rows) -> str:
    """Rows as JSON, one a line."""
    return "".join(json.dumps(record, allow_nan=False) + "\n" for record in rows.records())


def _cell(text: str) -> str:
    """A text as the csv module writes it."""
    quoted = any(each in text for each in ',"\r\n')
    return '"' + text.replace('"', '""') + '"' if quoted else text


_YES = YES_OR_NO.index(True)


class Parquet:
    """Row groups of Parquet: texts by number, counts and times as numbers."""

    def __init__(self, file: BinaryIO, earlier: str | None = None) -> None:
        self._pa, self._pq = arrow()
        self._file = file
        self._writer: Any = None
        self._waiting: list[Rows] = []
        self._rows = 0
        if earlier:
            self._copy(earlier)

    def write(self, rows: Rows) -> None:
        """More rows."""
        self._waiting.append(rows)
        self._rows += rows.length
        if self._rows >= ROW_GROUP_ROWS:
            self._group()

    def flush(self) -> int:
        """The rows so far are a row group."""
        if self._waiting:
            self._group()
        return self._file.tell()

    def finish(self) -> None:
        """The last rows and the footer, without which nobody can read the file."""
        self.flush()
        if self._writer is None:
            raise NotAvailable("no row to write: Parquet needs one to know its columns", "Try .csv")
        self._writer.close()

    def _group(self) -> None:
        rows = joined(self._waiting)
        self._waiting.clear()
        self._rows = 0
        self._append(self._pa.table({name: self._array(rows, name) for name in rows.columns}))

    def _append(self, table: Any) -> None:
        if self._writer is None:
            texts = [field.name for field in table.schema if self._pa.types.is_dictionary(field.type)]
            self._writer = self._pq.ParquetWriter(self._file, table.schema, use_dictionary=texts)
        self._writer.write_table(table, row_group_size=max(table.num_rows, 1))

    def _array(self, rows: Rows, name: str) -> Any:
        column = rows.columns[name]
        if isinstance(column, Word):  # pragma: no cover - joined rows have none
            raise TypeError(name)
        if isinstance(column, Coded) and column.answers:
            return self._pa.array(column.codes == _YES, self._pa.bool_(), mask=column.codes == 0)
        if isinstance(column, Coded):
            empty = np.array([text is None for text in column.texts])[column.codes]
            indices = self._pa.array(column.codes, self._pa.int32(), mask=empty)
            texts = self._pa.array([text or "" for text in column.texts], self._pa.string())
            return self._pa.DictionaryArray.from_arrays(indices, texts)
        return self._pa.array(column)

    def _copy(self, path: str) -> None:
        """What an earlier run wrote, a row group at a time."""
        before = self._pq.ParquetFile(path)
        for number in range(before.num_row_groups):
            self._append(before.read_row_group(number))


def arrow() -> tuple[Any, Any]:
    """Pyarrow and its Parquet module.

    Raises:
        NotAvailable: it is not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise NotAvailable(
            "Parquet needs pyarrow, which is not installed", "pip install 'memwall[parquet]', or write .csv"
        ) from None
    return pyarrow, pyarrow.parquet


def parquet_rows(path: str) -> int | None:
    """How many rows a file of Parquet has; None if nobody can read it."""
    pa, pq = arrow()
    try:
        return int(pq.ParquetFile(path).metadata.num_rows)
    except (OSError, pa.ArrowException):
        return None


def opened(file: BinaryIO, form: str, columns: Sequence[str], earlier: str | None = None) -> Writer:
    """The writer of a format.

    Args:
        file: takes the bytes; of an earlier run of lines it stands at the end.
        form: csv, jsonl or parquet.
        columns: of the rows.
        earlier: a file of an earlier run, to go on from.
    """
    if form == "parquet":
        return Parquet(file, earlier)
    return Lines(file, columns, form, begun=earlier is not None)


def partial_name(path: str) -> str:
    """Where rows go until all are there: out.partial.csv."""
    stem, suffix = os.path.splitext(path)
    return f"{stem}.partial{suffix}"
