"""What stands around every picture: its title, its legend above, its key and notes below."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.plot.figure import Curve, Dot
from memwall.plot.metrics import width_of
from memwall.plot.scene import FAINT, INK, Line, Mark, Shape, Text

TITLE, BODY, SMALL = 18.0, 14.0, 13.0
RADIUS = 5.5


def head(title: str, subtitle: str, width: float) -> tuple[list[Mark], float]:
    """Title and subtitle, in as many lines as they need, and where the last one ends."""
    marks: list[Mark] = []
    y = 10.0
    for text, size, bold in ((title, TITLE, True), (subtitle, SMALL, False)):
        for line in wrapped(text, size, width - 32):
            y += size * 1.25
            marks.append(Text((16, y), line, size, INK if bold else FAINT, bold=bold))
    return marks, y


def legend(
    curves: Sequence[Curve], dots: Sequence[Dot], top: float, width: float
) -> tuple[list[Mark], float]:
    """Names of curves, and what discs and rings are where there are both."""
    entries = [("line" if c.points else "box", c.color, c.name) for c in curves]
    if any(dot.shape == "ring" for dot in dots):
        entries += [("disc", -1, "predicted: the bound"), ("ring", -1, "measured")]
    marks: list[Mark] = []
    x, y = 16.0, top + SMALL * 1.7
    for kind, color, name in entries:
        needed = 30 + width_of(name, SMALL) + 18
        first, *more = wrapped(name, SMALL, width - 62)
        if x > 16 and x + needed > width:
            x, y = 16.0, y + SMALL * 1.5
        paint = FAINT if color < 0 else color
        if kind in ("disc", "ring"):
            marks.append(Shape((x + 11, y - 4), kind, RADIUS, paint))
        else:
            marks.append(Line(((x, y - 4), (x + 22, y - 4)), paint, 2.4 if kind == "line" else 10.0))
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


def wrapped(text: str, height: float, width: float) -> list[str]:
    """A text in lines that fit a width."""
    lines: list[str] = []
    for word in text.split():
        if lines and width_of(f"{lines[-1]} {word}", height) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines
