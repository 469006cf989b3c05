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


def contradictions(device: Hardware) -> Iterator[str]:
    """Each misfit that the file does not list as an exception, in one sentence."""
    if device.assumed:
        return
    excused = {(entry.check, entry.dtype) for entry in device.exceptions}
    yield from _two_bandwidths(device)
    if ("bandwidth", None) not in excused:
        yield from _bandwidth(device)
    for check, dtype, published, computed in _peaks(device):
        if (check, dtype) not in excused and _off(computed, published, TOLERANCE):
            recomputed = f"units x FLOP a clock x clock give {computed:.4g}"
            yield f"{check} {dtype} is {published:g}, but {recomputed}"


def _two_bandwidths(device: Hardware) -> Iterator[str]:
    memory = device.memory
    driver = memory.bandwidth_driver_gb_per_s
    if driver and _off(memory.bandwidth_gb_per_s, driver, MARKETING_TOLERANCE):
        yield (
            f"bandwidth_gb_per_s is {memory.bandwidth_gb_per_s:g}, but bandwidth_driver_gb_per_s, used here, "
            f"{driver:g}: change or remove it"
        )


def _bandwidth(device: Hardware) -> Iterator[str]:
    memory = device.memory
    if not (memory.bus_width_bits and memory.pin_rate_gbit_per_s):
        return
    computed = memory.bus_width_bits * memory.pin_rate_gbit_per_s / 8
    given = memory.bandwidth_driver_gb_per_s or memory.bandwidth_gb_per_s
    if _off(computed, given, TOLERANCE):
        yield f"bandwidth is {given:g} GB/s, but bus width x pin rate / 8 give {computed:.4g}"


def _peaks(device: Hardware) -> Iterator[tuple[str, str, float, float]]:
    """Check, format, published peak and recomputed peak [TFLOPS], where the file has all that it takes."""
    matrix, vector = device.matrix, device.vector
    groups = (
        ("matrix peak", matrix, matrix.peak_dense_tflops if matrix else {}),
        ("vector peak", vector, vector.peak_tflops if vector else {}),
    )
    for check, group, peaks in groups:
        if not (group and device.unit and group.clock_mhz):
            continue
        for dtype, flop in (group.flop_per_clock_per_unit or {}).items():
            if dtype in peaks:
                yield check, dtype, peaks[dtype], device.unit.count * flop * group.clock_mhz * MEGA / TERA


def _off(value: float, reference: float, tolerance: float) -> bool:
    return abs(value / reference - 1) > tolerance
