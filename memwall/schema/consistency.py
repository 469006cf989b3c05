"""Numbers of one hardware file that follow from others: each is recomputed, a misfit is a mistake.

    bandwidth   = bus width x pin rate / 8
    peak        = compute units x FLOP a clock and unit x clock
    marketed bandwidth = the driver's, roughly: two very different ones are two devices

A file may list an exception with its reason. A what-if contradicts on purpose and is not checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from memwall.units import MEGA, TERA

if TYPE_CHECKING:
    from memwall.schema.hardware import Hardware

TOLERANCE = 0.015
"""Datasheets round to three digits, clocks to the next 15 MHz."""
MARKETING_TOLERANCE = 0.1


class Contradiction(ValueError):
    """A number that does not fit the others, and where it stands."""

    def __init__(self, message: str, *path: str) -> None:
        super().__init__(message)
        self.path = path


def contradictions(device: Hardware) -> Iterator[Contradiction]:
    """Each misfit that the file does not list as an exception."""
    if device.assumed:
        return
    excused = {(entry.check, entry.dtype) for entry in device.exceptions}
    yield from _two_bandwidths(device)
    if ("bandwidth", None) not in excused:
        yield from _bandwidth(device)
    for check, path, published, computed in _peaks(device):
        if (check, path[-1]) not in excused and _off(computed, published, TOLERANCE):
            recomputed = f"units x FLOP a clock x clock give {computed:.4g}"
            yield Contradiction(f"{check} {path[-1]} is {published:g} TFLOPS, but {recomputed}", *path)


def _two_bandwidths(device: Hardware) -> Iterator[Contradiction]:
    memory = device.memory
    marketed, driver = memory.bandwidth_gb_per_s, memory.bandwidth_driver_gb_per_s
    if driver and _off(marketed, driver, MARKETING_TOLERANCE):
        used = f"bandwidth_driver_gb_per_s, which is used, {driver:g}: change or remove it"
        yield Contradiction(f"bandwidth_gb_per_s is {marketed:g}, but {used}", "memory", "bandwidth_gb_per_s")


def _bandwidth(device: Hardware) -> Iterator[Contradiction]:
    memory = device.memory
    if not (memory.bus_width_bits and memory.pin_rate_gbit_per_s):
        return
    computed = memory.bus_width_bits * memory.pin_rate_gbit_per_s / 8
    given = memory.bandwidth_driver_gb_per_s or memory.bandwidth_gb_per_s
    if _off(computed, given, TOLERANCE):
        recomputed = f"bus width x pin rate / 8 give {computed:.4g}"
        yield Contradiction(f"bandwidth is {given:g} GB/s, but {recomputed}", "memory", "bandwidth_gb_per_s")


def _peaks(device: Hardware) -> Iterator[tuple[str, tuple[str, ...], float, float]]:
    """Check, place, published and recomputed peak [TFLOPS], where the file has all that it takes."""
    matrix, vector = device.matrix, device.vector
    groups = (
        ("matrix peak", matrix, ("matrix", "peak_dense_tflops"), matrix.peak_dense_tflops if matrix else {}),
        ("vector peak", vector, ("vector", "peak_tflops"), vector.peak_tflops if vector else {}),
    )
    for check, group, place, peaks in groups:
        if not (group and device.unit and group.clock_mhz):
            continue
        for dtype, flop in (group.flop_per_clock_per_unit or {}).items():
            if dtype in peaks:
                computed = device.unit.count * flop * group.clock_mhz * MEGA / TERA
                yield check, (*place, dtype), peaks[dtype], computed


def _off(value: float, reference: float, tolerance: float) -> bool:
    return abs(value / reference - 1) > tolerance
