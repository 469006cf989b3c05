"""Bars from data to pixels: parts one after the other, and the line that they have to stay below."""

from __future__ import annotations

from collections.abc import Iterator

from memwall.plot.figure import Axis, Bar, Bars, Curve
from memwall.plot.margins import BODY, SMALL, below, head, legend
from memwall.plot.metrics import width_of
from memwall.plot.scene import FAINT, GRID, INK, Box, Line, Mark, Scene, Text


def layout_bars(picture: Bars, width: float) -> Scene:
    """The bars in so many pixels."""
    title, top = head(picture.title, picture.subtitle, width)
    parts = {part.name: part.color for bar in picture.bars for part in bar.parts}
    curves = [Curve((), color, name) for name, color in parts.items()]
    names, top = legend(curves, (), top, width)
    marks: list[Mark] = [*title, *names]
    left, right, each = 16.0, width - 24, 84.0
    bottom = top + 14 + each * len(picture.bars)
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
    for number, bar in enumerate(picture.bars):
        marks += _bar(bar, picture.x, left, right, top + 14 + each * number)
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
    values = ", ".join(f"{part.name} {part.text}" for part in bar.parts)
    yield Text((left, y + tall + SMALL * 1.3), values, SMALL, FAINT, halo=True)
    over = start > bar.limit
    text = f"{bar.limit_text}{': does not fit' if over else ''}"
    half = width_of(text, SMALL)
    anchor, x = ("end", limit) if limit + half > right + 20 else ("start", limit)
    yield Text((x, y - 8), text, SMALL, INK if not over else 1, anchor, bold=over, halo=True)
