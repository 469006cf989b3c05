"""Devices as records and pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memwall.constant import Constant
from memwall.errors import NotAvailable
from memwall.hardware import Device
from memwall.render.data import Record
from memwall.render.page import Lines, Page, Section, Table, numbers
from memwall.units import (
    GIGA,
    TERA,
    format_bytes_per_s,
    format_flops_per_s,
    scaled,
    scaled_binary,
    significant,
    to_si,
)

GROUPS = [
    "matrix",
    "vector",
    "special",
    "memory",
    "l2",
    "memory_side_cache",
    "unit",
    "clocks",
    "latency",
    "links",
    "power",
    "silicon",
    "measured",
]
SOURCES = ("seen", "recalled", "derived", "measured", "assumed")


def record(device: Device) -> Record:
    """The device under its documented keys, in SI units."""
    data = device.data
    peaks = {dtype: device.peak(dtype).rate.value for dtype in device.dtypes()}
    vector, special, bandwidth = device.vector_peak(), device.special_rate, device.bandwidth
    capacity = _capacity(device)
    return {
        "gpu": device.name,
        "title": device.title,
        "vendor": data["vendor"],
        "architecture": device.architecture,
        "year": data["year"],
        "status": data["status"],
        "peak_flops_per_s": peaks,
        "vector_flops_per_s": vector.value if vector else None,
        "special_ops_per_s": special.value if special else None,
        "memory_type": data["memory"]["type"],
        "capacity_bytes": capacity.value if capacity else None,
        "bandwidth_bytes_per_s": bandwidth.value,
        "ridge_points": {dtype: peak / bandwidth.value for dtype, peak in peaks.items()},
        "l2_bytes": device.l2_bytes,
        "units": device.units,
        "tdp_w": (data.get("power") or {}).get("tdp_w"),
        "assumed": list(device.assumed),
        "weak_sources": [
            {"key": c.key, "kind": c.kind, "source": c.source} for c in _headline_constants(device) if c.weak
        ],
    }


def full_record(device: Device) -> Record:
    """The device with everything in its file, in the file's own units."""
    return {**record(device), "data": dict(device.data)}


def list_page(devices: Sequence[Device]) -> Page:
    """Every device, one row each."""
    rows = []
    for device in devices:
        peak = _peak(device)
        rate, dtype = (peak.value, peak.key.rpartition(".")[2]) if peak else (None, "-")
        capacity = _capacity(device)
        rows.append(
            (
                device.name,
                device.data["memory"]["type"],
                "-" if capacity is None else _label(device),
                significant(device.bandwidth.value / GIGA),
                "-" if rate is None else significant(rate / TERA),
                dtype,
                "-" if rate is None else significant(rate / device.bandwidth.value, 3),
                device.title + (" (announced)" if device.announced else ""),
            )
        )
    header = ("GPU", "memory", "size", "GB/s", "TFLOP/s", "in", "ridge", "name")
    return [Section("", Table(rows, header, frozenset({2, 3, 4, 6})))]


def show_page(device: Device) -> Page:
    """One device: the headline, then every group of its file with its sources."""
    sections = [Section(f"{device.title} ({device.name})", Table(_headline(device)))]
    sections.append(Section("Dense peaks and ridge points", _peaks_table(device)))
    for group in GROUPS:
        sections += _group_sections(group, device.data.get(group))
    notes = [str(device.data["note"])] if device.data.get("note") else []
    notes += [f"what if: {key}" for key in device.assumed]
    notes.append(f"file: {device.where}")
    return [*sections, Section("Notes", Lines(notes))]


def compare_page(devices: Sequence[Device]) -> Page:
    """Devices side by side, a column each."""
    dtypes = list(dict.fromkeys(dtype for device in devices for dtype in device.dtypes()))
    rows = [
        ("memory", *(device.data["memory"]["type"] for device in devices)),
        ("capacity", *(_label(device) for device in devices)),
        ("bandwidth", *(format_bytes_per_s(d.bandwidth.value) + _mark(d.bandwidth) for d in devices)),
        *((f"{dtype} peak", *(_peak_text(device, dtype) for device in devices)) for dtype in dtypes),
        *(
            (f"{dtype} ridge, FLOP/B", *(_ridge_text(device, dtype) for device in devices))
            for dtype in dtypes
        ),
        ("L2", *(scaled_binary(d.l2_bytes) if d.l2_bytes else "-" for d in devices)),
        ("compute units", *(str(device.units or "-") for device in devices)),
        ("NVLink, one way", *(_link_text(device, "nvlink") for device in devices)),
        ("power", *(_power_text(device) for device in devices)),
    ]
    notes = ["* recalled, not checked, or assumed; a dash: not there, or not published"]
    return [Section("", numbers(rows, ("", *(d.name for d in devices)))), Section("Notes", Lines(notes))]


