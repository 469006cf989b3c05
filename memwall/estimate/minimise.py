"""Minimising a function of a few variables without derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

Vector = numpy.ndarray[Any, numpy.dtype[numpy.float64]]

STEP = 0.25
TOLERANCE = 0.00002
STEPS_PER_VARIABLE = 100


def minimise(
    function: Callable[[Vector], float], start: Vector, restarts: int = 1, tolerance: float = TOLERANCE
) -> Vector:
    """The point with the least value that a simplex finds from `start`.

    The simplex reflects, expands, contracts and shrinks; a restart builds a new one round the best point,
    because a collapsed simplex stops too early.

    Args:
        function: the value at a point.
        start: where to begin; one unit in each direction is a sensible scale.
        restarts: new simplexes after the first.
        tolerance: of the values at the simplex's corners, when it has settled.

    Source: Nelder and Mead 1965, The Computer Journal 7(4), with the usual 1, 2, 1/2, 1/2.
    """
    if not len(start):
        return start
    best = start
    for _ in range(restarts + 1):
        best = _once(function, best, tolerance)
    return best


def _once(function: Callable[[Vector], float], start: Vector, tolerance: float) -> Vector:
    count = len(start)
    points = [start, *(start + STEP * row for row in numpy.eye(count))]
    simplex = sorted(
        ((function(point), index, point) for index, point in enumerate(points)), key=lambda s: s[0]
    )
    for number in range(STEPS_PER_VARIABLE * count):
        if simplex[-1][0] - simplex[0][0] < tolerance:
            break
        centre = numpy.mean([point for _, _, point in simplex[:-1]], axis=0)
        worst = simplex[-1]
        moved = _moved(function, centre, worst, simplex[0][0], simplex[-2][0])
        if moved is None:
            low = simplex[0][2]
            shrunk = [low + (point - low) / 2 for _, _, point in simplex[1:]]
            simplex = [simplex[0], *((function(point), number, point) for point in shrunk)]
        else:
            simplex[-1] = (moved[0], number, moved[1])
        simplex.sort(key=lambda s: s[0])
    return simplex[0][2]


def _moved(
    function: Callable[[Vector], float],
    centre: Vector,
    worst: tuple[float, int, Vector],
    lowest: float,
    second: float,
) -> tuple[float, Vector] | None:
    """The worst point's better place; None if the simplex must shrink."""
    reflected = centre + (centre - worst[2])
    value = function(reflected)
    if value < lowest:
        far = centre + 2 * (centre - worst[2])
        far_value = function(far)
        return (far_value, far) if far_value < value else (value, reflected)
    if value < second:
        return value, reflected
    towards = reflected if value < worst[0] else worst[2]
    contracted = centre + (towards - centre) / 2
    contracted_value = function(contracted)
    return (contracted_value, contracted) if contracted_value < min(value, worst[0]) else None
