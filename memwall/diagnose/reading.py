"""Reading a profiler's CSV: ncu's raw page, its details page, or a table of rocprof-compute."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from memwall.diagnose.cells import Unreadable, number, read_cell
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
from memwall.units import GIGA, MEGA

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
    unreadable: tuple[str, ...] = ()
    """Metrics whose cell is no number or has an unknown unit, each with what is wrong."""
    capability: str | None = None
    """The compute capability, such as 9.0."""

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
    try:
        rows = _rows(body, kind)
        export = {"ncu raw": _raw, "ncu details": _details, "rocprof-compute": _table}[kind](rows)
    except ValueError as error:
        raise FileError(f"{shown(where, 120)}:{start + 1}: {error}", "Export it again, whole") from None
    if not export.profiles:
        raise FileError(
            f"{shown(where, 120)}:{start + 1}: the table has no kernel", "Profile at least one kernel"
        )
    return export


def _rows(lines: Sequence[str], kind: str) -> list[dict[str, str]]:
    """The rows under their header; ncu's details leave the cells of rules out where there is none.

    Raises:
        ValueError: one has more or fewer cells than that, as in a file that is cut off.
    """
    try:
        header, *rows = csv.reader(lines, strict=True)
    except csv.Error as error:
        raise ValueError(f"the table is cut off or damaged: {error}") from None
    least = header.index("Metric Value") + 1 if kind == "ncu details" else len(header)
    for place, row in enumerate(rows, 1):
        if not least <= len(row) <= len(header):
            raise ValueError(f"row {place} of the table has {len(row)} cells, its header {len(header)}")
    return [dict(zip_longest(header, row, fillvalue="")) for row in rows]


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
        unreadable: list[str] = []
        values = dict(_fields(row, units, unreadable))
        device = next((row[name] for name in DEVICE if row.get(name)), None)
        matrix = {name: _cell(name, row[name], "", Metric(name), unreadable) or 0.0 for name in tensor}
        made = _profile(row["Kernel Name"], device, values, matrix)
        profiles.append(made._replace(unreadable=tuple(unreadable), capability=row.get("CC") or None))
    described = ("ID", "Process", "Host", "Kernel", "Context", "Stream", "Block", "Grid", "Device", "CC")
    unknown = [
        name
        for name in names
        if name
        and name not in known
        and not name.startswith((*described, "device__", "launch__", "profiler__"))
    ]
    return Export("ncu raw", tuple(profiles), tuple(unknown))


def _fields(
    row: Mapping[str, str], units: Mapping[str, str], unreadable: list[str]
) -> Iterator[tuple[str, float]]:
    for metric in METRICS:
        for name in metric.raw:
            value = _cell(name, row.get(name) or "", units.get(name) or "", metric, unreadable)
            if value is not None:
                yield metric.field, value
                break


def _lanes(values: Mapping[str, float]) -> float | None:
    """FLOPs of the lanes, from plain counts or from counts a cycle; a part of the plain ones is no total."""
    if {"fma_count", "add_count", "mul_count"} <= values.keys():
        return 2 * values["fma_count"] + values["add_count"] + values["mul_count"]
    if {"cycles", "fma_a_cycle"} <= values.keys():
        a_cycle = 2 * values["fma_a_cycle"] + values.get("add_a_cycle", 0) + values.get("mul_a_cycle", 0)
        return a_cycle * values["cycles"]
    return None


def _cell(name: str, text: str, unit: str, metric: Metric, unreadable: list[str]) -> float | None:
    """A cell's value; what is wrong with it goes to the list."""
    try:
        return read_cell(text, unit, metric)
    except Unreadable as error:
        unreadable.append(f"{name}: {error}")
        return None


def _details(rows: Sequence[Mapping[str, str]]) -> Export:
    """A metric a row, kernels by ID."""
    names = {name: metric for metric in METRICS for name in metric.details}
    kernels: dict[str, tuple[Mapping[str, str], dict[str, float], list[str]]] = {}
    unknown: dict[str, None] = {}
    for row in rows:
        name = row["Metric Name"]
        _, values, unreadable = kernels.setdefault(row["ID"], (row, {}, []))
        if not name:
            values.update(_excess(row))
            continue
        metric = names.get(f"{row['Section Name']}/{name}") or names.get(name)
        found = metric or next((m for m in METRICS if name in m.raw), None)  # --metrics without a section
        if found is None:
            unknown[name] = None
            continue
        value = _cell(name, row["Metric Value"] or "", row["Metric Unit"] or "", found, unreadable)
        if value is not None:
            values[found.field] = value
    profiles = tuple(
        _profile(first["Kernel Name"], None, values, {})._replace(
            unreadable=tuple(unreadable), capability=first.get("CC") or None
        )
        for first, values, unreadable in kernels.values()
    )
    return Export("ncu details", profiles, tuple(unknown))


def _excess(row: Mapping[str, str]) -> dict[str, float]:
    """The two counts in the sentence of a rule that has them."""
    fields = RULES.get(row.get("Rule Name") or "")
    counts = EXCESS.search(row.get("Rule Description") or "")
    if not (fields and counts):
        return {}
    return {field: number(text) or 0.0 for field, text in zip(fields, counts.groups(), strict=True)}


def _table(rows: Sequence[Mapping[str, str]]) -> Export:
    """A metric a row, of all kernels that were analysed together."""
    names = {name.lower(): metric for metric in METRICS for name in metric.rocprof}
    values: dict[str, float] = {}
    unknown = []
    flops_per_s = 0.0
    unreadable: list[str] = []
    for row in rows:
        name = (row.get("Metric") or "").strip()
        text = next((row[key] for key in ("Avg", "Value", "Mean") if row.get(key)), "")
        unit = (row.get("Unit") or "").strip()
        metric = names.get(name.lower())
        if name.lower().replace("_", " ").startswith(("valu flops", "mfma flops")):
            flops_per_s += (number(text) or 0.0) * (GIGA if unit.lower().startswith("gflop") else 1)
            continue
        if metric is None:
            unknown.append(name)
            continue
        percent = number(row.get("Pct of Peak") or row.get("Pct-of-Peak") or "")
        if metric.share and "pct" not in unit.lower() and percent is not None:
            text, unit = str(percent), "%"
        value = _cell(name, text, unit, metric, unreadable)
        if value is not None:
            values[metric.field] = value
            if metric.field == "dram_bytes_per_s" and percent is not None:
                values["dram_share"] = percent / 100
    flops = flops_per_s * values["time_s"] if flops_per_s and "time_s" in values else None
    profile = Profile("all kernels", None, values, flops, flops_per_s or None, True, None, tuple(unreadable))
    return Export("rocprof-compute", (profile,), tuple(unknown))


def _profile(
    kernel: str, device: str | None, values: dict[str, float], matrix: Mapping[str, float]
) -> Profile:
    """With what follows from other counts: bytes of sectors, FLOPs of instructions."""
    if "l2_counter_bytes" not in values and "l2_sectors" in values:
        values["l2_counter_bytes"] = values["l2_sectors"] * SECTOR_BYTES
    lanes = _lanes(values)
    if lanes is None and not matrix:
        return Profile(kernel, device, values, None)
    formats = {name.removeprefix(TENSOR_FLOPS).partition("_")[0]: flops for name, flops in matrix.items()}
    by_engine = {**formats, "lanes": lanes or 0.0}
    flops = sum(by_engine.values())
    engine = max(by_engine, key=lambda name: by_engine[name]) if flops else None
    return Profile(kernel, device, values, flops, engine=engine)
