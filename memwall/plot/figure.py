"""What a picture shows, before any pixel: axes, curves, dots and bars in the units of the data."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from memwall.plot.steady import log_share
from memwall.units import MEBI, MEGA, scaled, scaled_binary, significant

Point = tuple[float, float]


class Axis(NamedTuple):
    """One direction of a picture."""

    title: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = True

    def share(self, value: float) -> float:
        """How far along the axis a value stands, 0 to 1 within it."""
        if not self.log:
            return (value - self.low) / (self.high - self.low)
        return log_share(value, self.low, self.high)


class Curve(NamedTuple):
    """Straight lines from point to point."""

    points: tuple[Point, ...]
    color: int
    name: str = ""
    """In the legend; none if empty."""
    label: str = ""
    """Beside the curve."""
    brief: str = ""
    """The same where there is little room, or where its colour says whose it is."""
    strong: bool = True
    dashed: bool = False
    end: str = ""
    """At its right end, where colours alone would tell it from others."""
    form: int | None = None
    """Of the marks at its points, one of the forms of dots; None: it has none."""
    values: tuple[str, ...] = ()
    """What is said of each of its points; one of which nothing is said has no mark."""
    key: str = ""
    """Its name where lines have one width and no colour; by default as in the legend."""


class Dot(NamedTuple):
    """One point with its label."""

    at: Point
    color: int
    label: str
    hover: str = ""
    shape: str = "disc"
    """disc: predicted; ring: measured; diamond: a corner of the roof."""
    minor: bool = False
    """Labelled only where there is room."""
    form: int = 0
    """Of a disc or a ring: tells what colours tell too."""
    also: tuple[Point, ...] = ()
    """Dots that its label is of too, beside which it may stand where there is no room near this one."""


class Link(NamedTuple):
    """A thin line between two dots that belong together."""

    start: Point
    end: Point


class Cloud(NamedTuple):
    """Many points of one kind, too many to name."""

    points: tuple[Point, ...]
    color: int
    name: str
    said: str = ""
    """What they come to, for those who hear the picture."""


class Figure(NamedTuple):
    """Curves and dots over two axes."""

    title: str
    subtitle: str
    x: Axis
    y: Axis
    curves: tuple[Curve, ...]
    dots: tuple[Dot, ...] = ()
    links: tuple[Link, ...] = ()
    notes: tuple[str, ...] = ()
    clouds: tuple[Cloud, ...] = ()
    label_notes: tuple[str, ...] = ()
    """On labels, which a terminal has in its key."""
    plain_subtitle: str = ""
    """The subtitle where lines have one width and no colour, if it differs."""


class Part(NamedTuple):
    """A stretch of a bar."""

    name: str
    value: float
    color: int
    text: str


class Bar(NamedTuple):
    """Parts one after the other, against what there is room for."""

    name: str
    parts: tuple[Part, ...]
    limit: float
    limit_text: str


class Bars(NamedTuple):
    """Bars under each other, on one scale."""

    title: str
    subtitle: str
    x: Axis
    bars: tuple[Bar, ...]
    notes: tuple[str, ...] = ()


Picture = Figure | Bars


def decades(low: float, high: float, text: Callable[[float], str]) -> tuple[tuple[float, str], ...]:
    """Ticks at powers of ten; with twos and fives where there are few decades, every other where many.

    Where even those are fewer than three, they stand in even steps.
    """
    first, last = math.floor(math.log10(low) + _SLACK), math.ceil(math.log10(high) - _SLACK)
    few = last - first <= _FEW_DECADES or high < low * _SPARSE
    within = (1, 2, 5) if few else (1,)
    every = 1 + (last - first) // _MANY_DECADES
    values = [step * 10.0**power for power in range(first, last + 1, every) for step in within]
    values = [value for value in values if low * _ABOVE <= value <= high / _ABOVE]
    if len(values) < LEAST_TICKS:
        values = _in_steps(low, high)
    return tuple((value, text(value)) for value in values)


LEAST_TICKS = 3


def _in_steps(low: float, high: float) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten, of the largest step that leaves enough."""
    power = math.floor(math.log10(high - low) + _SLACK)
    for step in (each * 10.0**p for p in (power, power - 1, power - 2) for each in (5, 2, 1)):
        first, last = math.ceil(low / step * _ABOVE), math.floor(high / step / _ABOVE)
        if last - first + 1 >= LEAST_TICKS:
            return [place * step for place in range(first, last + 1)]
    return [low, high]  # pragma: no cover - a hundredth of the span always leaves enough


_SLACK = 1 / (1 << 20)
_ABOVE = 1 - _SLACK
"""Rounding that a tick is not lost to."""
_FEW_DECADES, _MANY_DECADES = 3, 9
_SPARSE = 400
"""A span that may have two powers of ten in it, which say too little between them."""


def doublings(values: Sequence[int], most: int = 9) -> tuple[tuple[float, str], ...]:
    """Ticks at some of the values of a row of doublings; of two, at whole numbers between them too."""
    every = -(-len(values) // most)
    shown = [float(value) for value in values[::every]]
    if len(shown) < LEAST_TICKS:
        between = decades(float(values[0]), float(values[-1]), str)
        shown = sorted({*shown, *(value for value, _ in between if value == int(value))})
    return tuple((value, compact(value)) for value in shown)


def compact(value: float) -> str:
    """A number as an axis has it: 4096, 131072, 10 M, 1 G; binary where it is a round one there: 16 Mi.

    >>> [compact(each) for each in (0.5, 4096, 131072, 10_000_000, 16_777_216, 1e9)]
    ['0.5', '4096', '131072', '10 M', '16 Mi', '1 G']
    """
    if value < MEGA:
        return significant(value, 6)
    if value == int(value) and int(value) % MEBI == 0:
        return scaled_binary(value, "").strip()
    return scaled(value, "").strip()


def evenly(
    high: float, text: Callable[[float], str], unit: float = 1.0, about: int = 6
) -> tuple[tuple[float, str], ...]:
    """Ticks from zero on in steps of 1, 2 or 5 times a power of ten of a unit."""
    rough = high / unit / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(each * power for each in (1, 2, 5, 10) if each * power >= rough * _ABOVE)
    values = [place * step * unit for place in range(int(high / unit / step * (1 + _SLACK)) + 1)]
    return tuple((value, text(value)) for value in values)
