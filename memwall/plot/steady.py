"""Numbers that are the same on every machine.

Sums, products, quotients and square roots are: IEEE 754 rounds them in one way. Logarithms and angles vary:
C libraries differ in their last digit, and a pixel rounded from one that stands at a tie, as half of an axis
does, would fall to either side. So what comes of them is rounded at once to multiples of 2^-30: far finer
than a pixel of any picture, far coarser than the difference, and no ratio of the logarithms of round numbers
is at half a step of it. All that follows is arithmetic, and the last step is Python's own printing, which
rounds correctly everywhere.
"""

from __future__ import annotations

import math

STEPS = 1 << 30


def steady(value: float) -> float:
    """The nearest multiple of a step.

    >>> steady(0.49999999999999994), steady(0.5000000000000001)
    (0.5, 0.5)
    """
    return round(value * STEPS) / STEPS


def log_share(value: float, low: float, high: float) -> float:
    """How far a value stands between two others, by their logarithms."""
    return steady(math.log(value / low) / math.log(high / low))


def length(across: float, down: float) -> float:
    """Of a straight line; by a square root, which is the same everywhere, as `hypot` is not."""
    return math.sqrt(across * across + down * down)


def direction(degrees: float) -> tuple[float, float]:
    """One step that way, clockwise from the right."""
    turn = math.radians(degrees)
    return steady(math.cos(turn)), steady(math.sin(turn))


def degrees_of(across: float, down: float) -> float:
    """The angle of a line, clockwise from the right."""
    return steady(math.degrees(math.atan2(down, across)))
