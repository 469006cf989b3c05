"""Many rows at once: alike rows share one evaluation of the formulas, on arrays of their sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from memwall.bound import REGIMES
from memwall.dtypes import precision
from memwall.errors import MemwallError, NotAvailable
from memwall.estimate.constants import Fit
from memwall.estimate.estimate import Estimate, estimate
from memwall.estimate.own import unmeasured
from memwall.estimate.roof import roof
from memwall.estimate.rows import Row
from memwall.hardware import Device
from memwall.ops import registry
from memwall.program import Program


class Prediction(NamedTuple):
    """What a row must cost, and what it is expected to take."""

    flops: float
    read_bytes: float
    written_bytes: float
    regime: str
    bound_time_s: float
    """The program's kernels one after the other."""
    estimate_time_s: float | None
    basis: str | None
    error_p50: float | None
    error_p90: float | None
    unknown: str | None = None
    """Why there is no estimate."""


class Group(NamedTuple):
    """Rows alike in all but their sizes."""

    row: Row
    """Any of them."""
    places: numpy.ndarray[Any, Any]
    """Where they stand among all."""
    program: Program
    """With arrays for dimensions."""
    warm: numpy.ndarray[Any, Any]


def predict(rows: Sequence[Row | MemwallError], own: Sequence[Fit] = ()) -> list[Prediction | MemwallError]:
    """A prediction for each row, or why there is none."""
    results: list[Prediction | MemwallError] = [
        row if isinstance(row, MemwallError) else NotAvailable("not predicted") for row in rows
    ]
    for places in _alike(rows).values():
        try:
            answers: Sequence[Prediction | MemwallError] = _answers(group_of(rows, places), own)
        except MemwallError as error:
            answers = [error] * len(places)
        for place, answer in zip(places, answers, strict=True):
            results[place] = answer
    return results


def _alike(rows: Sequence[Row | MemwallError]) -> dict[tuple[Any, ...], list[int]]:
    groups: dict[tuple[Any, ...], list[int]] = {}
    for place, row in enumerate(rows):
        if isinstance(row, Row):
            groups.setdefault(row.group, []).append(place)
    return groups


def group_of(rows: Sequence[Row | MemwallError], places: Sequence[int]) -> Group:
    """Alike rows as one program with arrays for dimensions.

    Raises:
        NotAvailable: no engine computes in their format.
    """
    members = [row for row in (rows[place] for place in places) if isinstance(row, Row)]
    first = members[0]
    dims = {
        name: numpy.array([member.dims[index][1] for member in members], dtype=float)
        for index, (name, _) in enumerate(first.dims)
    }
    formats = precision(first.dtype, first.weight, first.kv, first.out)
    program = _named(registry.build(first.op, dims, formats, first.causal, first.impl), first.function)
    warm = numpy.array([member.warm for member in members])
    return Group(first, numpy.array(places), program, warm & _held(program, first.device))


def _held(program: Program, device: Device) -> Any:
    """Whether everything fits in L2, so that it can be there; yes where nobody says how large that is."""
    return device.l2_bytes is None or program.work.traffic_bytes <= device.l2_bytes


def _named(program: Program, function: str | None) -> Program:
    """The program of one kernel, called after the function that it computes."""
    if function is None:
        return program
    return program._replace(kernels=(program.kernels[0]._replace(name=function),))


def estimate_group(group: Group, own: Sequence[Fit] = ()) -> Estimate:
    """The estimate of a group, its times an array."""
    row = group.row
    masked = bool(row.causal) and row.impl == "standard"
    return estimate(group.program, row.device, row.library, group.warm, masked, own)


def _answers(group: Group, own: Sequence[Fit]) -> list[Prediction]:
    count = len(group.places)
    made = estimate_group(group, own)
    work = group.program.work
    whole = roof(work, group.row.device, group.warm)

    def column(values: Any) -> Any:
        return numpy.broadcast_to(values, count).tolist()

    columns = zip(
        column(work.flops),
        column(work.read_bytes),
        column(work.written_bytes),
        column(whole.limited_by),
        column(numpy.maximum(whole.time_s, made.bound_time_s)),
        column(made.time_s),
        strict=True,
    )
    rests_on = (made.basis, made.error_p50, made.error_p90)
    why = unmeasured(group.row.impl or group.row.library.kernel, own)
    found = [
        Prediction(flops, read, written, REGIMES[limit], bound_s, time_s, *rests_on)
        for flops, read, written, limit, bound_s, time_s in columns
    ]
    if why is None:
        return found
    return [_without(each, f"no estimate: {why}") for each in found]


def _without(prediction: Prediction, why: str) -> Prediction:
    """The bound alone."""
    return prediction._replace(estimate_time_s=None, basis=None, error_p50=None, error_p90=None, unknown=why)
