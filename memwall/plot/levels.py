"""Memories whose slopes a roofline has, and why it has not others."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.errors import UsageError, shown
from memwall.hardware import Device
from memwall.hierarchy import l2_bandwidth, shared_bandwidth

LEVELS = ("hbm", "l2", "smem")
"""Memories as `limited_by` calls them; the main one, of whatever kind, first."""
_INNER = ("L2", "shared memory")


def levels_of(text: str) -> list[str]:
    """The memories named in a,b,c.

    Raises:
        UsageError: there is no such one.
    """
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    wrong = next((name for name in names if name not in LEVELS), None)
    if wrong or not names:
        raise UsageError(
            f"--levels: no memory is called '{shown(wrong or text)}'", f"Any of {','.join(LEVELS)}"
        )
    return [name for name in LEVELS if name in names]


def slopes(device: Device, levels: Sequence[str]) -> list[tuple[str, float]]:
    """The bandwidths of memories, as far as they are known, by name [B/s]."""
    kind = str(device.data["memory"].get("type", ""))
    rates = (device.bandwidth, l2_bandwidth(device), shared_bandwidth(device))
    named = dict(
        zip(
            LEVELS,
            zip(("HBM" if kind.startswith("HBM") else "memory", *_INNER), rates, strict=True),
            strict=True,
        )
    )
    found = [named[level] for level in levels]
    return [(name, rate.value) for name, rate in found if rate is not None]


def missing(devices: Sequence[Device], levels: Sequence[str] | None) -> list[str]:
    """Why a slope that one would look for is not there."""
    if levels is None and len(devices) > 1:
        return ["Slopes of several GPUs are main memory's; of L2 and shared memory too: --levels hbm,l2,smem"]
    known = {"l2": l2_bandwidth, "smem": shared_bandwidth}
    return [
        f"{device.name}: no bandwidth of {name} is known, so it has no slope"
        for device in devices
        for (level, rate), name in zip(known.items(), _INNER, strict=True)
        if level in (levels or LEVELS) and rate(device) is None
    ]
