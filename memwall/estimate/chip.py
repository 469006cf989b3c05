"""What the mechanisms need to know of a device, as plain numbers."""

from __future__ import annotations

from typing import NamedTuple

from memwall.hardware import Device
from memwall.maths import Count, where
from memwall.units import MEGA

L2_PORT_BYTES = 64
"""What a compute unit's port to L2 passes in a clock [B]: no kernel reads faster. Jia et al. 2018,
arXiv:1804.06826 (Volta; the same since). Measured plateaus are near half of it: H200 8500 GB/s / 132 /
1.98 GHz = 32.5 B; A100 35.5; H100 PCIe 34.7."""

EXP_PER_CLOCK_PER_UNIT = 16
"""Where the device's file has none: every NVIDIA generation since Volta but Blackwell Ultra."""

GPU_UNITS = ("SM", "CU", "Xe-core", "Xe core")
"""Compute units of the size that the mechanisms are about."""

USUAL_UNITS = 128
"""Of a device whose units are larger cores, or not known: as if it were divided so."""

USUAL_CLOCK_HZ = 1500 * MEGA
"""Where no clock is known."""


class Chip(NamedTuple):
    """A device's numbers, SI."""

    peak_flops_per_s: float
    """Of the matrix work's format, dense, at the clock behind it; 0: no matrix work."""
    bandwidth_bytes_per_s: float
    units: int
    least_unit_bytes_per_s: float
    """What a unit draws from memory at least, where nothing is known about it: its share. 0 for a GPU's."""
    clock_hz: float
    """The highest that is known."""
    boost: float
    """That clock / the clock behind the matrix peak: light work runs above the datasheet's rate."""
    tdp_w: float
    """0: not known, and no power limit is applied."""
    l2_bytes: float
    l2_bytes_per_s: float
    exp_per_clock_per_unit: float

    @classmethod
    def of(cls, device: Device, compute: str | None = None) -> Chip:
        """The numbers of a device; what its file lacks is left out of the mechanisms.

        Args:
            device: the device.
            compute: the format of the matrix work, if there is any.

        Raises:
            NotAvailable: the device has no peak for it.
        """
        clock = device.clock
        clock_hz = clock.value if clock else USUAL_CLOCK_HZ
        gpu = bool(device.units) and device.group("unit").get("kind") in GPU_UNITS
        units = (device.units or USUAL_UNITS) if gpu else USUAL_UNITS
        peak_clock = device.group("matrix").get("clock_mhz") or 0
        boosted = device.data["segment"] in ("consumer", "workstation") or not peak_clock or clock is None
        return cls(
            device.peak(compute).rate.value if compute else 0.0,
            device.bandwidth.value,
            units,
            0.0 if gpu else device.bandwidth.value / units,
            clock_hz,
            1.0 if boosted else clock_hz / (peak_clock * MEGA),
            float(device.group("power").get("tdp_w") or 0),
            device.l2_bytes or 0.0,
            units * clock_hz * L2_PORT_BYTES,
            float(device.group("special").get("exp_per_clock_per_unit") or EXP_PER_CLOCK_PER_UNIT),
        )

    def stream_bytes_per_s(self, share: float, gain: float, warm: Count) -> Count:
        """What streams reach: a share of the memory's bandwidth, and `gain` times that from L2."""
        stream = self.bandwidth_bytes_per_s * share
        return where(warm, min(stream * gain, self.l2_bytes_per_s), stream)
