"""A main memory that counts each byte loaded and stored, with an optional L2 in front of it.

    >>> memory = Memory()
    >>> x = memory.holding(numpy.ones((4, 8)), element_bytes=2)
    >>> row = x[1, :]
    >>> memory.requested.read_bytes
    16

A `Buffer` is indexed like an array: `x[i:j]` loads, `y[i:j] = tile` stores. Values are kept in float64, so
that results can be compared to rounding; an element counts as the `element_bytes` a kernel would store.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, TypeAlias

import numpy

from memwall.traffic import Traffic

Array: TypeAlias = numpy.ndarray[Any, Any]

SECTOR_BYTES = 32
"""What L2 fetches from memory and evicts to it at a time."""
_ALIGNMENT = 8  # sectors; as cudaMalloc's 256 bytes


class L2:
    """A fully associative cache of sectors, least recently used first out, writing back."""

    def __init__(self, capacity_bytes: int) -> None:
        self.capacity = capacity_bytes // SECTOR_BYTES
        self.fetched = self.evicted = 0
        self._dirty: OrderedDict[int, bool] = OrderedDict()

    def access(self, sectors: Array, write: bool) -> None:
        """Touch the sectors in turn; a store fills its sector without fetching it."""
        for sector in sectors.tolist():
            dirty = self._dirty.pop(sector, None)
            if dirty is None and not write:
                self.fetched += 1
            self._dirty[sector] = write or bool(dirty)
            if len(self._dirty) > self.capacity:
                self.evicted += self._dirty.popitem(last=False)[1]

    def flush(self) -> None:
        """Write back what is still dirty."""
        self.evicted += sum(self._dirty.values())
        self._dirty.clear()


class Memory:
    """Counts what kernels ask for, and with an L2 what of that reaches main memory.

    Args:
        l2_bytes: capacity of the L2; 0: none, and main memory sees every request.
    """

    def __init__(self, l2_bytes: int = 0) -> None:
        self.l2 = L2(l2_bytes) if l2_bytes else None
        self._read_bytes = self._written_bytes = 0
        self._next_sector = 0

    def holding(self, values: Array, element_bytes: int) -> Buffer:
        """A buffer that holds these values; putting them there is not counted."""
        start = self._next_sector
        sectors = -(-values.size * element_bytes // SECTOR_BYTES)
        self._next_sector += -(-sectors // _ALIGNMENT) * _ALIGNMENT
        return Buffer(self, numpy.array(values, dtype=numpy.float64), element_bytes, start)

    def empty(self, shape: tuple[int, ...], element_bytes: int) -> Buffer:
        """A poisoned buffer: what no kernel stores stays NaN."""
        return self.holding(numpy.full(shape, numpy.nan), element_bytes)

    @property
    def requested(self) -> Traffic:
        """Bytes that kernels loaded and stored."""
        return Traffic(self._read_bytes, self._written_bytes)

    @property
    def dram(self) -> Traffic:
        """Bytes that main memory saw, in whole sectors; what is dirty in L2 is written back first."""
        if self.l2 is None:
            return self.requested
        self.l2.flush()
        return Traffic(self.l2.fetched * SECTOR_BYTES, self.l2.evicted * SECTOR_BYTES)

    def count(self, buffer: Buffer, key: Any, elements: int, write: bool) -> None:
        """One load or store of so many elements."""
        if write:
            self._written_bytes += elements * buffer.element_bytes
        else:
            self._read_bytes += elements * buffer.element_bytes
        if self.l2 is not None:
            self.l2.access(buffer.sectors(key), write)


class Buffer:
    """A tensor in a counting memory: indexing loads, assigning stores."""

    def __init__(self, memory: Memory, values: Array, element_bytes: int, start_sector: int) -> None:
        self.memory, self.values, self.element_bytes = memory, values, element_bytes
        self._start = start_sector
        self._places: Array | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Its dimensions."""
        shape: tuple[int, ...] = self.values.shape
        return shape

    def __getitem__(self, key: Any) -> Array:
        tile: Array = numpy.array(self.values[key])
        self.memory.count(self, key, tile.size, write=False)
        return tile

    def __setitem__(self, key: Any, tile: Array | float) -> None:
        self.values[key] = tile
        self.memory.count(self, key, numpy.size(self.values[key]), write=True)

    def sectors(self, key: Any) -> Array:
        """The sectors that a selection touches, in order."""
        if self._places is None:
            self._places = numpy.arange(self.values.size).reshape(self.shape) * self.element_bytes
        touched: Array = numpy.unique(numpy.ravel(self._places[key]) // SECTOR_BYTES)
        return touched + self._start
