"""Bars from data to pixels: parts one after the other, and the line that they have to stay below."""

from __future__ import annotations

from collections.abc import Iterator

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
    tops = [top + 14]
    for bar in picture.bars:
        tops.append(tops[-1] + EACH + (len(_values(bar, width)) - 1) * SMALL * 1.3)
    bottom = tops[-1]
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
    for bar, start in zip(picture.bars, tops, strict=False):
        marks += _bar(bar, picture.x, left, right, start)
    notes, bottom = below((), picture.notes, bottom + 34, width)
    description = "; ".join(
        f"{bar.name}: {', '.join(f'{part.name} {part.text}' for part in bar.parts)} of {bar.limit_text}"
        for bar in picture.bars
    )
    return Scene(width, bottom, picture.title, description, (*marks, *notes))


def _bar(bar: Bar, axis: Axis, left: float, right: float, top: float) -> Iterator[Mark]:
    def x_of(value: float) -> float:
        return left + axis.share(value) * (right - left)

    yield Text((left, top + SMALL * 1.5), bar.name, BODY, bold=True, halo=True)
    limit = x_of(bar.limit)
    start, tall, y = 0.0, 26.0, top + 26
    yield Box((left, y), limit - left, tall, GRID, f"{bar.name}: {bar.limit_text}")
    for part in bar.parts:
        x0, x1 = x_of(start), x_of(start + part.value)
        yield Box((x0, y), max(x1 - x0, 0.0), tall, part.color, f"{part.name}: {part.text}")
        start += part.value
    yield Line(((limit, y - 5), (limit, y + tall + 5)), INK, 2.0)
    for number, line in enumerate(_values(bar, right + 24), 1):
        yield Text((left, y + tall + number * SMALL * 1.3), line, SMALL, FAINT, halo=True)
    over = start > bar.limit
    text = f"{bar.limit_text}{': does not fit' if over else ''}"
    first = left + width_of(bar.name, BODY, bold=True) + 12  # after the name
    last = right + 20 - width_of(text, SMALL, bold=over)
    x = max(first, limit if limit <= last else limit - width_of(text, SMALL))
    yield Text((min(x, max(first, last)), y - 8), text, SMALL, INK if not over else 1, bold=over, halo=True)


def _values(bar: Bar, width: float) -> list[str]:
    """The parts in words, in as many lines as they need."""
    return wrapped(", ".join(f"{part.name} {part.text}" for part in bar.parts), SMALL, width - 32) or [""]


EACH = 84.0
"""Pixels of a bar with its name and one line of values."""
