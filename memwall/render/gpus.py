"""Devices as records and pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memwall.constant import kind_and_text
from memwall.hardware import Device
from memwall.render import rates
from memwall.render.bounds import evidence_record
from memwall.render.data import Record
from memwall.render.page import Lines, Page, Section, Table, numbers
from memwall.render.rates import FORMATS, capacity_bytes, formats, headline_format, roofs
from memwall.units import format_bytes_per_s, scaled, scaled_binary, to_si

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


def record(device: Device) -> Record:
    """The device under its documented keys, in SI units."""
    data, vector, special = device.data, device.vector_peak, device.special_rate
    peaks = {dtype: device.peak(dtype).rate.value for dtype in formats(device)}
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
        "capacity_bytes": capacity_bytes(device),
        "capacity_marketed_bytes": capacity_bytes(device, "capacity_gib", "capacity_gb"),
        "capacity_driver_bytes": capacity_bytes(device, "capacity_driver_bytes"),
        "bandwidth_bytes_per_s": device.bandwidth.value,
        "ridge_points": {dtype: device.ridge_point(dtype) for dtype in peaks},
        "l2_bytes": device.l2_bytes,
        "units": device.units,
        "tdp_w": device.group("power").get("tdp_w"),
        **evidence_record(device, roofs(device)),
    }


def full_record(device: Device) -> Record:
    """The device with everything in its file, in the file's own units."""
    return {**record(device), "data": dict(device.data)}


def list_page(devices: Sequence[Device]) -> Page:
    """Every device, one row each."""
    header = ("GPU", "memory", "capacity", "GB/s", "TFLOP/s", "format", "ridge", "name")
    table = Table([_list_row(device) for device in devices], header, frozenset({2, 3, 4, 6}))
    order = "sorted by maker, year and name; TFLOP/s: dense, bf16, else fp16, else fp32; ridge: FLOP/B"
    return [Section("", table), Section("Notes", Lines([order, *rates.mark_notes(table)]))]


def _list_row(device: Device) -> tuple[str, ...]:
    dtype = headline_format(device)
    return (
        device.name,
        device.data["memory"]["type"],
        _label(device),
        rates.bandwidth_in_gb_per_s(device),
        rates.peak_in_tera(device, dtype),
        dtype or "-",
        rates.ridge(device, dtype, 3),
        device.title + (" (announced)" if device.announced else ""),
    )


def show_page(device: Device) -> Page:
    """One device: the headline, then every group of its file with its sources."""
    headline, peaks = Table(_headline(device)), _peaks_table(device)
    sections = [Section(f"{device.title} ({device.name})", headline)]
    if peaks.rows:
        sections.append(Section("Dense peaks and ridge points", peaks))
    for group in GROUPS:
        sections += _group_sections(group, device.data.get(group))
    notes = [str(device.data["note"])] if device.data.get("note") else []
    if any(cell.endswith(" *") for row in (*headline.rows, *peaks.rows) for cell in row):
        notes.append("* recalled, not checked, or assumed: the sources above say which")
    notes += [f"what if: {key}" for key in device.assumed]
    notes.append(f"file: {device.where}")
    return [*sections, Section("Notes", Lines(notes))]


def compare_page(devices: Sequence[Device]) -> Page:
    """Devices side by side, a column each."""
    dtypes = [dtype for dtype in FORMATS if any(dtype in device.dtypes() for device in devices)]
    rows = [
        ("memory", *(device.data["memory"]["type"] for device in devices)),
        ("capacity", *(_label(device) for device in devices)),
        ("bandwidth", *(rates.bandwidth(device) for device in devices)),
        *((f"{dtype} peak", *(rates.peak(device, dtype) for device in devices)) for dtype in dtypes),
        *(
            (f"{dtype} ridge, {_ridge_unit(dtype)}", *(rates.ridge(device, dtype) for device in devices))
            for dtype in dtypes
        ),
        ("L2", *(scaled_binary(d.l2_bytes) if d.l2_bytes else "-" for d in devices)),
        ("compute units", *(str(device.units or "-") for device in devices)),
        ("NVLink, one way", *(_link_text(device, "nvlink") for device in devices)),
        ("power", *(_power_text(device) for device in devices)),
    ]
    table = numbers(rows, ("", *(d.name for d in devices)))
    notes = rates.mark_notes(table)
    return [Section("", table), *([Section("Notes", Lines(notes))] if notes else [])]


def _headline(device: Device) -> list[tuple[str, ...]]:
    data, source = device.data, device.bandwidth
    return [
        ("vendor", data["vendor"], f"{device.architecture}, {data['year']}, {data['status']}"),
        ("memory", _label(device), data["memory"]["type"]),
        ("bandwidth", rates.bandwidth(device), f"{source.key}, {source.kind}"),
        ("compute units", str(device.units or "-"), device.group("unit").get("kind", "")),
        ("also called", ", ".join(data.get("aliases") or ["-"])),
    ]


def _peaks_table(device: Device) -> Table:
    rows = []
    for dtype in formats(device):
        engine, rate = device.peak(dtype)
        ridge = (rates.ridge(device, dtype), _ridge_unit(dtype))
        rows.append((dtype, rates.peak(device, dtype, clock=False), *ridge, engine, rate.note))
    return Table(rows, ("format", "peak", "ridge", "", "engine", ""), frozenset({1, 2}))


def _ridge_unit(dtype: str) -> str:
    return "OP/B" if rates.is_integer(dtype) else "FLOP/B"


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
    kind, text = kind_and_text(entry)
    keys = f" [{', '.join(entry['for'])}]" if entry.get("for") else ""
    return f"{kind}: {text}{keys}"


def _label(device: Device) -> str:
    """The capacity as it is sold."""
    memory = device.data["memory"]
    for key, unit in (("capacity_gb", "GB"), ("capacity_gib", "GiB")):
        if memory.get(key):
            return f"{memory[key]:g} {unit}"
    capacity = capacity_bytes(device)
    return scaled(capacity, "B", 3) if capacity else "-"


def _link_text(device: Device, link: str) -> str:
    rate = (device.group("links").get(link) or {}).get("gb_per_s_per_direction")
    return format_bytes_per_s(to_si("gb_per_s", rate)) if rate else "-"


def _power_text(device: Device) -> str:
    power = device.group("power")
    return f"{power['tdp_w']:g} W" if power else "-"
