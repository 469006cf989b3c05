"""The levels of a device's memory, each with its size, bandwidth, latency and scope, and where each number
is from.

Bandwidths of registers, shared memory and L1 follow from what a unit moves in a clock:

    shared, L1  units x 128 B x clock               one word of each of 32 banks
    registers   lanes x 3 operands x 4 B x clock    lanes = FMA rate / 2
    L2          measured; no maker publishes it

Latencies are of dependent loads by one warp. Host memory and NVMe are not on the device: a typical server's.
"""

from __future__ import annotations

from typing import NamedTuple

from memwall.access import BANKS, WORD_BYTES
from memwall.constant import Constant
from memwall.errors import NotAvailable
from memwall.hardware import Device
from memwall.units import GIGA, MEGA, TERA, to_si

OPERANDS, OPERAND_BYTES = 3, 4
"""An FMA reads three registers of 32 bits."""


class Level(NamedTuple):
    """One level of the hierarchy."""

    limit: str
    """registers, smem, l2, cache (on the memory's side), hbm, host or nvme."""
    name: str
    scope: str
    """Who shares it."""
    size: Constant | None
    """All of the device's [B]; None if not known."""
    per_unit_bytes: float | None
    """Of one compute unit, where it is divided so [B]."""
    bandwidth: Constant | None
    """Of the whole device [B/s]."""
    latency_cycles: float | None
    latency_s: float | None
    far_cycles: float | None = None
    """L2 only: in the other partition."""
    latency_source: Constant | None = None


def levels(device: Device) -> tuple[Level, ...]:
    """The levels from registers to NVMe; those that the device's file does not know are left out."""
    made = (
        _registers(device),
        _shared(device),
        _l2(device),
        _memory_side(device),
        _memory(device),
        _host(device),
        _nvme(),
    )
    return tuple(level for level in made if level)


def shared_bandwidth(device: Device) -> Constant | None:
    """Shared memory of the whole device [B/s]: 32 banks of 4 bytes a clock and unit, at maximum clock."""
    if not (device.units and device.group("unit").get("shared_memory_kib")):
        return None
    return _per_clock(device, BANKS * WORD_BYTES, "unit.shared_memory_kib", "32 banks x 4 B")


def l2_bandwidth(device: Device) -> Constant | None:
    """L2's measured bandwidth [B/s]; None if nobody has published one that the file holds."""
    if not device.group("l2").get("bandwidth_measured_gb_per_s"):
        return None
    return device.constant("l2", "bandwidth_measured_gb_per_s")


def _registers(device: Device) -> Level | None:
    unit = device.group("unit")
    if not (unit.get("registers_kib") and device.units):
        return None
    peak = device.vector_peak
    bandwidth = None
    if peak:
        moved = peak.value / 2 * OPERANDS * OPERAND_BYTES
        bandwidth = peak.computed(moved, (peak,), "derived: three operands of 4 B for each FMA")
    return _on_unit(
        device, "registers", "registers", "a thread", "registers_kib", bandwidth, "register_cycles"
    )


def _shared(device: Device) -> Level | None:
    key = next((k for k in ("l1_and_shared_kib", "shared_memory_kib") if device.group("unit").get(k)), None)
    if key is None or not device.units:
        return None
    name = "L1 and shared memory" if key == "l1_and_shared_kib" else "shared memory"
    return _on_unit(
        device, "smem", name, "a block (shared), a unit (L1)", key, shared_bandwidth(device), "shared_cycles"
    )


def _on_unit(
    device: Device, limit: str, name: str, scope: str, key: str, bandwidth: Constant | None, latency: str
) -> Level:
    each = device.constant("unit", key)
    count = device.constant("unit", "count", scale=1)
    size = each.computed(each.value * count.value, (each, count), f"{count.value:g} units")
    cycles, seconds, source = _latency(device, latency)
    return Level(limit, name, scope, size, each.value, bandwidth, cycles, seconds, None, source)


def _l2(device: Device) -> Level | None:
    l2 = device.group("l2")
    key = next((k for k in ("capacity_bytes", "capacity_mib") if l2.get(k)), None)
    if key is None:
        return None
    cycles, seconds, source = _latency(device, "l2_near_cycles")
    far = device.group("latency").get("l2_far_cycles")
    return Level(
        "l2",
        "L2",
        "all units",
        device.constant("l2", key),
        None,
        l2_bandwidth(device),
        cycles,
        seconds,
        far,
        source,
    )


def _memory_side(device: Device) -> Level | None:
    cache = device.group("memory_side_cache")
    if not cache:
        return None
    bandwidth = (
        device.constant("memory_side_cache", "bandwidth_gb_per_s")
        if cache.get("bandwidth_gb_per_s")
        else None
    )
    cycles, seconds, source = _latency(device, "memory_side_cache_cycles")
    size = device.constant("memory_side_cache", "capacity_mib")
    return Level(
        "cache", str(cache["kind"]), "all units", size, None, bandwidth, cycles, seconds, None, source
    )


def _memory(device: Device) -> Level:
    try:
        size = device.capacity
    except NotAvailable:
        size = None
    cycles, seconds, source = _latency(device, "memory_cycles")
    kind = str(device.data["memory"]["type"])
    return Level("hbm", kind, "the device", size, None, device.bandwidth, cycles, seconds, None, source)


def _host(device: Device) -> Level:
    """Memory of the host, through PCIe or NVLink-C2C; one direction."""
    links = device.group("links")
    name = next(
        (n for n in ("nvlink_c2c", "c2c", "pcie") if links.get(n, {}).get("gb_per_s_per_direction")), None
    )
    bandwidth = None
    if name:
        link = links[name]
        source = link["source"][0]
        kind = next(kind for kind in source if kind != "for")
        rate = link["gb_per_s_per_direction"] * GIGA
        bandwidth = Constant(f"links.{name}.gb_per_s_per_direction", rate, kind, source[kind], "one way")
    size = Constant("host.capacity", 2 * TERA, "assumed", "a server of 2 TB; the node's own", "typical")
    return Level("host", "host memory", "the node", size, None, bandwidth, None, None)


def _nvme() -> Level:
    """A drive of PCIe 5.0 x4."""
    size = Constant("nvme.capacity", 30 * TERA, "assumed", "one large drive; the node's own", "typical")
    bandwidth = Constant(
        "nvme.bandwidth", 14 * GIGA, "recalled", "datasheets of PCIe 5.0 x4 drives", "one drive, reads"
    )
    latency = 60 / MEGA
    source = Constant("nvme.latency", latency, "recalled", "datasheets of PCIe 5.0 x4 drives")
    return Level("nvme", "NVMe", "the node", size, None, bandwidth, None, latency, None, source)


def _latency(device: Device, key: str) -> tuple[float | None, float | None, Constant | None]:
    """Cycles, seconds and source of a latency."""
    latency = device.group("latency")
    if not latency.get(key):
        return None, None, None
    cycles = device.constant("latency", key, scale=1)
    clock = to_si("at_clock_mhz", latency["at_clock_mhz"])
    return cycles.value, cycles.value / clock, cycles


def _per_clock(device: Device, moved_bytes: int, key: str, what: str) -> Constant | None:
    """What every unit moves in a clock, at the device's maximum clock."""
    clock = device.clock
    if clock is None:
        return None
    units = device.constant("unit", "count", scale=1)
    rate = moved_bytes * units.value * clock.value
    note = f"derived: {units.value:g} units x {what} x {clock.value / MEGA:g} MHz"
    return units._replace(key=key).computed(rate, (units, clock), note)
