"""Numbers inside Markdown: a comment beside a number names what computes it.

    The ridge is 295 FLOP/byte<!-- memwall: gpu("h100").ridge_points.bf16 -->.
    | H100 | 3.35 <!-- memwall: gpu("h100").bandwidth_bytes_per_s in TB/s --> |

    <!-- memwall after "AI =": roofline("gemm", m=4096, n=4096, k=4096).arithmetic_intensity -->
    ```text
    AI = 1,365 FLOP/byte
    ```

The number is the last one before the comment in its line or table cell, else the first one after it; its unit
is what follows it, or what `in` says. `after "words"` means the first number after those words in the block
that follows. Comments inside `inline code` are only shown.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from memwall.claims import forms
from memwall.claims.claim import Claim, ClaimsFile, Place
from memwall.claims.expression import parse as parse_expression
from memwall.claims.numbers import Number, numbers
from memwall.claims.printed import Printed
from memwall.claims.printed import parse as parse_printed
from memwall.errors import FileError, MemwallError, UsageError, shown

_OPEN = re.compile(r"<!--\s*memwall\b")
_WHOLE = re.compile(r'<!--\s*memwall(?:\s+after\s+"(?P<after>[^"\n]+)")?\s*:(?P<body>.*?)-->', re.DOTALL)
_IN = re.compile(r"\s+in\s+(?P<unit>[^\s\"'()]+)\s*$")
_CODE = re.compile(r"(?<!`)(`+)(?!`)[^\n]*?(?<!`)\1(?!`)")
_EDGE = re.compile(r"[\n|]|<!--|-->")
"""Where a line, a cell or a comment ends."""
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[^\n]*\n")
_RANGE = re.compile(r"\s*(?:-|–|—|to)\s*[~$]?$")  # noqa: RUF001 - the dashes that texts print
_BEFORE = re.compile(r"(?:~|≈|<=|>=|<|(?<!--)>|≤|≥|\$)[ \t]*$")
_LINK = re.compile(r"(?<=\])\([^()\n]*\)")
_PER = re.compile(r"/[A-Za-z-]+")


class Marked(NamedTuple):
    """A number with its directive."""

    claim: Claim
    start: int
    end: int
    """Where the number stands in the text."""


class Document(NamedTuple):
    """A text with its directives."""

    file: str
    text: str
    marked: tuple[Marked, ...]

    @property
    def claims(self) -> ClaimsFile:
        """Its directives as claims."""
        return ClaimsFile(
            self.file, self.file, self.file, tuple(each.claim for each in self.marked), {}, {}, ()
        )


def read(text: str, file: str) -> Document:
    """The directives of a document.

    Raises:
        FileError: one that is not closed, or cannot be read, with file and line.
    """
    found: dict[str, Marked] = {}
    for each in _marked(text, file):
        name, again = each.claim.id, 1
        while name in found:  # a number with two directives is judged by both
            again += 1
            name = f"{each.claim.id}_{again}"
        found[name] = each._replace(claim=each.claim._replace(id=name))
    return Document(file, text, tuple(found.values()))


def _marked(text: str, file: str) -> Iterator[Marked]:
    plain = _LINK.sub(lambda link: " " * len(link[0]), text)  # the numbers of an address are nobody's
    shown_only = [found.span() for found in _CODE.finditer(text)]
    where = _places(text, file)
    place = 0
    while opened := _OPEN.search(text, place):
        place = opened.end()
        if _inside(shown_only, opened.start()):
            continue
        here = where(opened.start())
        closed = text.find("-->", opened.end())
        another = text.find("<!--", opened.end())
        if closed < 0 or 0 <= another < closed:
            raise FileError(f"{here}: the directive is not closed", "End it with -->")
        whole = _WHOLE.match(text, opened.start())
        if not whole:
            raise FileError(
                f"{here}: '{shown(text[opened.start() : closed + 3], 60)}' is not a directive",
                'For example: <!-- memwall: gpu("h100").ridge_points.bf16 -->',
            )
        place = whole.end()
        try:
            yield _one(text, plain, where, whole)
        except FileError:
            raise
        except MemwallError as error:
            raise FileError(f"{here}: {error.message}", error.hint) from None


def _one(text: str, plain: str, where: Callable[[int], Place], whole: re.Match[str]) -> Marked:
    number, start = _after(text, whole) if whole["after"] else _beside(plain, whole)
    alone = start == number.start
    start = forms.signed(text, start)
    if alone:
        number = number._replace(start=start)
    body = whole["body"].strip()
    unit = _IN.search(body)
    forms.check(text, start, number, bool(unit))
    expression = parse_expression(body[: unit.start()] if unit else body)
    printed = _printed(text, start, number, unit["unit"] if unit else number.unit)
    place = where(number.start)
    claim = Claim(
        id=f"line{place.line}c{place.column}",
        where=f"line {place.line}",
        label=expression.text,
        printed=printed,
        place=place,
        compute=(expression,),
        text=place.file,
    )
    return Marked(claim, number.start, number.end)


def _beside(text: str, whole: re.Match[str]) -> tuple[Number, int]:
    """The last number before a directive, else the first one after it, in its line or table cell.

    With it, where the number begins, or the range that it ends.
    """
    line = text.rfind("\n", 0, whole.start()) + 1
    before = max((edge.end() for edge in _EDGE.finditer(text, line, whole.start())), default=line)
    edge = _EDGE.search(text, whole.end())
    after = edge.start() if edge else len(text)
    found = list(numbers(text, before, whole.start()))
    if found:
        forms.check_between(text, found[-1].unit_end, whole.start())
        return found[-1], _range_start(text, found)
    number = next(numbers(text, whole.end(), after), None)
    if number is None:
        raise UsageError(
            "there is no number beside the directive", "Put it right behind the number that it is about"
        )
    return number, number.start


def _range_start(text: str, found: list[Number]) -> int:
    last = found[-1]
    if len(found) < 2:
        return last.start
    between = text[found[-2].unit_end : last.start]
    signed = between[-1:] in ("-", "\u2212")
    if signed and (_RANGE.fullmatch(between[:-1]) or between[:-1] == " "):
        raise forms.refused_range(text[found[-2].start : last.unit_end])
    return found[-2].start if _RANGE.fullmatch(between) else last.start


def _after(text: str, whole: re.Match[str]) -> tuple[Number, int]:
    """The first number after the words, in the block after a directive."""
    start, end = _block(text, whole.end())
    words = text.find(whole["after"], start, end)
    if words < 0:
        raise UsageError(
            f"'{shown(whole['after'])}' is not in the block after the directive",
            "Put it right before that block",
        )
    number = next(numbers(text, words + len(whole["after"]), end), None)
    if number is None:
        raise UsageError(f"there is no number after '{shown(whole['after'])}'", "Check the words")
    return number, number.start


def _block(text: str, place: int) -> tuple[int, int]:
    """The fenced block or paragraph that begins after a place, past blank lines and other directives."""
    while skipped := re.compile(r"\s+|<!--.*?-->", re.DOTALL).match(text, place):
        place = skipped.end()
    line = text.rfind("\n", 0, place) + 1
    fence = _FENCE.match(text, line)
    if fence:
        closing = re.compile(rf"^[ \t]{{0,3}}{fence[1][0]}{{{len(fence[1])},}}\s*$", re.MULTILINE)
        closed = closing.search(text, fence.end())
        return fence.end(), closed.start() if closed else len(text)
    blank = re.compile(r"\n[ \t]*\r?\n").search(text, place)
    return place, blank.start() if blank else len(text)


def _printed(text: str, start: int, number: Number, unit: str) -> Printed:
    """The number as printed, with the mark before it (~ < $), in its unit."""
    lead = _BEFORE.search(text, max(0, start - 5), start)
    mark = lead[0].strip() if lead else ""
    if mark == "$":  # dollars have their sign in front: $2.50/hr
        per = _PER.match(text, number.end)
        unit = unit if unit.startswith("$") else f"${per[0] if per else ''}"
    written = text[start : number.end]
    printed = parse_printed(mark + written, unit)
    least = ">" if text[number.end : number.end + 1] == "+" else printed.bound
    return printed._replace(text=f"{written} {unit}".strip(), bound=least)


def _places(text: str, file: str) -> Callable[[int], Place]:
    """The place of an offset; the lines are found once, for a file may hold thousands of directives."""
    starts = [0, *(found.end() for found in re.finditer("\n", text))]

    def at(offset: int) -> Place:
        line = bisect_right(starts, offset)
        return Place(file, line, offset - starts[line - 1] + 1)

    return at


def _inside(spans: Sequence[tuple[int, int]], offset: int) -> bool:
    """Whether one of the spans, in order and apart, holds the offset."""
    before = bisect_right(spans, offset, key=lambda span: span[0]) - 1
    return before >= 0 and offset < spans[before][1]
