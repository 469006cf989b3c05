"""Values that cannot be: negative ones, shares over the whole, rates over the peak of the GPU."""

from __future__ import annotations

from collections.abc import Mapping

from memwall.diagnose.checks import Check
from memwall.diagnose.metrics import METRICS
from memwall.units import format_bytes_per_s, format_flops_per_s, format_seconds, significant

ROUNDING = 1.01
"""Counters of one share are read in several passes, so 100.3 % is noise."""
OVER_PEAK = 1.1
"""Beyond it a rate is another GPU's. Makers state peaks below the highest clock: H100 1830 of 1980 MHz."""
ASK = "is the GPU right? pass --gpu"
SHARES = {metric.field for metric in METRICS if metric.share}
OF_CHECK = {
    "memory bandwidth": ("dram_share", "dram_rate", "time_s", "dram_read_bytes", "dram_written_bytes"),
    "L2 hit rate": ("l2_hit_share",),
    "bank conflicts": ("shared_wavefronts", "shared_excess", "conflicts_an_access"),
    "register spills": ("spill_requests",),
    "uncoalesced accesses": ("global_sectors", "global_excess", "coalescing_share"),
    "occupancy": ("occupancy_share",),
}
"""What each check is made from."""


def impossible_values(values: Mapping[str, float]) -> dict[str, str]:
    """The counts that cannot be, and why, by field."""
    found = {}
    for field, value in values.items():
        if field == "time_s" and value <= 0:
            found[field] = f"impossible: a time of {format_seconds(value)}"
        elif value < 0:
            text = f"{significant(100 * value, 3)} %" if field in SHARES else significant(value)
            found[field] = f"impossible: {field} of {text} is negative"
        elif field in SHARES and value > ROUNDING:
            found[field] = f"impossible: {field} of {significant(100 * value, 3)} % is more than the whole"
    return found


def impossible_rates(
    bytes_per_s: float | None, bandwidth: float, flops_per_s: float | None, peak: float | None
) -> dict[str, str]:
    """The rates that the GPU cannot reach, and why."""
    found = {}
    if bytes_per_s is not None and bytes_per_s > OVER_PEAK * bandwidth:
        share = significant(100 * bytes_per_s / bandwidth, 3)
        rate = format_bytes_per_s(bytes_per_s)
        found["dram_rate"] = f"impossible: {rate}, {share} % of the memory bandwidth: {ASK}"
    if flops_per_s is not None and peak and flops_per_s > OVER_PEAK * peak:
        share = significant(100 * flops_per_s / peak, 3)
        rate = format_flops_per_s(flops_per_s)
        found["flops_rate"] = f"impossible: {rate}, {share} % of the peak: {ASK}, or --dtype"
    return found


def judged(check: Check, impossible: Mapping[str, str]) -> Check:
    """The check as it stands, or as impossible where what it would judge cannot be."""
    reason = next((impossible[field] for field in OF_CHECK[check.name] if field in impossible), None)
    if reason is None or check.value is not None:
        return check
    return check._replace(status="impossible", text=reason)
