"""How many blocks of a kernel run on an SM at once, by CUDA's own rules of allocation.

    warps      = ceil(threads / 32)
    by warps   = floor(warps of the SM / warps)
    by blocks  = the SM's limit
    registers  = registers a thread x 32, rounded up to 256 a warp; a quarter of the SM's 65536 in each
    partition:
                 floor(4 floor(16384 / registers) / warps)
    shared     = (asked for + 1 KiB reserved from 8.0 on), rounded up to 128 bytes (256 before 8.0):
                 floor(shared memory of the SM / shared)
    occupancy  = blocks x warps / warps of the SM

Source: CUDA Toolkit, cuda_occupancy.h, and CUDA C++ Programming Guide, "Technical Specifications per Compute
Capability". Checked against the limits that Nsight Compute reports for 57 launches on an H200.
"""

from __future__ import annotations

from typing import NamedTuple

from memwall.errors import NotAvailable, NotPublished, UsageError
from memwall.hardware import Device
from memwall.maths import ceil_div
from memwall.units import KIBI, scaled_binary

WARP = 32
REGISTER_BYTES = 4
REGISTERS_A_WARP = 256
"""The unit in which registers are handed out to a warp."""
PARTITIONS = 4
"""Each with its own quarter of the registers; a warp's registers lie in one. From 7.0 on."""
MOST_REGISTERS = 255
"""A thread can have no more; what is beyond is spilled."""
MOST_THREADS = KIBI
"""A block can have no more."""
OLDEST, NEWEST = (7, 0), (12, 1)


class Sm(NamedTuple):
    """What one SM has to give."""

    capability: tuple[int, int]
    registers: int
    shared_bytes: int
    shared_per_block_bytes: int
    warps: int
    blocks: int

    @property
    def reserved_bytes(self) -> int:
        """Shared memory that the system takes from each block."""
        return KIBI if self.capability >= (8, 0) else 0

    @property
    def shared_unit_bytes(self) -> int:
        """The unit in which shared memory is handed out."""
        return 128 if self.capability >= (8, 0) else 256


class Launch(NamedTuple):
    """What a kernel asks for."""

    threads: int
    """A block."""
    registers: int
    """A thread."""
    shared_bytes: int
    """A block, static and dynamic."""

    @property
    def warps(self) -> int:
        """Warps a block."""
        return int(ceil_div(self.threads, WARP))

    @property
    def held_registers(self) -> int:
        """Registers that a thread really gets."""
        return min(self.registers, MOST_REGISTERS)

    @property
    def spilled_bytes(self) -> int:
        """Bytes a thread that do not fit and live in local memory, which is main memory behind L1 and L2."""
        return (self.registers - self.held_registers) * REGISTER_BYTES


class Occupancy(NamedTuple):
    """How many blocks run on an SM, and what stops the next one."""

    sm: Sm
    launch: Launch
    limits: dict[str, int]
    """Blocks by warps, blocks, registers and shared_memory."""

    @property
    def blocks_per_sm(self) -> int:
        """Blocks that run at once."""
        return min(self.limits.values())

    @property
    def warps_per_sm(self) -> int:
        """Their warps."""
        return self.blocks_per_sm * self.launch.warps

    @property
    def occupancy(self) -> float:
        """Warps / warps that the SM has room for."""
        return self.warps_per_sm / self.sm.warps

    @property
    def limiting(self) -> tuple[str, ...]:
        """The resources that stop the next block, all of those that tie."""
        return tuple(name for name, limit in self.limits.items() if limit == self.blocks_per_sm)


