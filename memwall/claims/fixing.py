"""A document with its wrong numbers put right, and nothing else touched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from memwall.claims.comparison import fits
from memwall.claims.directives import Document, read
from memwall.claims.verdict import Judged
from memwall.errors import FileError, shown


class Fixed(NamedTuple):
    """What was put right in a document."""

    text: str
    rewritten: int
    left: tuple[Judged, ...]
    """Numbers that are wrong and stay: ranges and limits, and values too small for the printed unit."""


def fixed(document: Document, judged: Mapping[str, Judged]) -> Fixed:
    """The text with each number that does not hold replaced by the right one, rounded as it was printed.

    Raises:
        FileError: a number as it would be written does not hold, with file and line.
    """
    text, count, left = document.text, 0, []
    wrong = [each for each in document.marked if not judged[each.claim.key].stands]
    by_place = {each.start: each for each in wrong}  # a number may have two directives
    for start, marked in sorted(by_place.items(), reverse=True):
        each = judged[marked.claim.key]
        if each.value is None:
            continue
        printed = marked.claim.printed
        single = not (printed.ranged or printed.bound)
        fresh = printed.rewritten(each.value[0].to(printed.unit)) if single else ""
        if not fresh:
            left.append(each)
            continue
        text = text[:start] + fresh + text[marked.end :]
        count += 1
    _recheck(document, text, judged, {each.claim.key for each in left})
    return Fixed(text, count, tuple(reversed(left)))


def _recheck(document: Document, text: str, judged: Mapping[str, Judged], left: set[str]) -> None:
    """Read the new text as the next run would: a number that was rewritten must hold there."""
    again = read(text, document.file).marked
    if len(again) != len(document.marked):
        raise FileError(f"{document.file}: cannot be put right", "Correct it by hand")
    for before, after in zip(document.marked, again, strict=True):
        each = judged[before.claim.key]
        if each.value is None or before.claim.key in left:
            continue
        if each.stands and before.claim.printed == after.claim.printed:
            continue
        if not fits(after.claim, each.value):
            place, written = before.claim.place, shown(after.claim.printed.text)
            raise FileError(f"{place}: would read {written}, which does not hold", "Correct it by hand")
