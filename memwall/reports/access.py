"""Bank conflicts and coalescing on a device: what they cost, and what padding or another layout gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from memwall import access as rules
from memwall.access import Conflict, Request
from memwall.errors import NotAvailable, UsageError
from memwall.hardware import Device
from memwall.hierarchy import shared_bandwidth
from memwall.reports.case import DEFAULT_GPU, DeviceLike, device_of


class BanksReport(NamedTuple):
    """One access of a warp to a tile in shared memory."""

    device: Device
    rows: int
    cols: int
    access: str
    element_bytes: int
    pad: int
    found: Conflict
    unpadded: Conflict
    least_pad: int | None
    """Padding that leaves no conflict."""
    peak_bytes_per_s: float | None
    """Shared memory of the whole device."""
    defaults: tuple[str, ...]

    @property
    def tile_bytes(self) -> int:
        """Of the tile, padding included."""
        return self.rows * (self.cols + self.pad) * self.element_bytes

    @property
    def padding_bytes(self) -> int:
        """Of the padding."""
        return self.rows * self.pad * self.element_bytes


class AccessReport(NamedTuple):
    """One request of a warp to global memory."""

    device: Device
    pattern: str
    element_bytes: int
    stride: int
    offset: int
    found: Request
    defaults: tuple[str, ...]

    @property
    def bandwidth_bytes_per_s(self) -> float:
        """The device's main-memory bandwidth [B/s]."""
        return self.device.bandwidth.value

    @property
    def effective_bytes_per_s(self) -> float:
        """Useful bytes a second at full bandwidth, sectors counted [B/s]."""
        return self.bandwidth_bytes_per_s * self.found.sector_efficiency


def banks(
    rows: int,
    cols: int,
    access: str,
    element_bytes: int = 4,
    pad: int = 0,
    *,
    gpu: DeviceLike = DEFAULT_GPU,
    changes: Mapping[str, str | float] | None = None,
    defaults: tuple[str, ...] = (),
) -> BanksReport:
    """Bank conflicts of a warp that takes a row, a column or a diagonal of a tile.

    Args:
        rows: of the tile.
        cols: of the tile.
        access: row, column, diagonal or broadcast.
        element_bytes: of an element [B].
        pad: elements added to each row.
        gpu: a CUDA device.
        changes: what-ifs.
        defaults: what the caller assumed.

    Raises:
        UsageError, NotAvailable: as they say.
    """
    device = _cuda(device_of(gpu, changes))
    found = rules.conflict(rows, cols, access, element_bytes, pad)
    unpadded = rules.conflict(rows, cols, access, element_bytes)
    least = rules.least_pad(rows, cols, access, element_bytes)
    peak = shared_bandwidth(device)
    return BanksReport(
        device, rows, cols, access, element_bytes, pad, found, unpadded, least, peak and peak.value, defaults
    )


def access(
    pattern: str,
    element_bytes: int = 4,
    stride: int | None = None,
    offset: int = 0,
    *,
    gpu: DeviceLike = DEFAULT_GPU,
    changes: Mapping[str, str | float] | None = None,
    defaults: tuple[str, ...] = (),
) -> AccessReport:
    """Sectors and lines of one request of a warp, and the bandwidth that is left.

    Args:
        pattern: coalesced, strided or random.
        element_bytes: what each thread loads [B].
        stride: elements between neighbours, for strided.
        offset: elements from the start of a line to the first.
        gpu: a CUDA device.
        changes: what-ifs.
        defaults: what the caller assumed.

    Raises:
        UsageError, NotAvailable: as they say.
    """
    if stride is not None and pattern != "strided":
        raise UsageError(
            f"--stride belongs to the strided pattern, not to {pattern}", "Try --pattern strided"
        )
    device = _cuda(device_of(gpu, changes))
    found = rules.request(pattern, element_bytes, stride or 1, offset)
    return AccessReport(device, pattern, element_bytes, stride or 1, offset, found, defaults)


def _cuda(device: Device) -> Device:
    if not device.group("unit").get("compute_capability"):
        raise NotAvailable(
            f"{device.title}: banks, sectors and lines are those of CUDA devices here", "Try --gpu h100"
        )
    return device
