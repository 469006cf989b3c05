"""What stands on curves and at their ends: marks with their values, names, and the points of clouds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memwall.plot.figure import Cloud, Curve, Dot, Figure, Point
from memwall.plot.labels import Area
from memwall.plot.margins import RADIUS, SMALL, form_of
from memwall.plot.metrics import width_of
from memwall.plot.scene import Line, Mark, Shape, Text

RING, CORNER, MARK, TINY, SMALL_POINT, FEW_POINT = 5.0, 4.5, 3.4, 1.4, 1.8, 3.5
MANY_POINTS = 500
"""Points of clouds that are drawn small."""
MOST_MARKS = 40
"""Marks on a curve."""
MOST_SAID = 12
"""Values of a curve that are read out."""
_LINE, _ASIDE = SMALL * 1.15, 3.0
"""Pixels from name to name, and how far one may be from its curve's end without a line to it."""


def some(count: int, most: int) -> list[int]:
    """So many places of a row at most, evenly, the first and the last among them.

    >>> some(5, 3), some(2, 3)
    ([0, 2, 4], [0, 1])
    """
    if count <= most:
        return list(range(count))
    return list(dict.fromkeys((count - 1) * i // (most - 1) for i in range(most)))


def on_curve(curve: Curve, points: Sequence[Point]) -> Iterator[Mark]:
    """A mark at each of the curve's points, or at some where they are many, that says its value."""
    if curve.form is None or not curve.values:
        return
    paint = "solid" if curve.strong else "open"
    for i in some(len(points), MOST_MARKS):
        if not curve.values[i]:
            continue
        radius = MARK if curve.strong else MARK * 0.8
        yield Shape(points[i], form_of(curve.form), radius, curve.color, curve.values[i], paint)


def room_at_ends(curves: Sequence[Curve]) -> float:
    """Pixels that the names at the right ends of curves need."""
    return max((9 + width_of(curve.end, SMALL) for curve in curves if curve.end), default=0.0)


def at_ends(curves: Sequence[Curve], lines: Sequence[tuple[Point, ...]], area: Area) -> Iterator[Mark]:
    """Names at the right ends of curves, moved apart where they would touch; lines lead to those far away."""
    ends = [(line[-1][1], curve) for curve, line in zip(curves, lines, strict=True) if curve.end]
    ends.sort(key=lambda each: each[0])
    for y, (end, curve) in zip(
        apart([end for end, _ in ends], _LINE, area.top, area.bottom), ends, strict=True
    ):
        if abs(y - end) > _ASIDE:
            yield Line(((area.right + 1, end), (area.right + 7, y)), curve.color)
        yield Text((area.right + 9, y + SMALL * 0.35), curve.end, SMALL, curve.color)


def apart(heights: Sequence[float], distance: float, top: float, bottom: float) -> list[float]:
    """Rising heights so far apart at least, each group that has to move around its own middle.

    >>> apart([10, 12, 90], 10, 0, 100), apart([95, 99], 10, 0, 100)
    ([6.0, 16.0, 90.0], [90.0, 100.0])
    """
    groups: list[list[float]] = []  # of heights less what their rank adds: these must not fall
    for rank, height in enumerate(heights):
        groups.append([height - rank * distance])
        while len(groups) > 1 and _mean(groups[-2]) > _mean(groups[-1]):
            last = groups.pop()
            groups[-1] += last
    means = [_mean(group) for group in groups for _ in group]
    least = bottom - (len(heights) - 1) * distance
    return [float(max(min(mean, least), top) + rank * distance) for rank, mean in enumerate(means)]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def of_dot(dot: Dot, at: Point) -> Shape:
    """A dot's form: disc or ring in its own, or the corner of a roof."""
    hover = dot.hover or dot.label
    if dot.shape == "diamond":
        return Shape(at, "diamond", CORNER, dot.color, hover, "open")
    if dot.shape == "ring":
        return Shape(at, form_of(dot.form), RING, dot.color, hover, "open")
    return Shape(at, form_of(dot.form), RADIUS, dot.color, hover)


def of_clouds(clouds: Sequence[Cloud], places: Sequence[Sequence[Point]]) -> Iterator[Mark]:
    """Each cloud's points in its form; those that would lie on each other once."""
    many = sum(map(len, places)) > MANY_POINTS
    for cloud, points in zip(clouds, places, strict=True):
        form = form_of(cloud.color)
        radius = FEW_POINT if not many else TINY if form == "disc" else SMALL_POINT
        for x, y in dict.fromkeys((round(x), round(y)) for x, y in points):
            yield Shape((float(x), float(y)), form, radius, cloud.color, "", "plain")


def description(figure: Figure) -> str:
    """What the picture shows, for those who hear it: curves with some of their values, dots, clouds."""
    curves = []
    for curve in figure.curves:
        said = [value for value in curve.values if value]
        values = ", ".join(said[i] for i in some(len(said), MOST_SAID))
        name = curve.label or curve.name
        curves.append(f"{name}: {values}" if name and values else name or values)
    dots = [dot.hover or dot.label for dot in figure.dots if not dot.minor]
    clouds = [f"{cloud.name}: {cloud.said}" for cloud in figure.clouds if cloud.said]
    return "; ".join(filter(None, [*curves, *dots, *clouds]))
