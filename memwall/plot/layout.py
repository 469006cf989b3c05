"""From data to pixels: margins, axes, curves, dots, and labels that can be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from memwall.plot.bars import layout_bars
from memwall.plot.curves import curve_labels, text_areas
from memwall.plot.figure import Axis, Bars, Cloud, Curve, Dot, Figure, Picture, Point
from memwall.plot.labels import Area, Placed, Wish, around, nearest, place
from memwall.plot.margins import BODY, RADIUS, SMALL, below, head, legend
from memwall.plot.metrics import width_of
from memwall.plot.scene import FAINT, GRID, INK, Line, Mark, Scene, Shape, Text

WIDTH, HEIGHT = 820.0, 560.0
RING, CORNER, POINT, FEW_POINT = 5.0, 4.5, 1.4, 3.5
MANY_POINTS = 500
"""Points of clouds that are drawn small."""
DIRECT_LABELS = 8
"""Dots that have their names beside them; more have numbers, and a key."""
ON_EACH_OTHER = 4.0
"""Pixels between dots that one cannot tell apart."""
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
    named = [curve for curve in figure.curves if curve.name]
    named += [Curve((), cloud.color, cloud.name) for cloud in figure.clouds]
    names, top = legend(named, figure.dots, top, width)
    left = 18 + SMALL + max(width_of(text, SMALL) for _, text in figure.y.ticks)
    right = width - 18
    frame = Frame(Area(left, top + 12, right, height - 58), figure.x, figure.y)
    lines = [tuple(map(frame.at, curve.points)) for curve in figure.curves]
    marks: list[Mark] = [*title, *names, *_axes(frame, width)]
    marks += [
        Line(points, curve.color, 2.4 if curve.strong else 1.3, "6 4" if curve.dashed else "", curve.label)
        for curve, points in zip(figure.curves, lines, strict=True)
    ]
    marks += _clouds(figure.clouds, frame)
    at = [around(frame.at(dot.at), RADIUS + BODY) for dot in figure.dots]
    points = [point for cloud in figure.clouds for point in cloud.points]
    at += [around(frame.at(point), FEW_POINT) for point in points[:: 1 + len(points) // MANY_POINTS]]
    beside = curve_labels(figure.curves, lines, frame.area, at)
    marks += [Line((frame.at(link.start), frame.at(link.end)), FAINT, 1.2, "2 3") for link in figure.links]
    dots, key = _dots(figure.dots, frame, lines, [area for text in beside for area in text_areas(text)])
    marks += [*beside, *dots]
    notes, bottom = below(key, (*figure.notes, *figure.label_notes), height, width)
    return Scene(width, bottom, figure.title, _description(figure), (*marks, *notes)), frame


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
) -> tuple[list[Mark], list[str]]:
    """Dots and their labels; the key where they have numbers instead of names."""
    shown = [dot for dot in dots if frame.has(dot.at)]
    at = [frame.at(dot.at) for dot in shown]
    areas = [around(point, RADIUS) for point in at]
    named = [dot.label for dot in shown if _named(dot)]
    key: list[str] = []
    texts = [dot.label for dot in shown]
    placed = _placed(shown, at, texts, frame.area, areas, lines, taken)
    clear = [_clear(p) for p, dot in zip(placed, shown, strict=True) if _named(dot)]
    if len(named) > DIRECT_LABELS or not all(clear):
        numbers = {label: str(number) for number, label in enumerate(dict.fromkeys(named), 1)}
        key = [f"{number}  {label}" for label, number in numbers.items()]
        texts = _together(
            [dot.label if dot.minor else numbers.get(dot.label, "") for dot in shown], shown, at
        )
        placed = _placed(shown, at, texts, frame.area, areas, lines, taken)
    marks: list[Mark] = []
    for point, where in zip(at, placed, strict=True):
        if where and where.far:
            marks.append(Line((point, nearest(where.area, point)), FAINT, 1.0))
    radius = {"disc": RADIUS, "ring": RING, "diamond": CORNER}
    order = sorted(
        zip(shown, at, strict=True), key=lambda each: ("diamond", "disc", "ring").index(each[0].shape)
    )
    marks += [
        Shape(point, dot.shape, radius[dot.shape], dot.color, dot.hover or dot.label) for dot, point in order
    ]
    for dot, where, text in zip(shown, placed, texts, strict=True):
        if where and text:
            size = SMALL if dot.minor else BODY
            marks.append(Text(where.baseline, text, size, FAINT if dot.minor else INK, halo=True))
    return marks, key


def _clear(placed: Placed | None) -> bool:
    """Whether one sees at a glance which dot a name belongs to."""
    return placed is not None and placed.distance < NEAR and not placed.lost


def _together(texts: Sequence[str], dots: Sequence[Dot], at: Sequence[Point]) -> list[str]:
    """Numbers of dots that lie on each other stand together at the first of them."""
    found = list(texts)
    firsts: list[int] = []
    for i, (dot, (x, y)) in enumerate(zip(dots, at, strict=True)):
        if not _named(dot):
            continue
        first = next((f for f in firsts if max(abs(at[f][0] - x), abs(at[f][1] - y)) < ON_EACH_OTHER), None)
        if first is None:
            firsts.append(i)
        elif texts[i] != texts[first]:
            found[first], found[i] = f"{found[first]}, {texts[i]}", ""
    return found


def _clouds(clouds: Sequence[Cloud], frame: Frame) -> Iterator[Mark]:
    """Each cloud's points; those that would lie on each other once."""
    radius = POINT if sum(len(cloud.points) for cloud in clouds) > MANY_POINTS else FEW_POINT
    for cloud in clouds:
        places = dict.fromkeys((round(x), round(y)) for x, y in map(frame.at, cloud.points))
        yield from (Shape((float(x), float(y)), "point", radius, cloud.color) for x, y in places)


def _named(dot: Dot) -> bool:
    return bool(dot.label) and not dot.minor


def _placed(
    dots: Sequence[Dot],
    at: Sequence[Point],
    texts: Sequence[str],
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
        wishes = [Wish(at[i], texts[i], SMALL if dots[i].minor else BODY, dots[i].minor) for i in order]
        where = dict(zip(order, place(wishes, area, areas, lines, taken), strict=True))
        found.append([where.get(i) for i in range(len(dots))])
    wanted = [i for i in range(len(dots)) if texts[i] and not dots[i].minor]
    return min(found, key=lambda placed: sum(_trouble(placed[i]) for i in wanted))


def _trouble(placed: Placed | None) -> float:
    """How hard it is to see which dot a label is of."""
    return _NOWHERE if placed is None else placed.distance + (_NOWHERE / 2 if placed.lost else 0)


def _description(figure: Figure) -> str:
    """What the picture shows, for those who hear it."""
    curves = [curve.label or curve.name for curve in figure.curves]
    dots = [dot.hover or dot.label for dot in figure.dots if not dot.minor]
    return "; ".join(filter(None, [*curves, *dots]))
