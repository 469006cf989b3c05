"""Estimated against measured times: a point for each measured row, on the diagonal where they agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from memwall.errors import FileError, MemwallError
from memwall.estimate import measurements
from memwall.estimate.predict import predict
from memwall.estimate.rows import Row
from memwall.hardware import load
from memwall.plot import notes
from memwall.plot.figure import Axis, Cloud, Curve, Figure, Point, decades
from memwall.reports.accuracy import TOLERANCE, label, nothing
from memwall.units import format_seconds, significant

GROUPS = ("products", "prefill attention", "decode attention", "streams, norms, softmax")
_SLACK = f"{100 * (TOLERANCE - 1):.0f} %"
WITHIN = 0.25
"""The share of the measured time that the dashed lines stand apart."""


class Agreement(NamedTuple):
    """Measured rows with their estimates."""

    data: str
    points: Mapping[str, tuple[Point, ...]]
    """Measured and estimated time [s], by group."""
    bounds: Mapping[str, tuple[Point, ...]]
    """Measured and bound time [s]."""
    left_out: Mapping[str, int]
    """Why rows have no point, and how many."""
    beaten: Sequence[str]
    """Rows that were faster than their bound by more than clocks and timers are off."""

    @property
    def every(self) -> list[Point]:
        """All estimates."""
        return [point for points in self.points.values() for point in points]


def agreement(data: str | None = None, gpu: str | None = None) -> Agreement:
    """The rows of a table, or those that memwall ships, with what is expected of them.

    Args:
        data: a file or folder of measured rows; the shipped ones if not given.
        gpu: the GPU of tables that name none.

    Raises:
        FileError: nothing there can be read, or no row of it has an estimate.
        UsageError: there is no such `gpu`.
    """
    if gpu is not None:
        load(gpu)
    reading = measurements.read(data, gpu) if data else measurements.read_shipped()
    rows: list[Row | MemwallError] = [each.row for each in reading.measured]
    points: dict[str, list[Point]] = {group: [] for group in GROUPS}
    bounds: dict[str, list[Point]] = {group: [] for group in GROUPS}
    left_out, beaten = dict(reading.left_out), []
    for each, answer in zip(reading.measured, predict(rows), strict=True):
        if isinstance(answer, MemwallError):
            left_out[answer.message] = left_out.get(answer.message, 0) + 1
            continue
        group = _group(each.row)
        bounds[group].append((each.time_s, answer.bound_time_s))
        if answer.bound_time_s > TOLERANCE * each.time_s:
            beaten.append(f"{label(each.row)} on {each.row.device.name}")
        if answer.estimate_time_s is None:
            left_out[_NO_ESTIMATE] = left_out.get(_NO_ESTIMATE, 0) + 1
        else:
            points[group].append((each.time_s, answer.estimate_time_s))
    if not any(points.values()):
        raise FileError(nothing(data or "", reading.left_out, len(rows)), "Columns of predict, and time_us")
    return Agreement(
        data or "the shipped rows",
        {name: tuple(found) for name, found in points.items()},
        {name: tuple(found) for name, found in bounds.items()},
        left_out,
        beaten,
    )


_NO_ESTIMATE = "without an estimate"


def warnings(found: Agreement, *, bound: bool = False) -> list[str]:
    """What a reader of the picture has to know of its rows; each has a bound, even without an estimate."""
    missing = {why: count for why, count in found.left_out.items() if not (bound and why == _NO_ESTIMATE)}
    return [*notes.beaten(found.beaten, "row"), *notes.left_out(missing)]


def _group(row: Row) -> str:
    what = label(row)
    if "gemm" in what or what == "gemv":
        return GROUPS[0]
    if "attention" in what or "MLA" in what:
        return GROUPS[2] if what.startswith("decode") else GROUPS[1]
    return GROUPS[3]


def figure(found: Agreement, *, bound: bool = False) -> Figure:
    """The picture of estimates, or of bounds, above whose line no point may be by more than the tolerance."""
    shown = found.bounds if bound else found.points
    every = [value for points in shown.values() for point in points for value in point]
    low, high = min(every) / _ROOM, max(every) * _ROOM
    ticks = decades(low, high, format_seconds)
    curves = [Curve(((low, low), (high, high)), 7, "", "as measured")]
    if not bound:
        over, under = 1 + WITHIN, 1 - WITHIN
        lines = ((low, low * over), (high / over, high)), ((low / under, low), (high, high * under))
        curves += [Curve(line, 7, strong=False, dashed=True) for line in lines]
    pairs = [point for points in shown.values() for point in points]
    near = sum(abs(said / measured - 1) <= WITHIN for measured, said in pairs)
    above = len(found.beaten)
    wrong = f"; no row is faster than its bound by more than {_SLACK}"
    if above:
        wrong = f"; {above:,} of {len(pairs):,} rows are faster than their bound by more than {_SLACK}"
    share = f"{100 * near / len(pairs):.1f} % of {len(pairs):,} rows are within a quarter of it, dashed"
    what = "bound" if bound else "estimate"
    clouds = tuple(
        Cloud(points, GROUPS.index(name), name, _said(points)) for name, points in shown.items() if points
    )
    return Figure(
        f"Accuracy: {what} against measured time",
        f"{found.data}{wrong if bound else f'; {share}'}",
        Axis("measured", low, high, ticks),
        Axis(what, low, high, ticks),
        tuple(curves),
        clouds=clouds,
        notes=tuple(warnings(found, bound=bound)),
    )


def _said(points: Sequence[Point]) -> str:
    """How many points there are, how near to the measured times, and how far the furthest are off."""
    ratios = sorted(said / measured for measured, said in points)
    near = sum(abs(ratio - 1) <= WITHIN for ratio in ratios) / len(ratios)
    least, middle, most = (significant(ratios[i], 3) for i in (0, len(ratios) // 2, -1))
    return (
        f"{len(ratios):,} rows, {100 * near:.1f} % within a quarter of the measured time, ratios to it "
        f"{least} to {most}, the middle one {middle}"
    )


_ROOM = 1.5
