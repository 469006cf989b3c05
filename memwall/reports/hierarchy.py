"""A device's memory hierarchy, level by level."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from memwall.constant import Constant
from memwall.hardware import Device
from memwall.hierarchy import Level, levels
from memwall.memory.budget import total_memory
from memwall.reports.case import DEFAULT_GPU, DeviceLike, device_of


class HierarchyReport(NamedTuple):
    """The levels of a device, the nearest to the arithmetic first."""

    device: Device
    levels: tuple[Level, ...]
    defaults: tuple[str, ...]

    @property
    def constants(self) -> tuple[Constant, ...]:
        """Every number with its source."""
        found = [c for level in self.levels for c in (level.size, level.bandwidth, level.latency_source)]
        return tuple(constant for constant in found if constant is not None)


def hierarchy(
    gpu: DeviceLike = DEFAULT_GPU,
    changes: Mapping[str, str | float] | None = None,
    defaults: tuple[str, ...] = (),
) -> HierarchyReport:
    """Registers, shared memory, L2, main memory, host and NVMe: size, bandwidth, latency, scope, source.

    Main memory is as large as `memwall capacity` has it: the driver's total, else the label in GiB x 0.99.

    Args:
        gpu: a device, or its name or file.
        changes: what-ifs on the device.
        defaults: what the caller assumed.
    """
    device = device_of(gpu, changes)
    return HierarchyReport(device, tuple(_as_seen(level, device) for level in levels(device)), defaults)


def _as_seen(level: Level, device: Device) -> Level:
    """Main memory with the size that programs see, which a label is not."""
    if level.limit != "hbm" or level.size is None:
        return level
    return level._replace(size=total_memory(device))
