"""Where the regime of an operator changes as one dimension grows, to the last whole number.

The terms of the bound are compared at ever larger values, a quarter of a doubling apart; between two values
of which the regimes differ, the place is found by halving. Times are sums and quotients of products of
dimensions, so between two steps there is one change, or none worth finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import exp2
from typing import NamedTuple

from memwall.bound import Bound

STEPS_A_DOUBLING = 4
LARGEST = 1 << 40


class Crossing(NamedTuple):
    """A change of regime, or of what limits."""

    at: int
    """The first value on the far side."""
    below: Bound
    """At the last value before it."""
    above: Bound
    """At `at`."""

    @property
    def changes_regime(self) -> bool:
        """Whether the regime changes, and not only what limits within it."""
        return self.below.regime != self.above.regime


def crossings(bound_at: Callable[[int], Bound], least: int, most: int) -> Iterator[Crossing]:
    """Every change of what limits between two values, in order.

    Args:
        bound_at: the bound at a value.
        least: the first value.
        most: the last.
    """
    at, here = least, bound_at(least)
    for value in _grid(least, most):
        there = bound_at(value)
        while there.limited_by != here.limited_by:
            found = _first_change(bound_at, at, value, here)
            before, after = bound_at(found - 1), bound_at(found)
            yield Crossing(found, before, after)
            at, here = found, after
        at, here = value, there


def _first_change(bound_at: Callable[[int], Bound], low: int, high: int, here: Bound) -> int:
    """The first value after `low` that another term limits."""
    while high - low > 1:
        middle = (low + high) // 2
        if bound_at(middle).limited_by == here.limited_by:
            low = middle
        else:
            high = middle
    return high


def _grid(least: int, most: int) -> Iterator[int]:
    """Values a quarter of a doubling apart, each once, `most` last."""
    value = float(least)
    last = least
    while last < most:
        value *= exp2(1 / STEPS_A_DOUBLING)
        here = min(most, max(last + 1, round(value)))
        yield here
        last, value = here, max(value, float(here))
