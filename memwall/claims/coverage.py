"""The numbers of a text that no claim covers.

A claim covers the numbers that it prints, and those of its `given`: the same number with the same unit, or
with none in the text, as in a table's cells. Numbers inside what the file's `aside` matches need no claim.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from memwall.claims.claim import ClaimsFile
from memwall.claims.numbers import Number, numbers

CONTEXT = 34


class Uncovered(NamedTuple):
    """A number without a claim."""

    number: Number
    line: int
    column: int
    context: str
    """What stands around it."""


class Coverage(NamedTuple):
    """How much of a text its claims cover."""

    text: str
    """The text's file."""
    total: int
    covered: int
    aside: dict[str, int]
    """Numbers set aside, by reason."""
    uncovered: tuple[Uncovered, ...]


def coverage(text: str, name: str, files: Sequence[ClaimsFile]) -> Coverage:
    """Every number of a text: covered, set aside, or neither."""
    known, bare = _covering(files)
    spans = _aside_spans(text, files)
    found = list(numbers(text))
    covered, aside, uncovered = 0, dict.fromkeys((reason for *_, reason in spans), 0), []
    for number in found:
        reason = next((reason for start, end, reason in spans if start <= number.start < end), None)
        if reason is not None:
            aside[reason] += 1
        elif number.key in known or (not number.key[1] and number.key[0] in bare):
            covered += 1
        else:
            uncovered.append(_uncovered(text, number))
    return Coverage(name, len(found), covered, aside, tuple(uncovered))


def _covering(files: Iterable[ClaimsFile]) -> tuple[set[tuple[str, str]], set[str]]:
    """The numbers that claims print: with their units, and by themselves."""
    known: set[tuple[str, str]] = set()
    for file in files:
        for claim in file.claims:
            for words in (claim.printed.text, claim.given):
                known |= _keys(words)
    return known, {value for value, _ in known}


def _keys(words: str) -> set[tuple[str, str]]:
    """The numbers of a few words; the first end of a range shares the unit of the second."""
    found = list(numbers(words))
    keys = {number.key for number in found}
    if found and found[-1].unit:
        keys |= {number._replace(unit=found[-1].unit).key for number in found if not number.unit}
    return keys


def _aside_spans(text: str, files: Iterable[ClaimsFile]) -> list[tuple[int, int, str]]:
    return [
        (*found.span(), aside.reason)
        for file in files
        for aside in file.aside
        for found in re.finditer(aside.pattern, text, re.MULTILINE)
    ]


def _uncovered(text: str, number: Number) -> Uncovered:
    line = text.count("\n", 0, number.start) + 1
    column = number.start - text.rfind("\n", 0, number.start)
    around = text[max(0, number.start - CONTEXT) : number.unit_end + CONTEXT]
    return Uncovered(number, line, column, " ".join(around.split()))