def _headline(device: Device) -> list[tuple[str, ...]]:
    data, bandwidth = device.data, device.bandwidth
    return [
        ("vendor", data["vendor"], f"{device.architecture}, {data['year']}, {data['status']}"),
        ("memory", _label(device), data["memory"]["type"]),
        (
            "bandwidth",
            format_bytes_per_s(bandwidth.value) + _mark(bandwidth),
            f"{bandwidth.key}, {bandwidth.kind}",
        ),
        ("compute units", str(device.units or "-"), (data.get("unit") or {}).get("kind", "")),
        ("also called", ", ".join(data.get("aliases") or ["-"])),
    ]


def _peaks_table(device: Device) -> Table:
    rows = []
    for dtype in device.dtypes():
        engine, rate = device.peak(dtype)
        ridge = significant(rate.value / device.bandwidth.value)
        rows.append((dtype, format_flops_per_s(rate.value) + _mark(rate), ridge, engine, rate.note))
    return Table(rows, ("format", "peak", "ridge FLOP/B", "engine", ""), frozenset({1, 2}))


def _group_sections(group: str, data: Any) -> list[Section]:
    """A group's values and sources; links and measurements are several groups in one."""
    if not data:
        return []
    if isinstance(data, list):
        return [section for item in data for section in _group_sections(group, item)]
    if "source" not in data:
        return [
            section for name, item in data.items() for section in _group_sections(f"{group}: {name}", item)
        ]
    rows = [(key, value) for key, value in _leaves(data) if key != "source"]
    rows += [("source", _source_text(entry)) for entry in data["source"]]
    return [Section(group, Table(rows))]


def _leaves(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in data.items():
        if key == "source":
            continue
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{key}.")
        elif value is not None:
            yield f"{prefix}{key}", str(value)


def _source_text(entry: Mapping[str, Any]) -> str:
    kind = next(kind for kind in SOURCES if entry.get(kind))
    keys = f" [{', '.join(entry['for'])}]" if entry.get("for") else ""
    return f"{kind}: {entry[kind]}{keys}"


def _headline_constants(device: Device) -> list[Constant]:
    return [device.bandwidth, *(device.peak(dtype).rate for dtype in device.dtypes())]


def _peak(device: Device) -> Constant | None:
    """The 16-bit peak, else the widest that there is."""
    for dtype in ("bf16", "fp16", "fp32", *device.dtypes()):
        if dtype in device.dtypes():
            return device.peak(dtype).rate
    return None


def _capacity(device: Device) -> Constant | None:
    try:
        return device.capacity
    except NotAvailable:
        return None


def _label(device: Device) -> str:
    """The capacity as it is sold."""
    memory = device.data["memory"]
    for key, unit in (("capacity_gb", "GB"), ("capacity_gib", "GiB")):
        if memory.get(key):
            return f"{memory[key]:g} {unit}"
    capacity = _capacity(device)
    return scaled(capacity.value, "B", 3) if capacity else "-"


def _mark(constant: Constant) -> str:
    return " *" if constant.weak else ""


def _peak_text(device: Device, dtype: str) -> str:
    if dtype not in device.dtypes():
        return "-"
    rate = device.peak(dtype).rate
    return format_flops_per_s(rate.value) + _mark(rate)


def _ridge_text(device: Device, dtype: str) -> str:
    if dtype not in device.dtypes():
        return "-"
    return significant(device.peak(dtype).rate.value / device.bandwidth.value)


def _link_text(device: Device, link: str) -> str:
    rate = ((device.data.get("links") or {}).get(link) or {}).get("gb_per_s_per_direction")
    return format_bytes_per_s(to_si("gb_per_s", rate)) if rate else "-"


def _power_text(device: Device) -> str:
    power = device.data.get("power")
    return f"{power['tdp_w']:g} W" if power else "-"
