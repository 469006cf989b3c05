"""What the mechanisms need to know of a device, as plain numbers."""

from __future__ import annotations

from typing import NamedTuple

from memwall.hardware import Device
from memwall.maths import Count, where
from memwall.units import KIBI, MEGA

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

STREAM_SHARE = 0.88
"""The middle of the table below, for what is not in it."""
STREAM_SHARES = {
    "6.0": 0.76,  # P100, sums of 0.8 to 3.2 GB
    "7.0": 0.92,  # V100, sums of 0.5 to 6.4 GB
    "8.0": 0.87,  # A100, sums of 2 to 6 GB
    "8.6": 0.90,  # RTX 3090, fused softmax of 67 MB and its launch
    "8.9": 0.79,  # L40S, casts of 0.5 to 5 GB: ECC takes a sixteenth
    "9.0": 0.90,  # H100 activations of 13 GB 0.89, H200 sums of 0.4 GB 0.90
    "10.0": 0.88,  # B200, casts of 3 and 6 GB
    "CDNA 2": 0.82,  # MI210, sums 0.775, functions of one tensor 0.845
}
"""What streams of hundreds of megabytes reach of the bandwidth, read off configs/measurements; by compute
capability or architecture."""
DIVIDED_L2 = ("8.0", "9.0", "10.0", "10.3")
"""A100, H100, B200 and their relatives: A100 whitepaper, each partition caches for the units next to it."""


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
    l2_parts: int = 1
    """Parts of L2 that each keep a copy of what their units read."""
    unit_cache_bytes: float = 0.0
    """Of a unit, L1 and shared memory together."""
    stream_ratio: float = 1.0
    """What long streams reach of the bandwidth, against the usual STREAM_SHARE of it."""

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
        unit = device.group("unit")
        capability = str(unit.get("compute_capability") or "")
        gpu = bool(device.units) and unit.get("kind") in GPU_UNITS
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
            2 if capability in DIVIDED_L2 else 1,
            _kib(unit.get("l1_and_shared_kib") or unit.get("l1_kib") or 0),
            STREAM_SHARES.get(capability or device.architecture, STREAM_SHARE) / STREAM_SHARE,
        )

    def stream_bytes_per_s(self, share: float, gain: float, warm: Count) -> Count:
        """What streams reach: a share of the memory's bandwidth, and `gain` times that from L2, not less."""
        stream = self.bandwidth_bytes_per_s * share
        return where(warm, max(stream, min(stream * gain, self.l2_bytes_per_s)), stream)


def _kib(value: float) -> float:
    return value * KIBI
