"""The occupancy of a launch on a device, and what the next block would take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from memwall import occupancy as rules
from memwall.hardware import Device
from memwall.occupancy import Launch, Occupancy
from memwall.reports.case import DEFAULT_GPU, DeviceLike, device_of
from memwall.units import format_bytes, scaled_binary


class OccupancyReport(NamedTuple):
    """How many blocks of a launch run on each SM of a device."""

    device: Device
    found: Occupancy
    defaults: tuple[str, ...]

    @property
    def blocks_on_device(self) -> int | None:
        """Blocks that run at once on the whole device."""
        units = self.device.units
        return units * self.found.blocks_per_sm if units else None

    @property
    def advice(self) -> tuple[str, ...]:
        """What one block more would take, resource by resource, and what spilling costs."""
        return tuple(line for line in (*_next_block(self.found), _spills(self)) if line)


def occupancy(
    threads: int,
    registers: int = 32,
    shared_bytes: int = 0,
    *,
    gpu: DeviceLike = DEFAULT_GPU,
    changes: Mapping[str, str | float] | None = None,
    defaults: tuple[str, ...] = (),
) -> OccupancyReport:
    """Blocks and warps that run on an SM at once, and the resource that limits them.

    Args:
        threads: threads a block.
        registers: registers a thread; beyond 255 they are spilled.
        shared_bytes: shared memory a block, static and dynamic [B].
        gpu: a CUDA device.
        changes: what-ifs on the device.
        defaults: what the caller assumed.

    Raises:
        UsageError, NotAvailable: no block of that size can be launched.
    """
    device = device_of(gpu, changes)
    found = rules.occupancy(rules.sm_of(device), Launch(threads, registers, shared_bytes))
    return OccupancyReport(device, found, defaults)


def _next_block(found: Occupancy) -> list[str]:
    """The largest request of each limiting resource that lets one more block in."""
    sm, launch = found.sm, found.launch
    wanted = found.blocks_per_sm + 1
    lines = []
    if "registers" in found.limiting:
        fewer = range(launch.held_registers - 1, 0, -1)
        enough = next((r for r in fewer if _limit(found, "registers", registers=r) >= wanted), None)
        if enough:
            lines.append(f"{wanted} blocks by registers need at most {enough} a thread (--maxrregcount)")
    if "shared_memory" in found.limiting:
        unit = sm.shared_unit_bytes
        room = sm.shared_bytes // wanted // unit * unit - sm.reserved_bytes
        if room > 0:
            lines.append(f"{wanted} blocks by shared memory need at most {scaled_binary(room)} a block")
    if "warps" in found.limiting and found.occupancy < 1:
        lines.append(
            f"{launch.warps} warps a block do not divide the {sm.warps} of an SM: try 128 or 256 threads"
        )
    if "blocks" in found.limiting and found.occupancy < 1:
        lines.append(f"an SM takes {sm.blocks} blocks: larger blocks have more warps")
    return lines


def _limit(found: Occupancy, name: str, **changed: int) -> int:
    return rules.occupancy(found.sm, found.launch._replace(**changed)).limits[name]


def _spills(report: OccupancyReport) -> str:
    launch = report.found.launch
    if not launch.spilled_bytes:
        return ""
    beyond = launch.registers - launch.held_registers
    live = launch.spilled_bytes * launch.threads * report.found.blocks_per_sm * (report.device.units or 1)
    return (
        f"{beyond} registers a thread are spilled to local memory: {launch.spilled_bytes} bytes a thread,"
        f" {format_bytes(live)} of them live on the device, behind L1 and L2"
    )
