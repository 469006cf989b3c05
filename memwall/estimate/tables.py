"""Tables of kernels as people and spreadsheets write them: commas, semicolons or tabs; any case of a name.

A spreadsheet in much of Europe writes semicolons, one on Windows a byte order mark; both are read. A column
that memwall knows is known in capitals too.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from memwall.errors import FileError
from memwall.estimate.rows import COLUMNS

MARK = "\ufeff"
DELIMITERS = (",", ";", "\t")


class Line(NamedTuple):
    """A row of a table."""

    number: int
    cells: Mapping[str, str]
    fault: FileError | None
    """Why its cells may stand under the wrong names."""


class Read(NamedTuple):
    """A table that was read."""

    columns: Sequence[str]
    lines: Sequence[Line]


def read(text: str, where: str) -> Read:
    """A table with a header; a row with more cells than it has columns carries its fault.

    Raises:
        FileError: no header.
    """
    text = text.removeprefix(MARK)
    first = text.partition("\n")[0]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(first))
    columns = [_known(name) for name in next(reader, [])]
    if not columns or "" in columns:
        raise FileError(
            f"{where}:1: a header with a name over each column is expected", "For example: op,m,n,k"
        )
    twice = [name for name in columns if name in COLUMNS and columns.count(name) > 1]
    if twice:
        raise FileError(f"{where}:1: two columns are called {twice[0]}", "Rename one of them")
    return Read(columns, list(_lines(reader, columns, where)))


def _delimiter(header: str) -> str:
    """What stands most often in the header."""
    return max(DELIMITERS, key=header.count)


def _known(name: str) -> str:
    name = name.strip()
    return name.lower() if name.lower() in COLUMNS else name


def _lines(reader: Iterator[list[str]], columns: Sequence[str], where: str) -> Iterator[Line]:
    for row in reader:
        if not row:
            continue
        number = reader.line_num  # type: ignore[attr-defined]
        fault = None
        if len(row) > len(columns):
            fault = FileError(
                f"{where}:{number}: {len(row)} cells under {len(columns)} columns", "Quote cells with commas"
            )
        cells = dict.fromkeys(columns, "")
        cells.update(zip(columns, row, strict=False))
        yield Line(number, cells, fault)
