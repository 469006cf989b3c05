"""The memory hierarchy: how much each level holds, and how fast it moves."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.plot.figure import Axis, Curve, Dot, Figure, decades
from memwall.reports.hierarchy import HierarchyReport
from memwall.units import format_bytes, format_bytes_per_s, scaled_binary


def figure(reports: Sequence[HierarchyReport]) -> Figure:
    """The picture of the levels, each where its size and its bandwidth are known."""
    curves, dots = [], []
    for color, report in enumerate(reports):
        known = [level for level in report.levels if level.size and level.bandwidth]
        points = [
            (level.size.value, level.bandwidth.value) for level in known if level.size and level.bandwidth
        ]
        curves.append(Curve(tuple(points), color, report.device.name, strong=False))
        for level, (size, rate) in zip(known, points, strict=True):
            cycles = "" if level.latency_cycles is None else f", {level.latency_cycles:g} cycles"
            moves = f"{scaled_binary(size)}, {format_bytes_per_s(rate)}{cycles}"
            hover = f"{report.device.name} {level.name}: {moves}"
            dots.append(Dot((size, rate), color, level.name if color == 0 else "", hover))
    sizes, rates = [dot.at[0] for dot in dots], [dot.at[1] for dot in dots]
    x_low, x_high = min(sizes) / _ROOM, max(sizes) * _ROOM
    y_low, y_high = min(rates) / _ROOM, max(rates) * _ROOM
    unknown = [
        f"{report.device.name}: no bandwidth known of {', '.join(names)}"
        for report in reports
        if (names := [level.name for level in report.levels if not (level.bandwidth and level.size)])
    ]
    return Figure(
        f"Memory hierarchy: {', '.join(report.device.name for report in reports)}",
        "Each level of the whole device, from registers to the node",
        Axis("size", x_low, x_high, decades(x_low, x_high, format_bytes)),
        Axis("bandwidth", y_low, y_high, decades(y_low, y_high, format_bytes_per_s)),
        tuple(curves),
        tuple(dots),
        notes=tuple(unknown),
    )


_ROOM = 3.0
