"""Rows by column: words that all rows share, numbers, and words by number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from memwall.sweeps.points import Array
from memwall.sweeps.words import Value

EXACT = float(1 << 53)
"""Whole numbers below it are exact in float64, and are written as whole numbers."""


YES_OR_NO = (None, False, True)
"""What a column holds that answers a question; None: nobody knows."""


class Word(NamedTuple):
    """A text that every row has; None: empty."""

    text: str | None

    def taken(self, places: Array) -> Word:
        """That of some of the rows."""
        return self


class Coded(NamedTuple):
    """One of a few texts in each row, by its number; or yes, no or unknown."""

    codes: Array
    texts: tuple[str | bool | None, ...]

    @property
    def answers(self) -> bool:
        """Whether it holds yes and no instead of texts."""
        return self.texts == YES_OR_NO

    def taken(self, places: Array) -> Coded:
        """Those of some of the rows."""
        return self._replace(codes=self.codes[places])

    def where(self, text: str | bool) -> Array:
        """The rows that have this text, or answer."""
        found: Array = np.array([each == text for each in self.texts])[self.codes]
        return found


Column: TypeAlias = Word | Coded | Array


class Rows(NamedTuple):
    """Some rows."""

    length: int
    columns: Mapping[str, Column]

    def taken(self, places: Array) -> Rows:
        """Some of the rows, by their places."""
        taken = {
            name: column.taken(places) if isinstance(column, Word | Coded) else column[places]
            for name, column in self.columns.items()
        }
        return Rows(len(places), taken)

    def texts(self) -> Iterator[Sequence[Any]]:
        """Each column as Python values, one a row: None for what is empty or not a finite number."""
        for column in self.columns.values():
            if isinstance(column, Word):
                yield [column.text] * self.length
            elif isinstance(column, Coded):
                yield [column.texts[code] for code in column.codes.tolist()]
            else:
                yield numbers(column)

    def records(self) -> list[dict[str, Any]]:
        """Each row under its columns' names."""
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*self.texts(), strict=True)]


def numbers(column: Array) -> list[Any]:
    """As Python's numbers: whole ones that are exact as ints, None for what is not finite."""
    if column.dtype.kind in "bi":
        return list(column.tolist())
    finite = np.isfinite(column)
    if finite.all() and (column < EXACT).all() and (column == np.trunc(column)).all():
        return list(column.astype(np.int64).tolist())
    values = [int(v) if v < EXACT and v.is_integer() else v for v in column.tolist()]
    return values if finite.all() else [v if ok else None for v, ok in zip(values, finite, strict=True)]


def same(word: Value, count: int) -> Column:
    """A column in which every row has the same word, or number."""
    if isinstance(word, bool):
        return Coded(np.full(count, YES_OR_NO.index(word), np.int8), YES_OR_NO)
    return Word(word) if isinstance(word, str | None) else np.full(count, word)


def yes_or_no(values: Array) -> Coded:
    """A column of answers from numbers: 1 is yes, 0 is no, NaN is unknown.

    >>> yes_or_no(np.array([1.0, 0.0, np.nan])).codes.tolist()
    [2, 1, 0]
    """
    return Coded(np.where(np.isnan(values), 0, values + 1).astype(np.int8), YES_OR_NO)


def joined(parts: Sequence[Rows]) -> Rows:
    """Rows one after the other, of the same columns."""
    first = parts[0]
    columns: dict[str, Column] = {}
    for name, column in first.columns.items():
        same = [part.columns[name] for part in parts]
        if isinstance(column, Word | Coded):
            columns[name] = _joined_texts(same, [part.length for part in parts])
        else:
            columns[name] = np.concatenate([each for each in same if isinstance(each, np.ndarray)])
    return Rows(sum(part.length for part in parts), columns)


def _joined_texts(columns: Sequence[Column], counts: Sequence[int]) -> Coded:
    first = columns[0]
    if isinstance(first, Coded) and first.answers:
        answers = [column.codes for column in columns if isinstance(column, Coded)]
        return Coded(np.concatenate(answers), YES_OR_NO)
    texts: dict[Any, int] = {}
    codes = []
    for column, count in zip(columns, counts, strict=True):
        names = column.texts if isinstance(column, Coded) else (getattr(column, "text", None),)
        known = np.array([texts.setdefault(name, len(texts)) for name in names])
        codes.append(known[column.codes] if isinstance(column, Coded) else np.full(count, known[0]))
    return Coded(np.concatenate(codes), tuple(texts))
