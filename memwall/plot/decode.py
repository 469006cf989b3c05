"""Time per token over batch, one curve a context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memwall.plot.figure import Axis, Curve, Figure, decades, doublings
from memwall.reports.step import StepReport
from memwall.units import format_seconds


def figure(reports: Mapping[int, Sequence[StepReport]], batches: Sequence[int]) -> Figure:
    """The picture of a decode step at the bound.

    Args:
        reports: by context, of each batch.
        batches: rising.
    """
    first = next(iter(reports.values()))[0]
    times = [report.whole.time_s for each in reports.values() for report in each]
    low, high = min(times) / _ROOM, max(times) * _ROOM
    x = Axis("batch: sequences at once", float(batches[0]), float(batches[-1]), doublings(batches))
    y = Axis("time per token", low, high, decades(low, high, format_seconds))
    curves: list[Curve] = []
    for color, (context, each) in enumerate(reports.items()):
        points = [(float(report.tokens.batch), report.whole.time_s) for report in each]
        fitting = sum(report.fits is not False for report in each)
        if fitting > 1:
            curves.append(Curve(tuple(points[:fitting]), color, f"context {context}"))
        if fitting < len(points):
            beyond = tuple(points[max(fitting - 1, 0) :])
            name = "" if fitting > 1 else f"context {context}"
            curves.append(Curve(beyond, color, name, strong=False, dashed=True))
    dashed = any(curve.dashed for curve in curves)
    layout = first.spread.layout
    several = layout.gpus > 1
    where = f"{layout.gpus} x {first.device.title}, {layout.text}" if several else first.device.title
    room = "each GPU" if several else "one GPU"
    return Figure(
        f"Decode: {first.model.title} on {where}",
        "Least time of one step: weights once, and every sequence's cache",
        x,
        y,
        tuple(curves),
        notes=(f"Dashed: weights and cache are more than the memory of {room}",) if dashed else (),
    )


_ROOM = 1.3
