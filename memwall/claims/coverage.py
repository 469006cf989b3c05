"""The numbers of a text that no claim covers.

A claim covers the numbers that it prints, and those of its `given`: the same number with the same unit, or
with none in the text, as in a table's cells. Where the file names the text's `regions`, by their headings, it
covers them in its own region alone. Numbers inside what `aside` matches need no claim.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from memwall.claims.claim import Claim, ClaimsFile
from memwall.claims.docket import at
from memwall.claims.numbers import Number, numbers

CONTEXT = 34


class Uncovered(NamedTuple):
    """A number without a claim."""

    number: Number
    line: int
    column: int
    where: str
    """The region that it stands in, if the text has any."""
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


class _Span(NamedTuple):
    """A piece of the text with its name: a region, or the reason to set its numbers aside."""

    start: int
    end: int
    name: str


class _Covering(NamedTuple):
    """The numbers that some claims print: with their units, and by themselves."""

    keys: set[tuple[str, str]]
    bare: set[str]

    def covers(self, number: Number) -> bool:
        value, unit = number.key
        return (value, unit) in self.keys or (not unit and value in self.bare)


def coverage(text: str, name: str, files: Sequence[ClaimsFile]) -> Coverage:
    """Every number of a text: covered, set aside, or neither."""
    claims = [claim for file in files for claim in file.claims]
    regions, everywhere = _regions(text, files), _covering(claims)
    here = {
        region.name: _covering([claim for claim in claims if at(region.name)(claim)]) for region in regions
    }
    spans = [
        _Span(*found.span(), aside.reason)
        for file in files
        for aside in file.aside
        for found in re.finditer(aside.pattern, text, re.MULTILINE)
    ]
    found = list(numbers(text))
    covered, aside, uncovered = 0, dict.fromkeys((span.name for span in spans), 0), []
    for number in found:
        reason, region = _name_at(number, spans), _name_at(number, regions)
        if reason:
            aside[reason] += 1
        elif (here[region] if region else everywhere).covers(number):
            covered += 1
        else:
            uncovered.append(_uncovered(text, number, region))
    return Coverage(name, len(found), covered, aside, tuple(uncovered))


def _regions(text: str, files: Iterable[ClaimsFile]) -> list[_Span]:
    """The regions whose headings are found, each up to the next."""
    starts = []
    for region in (region for file in files for region in file.regions):
        heading = re.search(region.pattern, text, re.MULTILINE)
        if heading:
            starts.append((heading.start(), region.where))
    starts.sort()
    ends = [*(start for start, _ in starts), len(text)][1:]
    return [_Span(start, end, where) for (start, where), end in zip(starts, ends, strict=True)]


def _covering(claims: Iterable[Claim]) -> _Covering:
    keys = {key for claim in claims for words in (claim.printed.text, claim.given) for key in _keys(words)}
    return _Covering(keys, {value for value, _ in keys})


def _keys(words: str) -> set[tuple[str, str]]:
    """The numbers of a few words; the first end of a range shares the unit of the second."""
    found = list(numbers(words))
    keys = {number.key for number in found}
    if found and found[-1].unit:
        keys |= {number._replace(unit=found[-1].unit).key for number in found if not number.unit}
    return keys


def _name_at(number: Number, spans: Iterable[_Span]) -> str:
    return next((span.name for span in spans if span.start <= number.start < span.end), "")


def _uncovered(text: str, number: Number, region: str) -> Uncovered:
    line = text.count("\n", 0, number.start) + 1
    column = number.start - text.rfind("\n", 0, number.start)
    around = text[max(0, number.start - CONTEXT) : number.unit_end + CONTEXT]
    return Uncovered(number, line, column, region, " ".join(around.split()))
