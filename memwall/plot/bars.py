"""Bars from data to pixels: parts one after the other, and the line that they have to stay below."""

from __future__ import annotations

from memwall.plot.figure import Axis, Bar, Bars
from memwall.plot.margins import BODY, SMALL, Entry, below, head, legend, wrapped
from memwall.plot.metrics import width_of
from memwall.plot.scene import FAINT, GRID, INK, Box, Line, Mark, Scene, Text


def layout_bars(picture: Bars, width: float) -> Scene:
    """The bars in so many pixels."""
    title, top = head(picture.title, picture.subtitle, width)
    parts = {part.name: part.color for bar in picture.bars for part in bar.parts}
    boxes = [Entry(name, color, 10.0) for name, color in parts.items()]
    names, top = legend(boxes, top, width)
    marks: list[Mark] = [*title, *names]
    left, right = 16.0, width - 24
    bars: list[Mark] = []
    bottom = top + 14
    for bar in picture.bars:
        drawn, bottom = _bar(bar, picture.x, left, right, bottom)
        bars += drawn
    for value, text in picture.x.ticks:
        x = left + picture.x.share(value) * (right - left)
        marks.append(Line(((x, top + 14), (x, bottom)), GRID))
        half = width_of(text, SMALL) / 2
        marks.append(
            Text(
                (min(max(x, left + half), right + 20 - half), bottom + SMALL * 1.4),
                text,
                SMALL,
                FAINT,
                "middle",
            )
        )
    notes, bottom = below((), picture.notes, bottom + 34, width)
    description = "; ".join(
        f"{bar.name}: {', '.join(f'{part.name} {part.text}' for part in bar.parts)} of {bar.limit_text}"
        for bar in picture.bars
    )
    return Scene(width, bottom, picture.title, description, (*marks, *bars, *notes))


def _bar(bar: Bar, axis: Axis, left: float, right: float, top: float) -> tuple[list[Mark], float]:
    """A bar with its name above and its values below, and where the next one begins."""

    def x_of(value: float) -> float:
        return left + axis.share(value) * (right - left)

    limit = x_of(bar.limit)
    heading, lowest = _heading(bar, limit, left, right, top + SMALL * 1.5)
    marks: list[Mark] = [*heading]
    start, tall, y = 0.0, 26.0, lowest + _ABOVE
    marks.append(Box((left, y), limit - left, tall, GRID, f"{bar.name}: {bar.limit_text}"))
    for part in bar.parts:
        x0, x1 = x_of(start), x_of(start + part.value)
        marks.append(Box((x0, y), max(x1 - x0, 0.0), tall, part.color, f"{part.name}: {part.text}"))
        start += part.value
    marks.append(Line(((limit, y - 5), (limit, y + tall + 5)), INK, 2.0))
    values = _values(bar, right + 24)
    for number, line in enumerate(values, 1):
        marks.append(Text((left, y + tall + number * SMALL * 1.3), line, SMALL, FAINT, halo=True))
    return marks, y + _BELOW + (len(values) - 1) * SMALL * 1.3


def _heading(bar: Bar, limit: float, left: float, right: float, first: float) -> tuple[list[Text], float]:
    """The name in as many lines as it needs, the limit in the last or below it, and the last baseline.

    Args:
        bar: whose heading it is.
        limit: where its room ends, in pixels, as are the others.
        left: of the bars.
        right: of the bars; a text may reach a little further.
        first: the baseline of the first line.
    """
    lines = wrapped(bar.name, BODY, right + _FURTHER - left, bold=True)
    over = sum(part.value for part in bar.parts) > bar.limit
    said = f"{bar.limit_text}{': does not fit' if over else ''}"
    last = right + _FURTHER - width_of(said, SMALL, bold=over)
    y = first + (len(lines) - 1) * BODY * 1.3
    beside = left + width_of(lines[-1], BODY, bold=True) + 12 if lines else left
    if beside > last:
        beside, y = left, y + BODY * 1.3
    x = max(beside, limit if limit <= last else limit - width_of(said, SMALL))
    texts = [
        Text((left, first + number * BODY * 1.3), line, BODY, bold=True, halo=True)
        for number, line in enumerate(lines)
    ]
    at = (min(x, max(beside, last)), y - _RAISED)
    texts.append(Text(at, said, SMALL, INK if not over else 1, bold=over, halo=True))
    return texts, y


def _values(bar: Bar, width: float) -> list[str]:
    """The parts in words, in as many lines as they need."""
    return wrapped(", ".join(f"{part.name} {part.text}" for part in bar.parts), SMALL, width - 32) or [""]


_ABOVE, _BELOW, _RAISED, _FURTHER = 6.5, 58.0, 1.5, 20.0
"""Pixels from the heading to the bar, from there to the next bar's place, of the limit's text over the name,
and that a heading may reach beyond the bars.
"""
