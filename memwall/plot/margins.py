"""What stands around every picture: its title, its legend above, its key and notes below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from memwall.plot.figure import Figure
from memwall.plot.metrics import width_of
from memwall.plot.scene import FAINT, FORMS, INK, Color, Line, Mark, Shape, Text

TITLE, BODY, SMALL = 18.0, 14.0, 13.0
RADIUS = 5.5
DASH = "6 4"


def head(title: str, subtitle: str, width: float) -> tuple[list[Mark], float]:
    """Title and subtitle, in as many lines as they need, and where the last one ends."""
    marks: list[Mark] = []
    y = 10.0
    for text, size, bold in ((title, TITLE, True), (subtitle, SMALL, False)):
        for line in wrapped(text, size, width - 32, bold):
            y += size * 1.25
            marks.append(Text((16, y), line, size, INK if bold else FAINT, bold=bold))
    return marks, y


class Entry(NamedTuple):
    """A name in the legend, and what stands before it."""

    name: str
    color: Color
    line: float = 0.0
    """Its width; 0: no line."""
    dash: str = ""
    shape: str = ""
    paint: str = "solid"


def entries(figure: Figure) -> list[Entry]:
    """Names of curves and clouds, and what discs and rings are where there are both."""
    found = [
        Entry(
            curve.name,
            curve.color,
            2.4 if curve.strong else 1.3,
            DASH if curve.dashed else "",
            "" if curve.form is None else form_of(curve.form),
        )
        for curve in figure.curves
        if curve.name
    ]
    found += [Entry(cloud.name, cloud.color, shape=form_of(cloud.color)) for cloud in figure.clouds]
    if any(dot.shape == "ring" for dot in figure.dots):
        found += [
            Entry("predicted: the bound", FAINT, shape="disc"),
            Entry("measured", FAINT, shape="disc", paint="open"),
        ]
    return found


def form_of(number: int) -> str:
    """The form of dots and marks that goes with a number."""
    return FORMS[number % len(FORMS)]


def legend(entries: Sequence[Entry], top: float, width: float) -> tuple[list[Mark], float]:
    """The names in rows, and where the last one ends."""
    marks: list[Mark] = []
    x, y = 16.0, top + SMALL * 1.7
    for entry in entries:
        needed = 30 + width_of(entry.name, SMALL) + 18
        first, *more = wrapped(entry.name, SMALL, width - 62)
        if x > 16 and x + needed > width:
            x, y = 16.0, y + SMALL * 1.5
        if entry.line:
            marks.append(Line(((x, y - 4), (x + 22, y - 4)), entry.color, entry.line, entry.dash))
        if entry.shape:
            marks.append(Shape((x + 11, y - 4), entry.shape, RADIUS, entry.color, "", entry.paint))
        marks.append(Text((x + 30, y), first, SMALL))
        for line in more:
            y += SMALL * 1.3
            marks.append(Text((x + 30, y), line, SMALL))
        x += needed
    return marks, y if entries else top


def below(key: Sequence[str], notes: Sequence[str], height: float, width: float) -> tuple[list[Mark], float]:
    """The key in as many columns as fit, then the notes."""
    marks: list[Mark] = []
    y = height - 8
    if key:
        widest = max(width_of(text, BODY) for text in key) + 24
        columns = max(1, min(len(key), int((width - 32) / widest)))
        lines = (
            list(key) if columns > 1 else [line for text in key for line in wrapped(text, BODY, width - 32)]
        )
        rows = -(-len(lines) // columns)
        for place_, text in enumerate(lines):
            column, row = divmod(place_, rows)
            at = (16 + column * (width - 32) / columns, y + (row + 1) * BODY * 1.4)
            marks.append(Text(at, text, BODY))
        y += rows * BODY * 1.4 + 6
    for note in notes:
        for line in wrapped(note, SMALL, width - 32):
            y += SMALL * 1.4
            marks.append(Text((16, y), line, SMALL, FAINT))
    return marks, y + (14 if key or notes else 8)


def wrapped(text: str, height: float, width: float, bold: bool = False) -> list[str]:
    """A text in lines that fit a width; a word that fits in none is broken."""
    lines: list[str] = []
    for whole in text.split():
        for word in _pieces(whole, height, width, bold):
            if lines and width_of(f"{lines[-1]} {word}", height, bold) <= width:
                lines[-1] += f" {word}"
            else:
                lines.append(word)
    return lines


def _pieces(word: str, height: float, width: float, bold: bool) -> Iterator[str]:
    while width_of(word, height, bold) > width and len(word) > 1:
        fits = next(
            n for n in range(len(word) - 1, 0, -1) if n == 1 or width_of(word[:n], height, bold) <= width
        )
        yield word[:fits]
        word = word[fits:]
    yield word
