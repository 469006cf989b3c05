"""Measured launches, ready to be compared with a mechanism: alike ones side by side in arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy

from memwall.dtypes import precision
from memwall.errors import MemwallError
from memwall.estimate.chip import Chip
from memwall.estimate.choice import generation_of
from memwall.estimate.eager import launched
from memwall.estimate.families import FAMILIES, ROWWISE, run_of
from memwall.estimate.library import Library, of_rows
from memwall.estimate.predict import group_of
from memwall.estimate.roof import roof
from memwall.estimate.rows import Row
from memwall.estimate.rowwise import RowwiseShape
from memwall.program import kernel_work

BITS = 8
Array = numpy.ndarray[Any, Any]


class Measured(NamedTuple):
    """A row and its measured time."""

    row: Row
    time_s: float


class Sample(NamedTuple):
    """Measured launches of one mechanism, formats, library and device."""

    family: str
    format: str
    gpu: str
    generation: str
    library: Library
    op: str
    shape: Any
    chip: Chip
    warm: Array
    bound_s: Array
    time_s: Array

    def where(self, mask: Array) -> Sample:
        """Those launches alone."""

        def part(values: Any) -> Any:
            return values[mask] if isinstance(values, numpy.ndarray) and values.ndim else values

        shape = type(self.shape)(*(part(values) for values in self.shape))
        return self._replace(
            shape=shape, warm=self.warm[mask], bound_s=part(self.bound_s), time_s=self.time_s[mask]
        )

    def predicted_s(self, constants: Any) -> Array:
        """The mechanism's times with those constants, not below the bound."""
        made = FAMILIES[self.family].time_s(self.shape, self.chip, constants, self.warm)
        return numpy.maximum(made, self.bound_s)


def samples_of(measured: Sequence[Measured]) -> list[Sample]:
    """The single launches among measured rows; programs of several kernels are no one mechanism's."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for place, each in enumerate(measured):
        groups.setdefault(each.row.group, []).append(place)
    found = [_sample(measured, places) for places in groups.values()]
    found += [_mask_sample(each) for each in _masked_pairs(measured).values()]
    return [sample for sample in found if sample is not None]


def _masked_pairs(measured: Sequence[Measured]) -> dict[str, list[tuple[Row, float]]]:
    """Unfused attention with and without a mask, by GPU: the difference is the pass that masks."""
    free = {(m.row.device.name, m.row.dims): m.time_s for m in measured if _unfused(m.row, causal=False)}
    pairs: dict[str, list[tuple[Row, float]]] = {}
    for each in measured:
        row = each.row
        without = free.get((row.device.name, row.dims))
        if _unfused(row, causal=True) and without and each.time_s > without:
            pairs.setdefault(row.device.name, []).append((row, each.time_s - without))
    return pairs


def _unfused(row: Row, causal: bool) -> bool:
    return row.impl == "standard" and row.causal is causal


def _mask_sample(pairs: Sequence[tuple[Row, float]]) -> Sample:
    """The masking passes of one GPU."""
    first = pairs[0][0]
    dims = [dict(row.dims) for row, _ in pairs]
    rows = numpy.array([d["batch"] * d["heads"] * d["seq_q"] for d in dims], dtype=float)
    cols = numpy.array([d["seq_kv"] for d in dims], dtype=float)
    score_bytes = precision(first.dtype).scores.bits / BITS
    traffic_bytes = 2 * rows * cols * score_bytes
    chip = Chip.of(first.device)
    return Sample(
        "mask",
        "any",
        first.device.name,
        generation_of(first.device),
        of_rows(first.library),
        "mask",
        RowwiseShape(rows, cols, traffic_bytes, cols * score_bytes, 0.0),
        chip,
        numpy.zeros(len(pairs), dtype=bool),
        traffic_bytes / chip.bandwidth_bytes_per_s,
        numpy.array([time_s for _, time_s in pairs]),
    )


def _sample(measured: Sequence[Measured], places: Sequence[int]) -> Sample | None:
    rows: list[Row | MemwallError] = [each.row for each in measured]
    try:
        group = group_of(rows, places)
        launches = launched(group.program.kernels, group.row.library)
        if len(launches) != 1:
            return None
        kernel = launches[0].kernel
        run = run_of(kernel)
        chip = Chip.of(group.row.device, run.compute)
    except MemwallError:
        return None
    time_s = numpy.array([measured[place].time_s for place in places])
    bound_s = numpy.broadcast_to(roof(kernel_work(kernel), group.row.device, group.warm).time_s, time_s.shape)
    row = group.row
    generation = generation_of(row.device)
    return Sample(
        run.family,
        run.format,
        row.device.name,
        generation,
        of_rows(row.library) if run.family in ROWWISE else row.library,
        row.op.name,
        run.shape,
        chip,
        group.warm,
        bound_s,
        time_s,
    )


def rows_in(samples: Iterable[Sample]) -> int:
    """How many launches."""
    return sum(len(sample.time_s) for sample in samples)
