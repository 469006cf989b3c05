"""Time per token over batch, one curve a context; the estimate above the bound where it was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from memwall.plot.figure import Axis, Curve, Figure, Point, decades, doublings
from memwall.reports.step import StepReport
from memwall.units import format_seconds


def figure(reports: Mapping[int, Sequence[StepReport]], batches: Sequence[int]) -> Figure:
    """The picture of steps of decoding.

    Args:
        reports: by context, of each batch; with an estimate both times are drawn.
        batches: rising.
    """
    first = next(iter(reports.values()))[0]
    expected = first.estimate is not None
    curves = [
        curve
        for color, (context, each) in enumerate(reports.items())
        for curve in _of_context(context, color, each)
    ]
    times = [time_s for curve in curves for _, time_s in curve.points]
    low, high = min(times) / _ROOM, max(times) * _ROOM
    layout = first.spread.layout
    where = f"{layout.gpus} x {first.device.title}, {layout.text}" if layout.gpus > 1 else first.device.title
    least = "Least time of one step: weights once, and every sequence's cache"
    return Figure(
        f"Decode: {first.model.title} on {where}",
        "Expected time of one step, thick, and the least that it can take, thin" if expected else least,
        Axis("batch: sequences at once", float(batches[0]), float(batches[-1]), doublings(batches)),
        Axis("time per token", low, high, decades(low, high, format_seconds)),
        tuple(curves),
        notes=tuple(_notes(first, any(curve.dashed for curve in curves))),
    )


_ROOM = 1.3
_LEAST = "at least "


def _of_context(context: int, color: int, reports: Sequence[StepReport]) -> Iterator[Curve]:
    """The curves of one context: whole as far as it fits, dashed beyond."""
    name = f"context {context}"
    bounds = [(float(report.tokens.batch), float(report.bound_time_s)) for report in reports]
    expected = [
        (float(report.tokens.batch), float(report.estimate.time_s))
        for report in reports
        if report.estimate is not None
    ]
    fitting = sum(report.fits is not False for report in reports)
    if expected:
        yield from _curves(expected, fitting, name, color, "", strong=True)
        for curve in _curves(bounds, fitting, name, color, _LEAST, strong=False):
            yield curve._replace(name="", end="")
    else:
        yield from _curves(bounds, fitting, name, color, _LEAST, strong=True)


def _curves(
    points: Sequence[Point], fitting: int, name: str, color: int, what: str, strong: bool
) -> Iterator[Curve]:
    """One curve in two parts, of which the first has the name; what does not fit is thin and dashed."""
    end = name.removeprefix("context ")
    said = [
        f"{name}, batch {batch:g}: {what}{format_seconds(time_s)}{', does not fit' * (number >= fitting)}"
        for number, (batch, time_s) in enumerate(points)
    ]
    whole = fitting == len(points)
    if fitting:
        yield Curve(
            tuple(points[:fitting]),
            color,
            name,
            strong=strong,
            end=end if whole else "",
            form=color,
            values=tuple(said[:fitting]),
        )
    if not whole:
        yield Curve(
            tuple(points[max(fitting - 1, 0) :]),
            color,
            "" if fitting else name,
            strong=False,
            dashed=True,
            end=end,
            form=color,
            values=("", *said[fitting:]) if fitting else tuple(said),  # the first belongs to the whole part
        )


def _notes(first: StepReport, beyond: bool) -> Iterator[str]:
    """What dashes mean, and how far off such estimates have been."""
    if beyond:
        room = "each GPU" if first.spread.layout.gpus > 1 else "one GPU"
        yield f"Dashed: weights and cache are more than the memory of {room}"
    if first.estimate is not None:
        yield f"Estimate {first.estimate.rests_on}"
