"""A document with its wrong numbers put right, and nothing else touched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from memwall.claims.directives import Document
from memwall.claims.verdict import Judged


class Fixed(NamedTuple):
    """What was put right in a document."""

    text: str
    rewritten: int
    left: tuple[Judged, ...]
    """Numbers that are wrong and stay: ranges and limits, which no single number replaces."""


def fixed(document: Document, judged: Mapping[str, Judged]) -> Fixed:
    """The text with each number that does not hold replaced by the right one, rounded as it was printed."""
    text, count, left = document.text, 0, []
    by_place = {each.start: each for each in document.marked}  # a number may have two directives
    for start, marked in sorted(by_place.items(), reverse=True):
        each = judged[marked.claim.key]
        if each.stands or each.value is None:
            continue
        printed = marked.claim.printed
        if printed.ranged or printed.bound:
            left.append(each)
            continue
        text = text[:start] + printed.rewritten(each.value[0].to(printed.unit)) + text[marked.end :]
        count += 1
    return Fixed(text, count, tuple(reversed(left)))
