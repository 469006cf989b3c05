"""Ranges as people type them: `1:100`, `0:4096:64`, `1:8192:log2`, `4096,8192`, and mixtures of those."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from memwall.errors import UsageError, shown
from memwall.units import LARGEST_COUNT, parse_count


class Steps(NamedTuple):
    """Equal steps: first, first + step, ..."""

    first: int
    step: int
    length: int

    def values(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        """Those of that slice."""
        return self.first + self.step * np.arange(start, stop, dtype=np.int64)


class Axis(NamedTuple):
    """The values of one dimension, in the order in which they were typed."""

    name: str
    pieces: tuple[Steps, ...]

    def __len__(self) -> int:
        return sum(piece.length for piece in self.pieces)

    def slice(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        """Values start to stop - 1, without making the others."""
        found, before = [], 0
        for piece in self.pieces:
            first, last = max(start - before, 0), min(stop - before, piece.length)
            if first < last:
                found.append(piece.values(first, last))
            before += piece.length
        return np.concatenate(found)


def parse_axis(text: str, name: str, flag: str) -> Axis:
    """A dimension's values from what was typed.

    A range ends with its last number, if a step falls on it. A range of steps from 0 begins with its first
    step, since every dimension is at least 1.

    Args:
        text: numbers and ranges, by comma.
        name: the dimension's.
        flag: as messages call it.

    Raises:
        UsageError: empty, reversed, or no numbers.

    >>> parse_axis("1:8:log2,100", "m", "--m").slice(0, 5).tolist()
    [1, 2, 4, 8, 100]
    >>> len(parse_axis("1:1e15", "m", "--m"))
    1000000000000000
    """
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise UsageError(f"{flag}: '{shown(text)}' has an empty place", f"Write it like {flag} 4096,8192")
    pieces = [piece for word in words for piece in _pieces(word, flag)]
    return Axis(name, tuple(dict.fromkeys(pieces)))


def _pieces(word: str, flag: str) -> list[Steps]:
    parts = [part.strip() for part in word.split(":")]
    if len(parts) == 1:
        return [Steps(parse_count(word, flag), 1, 1)]
    if len(parts) > 3 or not all(parts):
        raise UsageError(
            f"{flag} takes a number or a range, not '{shown(word)}'",
            f"Write it like {flag} 1:100, {flag} 0:4096:64 or {flag} 1:8192:log2",
        )
    first, last = parse_count(parts[0], flag, least=0), parse_count(parts[1], flag, least=0)
    if first > last:
        turned = ":".join([parts[1] if last else "1", parts[0], *(part.lstrip("-") for part in parts[2:])])
        raise UsageError(f"{flag} {shown(word)} runs backwards", f"Try {flag} {turned}")
    if parts[-1].lower() == "log2" and len(parts) == 3:
        return _doublings(first, last, flag)
    step = _step(parts[2], word, flag) if len(parts) == 3 else 1
    first = first or step
    if first > last:
        raise UsageError(f"{flag} {shown(word)} is empty: its first step is beyond its end", "Widen it")
    return [Steps(first, step, (last - first) // step + 1)]


def from_zero(text: str) -> list[str]:
    """Ranges of every whole number that are written from 0 and begin with 1.

    >>> from_zero("0:10,0:4096:64,5")
    ['0:10']
    """
    words = [word.strip() for word in text.split(",")]
    return [word for word in words if re.fullmatch(r"0+\s*:[^:]*(:\s*1)?", word)]


def _step(text: str, word: str, flag: str) -> int:
    try:
        return parse_count(text, flag)
    except UsageError:
        raise UsageError(
            f"{flag} {shown(word)}: the last part is a step or log2, not '{shown(text)}'",
            f"Write it like {flag} 0:4096:64, or {flag} 1:8192:log2 for doublings",
        ) from None


def _doublings(first: int, last: int, flag: str) -> list[Steps]:
    if not first:
        raise UsageError(f"{flag}: doublings of 0 stay 0", f"Try {flag} 1:{last}:log2")
    doubled: list[Steps] = []
    while first <= min(last, LARGEST_COUNT):
        doubled.append(Steps(first, 1, 1))
        first *= 2
    return doubled


def spread(text: str, flag: str) -> list[str]:
    """Texts by comma, ranges of numbers among them written out; parts of a whole too.

    Raises:
        UsageError: an empty place, a range that runs backwards or has too many values.

    >>> spread("nvlink,0.5:1:0.25,1:4:log2", "--x")
    ['nvlink', '0.5', '0.75', '1', '2', '4']
    """
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise UsageError(f"{flag}: '{shown(text)}' has an empty place", f"Write it like {flag} a,b")
    found = [value for word in words for value in _written_out(word, flag)]
    return list(dict.fromkeys(found))


MOST_WORDS = 10_000
"""Values of a list that is written out: of formats, layouts, what-ifs."""


def _written_out(word: str, flag: str) -> list[str]:
    """A range of decimal numbers as texts; whatever is none, as it stands."""
    if ":" not in word or not _RANGE.fullmatch(word.replace(" ", "")):
        return [word]
    parts = [part.strip() for part in word.split(":")]
    first, last = Decimal(parts[0]), Decimal(parts[1])
    doubling = parts[-1].lower() == "log2"
    step = Decimal(parts[2]) if len(parts) == 3 and not doubling else Decimal(1)
    if first > last:
        turned = ":".join([parts[1], parts[0], *parts[2:]])
        raise UsageError(f"{flag}: {shown(word)} runs backwards", f"Try {turned}")
    if step <= 0 or (doubling and first <= 0):
        raise UsageError(f"{flag}: {shown(word)} never ends", "Write it like 0.5:1:0.25 or 1:8:log2")
    values: list[str] = []
    while first <= last:
        if len(values) == MOST_WORDS:
            raise UsageError(f"{flag} {shown(word)} has more than {MOST_WORDS:,} values", "Take larger steps")
        values.append(f"{first.normalize():f}")
        first = 2 * first if doubling else first + step
    return values


_DECIMAL = r"[0-9]+(?:\.[0-9]+)?(?:e[0-9]+)?"
_RANGE = re.compile(rf"{_DECIMAL}:{_DECIMAL}(?::(?:{_DECIMAL}|log2))?", re.IGNORECASE)


def names(text: str) -> Sequence[str]:
    """Words by comma, each once."""
    return list(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
