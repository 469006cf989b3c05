"""The numbers of a running text, with the unit that follows each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from memwall.claims.printed import NUMBER
from memwall.claims.quantity import named, parse_unit, units

# A number begins where no word or number does: H100, FP8 and v2 are names, x8 and -3 are not.
_FOUND = re.compile(rf"(?<![\w.,])(?<!\d[-/]){NUMBER}(?![\d])")
_UNIT = re.compile(r"[ \u00a0]?(?P<unit>mm[2²]|[%$×A-Za-zµμ/-]+)")  # noqa: RUF001 - as texts print them


class Number(NamedTuple):
    """A number in a text."""

    text: str
    unit: str
    """The unit after it; empty if what follows is none."""
    start: int
    end: int
    unit_end: int

    @property
    def key(self) -> tuple[str, str]:
        """The same for the same number in the same unit, however it is written."""
        plain = self.text.replace(",", "")
        value = plain.rstrip("0").rstrip(".") if "." in plain else plain
        one = parse_unit(self.unit)
        return value, "" if one == (1, ()) else f"{one.value!r} {named(one.dimension)}"


def numbers(text: str, start: int = 0, end: int | None = None) -> Iterator[Number]:
    """The numbers between two places of a text."""
    for found in _FOUND.finditer(text, start, len(text) if end is None else end):
        unit, unit_end = unit_after(text, found.end(), end)
        yield Number(found[0], unit, found.start(), found.end(), unit_end)


def unit_after(text: str, place: int, end: int | None = None) -> tuple[str, int]:
    """The unit that begins at a place, and where it ends; ('', place) if there is none."""
    found = _UNIT.match(text, place, len(text) if end is None else end)
    if not found:
        return "", place
    word = found["unit"].rstrip("-/")
    while word:
        parts = word.split("/")
        if all(part in units() for part in parts) and parts[0]:
            return word, found.start("unit") + len(word)
        shorter = "/".join(parts[:-1]) if len(parts) > 1 else _shorter(word)
        if shorter == word:
            break
        word = shorter
    return "", place


def _shorter(word: str) -> str:
    """A unit with something hanging on it: GB-class, ms-range, 50%-ish."""
    head = re.match(r"[%×]|[A-Za-zµμ$]+(?=-)", word)  # noqa: RUF001 - as texts print them
    return head[0] if head else ""
