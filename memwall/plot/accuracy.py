"""Estimated against measured times: a point for each measured row, on the diagonal where they agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from memwall.errors import MemwallError
from memwall.estimate import measurements
from memwall.estimate.predict import predict
from memwall.estimate.rows import Row
from memwall.plot.figure import Axis, Cloud, Curve, Figure, Point, decades
from memwall.reports.accuracy import label
from memwall.units import format_seconds

GROUPS = ("products", "prefill attention", "decode attention", "streams, norms, softmax")
WITHIN = 0.25
"""The share of the measured time that the dashed lines stand apart."""


class Agreement(NamedTuple):
    """Measured rows with their estimates."""

    data: str
    points: Mapping[str, tuple[Point, ...]]
    """Measured and estimated time [s], by group."""
    bounds: Mapping[str, tuple[Point, ...]]
    """Measured and bound time [s]."""

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
        FileError: nothing there can be read.
    """
    reading = measurements.read(data, gpu) if data else measurements.read_shipped()
    rows: list[Row | MemwallError] = [each.row for each in reading.measured]
    points: dict[str, list[Point]] = {group: [] for group in GROUPS}
    bounds: dict[str, list[Point]] = {group: [] for group in GROUPS}
    for each, answer in zip(reading.measured, predict(rows), strict=True):
        if not isinstance(answer, MemwallError) and answer.estimate_time_s is not None:
            group = _group(each.row)
            points[group].append((each.time_s, answer.estimate_time_s))
            bounds[group].append((each.time_s, answer.bound_time_s))
    return Agreement(
        data or "the shipped rows",
        {name: tuple(found) for name, found in points.items()},
        {name: tuple(found) for name, found in bounds.items()},
    )


def _group(row: Row) -> str:
    what = label(row)
    if "gemm" in what or what == "gemv":
        return GROUPS[0]
    if "attention" in what or "MLA" in what:
        return GROUPS[2] if what.startswith("decode") else GROUPS[1]
    return GROUPS[3]


def figure(found: Agreement, *, bound: bool = False) -> Figure:
    """The picture of estimates, or of bounds, which no point may be above."""
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
    share = f"{100 * near / len(pairs):.1f} % of {len(pairs):,} rows are within a quarter of it, dashed"
    what = "bound" if bound else "estimate"
    clouds = tuple(Cloud(points, GROUPS.index(name), name) for name, points in shown.items() if points)
    return Figure(
        f"Accuracy: {what} against measured time",
        f"{found.data}; {'a point above the line would be a wrong bound' if bound else share}",
        Axis("measured", low, high, ticks),
        Axis(what, low, high, ticks),
        tuple(curves),
        clouds=clouds,
    )


_ROOM = 1.5
