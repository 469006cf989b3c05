"""The memory hierarchy: how much each level holds, and how fast it moves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memwall.hierarchy import Level
from memwall.plot.figure import Axis, Curve, Dot, Figure, Point, decades
from memwall.reports.hierarchy import HierarchyReport
from memwall.units import format_bytes, format_bytes_per_s, format_memory

LIMITS = ("registers", "smem", "l2", "cache", "hbm", "host", "nvme")
NODE = ("host", "nvme")
"""Levels that are not on the device: a typical node's."""
_NODES_COLOR, _NODES_FORM = 7, 4


def figure(reports: Sequence[HierarchyReport]) -> Figure:
    """The picture of the levels, each where its size and its bandwidth are known."""
    curves = []
    for color, report in enumerate(reports):
        points = tuple(at for level in report.levels if (at := _at(level)))
        name = report.device.name if len(reports) > 1 else ""
        curves.append(Curve(points, color, name, strong=False, form=color))
    dots = list(_dots(reports))
    sizes, rates = [dot.at[0] for dot in dots], [dot.at[1] for dot in dots]
    x_low, x_high = min(sizes) / _ROOM, max(sizes) * _ROOM
    y_low, y_high = min(rates) / _ROOM, max(rates) * _ROOM
    return Figure(
        f"Memory hierarchy: {', '.join(report.device.name for report in reports)}",
        "All of a device's registers, caches and memory; host memory and NVMe are a typical node's",
        Axis("size", x_low, x_high, decades(x_low, x_high, format_bytes)),
        Axis("bandwidth", y_low, y_high, decades(y_low, y_high, format_bytes_per_s)),
        tuple(curves),
        tuple(dots),
        notes=tuple(_notes(reports)),
    )


_ROOM = 3.0


def _at(level: Level) -> Point | None:
    """Where a level stands; None if its size or its bandwidth is not known."""
    return (level.size.value, level.bandwidth.value) if level.size and level.bandwidth else None


def _dots(reports: Sequence[HierarchyReport]) -> Iterator[Dot]:
    """A dot for each level of each device, from registers outwards; equal ones of nodes are one."""
    found: dict[tuple[str, str, Point], list[tuple[int, HierarchyReport, Level]]] = {}
    for color, report in enumerate(reports):
        for level in report.levels:
            at = _at(level)
            if at is not None:
                whose = "" if level.limit in NODE else report.device.name
                found.setdefault((whose, level.name, at), []).append((color, report, level))
    for (_, name, at), those in sorted(found.items(), key=lambda each: LIMITS.index(each[1][0][2].limit)):
        color, _, level = those[0]
        shared = len(those) > 1
        gpus = ", ".join(report.device.name for _, report, _ in those)
        hover = f"{gpus} {_said(level)}"
        yield Dot(at, _NODES_COLOR if shared else color, name, hover, form=_NODES_FORM if shared else color)


def _said(level: Level) -> str:
    """A level in words, an assumed or recalled size or bandwidth marked so."""
    size, rate = _at(level) or (0.0, 0.0)
    cycles = "" if level.latency_cycles is None else f", {level.latency_cycles:g} cycles"
    sized, fast = (f" {each.kind}" if each and each.weak else "" for each in (level.size, level.bandwidth))
    return f"{level.name}: {format_memory(size)}{sized}, {format_bytes_per_s(rate)}{fast}{cycles}"


def _notes(reports: Sequence[HierarchyReport]) -> Iterator[str]:
    """What is recalled or assumed, of several GPUs alike once, and what is missing."""
    yield from _weak(reports)
    for report in reports:
        unknown = [level.name for level in report.levels if _at(level) is None]
        if unknown:
            yield f"{report.device.name}: no bandwidth known of {', '.join(unknown)}"


def _weak(reports: Sequence[HierarchyReport]) -> Iterator[str]:
    """Weak sizes and bandwidths with what they rest on; that a node's sizes are typical the subtitle says."""
    found: dict[str, list[str]] = {}
    for report in reports:
        for level in report.levels:
            size = None if level.limit in NODE else level.size
            for what, constant in (("size", size), ("bandwidth", level.bandwidth)):
                if constant and constant.weak and _at(level):
                    said = f"the {what} of {level.name} is {constant.kind}: {constant.source}"
                    found.setdefault(said, []).append(report.device.name)
    for said, gpus in found.items():
        yield f"{', '.join(dict.fromkeys(gpus))}: {said}"
