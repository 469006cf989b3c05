"""Peaks that are drawn as roofs, and why a format has none."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.errors import NotAvailable
from memwall.hardware import Device
from memwall.reports.roofline import RooflineReport

BESIDE = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "nvfp4", "fp4", "mxfp4")
"""Formats whose roofs are drawn for one GPU when none are named."""


def formats_of(
    devices: Sequence[Device], reports: Sequence[RooflineReport], asked: Sequence[str]
) -> list[str]:
    """The formats whose roofs are drawn: those asked for, and each operator's own."""
    used = list(dict.fromkeys(report.formats.dtype for report in reports))
    if asked:
        return list(dict.fromkeys([*asked, *used]))
    return (used or ["bf16"]) if len(devices) > 1 else list(dict.fromkeys([*BESIDE, *(used or ["bf16"])]))


def roofs_of(device: Device, dtypes: Sequence[str]) -> dict[float, str]:
    """The device's peaks in FLOP/s, each with the formats that have it; formats without one are left out."""
    roofs: dict[float, str] = {}
    for dtype in dtypes:
        try:
            peak = device.peak(dtype).rate.value
        except NotAvailable:
            continue
        roofs[peak] = f"{roofs[peak]}, {dtype}" if peak in roofs else dtype
    return dict(sorted(roofs.items()))


def roofless(devices: Sequence[Device], dtypes: Sequence[str]) -> list[str]:
    """Why a GPU has no roof of a format that was asked for."""
    found = []
    for device in devices:
        for dtype in dtypes:
            try:
                device.peak(dtype)
            except NotAvailable as error:
                found.append(f"{device.name} has no roof of {dtype}: {error.message}")
    return found


def no_roof(devices: Sequence[Device], dtypes: Sequence[str]) -> NotAvailable:
    """What is said where no GPU has any of the roofs."""
    reasons = "; ".join(roofless(devices, dtypes))
    return NotAvailable(reasons, f"See memwall gpu show {devices[0].name}")
