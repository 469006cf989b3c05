"""The numbers of a running text, with the unit that follows each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from memwall.claims.printed import NUMBER
from memwall.claims.quantity import named, parse_unit, units

# A number begins where no word or number does: H100, FP8, v2 and GPT-4 are names.
_FOUND = re.compile(rf"(?<![\w.,])(?<![A-Za-z]-){NUMBER}(?!\d)")
_UNIT = re.compile(r"[ \u00a0]?(?P<unit>mm[2²]|[%$×A-Za-zµμ/-]+)")  # noqa: RUF001 - as texts print them
_CAMEL = re.compile(r"[A-Za-z]*?[a-z](?=[A-Z])")
_HEAD = re.compile(r"[%×]|[A-Za-zµμ$]+(?=-)")  # noqa: RUF001 - as texts print them


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
        return value, "" if one == (1, ()) else f"{float(one.value)!r} {named(one.dimension)}"


def numbers(text: str, start: int = 0, end: int | None = None) -> Iterator[Number]:
    """The numbers between two places of a text."""
    for found in _FOUND.finditer(text, start, len(text) if end is None else end):
        unit, unit_end = unit_after(text, found.end(), end)
        yield Number(found[0], unit, found.start(), found.end(), unit_end)


def unit_after(text: str, place: int, end: int | None = None) -> tuple[str, int]:
    """The unit that begins at a place, and where it ends; ('', place) if there is none."""
    found = _UNIT.match(text, place, len(text) if end is None else end)
    word = found["unit"].rstrip("-/") if found else ""
    while found and word:
        parts = word.split("/")
        after = found.start("unit") + len(word)
        glued = len(parts) == 1 and text[after : after + 1].isalnum()  # 2024 B200
        if parts[0] and all(part in units() for part in parts) and not glued:
            return word, after
        word = "/".join([*parts[:-1], _shorter(parts[-1])]).rstrip("/")
    return "", place


def _shorter(word: str) -> str:
    """A unit without what hangs on it: byteDeeply (of a table without gaps), GB-class, 50%-ish."""
    for shape in (_CAMEL, _HEAD):
        head = shape.match(word)
        if head and head[0] != word:
            return head[0]
    return ""
