"""What a report looks like to people, before any format: headings, tables and lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Table(NamedTuple):
    """Rows of text; without a header it is a list of facts."""

    rows: Sequence[Sequence[str]]
    header: Sequence[str] = ()
    right: frozenset[int] = frozenset()
    """Columns aligned right: the numbers."""
    names: int = 1
    """First columns that say what a row is of: they stand in each part of a table that is cut in parts."""

    @property
    def all_rows(self) -> list[Sequence[str]]:
        """The header, if there is one, and the rows, all of one length."""
        rows = [self.header, *self.rows] if self.header else list(self.rows)
        return [[*row, *[""] * (self.columns - len(row))] for row in rows]

    @property
    def columns(self) -> int:
        """How many columns it has."""
        return max((len(row) for row in (self.header, *self.rows)), default=0)

    @property
    def widths(self) -> list[int]:
        """The widest text of each column."""
        return [max(map(len, column)) for column in zip(*self.all_rows, strict=True)]


class Lines(NamedTuple):
    """Sentences, one a line; steps begin with their number, `1. `, and remarks on a mark with it, `* `."""

    lines: Sequence[str]


class LaidOut(NamedTuple):
    """Lines whose layout matters, such as a docstring with its formulas."""

    lines: Sequence[str]


class Section(NamedTuple):
    """A heading and what stands under it."""

    heading: str
    body: Table | Lines | LaidOut


Page = Sequence[Section]


def star(weak: bool) -> str:
    """The mark of a number that rests on a weak constant."""
    return " *" if weak else ""


def numbers(rows: Iterable[Sequence[str]], header: Sequence[str]) -> Table:
    """A table whose first column is words and whose others are numbers."""
    listed = [tuple(row) for row in rows]
    return Table(listed, header, frozenset(range(1, len(header))))
