"""Many points through formulas that were written for one.

A formula may compare its dimensions: a window against a context, heads against KV heads. On arrays such a
comparison may hold for some points and not for others. Then the points are split in two and each half is
evaluated again, so that every branch of every formula, and every refusal, is that of the single answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from memwall.errors import NotAvailable, UsageError

Array: TypeAlias = np.ndarray[Any, Any]
Values: TypeAlias = Mapping[str, Any]
"""Dimensions by name: an int, or `Points` that fit together in shape."""


class Mixed(Exception):
    """A comparison that holds for some points only."""

    def __init__(self, holds: Array) -> None:
        super().__init__("a comparison holds for some points only")
        self.holds = holds


class Points(np.ndarray[Any, Any]):
    """Values of one dimension at many points; true or false only where all agree, equal if all are.

    >>> bool(points([1, 2]) < 3), bool(points([1, 2]) > 3)
    (True, False)
    """

    def __bool__(self) -> bool:
        holds = np.asarray(self) != 0
        if holds.all():
            return True
        if not holds.any():
            return False
        raise Mixed(holds)

    def __hash__(self) -> int:  # type: ignore[override]  # equal launches of a pass are merged by it
        return hash((self.shape, self.tobytes()))

    def __index__(self) -> int:
        """The value that all have; until then they are halved."""
        values = np.unique(np.asarray(self))
        if len(values) > 1:
            raise Mixed(np.asarray(self) <= values[(len(values) - 1) // 2])
        return int(values[0])

    def __round__(self, digits: int | None = None) -> Points:
        return np.round(self, digits or 0).view(Points)

    def __format__(self, spec: str) -> str:
        """The first point: what a message takes as its example."""
        first = float(np.asarray(self).ravel()[0])
        return format(int(first) if first.is_integer() else first, spec)

    def __str__(self) -> str:
        return format(self, "")


def points(values: Any) -> Points:
    """Values as points, in float64: whole numbers are exact up to 2^53."""
    return np.asarray(values, dtype=np.float64).view(Points)


class Part(NamedTuple):
    """Points that take the same path through the formulas."""

    where: Array | None
    """Their places among all; None: all of them."""
    columns: Mapping[str, Any]
    """Empty if they were refused."""
    refusal: UsageError | NotAvailable | None = None


def evaluate(
    values: Values, answer: Callable[[Values], Mapping[str, Any]], shape: tuple[int, ...]
) -> list[Part]:
    """An answer at every point, in as few parts as the formulas' branches need.

    Args:
        values: the dimensions; arrays broadcast to `shape`.
        answer: columns of the points, from formulas on the dimensions.
        shape: of all points together.
    """
    try:
        return [Part(None, answer(values))]
    except (UsageError, NotAvailable) as error:
        return [Part(None, {}, error)]
    except Mixed as mixed:
        holds = np.broadcast_to(mixed.holds, shape).ravel()
    along = {name: flat(value, shape) for name, value in values.items()}
    return [part for side in (holds, ~holds) for part in _side(along, answer, np.flatnonzero(side))]


def _side(along: Values, answer: Callable[[Values], Mapping[str, Any]], places: Array) -> Iterator[Part]:
    chosen = {name: value[places] if isinstance(value, Points) else value for name, value in along.items()}
    for part in evaluate(chosen, answer, places.shape):
        yield part._replace(where=places if part.where is None else places[part.where])


def flat(value: Any, shape: tuple[int, ...]) -> Any:
    """Points of all of a shape along one axis; a number stays one."""
    return np.broadcast_to(value, shape).ravel().view(Points) if isinstance(value, Points) else value
