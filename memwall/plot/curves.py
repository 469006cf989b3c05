"""Labels of slopes and roofs: along a slope, over a roof's right end, where they hide least."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from memwall.plot.figure import Curve, Point
from memwall.plot.labels import Area, along, around
from memwall.plot.margins import SMALL
from memwall.plot.metrics import width_of
from memwall.plot.scene import Text
from memwall.plot.steady import degrees_of, direction, length

NARROW = 500.0
"""Pixels of a picture below which labels are brief."""
_PLACES = 16
_NEAR_DOT, _ON_TEXT = 20, 500
"""What a dot's neighbourhood, and a text, count that a label covers, in points of lines."""


def curve_labels(
    curves: Sequence[Curve], lines: Sequence[tuple[Point, ...]], area: Area, dots: Sequence[Area]
) -> list[Text]:
    """A slope's label along it, a roof's above its right end or below, each clear of the ones before.

    A slope of several GPUs without room goes without: the legend has its rate.

    Args:
        curves: those with a label get one.
        lines: the curves in pixels.
        area: the frame.
        dots: what they had better not cover.
    """
    brief = area.right - area.left < NARROW or len({curve.color for curve in curves if curve.label}) > 1
    found: list[Text] = []
    taken: list[Area] = []
    for number, (curve, points) in enumerate(zip(curves, lines, strict=True)):
        if not curve.label or curve.end:
            continue
        words = curve._replace(label=curve.brief if brief and curve.brief else curve.label)
        others = [each for place, line in enumerate(lines) if place != number for each in along(line)]
        flat = abs(points[1][1] - points[0][1]) < 1
        places = list(_over(points, area, words) if flat else _along(points, words))
        within = [text for text in places if all(each.inside(area) for each in text_areas(text))]
        cost = partial(_cost, texts=taken, dots=dots, lines=others)
        text = min(within or places, key=cost)
        most = _NEAR_DOT if curve.strong else _ON_TEXT  # a main slope has roofs and dots that say whose it is
        if curve.form is not None and cost(text) >= most:
            continue
        found.append(text)
        taken += text_areas(text)
    return found


def _cost(text: Text, texts: Sequence[Area], dots: Sequence[Area], lines: Sequence[Area]) -> int:
    """How much a label would hide, in points of lines."""
    return _ON_TEXT * _covered(text, texts) + _NEAR_DOT * _covered(text, dots) + _covered(text, lines)


def _covered(text: Text, areas: Sequence[Area]) -> int:
    """How many areas a text covers."""
    mine = text_areas(text)
    return sum(any(each.meets(area) for each in mine) for area in areas)


def _over(points: tuple[Point, ...], area: Area, curve: Curve) -> Iterator[Text]:
    """Above a roof or else below, from the right end on to the left."""
    left, y, right = points[0][0], points[1][1], area.right - 4
    room = max(right - left - width_of(curve.label, SMALL), 0)
    for baseline in (y - 8, y + SMALL * 1.2):
        for step in range(int(room / 12) + 1):
            yield Text((right - step * 12, baseline), curve.label, SMALL, curve.color, "end", halo=True)


def _along(points: tuple[Point, ...], curve: Curve) -> Iterator[Text]:
    """Above a slope, from its lower end on, or else below."""
    (x0, y0), (x1, y1) = points[:2]
    long = length(x1 - x0, y1 - y0)
    half = width_of(curve.label, SMALL) / 2 / long
    angle = degrees_of(x1 - x0, y1 - y0)
    up = ((y1 - y0) / long, -(x1 - x0) / long)
    room = 0.92 - 2 * half
    for share in [half + 0.04 + room * step / _PLACES for step in range(_PLACES + 1)] if room > 0 else [0.5]:
        x, y = x0 + (x1 - x0) * share, y0 + (y1 - y0) * share
        for aside in (9, -SMALL * 1.2):
            at = (x + aside * up[0], y + aside * up[1])
            yield Text(at, curve.label, SMALL, curve.color, "middle", angle=angle, halo=True)


def text_areas(text: Text) -> list[Area]:
    """What a text takes; a turned one as a row of squares."""
    if not text.angle:
        return [text_area(text)]
    across, down = direction(text.angle)
    half = text.height / 2
    middle = (text.at[0] + half * 0.7 * down, text.at[1] - half * 0.7 * across)
    width = width_of(text.text, text.height)
    steps = max(1, int(width / half))
    places = [width * (step / steps - 0.5) for step in range(steps + 1)]
    return [around((middle[0] + each * across, middle[1] + each * down), half) for each in places]


def text_area(text: Text) -> Area:
    """The rectangle that a level text takes."""
    width = width_of(text.text, text.height)
    x, y = text.at
    left = x - {"start": 0.0, "middle": width / 2, "end": width}[text.anchor]
    return Area(left, y - text.height, left + width, y + text.height * 0.3)
