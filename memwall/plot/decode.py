"""Time per token over batch, one curve a context and GPU; the estimate above the bound where asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from memwall.plot.figure import Axis, Curve, Figure, Point, decades, doublings
from memwall.reports.step import StepReport
from memwall.units import format_seconds


def figure(rows: Sequence[Sequence[StepReport]], batches: Sequence[int]) -> Figure:
    """The picture of steps of decoding.

    Args:
        rows: the reports of a GPU at a context, one a batch; with an estimate both times are drawn.
        batches: rising.
    """
    first = rows[0][0]
    expected = first.estimate is not None
    curves = [
        curve
        for color, (name, each) in enumerate(zip(_names(rows), rows, strict=True))
        for curve in _of_row(name, color, each)
    ]
    times = [time_s for curve in curves for _, time_s in curve.points]
    low, high = min(times) / _ROOM, max(times) * _ROOM
    least = "Least time of one step: weights once, and every sequence's cache"
    return Figure(
        f"Decode: {first.model.title} on {_where(rows)}",
        _BOTH if expected else least,
        Axis("batch: sequences at once", float(batches[0]), float(batches[-1]), doublings(batches)),
        Axis("time per token", low, high, decades(low, high, format_seconds)),
        tuple(curves),
        notes=tuple(_notes(rows, any(curve.dashed for curve in curves))),
        plain_subtitle=_BOTH_IN_KEY if expected else "",
    )


_BOTH = "Expected time of one step, thick, and the least that it can take, thin"
_BOTH_IN_KEY = "Expected time of one step, the estimate, and the least that it can take, the bound"


class Name(NamedTuple):
    """What a row is called in the legend, and at its end."""

    whole: str
    brief: str


def _names(rows: Sequence[Sequence[StepReport]]) -> list[Name]:
    """The rows by what they differ in: contexts, GPUs, or both."""
    those = [(row[0].device.name, row[0].tokens.seq_kv) for row in rows]
    if len({gpu for gpu, _ in those}) == 1:
        return [Name(f"context {context}", str(context)) for _, context in those]
    several = len({context for _, context in those}) > 1
    return [
        Name(f"{gpu}, context {context}", f"{gpu} {context}" if several else gpu) for gpu, context in those
    ]


def _where(rows: Sequence[Sequence[StepReport]]) -> str:
    """The GPU, or the GPUs, and how they share the model."""
    layout = rows[0][0].spread.layout
    devices = {row[0].device.name: row[0].device for row in rows}
    titles = ", ".join(devices) if len(devices) > 1 else rows[0][0].device.title
    return f"{layout.gpus} x {titles}, {layout.text}" if layout.gpus > 1 else titles


_ROOM = 1.3
_LEAST, _BEYOND = "at least ", ", does not fit"


def _of_row(name: Name, color: int, reports: Sequence[StepReport]) -> Iterator[Curve]:
    """The curves of one row: whole as far as it fits, dashed beyond."""
    bounds = [(float(report.tokens.batch), float(report.bound_time_s)) for report in reports]
    expected = [
        (float(report.tokens.batch), float(report.estimate.time_s))
        for report in reports
        if report.estimate is not None
    ]
    fitting = sum(report.fits is not False for report in reports)
    if expected:
        for curve in _curves(expected, fitting, name, color, "", strong=True):
            yield curve._replace(key=f"{curve.name}, estimate" if curve.name else "")
        for curve in _curves(bounds, fitting, name, color, _LEAST, strong=False):
            yield curve._replace(name="", end="", key=f"{curve.name}, bound" if curve.name else "")
    else:
        yield from _curves(bounds, fitting, name, color, _LEAST, strong=True)


def _curves(
    points: Sequence[Point], fitting: int, name: Name, color: int, what: str, strong: bool
) -> Iterator[Curve]:
    """One curve in two parts, of which the first has the name; what does not fit is thin and dashed."""
    said = [
        f"{name.whole}, batch {batch:g}: {what}{format_seconds(time_s)}{_BEYOND * (i >= fitting)}"
        for i, (batch, time_s) in enumerate(points)
    ]
    whole = fitting == len(points)
    if fitting:
        yield Curve(
            tuple(points[:fitting]),
            color,
            name.whole,
            strong=strong,
            end=name.brief if whole else "",
            form=color,
            values=tuple(said[:fitting]),
        )
    if not whole:
        yield Curve(
            tuple(points[max(fitting - 1, 0) :]),
            color,
            "" if fitting else name.whole,
            strong=False,
            dashed=True,
            end=name.brief,
            form=color,
            values=("", *said[fitting:]) if fitting else tuple(said),  # the first belongs to the whole part
        )


def _notes(rows: Sequence[Sequence[StepReport]], beyond: bool) -> Iterator[str]:
    """What dashes mean, and how far off such estimates have been."""
    first = rows[0][0]
    devices = {row[0].device.name: row[0] for row in rows}
    if beyond:
        room = "each GPU" if first.spread.layout.gpus > 1 or len(devices) > 1 else "one GPU"
        yield f"Dashed: weights and cache are more than the memory of {room}"
    for name, report in devices.items():
        if report.estimate is not None:
            whose = f"Estimate of {name}: " if len(devices) > 1 else "Estimate "
            yield f"{whose}{report.estimate.rests_on}"
