"""What fills a GPU's memory: weights, cache and reserve, against what there is."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.plot.figure import Axis, Bar, Bars, Part, evenly
from memwall.reports.capacity import CapacityReport
from memwall.units import GIBI, scaled_binary


def figure(reports: Sequence[CapacityReport]) -> Bars:
    """The picture of each GPU's memory, in GiB as its driver counts it."""
    first = reports[0]
    question = first.question
    alike = len({report.question.context for report in reports}) == 1
    bars = tuple(_bar(report, alike) for report in reports)
    high = max(max(bar.limit, sum(part.value for part in bar.parts)) for bar in bars) * _ROOM
    shared = f", each of {question.tensor_parallel} GPUs" if question.tensor_parallel > 1 else ""
    sequences = "sequence" if question.batch == 1 else "sequences"
    tokens = f"{question.context} tokens" if alike else "the tokens that each GPU's name says"
    return Bars(
        f"Memory: {first.model.title}{shared}",
        f"{question.batch} {sequences} of {tokens}",
        Axis("", 0.0, high, evenly(high, scaled_binary, GIBI), log=False),
        bars,
    )


_ROOM = 1.04


def _bar(report: CapacityReport, alike: bool) -> Bar:
    """A GPU's bar; where GPUs hold sequences of different lengths, with its own."""
    budget = report.budget
    parts = (
        ("weights", float(budget.weight_bytes), 0),
        ("cache", float(report.cache_bytes), 1),
        ("reserve", float(budget.reserve_bytes), 7),
    )
    return Bar(
        report.device.name if alike else f"{report.device.name}, {report.question.context} tokens",
        tuple(
            Part(name, value, color, scaled_binary(value, digits=3)) for name, value, color in parts if value
        ),
        float(budget.usable_bytes),
        f"{scaled_binary(budget.usable_bytes)} usable",
    )
