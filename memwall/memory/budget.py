"""The memory that programs may use, and what is left of it for a cache.

usable = total x fraction          left = usable - weights - reserve
"""

from __future__ import annotations

from typing import NamedTuple

from memwall.constant import Constant
from memwall.hardware import Device
from memwall.units import to_si

VISIBLE_SHARE = 0.99
"""Of a label read as GiB, what programs see where no driver's total is known. H100: 79.11 of 80 GiB, A100:
79.25, V100 16 GB: 15.77, RTX 5090: 31.36 of 32. Cards that keep ECC in ordinary memory (GDDR) have a
sixteenth less: an L40S has 44.42 of 48 GiB."""


class Budget(NamedTuple):
    """The memory of one GPU, and its standing charges [B]."""

    total_bytes: int
    fraction: float
    weight_bytes: int
    reserve_bytes: int
    cache_given_bytes: int | None = None
    """What the cache alone may take, where that is known; weights and reserve then do not enter."""

    @property
    def usable_bytes(self) -> int:
        """Total x fraction."""
        return int(self.total_bytes * self.fraction)

    @property
    def left_bytes(self) -> int:
        """What is left for the cache; below zero is what is missing before any."""
        if self.cache_given_bytes is not None:
            return self.cache_given_bytes
        return self.usable_bytes - self.weight_bytes - self.reserve_bytes

    def shortfall_bytes(self, cache_bytes: int) -> int:
        """What is missing for so large a cache; 0 if it fits."""
        return max(cache_bytes - self.left_bytes, 0)

    def smallest_fraction(self, cache_bytes: int = 0) -> float | None:
        """The fraction of the total that would do; above 1, none would. None if the cache's budget is given.

        (weights + reserve + cache) / total
        """
        if self.cache_given_bytes is not None:
            return None
        return (self.weight_bytes + self.reserve_bytes + cache_bytes) / self.total_bytes


def total_memory(device: Device) -> Constant:
    """A device's memory as programs see it [B]: the driver's total, else the label x 2^30 x 0.99, assumed.

    Raises:
        NotPublished: the file has neither.
    """
    capacity = device.capacity
    group, _, key = capacity.key.partition(".")
    if key == "capacity_driver_bytes":
        return capacity
    label = device.group(group)[key]
    note = f"{label:g} GiB x {VISIBLE_SHARE}: the driver's total is not in its file"
    return capacity._replace(value=int(to_si("gib", label) * VISIBLE_SHARE), kind="assumed", source=note)
