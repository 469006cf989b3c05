"""What an L2 still holds of data that are asked for again, and who shares what in it.

Blocks that run at once walk over the same data together, so what they share comes from main memory once.
What the next blocks need again has survived if little else passed through L2 meanwhile. An L2 is `WAYS`-way
associative with hashed sets, so among b other bytes a set has received Poisson(WAYS b / capacity) lines,
and a line is gone if these were WAYS or more (least recently used goes first):

    missed(b) = P(Poisson(WAYS b / capacity) >= WAYS)

that is 1 % at half the capacity, 53 % at the whole, all at twice. `memwall.l2` runs the waves of kernels
whose order is known one by one, and keeps all or nothing; here is the mean over orders that are not known.

A data-centre L2 has two partitions since the A100. Each keeps a copy of what its units read from the other,
so data that both sides read take more than one place (`L2.places`).
"""

from __future__ import annotations

from math import exp
from typing import NamedTuple

from memwall.hardware import Device

WAYS = 16
"""Lines a set. Assumed: recalled from dissections of earlier parts; counts on an H200 fit it."""

USABLE = 0.98
"""The share of L2 in which a kernel's data find room; the rest holds instructions, page tables and leavings.
Assumed; counts of attention, products and norms on an H200 lie between those of 0.94 and 1."""

TWO_PARTITIONS = ("8.0", "9.0", "10.0", "10.3")
"""Compute capabilities whose L2 is in two halves. Source: NVIDIA A100 whitepaper 2020, "L2 cache"; an H200
shows near and far latencies."""

COPIED = {"tma": 1.5, "load": 2.0}
"""Places that a shared line takes in two partitions, by how blocks load it. Blocks that load by TMA ask
nearly together and their requests merge: an H200 counts that each line crosses once, between one and two
places on average. Blocks that load by themselves ask again across the partitions: two places."""

CROSSING = 1.5
"""Look-ups that the counter `lts__t_bytes` shows for a byte streamed on two partitions: half of the lines are
looked up on both sides."""


class L2(NamedTuple):
    """A last-level cache: its size, and in how many partitions it is."""

    capacity_bytes: float
    partitions: int = 1

    def missed(self, between_bytes: float) -> float:
        """The share of data that is gone after so many other bytes.

        >>> cache = L2(60e6)
        >>> [round(cache.missed(share * 60e6), 2) for share in (0.25, 0.5, 1, 2)]
        [0.0, 0.01, 0.53, 1.0]
        """
        if self.capacity_bytes <= 0:
            return 1.0
        return poisson_tail(WAYS * between_bytes / self.capacity_bytes, WAYS)

    def places(self, loaded_by: str) -> float:
        """How many lines of L2 a line takes that blocks everywhere read: 1 in one partition."""
        return COPIED[loaded_by] if self.partitions > 1 else 1.0

    @property
    def crossing(self) -> float:
        """Look-ups a streamed byte: 1 in one partition, 1.5 in two."""
        return CROSSING if self.partitions > 1 else 1.0


def cache_of(device: Device) -> L2:
    """What is usable of the device's L2; none is one of zero bytes, in which nothing survives."""
    capability = device.group("unit").get("compute_capability")
    return L2(USABLE * (device.l2_bytes or 0.0), 2 if capability in TWO_PARTITIONS else 1)


def loaded_by(device: Device) -> str:
    """How its best kernels bring data to shared memory: by TMA where there is one."""
    return "tma" if "tma" in device.features else "load"


def poisson_tail(mean: float, least: int) -> float:
    """P(X >= least) for a Poisson-distributed X.

    >>> round(poisson_tail(16.0, 16), 3)
    0.533
    """
    if mean > 20 * least:  # beyond any doubt, and exp would underflow
        return 1.0
    term, below = exp(-mean), 0.0
    for count in range(least):
        below += term
        term *= mean / (count + 1)
    return max(0.0, 1.0 - below)