def sm_of(device: Device) -> Sm:
    """The device's SM.

    Raises:
        NotAvailable: not a CUDA device of compute capability 7.0 to 12.1.
        NotPublished: a number is missing from its file.
    """
    unit = device.group("unit")
    text = unit.get("compute_capability")
    capability = tuple(int(part) for part in text.split(".")) if text else (0, 0)
    if not OLDEST <= capability <= NEWEST:
        has = f"its compute capability is {text}" if text else "it has no compute capability"
        raise NotAvailable(
            f"{device.title}: occupancy follows CUDA's rules for 7.0 to 12.1, and {has}", "Try --gpu h100"
        )
    keys = ("registers_kib", "shared_memory_kib", "shared_memory_per_block_kib", "max_warps", "max_blocks")
    missing = next((key for key in keys if not unit.get(key)), None)
    if missing:
        raise NotPublished(
            f"{device.title}: unit.{missing} is not in its file", f"Give it: --set unit.{missing}=..."
        )
    registers, shared, per_block, warps, blocks = (unit[key] for key in keys)
    return Sm(
        (capability[0], capability[1]),
        round(registers * KIBI / REGISTER_BYTES),
        round(shared * KIBI),
        round(per_block * KIBI),
        warps,
        blocks,
    )


def occupancy(sm: Sm, launch: Launch) -> Occupancy:
    """The occupancy of a launch on an SM.

    Raises:
        UsageError: no SM takes such a block.
        NotAvailable: this one does not.

    >>> h100 = Sm((9, 0), 65536, 228 * 1024, 227 * 1024, 64, 32)
    >>> found = occupancy(h100, Launch(256, 64, 64 * 1024))
    >>> found.blocks_per_sm, found.occupancy, found.limiting
    (3, 0.375, ('shared_memory',))
    """
    _check(sm, launch)
    limits = {
        "warps": sm.warps // launch.warps,
        "blocks": sm.blocks,
        "registers": _by_registers(sm, launch),
        "shared_memory": _by_shared(sm, launch),
    }
    return Occupancy(sm, launch, limits)


def allocated_registers(launch: Launch) -> int:
    """Registers that a block takes."""
    return _registers_a_warp(launch) * launch.warps


def allocated_shared_bytes(sm: Sm, launch: Launch) -> int:
    """Shared memory that a block takes."""
    unit = sm.shared_unit_bytes
    return int(ceil_div(launch.shared_bytes + sm.reserved_bytes, unit)) * unit


def _registers_a_warp(launch: Launch) -> int:
    return int(ceil_div(launch.held_registers * WARP, REGISTERS_A_WARP)) * REGISTERS_A_WARP


def _by_registers(sm: Sm, launch: Launch) -> int:
    """Warps of a partition first: a warp's registers cannot straddle two."""
    in_partition = sm.registers // PARTITIONS // _registers_a_warp(launch)
    return in_partition * PARTITIONS // launch.warps


def _by_shared(sm: Sm, launch: Launch) -> int:
    taken = allocated_shared_bytes(sm, launch)
    return sm.shared_bytes // max(taken, 1)


def _check(sm: Sm, launch: Launch) -> None:
    if not 1 <= launch.threads <= MOST_THREADS:
        raise UsageError(
            f"a block has 1 to {MOST_THREADS} threads, not {launch.threads}", "Try --threads 256"
        )
    if launch.registers < 1:
        raise UsageError("a thread has at least 1 register", "Try --registers 64")
    if launch.shared_bytes > sm.shared_per_block_bytes:
        asked, limit = scaled_binary(launch.shared_bytes), scaled_binary(sm.shared_per_block_bytes)
        raise NotAvailable(
            f"a block cannot have {asked} of shared memory, the limit is {limit}",
            f"Try --smem {limit.replace(' ', '')}",
        )
    if not _by_registers(sm, launch):
        most = sm.registers // PARTITIONS // int(ceil_div(launch.warps, PARTITIONS)) // REGISTERS_A_WARP
        raise NotAvailable(
            f"{launch.threads} threads of {launch.held_registers} registers exceed an SM's {sm.registers}",
            f"Try --registers {most * REGISTERS_A_WARP // WARP}, or fewer threads",
        )
