"""Labels that overlap neither each other nor the dots, and lines no more than they must."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from memwall.plot.figure import Point
from memwall.plot.metrics import width_of
from memwall.plot.steady import direction, length


class Area(NamedTuple):
    """A rectangle by its edges."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Area) -> bool:
        """Whether they overlap."""
        return (
            self.left < other.right + _GAP
            and other.left < self.right + _GAP
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def inside(self, other: Area) -> bool:
        """Whether it lies within."""
        return (
            self.left >= other.left
            and self.right <= other.right
            and self.top >= other.top
            and self.bottom <= other.bottom
        )


class Wish(NamedTuple):
    """A label that wants to stand near a point."""

    at: Point
    text: str
    height: float
    minor: bool = False
    also: tuple[Point, ...] = ()
    """Other points that it may stand near, where the way to the first is far."""


class Placed(NamedTuple):
    """Where a label stands."""

    area: Area
    baseline: Point
    distance: float
    dot: Point
    """What it stands near."""
    lost: bool = False
    """Far, and the line to it cannot be followed."""

    @property
    def far(self) -> bool:
        """So far from its point that a line should join them."""
        return self.distance > _FAR


_GAP = 3
"""Pixels between two texts side by side."""
_DISTANCES = (9, 14, 22, 32, 44, 58, 74, 92, 112, 136, 164, 196)
_DIRECTIONS = tuple(
    direction(degrees) for degrees in (-35, 35, -145, 145, -90, 90, 0, 180, -60, 60, -120, 120)
)
_FAR = 20
_ENOUGH = 44
"""How far a label looks for a place that is on no line, where nearer ones are."""
_LOST = 1 << 10
"""What a line to a label that cannot be followed counts, in points of lines that the label covers."""


def around(at: Point, radius: float) -> Area:
    """The square around a dot."""
    return Area(at[0] - radius, at[1] - radius, at[0] + radius, at[1] + radius)


def place(
    wishes: Sequence[Wish],
    frame: Area,
    dots: Sequence[Area],
    lines: Sequence[tuple[Point, ...]],
    taken: Sequence[Area] = (),
) -> list[Placed | None]:
    """A place for each label; None where there is no room that is free.

    Labels are placed in order, each at the nearest place that is free of labels and dots, beside its dot if
    there is one, of those on the fewest lines; further away a line leads to it, which has to be readable too
    as long as there is such a place.

    Args:
        wishes: the labels.
        frame: what they have to stay in.
        dots: what they must not cover.
        lines: what they had better not cover.
        taken: where other text stands.
    """
    placed: list[Placed | None] = []
    ground = Ground(frame, list(dots), list(taken), [], [area for line in lines for area in along(line)])
    for wish in wishes:
        found = _best(wish, ground)
        placed.append(found)
        if found:
            ground.texts.append(found.area)
            ground.leaders.extend(_leader(found))
    return placed


class Ground(NamedTuple):
    """What is in a picture before the next label."""

    frame: Area
    dots: list[Area]
    texts: list[Area]
    leaders: list[Area]
    """Lines from dots to labels far from them."""
    lines: list[Area]


def _best(wish: Wish, ground: Ground) -> Placed | None:
    """A place near the first of its points, or where that is far, near the one that it can be nearest to."""
    first = _near(wish, ground)
    if not wish.also or (first and not first.far):
        return first
    places = [first, *(_near(wish._replace(at=at), ground) for at in wish.also)]
    return min(filter(None, places), key=lambda place: (place.lost, place.distance), default=None)


def _near(wish: Wish, ground: Ground) -> Placed | None:
    """The best place near its first point."""
    occupied = [*ground.texts, *ground.dots, *ground.leaders]
    fallback: tuple[int, Placed] | None = None  # with its faults
    for distance in _DISTANCES[: 3 if wish.minor else None]:
        for way in _DIRECTIONS:
            area = _area(wish, distance, way)
            if not area.inside(ground.frame) or any(area.meets(other) for other in occupied):
                continue
            faults = sum(area.meets(point) for point in ground.lines)
            found = Placed(area, (area.left, area.bottom - wish.height * 0.22), distance, wish.at)
            if found.far and not _readable(_leader(found), ground):
                faults, found = faults + _LOST, found._replace(lost=True)
            if not faults:
                return found
            if fallback is None or faults < fallback[0]:
                fallback = (faults, found)
        if fallback and fallback[0] < _LOST and distance >= _ENOUGH:
            break
    return fallback[1] if fallback else None


def _area(wish: Wish, distance: float, way: Point) -> Area:
    """The label's rectangle, its nearest edge or corner in that direction."""
    width, height = width_of(wish.text, wish.height), wish.height * 1.15
    dx, dy = way
    x, y = wish.at[0] + distance * dx, wish.at[1] + distance * dy
    left = x - width * (1 - dx) / 2 if abs(dx) < 0.5 else (x if dx > 0 else x - width)
    top = y - height * (1 - dy) / 2
    return Area(left, top, left + width, top + height)


def nearest(area: Area, point: Point) -> Point:
    """The point of an area that is closest to another."""
    return min(max(point[0], area.left), area.right), min(max(point[1], area.top), area.bottom)


def _leader(placed: Placed) -> list[Area]:
    """What the line from a dot to its label takes; nothing where there is none."""
    return along((placed.dot, nearest(placed.area, placed.dot))) if placed.far else []


def _readable(leader: Sequence[Area], ground: Ground) -> bool:
    """Whether the line to a label crosses no text and no other such line, and does not run along a curve."""
    if any(point.meets(other) for point in leader for other in (*ground.texts, *ground.leaders)):
        return False
    hidden = sum(any(point.meets(other) for other in ground.lines) for point in leader)
    return 2 * hidden < len(leader)


def along(line: tuple[Point, ...]) -> list[Area]:
    """What a line takes: small squares, a few pixels apart."""
    dense = []
    for (x0, y0), (x1, y1) in pairwise(line):
        steps = max(1, math.ceil(length(x1 - x0, y1 - y0) / 4))
        dense += [(x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps) for i in range(steps + 1)]
    return [around(point, 1.0) for point in dense]
