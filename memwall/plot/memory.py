"""What fills a GPU's memory: weights, cache and reserve, against what there is."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.plot.figure import Axis, Bar, Bars, Part, evenly
from memwall.reports.capacity import CapacityReport
from memwall.units import GIBI, scaled_binary


def figure(reports: Sequence[CapacityReport], named_context: bool = True) -> Bars:
    """The picture of each GPU's memory, in GiB as its driver counts it: what differs stands at the bars.

    Args:
        reports: a bar each.
        named_context: whether their contexts were asked for; a note says so if not, and they differ.
    """
    said = [_question(report) for report in reports]
    same = [name for name in said[0] if len({each[name] for each in said}) == 1]
    gpus = {report.device.name for report in reports}
    bars = tuple(
        _bar(report, [text for name, text in each.items() if name not in same], len(gpus) > 1)
        for report, each in zip(reports, said, strict=True)
    )
    high = max(max(bar.limit, sum(part.value for part in bar.parts)) for bar in bars) * _ROOM
    alike = [said[0][name] for name in same if said[0][name]]
    on = "" if len(gpus) > 1 else f" on {reports[0].device.name}"
    return Bars(
        f"Memory: {reports[0].model.title}{on}",
        ", ".join(alike) or "As each bar says",
        Axis("", 0.0, high, evenly(high, scaled_binary, GIBI), log=False),
        bars,
        _OWN_CONTEXTS
        if not named_context and len({report.question.context for report in reports}) > 1
        else (),
    )


_ROOM = 1.04
_OWN_CONTEXTS = (
    "Each bar has the longest context that fits, or the model's own; --context sets one for all",
)


def _question(report: CapacityReport) -> dict[str, str]:
    """What was asked, in words."""
    question = report.question
    gpus = question.tensor_parallel
    return {
        "gpus": f"each of {gpus} GPUs" if gpus > 1 else "",
        "batch": f"{question.batch:,} sequence{'' if question.batch == 1 else 's'}",
        "context": f"{question.context:,} tokens{'' if question.batch == 1 else ' each'}",
        "weights": f"{question.weight_dtype} weights" if question.weight_dtype else "",
        "kv": f"{question.kv_dtype} cache",
    }


def _bar(report: CapacityReport, said: Sequence[str], named: bool) -> Bar:
    """A GPU's bar, named by what differs from the others."""
    budget = report.budget
    parts = (
        ("weights", float(budget.weight_bytes), 0),
        ("cache", float(report.cache_bytes), 1),
        ("reserve", float(budget.reserve_bytes), 7),
    )
    names = [report.device.name, *said] if named or not said else said
    return Bar(
        ", ".join(name for name in names if name),
        tuple(
            Part(name, value, color, scaled_binary(value, digits=3)) for name, value, color in parts if value
        ),
        float(budget.usable_bytes),
        f"{scaled_binary(budget.usable_bytes)} usable",
    )
