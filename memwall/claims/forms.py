"""Numbers of a document in forms that are not read: refused, because a tail of one would be another number.

`1 000`, `1.2e3`, `3 × 10^9`, `10⁹`, `$5M`, `1.234,5` and `1/2` hold plain digits that are not their value.
"""  # noqa: RUF002 - as texts print them

from __future__ import annotations

import re

from memwall.claims.numbers import Number
from memwall.errors import UsageError, shown

_OPENING = "([{|*_~≈<>=≤≥$:\"'`"
_GAP = "[ \u00a0\u2009\u202f]"
_BEFORE = re.compile(
    r"(?:\d\s?[/⁄]\s?|\d:|\^\s?[({]?\s?[-−]?|\d\*\*|<sup>[-−]?|\d[eE]\+|\d['’]|±\s?"  # noqa: RUF001 - as texts print them
    r"|[-−]\s?\$|[-−]|(?<![^\W\d_])–)$"  # noqa: RUF001 - as texts print them
)
_AFTER = re.compile(
    r"[.,:'’_]\d|\s?[/⁄]\s?\d|\s?\^|\*\*\d|[eE][+−-]?\d|<sup>|[-–−]{1,2}\d"  # noqa: RUF001 - as texts print them
    r"|\s?(?:[×x·*]|\\times|\\cdot)\s?10(?:\s?\^|\*\*|[⁰¹²³⁴-⁹⁻]|<sup>)"  # noqa: RUF001 - as texts print them
)
_GROUP_BEFORE = re.compile(rf"(?<![\w.,])\d{{1,3}}{_GAP}$")
_GROUP_AFTER = re.compile(rf"{_GAP}\d{{3}}(?!\w)")
_SCALE = re.compile(r"[kKMGT](?!\w)")
_BARE_POINT = re.compile(r"(?<!\w)[.,]\d+")
_LONGEST = 12
"""Of what stands before a number, so much is looked at."""


def signed(text: str, start: int) -> int:
    """Where a number begins with its sign: a minus right before it, behind no word or number."""
    if start and text[start - 1] in "-−":  # noqa: RUF001 - the minus sign that texts print
        before = text[start - 2 : start - 1] if start > 1 else ""
        if not before or before.isspace() or before in _OPENING:
            return start - 1
    return start


def check(text: str, start: int, number: Number, given: bool) -> None:
    """That a number, which begins at `start` with its sign or its range, is all of what is printed there.

    Args:
        text: the document.
        start: where it begins.
        number: it, or the upper end of its range.
        given: whether the directive says the unit.

    Raises:
        UsageError: it is a part of a longer form.
    """
    near = max(0, start - _LONGEST)
    grouped = re.match(r"\d{3}(?!\d)", text[start : number.end])
    before = _BEFORE.search(text, near, start) or (grouped and _GROUP_BEFORE.search(text, near, start))
    if before:
        raise _refused(text[before.start() : number.unit_end])
    whole = "." not in number.text and len(number.text.rpartition(",")[2]) <= len("000")
    after = _AFTER.match(text, number.end) or (whole and _GROUP_AFTER.match(text, number.end))
    if after:
        raise _refused(text[start : after.end()])
    money = text[near:start].rstrip().endswith("$")
    follows = text[number.end : number.end + 1]
    glued = not number.unit and follows.isalpha() and (not given or money)
    scaled = not number.unit and _SCALE.match(text, number.end)
    if glued or scaled or (follows.isnumeric() and not number.unit) or (money and number.unit):
        raise _refused(text[start : max(number.unit_end, number.end + 1)])


def check_between(text: str, start: int, end: int) -> None:
    """That no number without a digit before its point stands between the number and its directive.

    Raises:
        UsageError: there is one.
    """
    bare = _BARE_POINT.search(text, start, end)
    if bare:
        raise _refused(bare[0])


def refused_range(words: str) -> UsageError:
    """A range whose upper end is negative, or a hyphen that may be a sign or a range."""
    return UsageError(
        f"'{shown(words)}' is not read: a sign or a range", "Write 3-5 for a range, or the one number alone"
    )


def _refused(words: str) -> UsageError:
    return UsageError(
        f"'{shown(words.strip())}' is not read as a number",
        "Write it as plain digits with a unit: 1,000 GB, 0.5 GB, -3 %, $2.50/hr",
    )
