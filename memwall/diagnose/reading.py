"""Reading a profiler's CSV: ncu's raw page, its details page, or a table of rocprof-compute."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from memwall.diagnose.metrics import (
    DEVICE,
    METRICS,
    RULES,
    SECTOR_BYTES,
    TENSOR_FLOPS,
    Metric,
    tensor_columns,
)
from memwall.errors import FileError, shown
from memwall.units import GIGA, KILO, MEGA, TERA

PREFIXES = {"": 1, "k": KILO, "K": KILO, "M": MEGA, "G": GIGA, "T": TERA}
SECONDS = {"ns": 1 / GIGA, "us": 1 / MEGA, "usecond": 1 / MEGA, "ms": 1 / KILO, "msecond": 1 / KILO,
           "nsecond": 1 / GIGA, "s": 1.0, "second": 1.0}  # fmt: skip
UNITS = ("byte", "hz", "Hz", "cycle", "inst", "sector", "B", "b")
"""rocprof-compute writes Gb/s for gigabytes a second."""
LONGEST_FILE_BYTES = 256 * MEGA
ROCPROF_FLAG = "-b 2 12 16 17"
"""Blocks of rocprof-compute analyze: speed of light, LDS, vector L1, L2."""
EXCESS = re.compile(r"total of ([\d,]+) excessive \w+ \(\d+% of the total ([\d,]+)")


class Profile(NamedTuple):
    """What a profiler counted of one kernel."""

    kernel: str
    device: str | None
    values: Mapping[str, float]
    """By the fields of `metrics`, in SI units and fractions."""
    flops: float | None
    """Of all engines that were counted; None if none was."""
    flops_per_s: float | None = None
    """Where the profiler gives the rate alone."""
    by_rocprof: bool = False
    engine: str | None = None
    """Where most of the FLOPs were done: a format of the matrix unit, or `lanes`; None if not counted."""

    @property
    def missing(self) -> list[tuple[str, str]]:
        """What the export does not have and its profiler could collect, and with which flag."""
        absent = [metric for metric in METRICS if metric.field not in self.values]
        if self.by_rocprof:
            return [(metric.field, ROCPROF_FLAG) for metric in absent if metric.rocprof]
        return [(metric.field, metric.flag) for metric in absent if metric.flag]


class Export(NamedTuple):
    """A whole export."""

    format: str
    """ncu raw, ncu details or rocprof-compute."""
    profiles: tuple[Profile, ...]
    unknown: tuple[str, ...]
    """Metrics that nothing here reads."""


def read(path: str) -> Export:
    """The kernels of an export.

    Raises:
        FileError: missing, unreadable, too large, or none of the formats.
    """
    try:
        with open(path, encoding="utf-8", errors="replace", newline="") as file:
            text = file.read(LONGEST_FILE_BYTES + 1)
    except OSError as error:
        raise FileError(
            f"{shown(path, 120)}: cannot be read: {error.strerror}",
            "Export one: ncu --csv --page raw -i report.ncu-rep",
        ) from None
    if len(text) > LONGEST_FILE_BYTES:
        raise FileError(
            f"{shown(path, 120)}: longer than 256 MB", "Export fewer kernels: ncu --launch-count 20"
        )
    return parse(text, path)


def parse(text: str, where: str) -> Export:
    """The kernels in an export's text; lines of the program and of ncu itself before the table are skipped.

    Raises:
        FileError: none of the formats, or a table without a kernel.
    """
    lines = text.splitlines()
    start, kind = next(((i, kind) for i, line in enumerate(lines) if (kind := _kind(line))), (0, ""))
    if not kind:
        raise FileError(
            f"{shown(where, 120)}:1: no table of a profiler that is known here",
            "Give ncu --csv --page raw or details, or a table that rocprof-compute analyze saved as CSV",
        )
    body = [line for line in lines[start:] if line.strip() and not line.startswith("==")]
    rows = list(csv.DictReader(body))
    try:
        export = {"ncu raw": _raw, "ncu details": _details, "rocprof-compute": _table}[kind](rows)
    except ValueError as error:
        raise FileError(f"{shown(where, 120)}:{start + 1}: {error}", "Export it again, whole") from None
    if not export.profiles:
        raise FileError(
            f"{shown(where, 120)}:{start + 1}: the table has no kernel", "Profile at least one kernel"
        )
    return export


def _kind(line: str) -> str:
    """What table a line is the header of, if of one."""
    cells = {cell.strip() for cell in next(csv.reader([line]), [])}
    if {"Kernel Name", "Section Name", "Metric Name", "Metric Value"} <= cells:
        return "ncu details"
    if {"ID", "Kernel Name"} <= cells:
        return "ncu raw"
    if "Metric" in cells and cells & {"Avg", "Value", "Mean"}:
        return "rocprof-compute"
    return ""


def _raw(rows: Sequence[Mapping[str, str]]) -> Export:
    """A kernel a row; the row without an ID has the units."""
    units = next((row for row in rows if not row["ID"]), {})
    names = list(rows[0]) if rows else []
    tensor = tensor_columns(names)
    known = {name for metric in METRICS for name in metric.raw} | set(tensor) | set(DEVICE)
    profiles = []
    for row in rows:
        if not row["ID"]:
            continue
        values = dict(_fields(row, units))
        device = next((row[name] for name in DEVICE if row.get(name)), None)
        matrix = {name: _number(row[name]) or 0.0 for name in tensor}
        profiles.append(_profile(row["Kernel Name"], device, values, matrix))
    described = ("ID", "Process", "Host", "Kernel", "Context", "Stream", "Block", "Grid", "Device", "CC")
    unknown = [
        name
        for name in names
        if name
        and name not in known
        and not name.startswith((*described, "device__", "launch__", "profiler__"))
    ]
    return Export("ncu raw", tuple(profiles), tuple(unknown))


def _fields(row: Mapping[str, str], units: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    for metric in METRICS:
        for name in metric.raw:
            value = _number(row.get(name) or "")
            if value is not None:
                yield metric.field, _in_si(value, units.get(name) or "", metric)
                break


def _details(rows: Sequence[Mapping[str, str]]) -> Export:
    """A metric a row, kernels by ID."""
    names = {name: metric for metric in METRICS for name in metric.details}
    kernels: dict[str, tuple[str, dict[str, float]]] = {}
    unknown: dict[str, None] = {}
    for row in rows:
        name = row["Metric Name"]
        kernel = kernels.setdefault(row["ID"], (row["Kernel Name"], {}))
        if not name:
            kernel[1].update(_excess(row))
            continue
        metric = names.get(f"{row['Section Name']}/{name}") or names.get(name)
        raw = next((m for m in METRICS if name in m.raw), None)  # --metrics without a section
        found, value = metric or raw, _number(row["Metric Value"] or "")
        if found is None:
            unknown[name] = None
        elif value is not None:
            kernel[1][found.field] = _in_si(value, row["Metric Unit"] or "", found)
    profiles = tuple(_profile(name, None, values, {}) for name, values in kernels.values())
    return Export("ncu details", profiles, tuple(unknown))


def _excess(row: Mapping[str, str]) -> dict[str, float]:
    """The two counts in the sentence of a rule that has them."""
    fields = RULES.get(row.get("Rule Name") or "")
    counts = EXCESS.search(row.get("Rule Description") or "")
    if not (fields and counts):
        return {}
    return {field: _number(text) or 0.0 for field, text in zip(fields, counts.groups(), strict=True)}


def _table(rows: Sequence[Mapping[str, str]]) -> Export:
    """A metric a row, of all kernels that were analysed together."""
    names = {name.lower(): metric for metric in METRICS for name in metric.rocprof}
    values: dict[str, float] = {}
    unknown = []
    flops_per_s = 0.0
    for row in rows:
        name = (row.get("Metric") or "").strip()
        text = next((row[key] for key in ("Avg", "Value", "Mean") if row.get(key)), "")
        number, unit = _number(text), (row.get("Unit") or "").strip()
        metric = names.get(name.lower())
        if name.lower().replace("_", " ").startswith(("valu flops", "mfma flops")) and number is not None:
            flops_per_s += number * GIGA if unit.lower().startswith("gflop") else number
        elif metric is None:
            unknown.append(name)
        elif number is not None:
            percent = _number(row.get("Pct of Peak") or row.get("Pct-of-Peak") or "")
            wanted = percent if metric.share and "pct" not in unit.lower() and percent is not None else number
            values[metric.field] = wanted / 100 if metric.share else _in_si(number, unit, metric)
            if metric.field == "dram_bytes_per_s" and percent is not None:
                values["dram_share"] = percent / 100
    flops = flops_per_s * values["time_s"] if flops_per_s and "time_s" in values else None
    profile = Profile("all kernels", None, values, flops, flops_per_s or None, by_rocprof=True)
    return Export("rocprof-compute", (profile,), tuple(unknown))


def _profile(
    kernel: str, device: str | None, values: dict[str, float], matrix: Mapping[str, float]
) -> Profile:
    """With what follows from other counts: bytes of sectors, FLOPs of instructions."""
    if "l2_counter_bytes" not in values and "l2_sectors" in values:
        values["l2_counter_bytes"] = values["l2_sectors"] * SECTOR_BYTES
    lanes = None
    if {"cycles", "fma_a_cycle"} <= values.keys():
        a_cycle = 2 * values["fma_a_cycle"] + values.get("add_a_cycle", 0) + values.get("mul_a_cycle", 0)
        lanes = a_cycle * values["cycles"]
    if lanes is None and not matrix:
        return Profile(kernel, device, values, None)
    formats = {name.removeprefix(TENSOR_FLOPS).partition("_")[0]: flops for name, flops in matrix.items()}
    by_engine = {**formats, "lanes": lanes or 0.0}
    flops = sum(by_engine.values())
    engine = max(by_engine, key=lambda name: by_engine[name]) if flops else None
    return Profile(kernel, device, values, flops, engine=engine)


def _number(text: str) -> float | None:
    """A number as profilers write it, commas at the thousands; None for words and nothing."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def _in_si(value: float, unit: str, metric: Metric) -> float:
    """The value in SI units: 70.08 us, 1.04 Tbyte/s, 16.38 Kbyte/block, 50 %."""
    if metric.share:
        return value / 100
    first = unit.partition("/")[0].strip()
    if first in SECONDS:
        return value * SECONDS[first]
    for prefix, factor in PREFIXES.items():
        if any(first == prefix + each or first == prefix + each + "s" for each in UNITS):
            return value * factor
    return value * metric.scale
