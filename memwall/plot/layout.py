"""From data to pixels: margins, axes, curves, dots, and labels that can be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from memwall.plot.bars import layout_bars
from memwall.plot.figure import Axis, Bars, Cloud, Curve, Dot, Figure, Picture, Point
from memwall.plot.labels import Area, Placed, Wish, around, place
from memwall.plot.margins import BODY, RADIUS, SMALL, below, head, legend
from memwall.plot.metrics import width_of
from memwall.plot.scene import FAINT, GRID, INK, Line, Mark, Scene, Shape, Text
from memwall.plot.steady import degrees_of, direction, length

WIDTH, HEIGHT = 820.0, 560.0
RING, CORNER, POINT = 5.0, 4.5, 1.4
DIRECT_LABELS = 8
"""Dots that have their names beside them; more have numbers, and a key."""
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
    beside = list(_curve_labels(figure.curves, lines, frame.area, at))
    marks += [Line((frame.at(link.start), frame.at(link.end)), FAINT, 1.2, "2 3") for link in figure.links]
    dots, key = _dots(figure.dots, frame, lines, [text_area(text) for text in beside])
    marks += [*beside, *dots]
    notes, bottom = below(key, figure.notes, height, width)
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


def _curve_labels(
    curves: Sequence[Curve], lines: Sequence[tuple[Point, ...]], area: Area, dots: Sequence[Area]
) -> Iterator[Text]:
    """A slope's label along it where there are no dots, a roof's above its right end."""
    ends: list[Area] = []
    for curve, points in zip(curves, lines, strict=True):
        if not curve.label:
            continue
        (x0, y0), (x1, y1) = points[0], points[1]
        if abs(y1 - y0) < 1:
            text = _over(x0, area.right - 4, y1, curve, [*dots, *ends])
            ends.append(text_area(text))
            yield text
            continue
        yield _along((x0, y0), (x1, y1), curve, dots)


def _over(left: float, right: float, y: float, curve: Curve, taken: Sequence[Area]) -> Text:
    """A roof's label, above it or else below, as far right as nothing is in its way."""
    width = width_of(curve.label, SMALL)
    ends = [right - step * 12 for step in range(int(max(right - left - width, 0) / 12) + 1)]
    places = [
        Text((end, baseline), curve.label, SMALL, curve.color, "end", halo=True)
        for baseline in (y - 8, y + SMALL * 1.2)
        for end in ends
    ]
    return min(places, key=lambda text: sum(text_area(text).meets(each) for each in taken))


def _along(start: Point, end: Point, curve: Curve, dots: Sequence[Area]) -> Text:
    """A label above a slope, where the fewest dots are; of equal places the lowest."""
    (x0, y0), (x1, y1) = start, end
    long = length(x1 - x0, y1 - y0)
    half = width_of(curve.label, SMALL) / 2 / long
    angle = degrees_of(x1 - x0, y1 - y0)
    up = ((y1 - y0) / long, -(x1 - x0) / long)

    def text_at(along: float) -> Text:
        x, y = x0 + (x1 - x0) * along, y0 + (y1 - y0) * along
        at = (x + 9 * up[0], y + 9 * up[1])
        return Text(at, curve.label, SMALL, curve.color, "middle", angle=angle, halo=True)

    if half >= 0.45:
        return text_at(0.5)
    places = [text_at(half + 0.04 + (0.92 - 2 * half) * step / 12) for step in range(13)]
    return min(places, key=lambda text: sum(text_area(text).meets(dot) for dot in dots))


def text_area(text: Text) -> Area:
    """The rectangle that a text takes, turned ones generously."""
    width = width_of(text.text, text.height)
    x, y = text.at
    if text.angle:
        across, down = direction(text.angle)
        dx, dy = width / 2 * abs(across), width / 2 * abs(down)
        return Area(x - dx, y - dy - text.height, x + dx, y + dy)
    left = x - {"start": 0.0, "middle": width / 2, "end": width}[text.anchor]
    return Area(left, y - text.height, left + width, y + text.height * 0.3)


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
    near = [p is not None and p.distance < NEAR for p, dot in zip(placed, shown, strict=True) if _named(dot)]
    if len(named) > DIRECT_LABELS or not all(near):
        numbers = {label: str(number) for number, label in enumerate(dict.fromkeys(named), 1)}
        key = [f"{number}  {label}" for label, number in numbers.items()]
        texts = [dot.label if dot.minor else numbers.get(dot.label, "") for dot in shown]
        placed = _placed(shown, at, texts, frame.area, areas, lines, taken)
    marks: list[Mark] = []
    for point, where in zip(at, placed, strict=True):
        if where and where.far:
            marks.append(Line((point, _nearest(where.area, point)), FAINT, 1.0))
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


def _clouds(clouds: Sequence[Cloud], frame: Frame) -> Iterator[Mark]:
    """Each cloud's points; those that would lie on each other once."""
    for cloud in clouds:
        places = dict.fromkeys((round(x), round(y)) for x, y in map(frame.at, cloud.points))
        yield from (Shape((float(x), float(y)), "point", POINT, cloud.color) for x, y in places)


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
    """A place for each label, the minor ones last."""
    order = sorted(range(len(dots)), key=lambda i: (dots[i].minor, at[i][0]))
    wishes = [
        Wish(at[i], texts[i], SMALL if dots[i].minor else BODY, dots[i].minor) for i in order if texts[i]
    ]
    found = iter(place(wishes, area, areas, lines, taken))
    placed: list[Placed | None] = [None] * len(dots)
    for i in order:
        if texts[i]:
            placed[i] = next(found)
    return placed


def _nearest(area: Area, point: Point) -> Point:
    return min(max(point[0], area.left), area.right), min(max(point[1], area.top), area.bottom)


def _description(figure: Figure) -> str:
    """What the picture shows, for those who hear it."""
    curves = [curve.label or curve.name for curve in figure.curves]
    dots = [dot.hover or dot.label for dot in figure.dots if not dot.minor]
    return "; ".join(filter(None, [*curves, *dots]))
