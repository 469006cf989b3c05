"""From data to pixels: margins, axes, curves, dots, and labels that can be read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from memwall.plot.bars import layout_bars
from memwall.plot.curves import curve_labels, text_areas
from memwall.plot.figure import Axis, Bars, Dot, Figure, Picture, Point
from memwall.plot.labels import Area, Placed, Wish, around, nearest, place
from memwall.plot.margins import BODY, DASH, RADIUS, SMALL, below, entries, head, legend
from memwall.plot.marks import (
    FEW_POINT,
    MANY_POINTS,
    at_ends,
    description,
    of_clouds,
    of_dot,
    on_curve,
    room_at_ends,
)
from memwall.plot.metrics import width_of
from memwall.plot.scene import FAINT, GRID, INK, Line, Mark, Scene, Shape, Text

WIDTH, HEIGHT, LEAST = 820.0, 560.0, 150.0
"""Pixels of a picture, and of what is within its axes, however much stands above."""
DIRECT_LABELS = 8
"""Dots that have their names beside them; more have numbers, and a key."""
ON_EACH_OTHER, TOUCHING, CROWD = 4.0, 2 * RADIUS, 24
"""Pixels between dots that one cannot tell apart, and in a crowd of so many that touch."""
MOST_TOGETHER = 7
"""Numbers beside one dot that can be read."""
_NOWHERE = 2000.0
"""Pixels that a label without a place counts."""
NEAR = 50.0
"""Pixels within which a name still belongs to its dot at a glance."""


class Frame(NamedTuple):
    """Where data become pixels."""

    area: Area
    x: Axis
    y: Axis

    def at(self, point: Point) -> Point:
        """A point of the data in pixels."""
        across, up = self.x.share(point[0]), self.y.share(point[1])
        left, top, right, bottom = self.area
        return left + across * (right - left), bottom - up * (bottom - top)

    def has(self, point: Point) -> bool:
        """Whether a point is within the axes."""
        return all(
            -_EDGE <= axis.share(value) <= 1 + _EDGE
            for axis, value in zip((self.x, self.y), point, strict=True)
        )


_EDGE = 1 / 512


def layout(picture: Picture, width: float = WIDTH, height: float = HEIGHT) -> Scene:
    """The picture in so many pixels; a key or notes below make it higher."""
    return layout_bars(picture, width) if isinstance(picture, Bars) else framed(picture, width, height)[0]


def framed(figure: Figure, width: float = WIDTH, height: float = HEIGHT) -> tuple[Scene, Frame]:
    """The figure in so many pixels, and where data stand in it."""
    title, top = head(figure.title, figure.subtitle, width)
    names, top = legend(entries(figure), top, width)
    left = 18 + SMALL + max(width_of(text, SMALL) for _, text in figure.y.ticks)
    right = width - max(18, 8 + room_at_ends(figure.curves))
    height = max(height, top + LEAST + 70)
    frame = Frame(Area(left, top + 12, right, height - 58), figure.x, figure.y)
    lines = [tuple(map(frame.at, curve.points)) for curve in figure.curves]
    marks: list[Mark] = [*title, *names, *_axes(frame, width)]
    marks += [
        Line(points, curve.color, 2.4 if curve.strong else 1.3, DASH if curve.dashed else "", curve.label)
        for curve, points in zip(figure.curves, lines, strict=True)
    ]
    marks += [Line((frame.at(link.start), frame.at(link.end)), FAINT, 1.2, "2 3") for link in figure.links]
    clouds = [[frame.at(point) for point in cloud.points] for cloud in figure.clouds]
    marks += of_clouds(figure.clouds, clouds)
    at = [around(frame.at(dot.at), RADIUS + BODY) for dot in figure.dots]
    points = [point for cloud in clouds for point in cloud]
    at += [around(point, FEW_POINT) for point in points[:: 1 + len(points) // MANY_POINTS]]
    beside = curve_labels(figure.curves, lines, frame.area, at)
    labels, dots, key = _dots(
        figure.dots, frame, lines, [area for text in beside for area in text_areas(text)]
    )
    marks += [*beside, *labels]
    marks += at_ends(figure.curves, lines, frame.area)
    for curve, line in zip(figure.curves, lines, strict=True):
        marks += on_curve(curve, line)
    marks += dots
    notes, bottom = below(key, (*figure.notes, *figure.label_notes), height, width)
    return Scene(width, bottom, figure.title, description(figure), (*marks, *notes)), frame


def _axes(frame: Frame, width: float) -> Iterator[Mark]:
    left, top, right, bottom = frame.area
    for value, text in frame.y.ticks:
        y = frame.at((frame.x.low, value))[1]
        yield Line(((left, y), (right, y)), GRID)
        yield Text((left - 7, y + SMALL * 0.35), text, SMALL, FAINT, "end")
    after = 0.0
    for value, text in frame.x.ticks:
        x = frame.at((value, frame.y.low))[0]
        yield Line(((x, top), (x, bottom)), GRID)
        half = width_of(text, SMALL) / 2
        if x - half >= after and x + half <= width:
            yield Text((x, bottom + SMALL * 1.45), text, SMALL, FAINT, "middle")
            after = x + half + 6
    yield Line(((left, top), (left, bottom), (right, bottom)), FAINT)
    yield Text(((left + right) / 2, bottom + SMALL * 3.1), frame.x.title, BODY, INK, "middle")
    yield Text((16, (top + bottom) / 2), frame.y.title, BODY, INK, "middle", angle=-90)


def _dots(
    dots: Sequence[Dot], frame: Frame, lines: Sequence[tuple[Point, ...]], taken: Sequence[Area]
) -> tuple[list[Mark], list[Shape], list[str]]:
    """Labels of dots, the dots, and the key where they have numbers instead of names."""
    shown = [dot for dot in dots if frame.has(dot.at)]
    at = [frame.at(dot.at) for dot in shown]
    areas = [around(point, RADIUS) for point in at]
    named = [dot.label for dot in shown if _named(dot)]
    key: list[str] = []
    texts = [dot.label for dot in shown]
    also = [tuple(map(frame.at, dot.also)) for dot in shown]
    placed = _placed(shown, at, texts, also, frame.area, areas, lines, taken)
    clear = [_clear(p) for p, dot in zip(placed, shown, strict=True) if _named(dot)]
    if len(named) > DIRECT_LABELS or not all(clear):
        numbers = {label: str(number) for number, label in enumerate(dict.fromkeys(named), 1)}
        texts, also = _together(
            [dot.label if dot.minor else numbers.get(dot.label, "") for dot in shown], also, shown, at
        )
        groups = {text: text.split(", ") for text in texts if text}
        texts = [_brief(text) for text in texts]
        placed = _placed(shown, at, texts, also, frame.area, areas, lines, taken)
        marked = {text for text, where in zip(texts, placed, strict=True) if where}
        where_of = {n: _place_of(text, n, marked) for text, group in groups.items() for n in group}
        key = [f"{number}  {label}{where_of.get(number, '')}" for label, number in numbers.items()]
    labels: list[Mark] = []
    labels += [
        Line((where.dot, nearest(where.area, where.dot)), FAINT, 1.0)
        for where in placed
        if where and where.far
    ]
    for dot, where, text in zip(shown, placed, texts, strict=True):
        if where and text:
            size = SMALL if dot.minor else BODY
            labels.append(Text(where.baseline, text, size, FAINT if dot.minor else INK, halo=True))
    order = sorted(
        zip(shown, at, strict=True), key=lambda each: ("diamond", "disc", "ring").index(each[0].shape)
    )
    return labels, [of_dot(dot, point) for dot, point in order], key


def _clear(placed: Placed | None) -> bool:
    """Whether one sees at a glance which dot a name belongs to."""
    return placed is not None and placed.distance < NEAR and not placed.lost


def _together(
    texts: Sequence[str], also: Sequence[tuple[Point, ...]], dots: Sequence[Dot], at: Sequence[Point]
) -> tuple[list[str], list[tuple[Point, ...]]]:
    """Numbers of dots that lie on each other stand together at the first of them.

    Where else they may stand: near dots that are of each of them.
    """
    found, places = list(texts), list(also)
    firsts: list[int] = []
    near = TOUCHING if sum(map(_named, dots)) > CROWD else ON_EACH_OTHER
    for i, dot in enumerate(dots):
        if not _named(dot):
            continue
        first = next((f for f in firsts if _apart(at[f], at[i]) < near), None)
        if first is None:
            firsts.append(i)
        elif texts[i] != texts[first]:
            found[first], found[i] = f"{found[first]}, {texts[i]}", ""
            places[first] = tuple(p for p in places[first] if any(_apart(p, q) < near for q in also[i]))
    return found, places


def _apart(one: Point, other: Point) -> float:
    """How far two points are from each other, across or down."""
    return max(abs(one[0] - other[0]), abs(one[1] - other[1]))


def _brief(text: str) -> str:
    """Numbers that stand together, the first and how many more where they are too many to read."""
    first, *more = text.split(", ")
    return f"{first} +{len(more)}" if len(more) >= MOST_TOGETHER else text


def _place_of(text: str, number: str, marked: Collection[str]) -> str:
    """What the key says of a number that one does not find in the picture itself."""
    brief = _brief(text)
    if brief not in marked:
        return ", no room to mark it"
    first = text.partition(",")[0]
    return f", at {first}" if brief != text and number != first else ""


def _named(dot: Dot) -> bool:
    return bool(dot.label) and not dot.minor


def _placed(
    dots: Sequence[Dot],
    at: Sequence[Point],
    texts: Sequence[str],
    also: Sequence[tuple[Point, ...]],
    area: Area,
    areas: Sequence[Area],
    lines: Sequence[tuple[Point, ...]],
    taken: Sequence[Area],
) -> list[Placed | None]:
    """A place for each label, the minor ones last; from left to right or back, as fewer go far or nowhere."""
    found = []
    for way in (1, -1):
        order = sorted(
            (i for i in range(len(dots)) if texts[i]), key=lambda i: (dots[i].minor, way * at[i][0])
        )
        wishes = [
            Wish(at[i], texts[i], SMALL if dots[i].minor else BODY, dots[i].minor, also[i]) for i in order
        ]
        where = dict(zip(order, place(wishes, area, areas, lines, taken), strict=True))
        found.append([where.get(i) for i in range(len(dots))])
    wanted = [i for i in range(len(dots)) if texts[i] and not dots[i].minor]
    return min(found, key=lambda placed: sum(_trouble(placed[i]) for i in wanted))


def _trouble(placed: Placed | None) -> float:
    """How hard it is to see which dot a label is of."""
    return _NOWHERE if placed is None else placed.distance + (_NOWHERE / 2 if placed.lost else 0)
