"""A device's peaks, bandwidth and ridge points as text, with the marks that say what they rest on."""

from __future__ import annotations

import re

from memwall.bound import Bound, bound
from memwall.errors import NotAvailable
from memwall.hardware import Device
from memwall.program import Work
from memwall.render.page import Table, star
from memwall.units import GIGA, TERA, format_bytes_per_s, format_flops_per_s, scaled, significant

FORMATS = "fp64 fp32 tf32 bf16 fp16 fp8 fp6 fp4 nvfp4 mxfp4 int8 int4".split()  # noqa: SIM905
"""The formats in the order of every list of peaks: floats before integers, wide before narrow."""

_MARKS = re.compile(r"(?: |^)([*^-]+)$")
_NOTES = {
    "*": "* recalled, not checked, or assumed: memwall gpu show GPU has the source",
    "^": "^ at the maximum clock, which such parts reach; the published peak is at a lower one",
    "-": "a dash: not there, or not published",
}


def mark_notes(table: Table) -> list[str]:
    """What the marks in a table mean: of the last words of its cells, such as `*^`."""
    found = {mark for row in table.rows for cell in row[1:] for mark in _MARKS.findall(cell)}
    return [note for mark, note in _NOTES.items() if any(mark in marks for marks in found)]


def formats(device: Device) -> list[str]:
    """The formats that a device has a peak for, in their order."""
    own = device.dtypes()
    return [*(dtype for dtype in FORMATS if dtype in own), *(dtype for dtype in own if dtype not in FORMATS)]


def headline_format(device: Device) -> str | None:
    """The format of a device's one peak in a list: 16 bits, else the widest that there is."""
    return next(
        (dtype for dtype in ("bf16", "fp16", "fp32", *formats(device)) if dtype in device.dtypes()), None
    )


def roofs(device: Device) -> list[Bound]:
    """The bound of a byte, and of a byte and a FLOP in each format: what they rest on, the headline does."""
    works = [Work(1, 0, {dtype: 1}, 0, 0) for dtype in formats(device)]
    return [bound(work, device) for work in works or [Work(1, 0, {}, 0, 0)]]


def bandwidth(device: Device) -> str:
    """3.352 TB/s, marked."""
    return format_bytes_per_s(device.bandwidth.value) + star(device.bandwidth.weak)


def bandwidth_in_gb_per_s(device: Device) -> str:
    """3352, marked."""
    return significant(device.bandwidth.value / GIGA) + star(device.bandwidth.weak)


def peak(device: Device, dtype: str, clock: bool = True) -> str:
    """989.4 TFLOP/s, marked, for its clock only if `clock`; integers in OP/s; a dash without one."""
    if dtype not in device.dtypes():
        return "-"
    rate = device.peak(dtype).rate
    text = scaled(rate.value, "OP/s") if is_integer(dtype) else format_flops_per_s(rate.value)
    return text + (_marks(device, dtype) if clock else star(rate.weak))


def peak_in_tera(device: Device, dtype: str | None) -> str:
    """989.4, marked; a dash without one."""
    if dtype is None:
        return "-"
    return significant(device.peak(dtype).rate.value / TERA) + _marks(device, dtype)


def ridge(device: Device, dtype: str | None, digits: int = 4) -> str:
    """295.1, marked if the peak or the bandwidth is; a dash without a peak."""
    if dtype is None or dtype not in device.dtypes():
        return "-"
    weak = device.peak(dtype).rate.weak or device.bandwidth.weak
    return significant(device.ridge_point(dtype), digits) + star(weak)


def is_integer(dtype: str) -> bool:
    """Whether a format's peak counts integer operations, not FLOPs."""
    return dtype.startswith("int")


def capacity_bytes(device: Device, *keys: str) -> float | None:
    """The first of some capacities that the device's file has [B]; without keys, the one that counts."""
    if not keys:
        try:
            return device.capacity.value
        except NotAvailable:
            return None
    known = [key for key in keys if device.data["memory"].get(key)]
    return device.constant("memory", known[0]).value if known else None


def _marks(device: Device, dtype: str) -> str:
    rate = device.peak(dtype).rate
    marks = ("*" if rate.weak else "") + ("^" if rate.note.startswith("at the") else "")
    return f" {marks}" if marks else ""
