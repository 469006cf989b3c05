"""A grid: every combination of its axes' values, cut into blocks that are evaluated whole.

Words (GPUs, formats) change slowest, then the dimensions in their order, the last one fastest. A block has
one combination of words, so that one device and one set of formats serve all its points.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np

from memwall.sweeps.points import Points, flat, points
from memwall.sweeps.ranges import Axis
from memwall.sweeps.words import Value, Words

BLOCK_POINTS = 65_536
"""Points a block: small enough that its columns stay in a core's cache."""

BLOCKS_A_SHARE = 16
"""Blocks that a share has at least, where there are enough points."""


class Block(NamedTuple):
    """Some points with the same words; one axis of the array for each dimension that varies in it."""

    words: Words
    values: Mapping[str, int | Points]
    shape: tuple[int, ...]

    @property
    def points(self) -> int:
        """How many."""
        return prod(self.shape)

    @property
    def flat(self) -> Block:
        """The same points along one axis."""
        values = {name: flat(value, self.shape) for name, value in self.values.items()}
        return Block(self.words, values, (self.points,))


class Grid:
    """Every combination of words and dimensions."""

    def __init__(
        self,
        words: Mapping[str, tuple[Value, ...]],
        axes: tuple[Axis, ...],
        block_points: int | None = None,
    ) -> None:
        self.words = dict(words)
        self.axes = axes
        self.block_points = block_points or BLOCK_POINTS

    @cached_property
    def points(self) -> int:
        """How many combinations."""
        return prod(map(len, self.words.values())) * prod(map(len, self.axes))

    def blocks(self, start: int = 0, stop: int | None = None) -> Iterator[Block]:
        """Blocks start to stop - 1, in the grid's order."""
        for number in range(start, self.count if stop is None else stop):
            yield self.block(number)

    def shard(self, index: int, of: int) -> range:
        """The blocks of one of so many shares, counted from 1, equal to within a block."""
        return range(self._nearest(self.points * (index - 1) // of), self._nearest(self.points * index // of))

    def begins(self, number: int) -> int:
        """How many points are before a block."""
        outer, digit = divmod(number, self._radices[-1])
        each = self.points // prod(self._radices[:-1])
        return outer * each + min(digit * self._slice_points, each)

    @cached_property
    def _slice_points(self) -> int:
        """Points of a block that is not the last slice of its axis."""
        place, size = self._cut
        return size * prod(map(len, self.axes[place + 1 :]))

    def _nearest(self, point: int) -> int:
        """The block that begins nearest to a point; the last one's end too."""
        each, slices = self.points // prod(self._radices[:-1]), self._radices[-1]
        outer, point = divmod(point, each)
        size = self._slice_points
        number, beyond = divmod(point, size)
        wide = min(size, each - number * size)
        return outer * slices + number + (2 * beyond > wide)

    def shared(self, of: int) -> int:
        """Points a block, so that so many shares are nearly equal, however small."""
        return max(1, min(self.block_points, self.points // (BLOCKS_A_SHARE * of)))

    @cached_property
    def count(self) -> int:
        """How many blocks."""
        return prod(self._radices)

    @cached_property
    def _cut(self) -> tuple[int, int]:
        """The axis that is cut into slices, all after it whole, and how many of its values a slice has."""
        inner = 1
        for place in reversed(range(len(self.axes))):
            if inner * len(self.axes[place]) > self.block_points:
                return place, max(1, self.block_points // inner)
            inner *= len(self.axes[place])
        return 0, len(self.axes[0]) if self.axes else 1

    @cached_property
    def _radices(self) -> list[int]:
        place, size = self._cut
        slices = -(-len(self.axes[place]) // size) if self.axes else 1
        return [*map(len, self.words.values()), *map(len, self.axes[:place]), slices]

    def block(self, number: int) -> Block:
        """The block of that number, without making those before it."""
        digits: list[int] = []
        for radix in reversed(self._radices):
            number, digit = divmod(number, radix)
            digits.insert(0, digit)
        words = {name: some[digit] for (name, some), digit in zip(self.words.items(), digits, strict=False)}
        place, size = self._cut
        outer = digits[len(self.words) : -1]
        columns: list[tuple[str, Any]] = [
            (axis.name, axis.slice(digit, digit + 1)) for axis, digit in zip(self.axes, outer, strict=False)
        ]
        for axis in self.axes[place : place + 1]:
            start = digits[-1] * size
            columns.append((axis.name, axis.slice(start, min(start + size, len(axis)))))
        columns += [(axis.name, axis.slice(0, len(axis))) for axis in self.axes[place + 1 :]]
        return _block(words, columns)


def _block(words: Words, columns: list[tuple[str, np.ndarray[Any, Any]]]) -> Block:
    """Single values as ints, others as points along an axis of their own."""
    varying = [name for name, column in columns if len(column) > 1]
    values: dict[str, int | Points] = {}
    for name, column in columns:
        if name in varying:
            along = [1] * len(varying)
            along[varying.index(name)] = len(column)
            values[name] = points(column).reshape(along).view(Points)
        else:
            values[name] = int(column[0])
    shape = tuple(len(column) for _, column in columns if len(column) > 1)
    return Block(words, values, shape if shape else (1,))
