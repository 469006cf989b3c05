"""What would hold a pass that does not fit: other layouts, and fewer sequences."""

from __future__ import annotations

from memwall.dtypes import find
from memwall.models.storage import storage_of
from memwall.nodes import node_of
from memwall.parallel.fit import most_sequences, nearest
from memwall.parallel.layout import Layout, shared_sizes
from memwall.parallel.memory import cache_on_a_gpu, weights_on_a_gpu
from memwall.reports.capacity import CapacityReport
from memwall.reports.step_report import StepReport


def roomier(report: StepReport) -> tuple[Layout, ...]:
    """The layouts nearest to a pass's own that hold its weights and caches."""
    layout, batch = report.spread.layout, report.tokens.batch
    return nearest(report.model, layout, node_of(report.device), lambda each: holds(report, each, batch))


def staged(report: CapacityReport) -> Layout | None:
    """The least deep layout that holds what no tp of one node does; None: one does, or none at all."""
    question = report.question
    if report.fits or report.fewest_gpus or question.kv_memory_bytes or question.weights_given_bytes:
        return None
    model, storage = question.model, storage_of(question.model, question.weight_dtype)

    def held(layout: Layout) -> bool:
        source = question.source_tokens
        kept = cache_on_a_gpu(
            model, question.context, question.batch, layout, find(question.kv_dtype), source
        )
        reserve = question._replace(tensor_parallel=layout.tp).reserved_bytes
        return weights_on_a_gpu(model, storage, layout) + kept + reserve <= report.usable_bytes

    widest = Layout(tp=shared_sizes(model, report.device)[-1])
    found = nearest(model, widest, node_of(report.device), held)
    return min(found, key=lambda layout: layout.gpus, default=None)


def held_sequences(report: StepReport) -> int:
    """Sequences that its own layout holds."""
    return most_sequences(report.tokens.batch, lambda n: holds(report, report.spread.layout, n))


def holds(report: StepReport, layout: Layout, batch: int) -> bool:
    """Whether weights and so many caches are within a GPU's memory; true where that is not known."""
    model, cache = report.model, report.setting.plain.kv
    kept = cache_on_a_gpu(model, report.length, batch, layout, cache, report.source)
    needed = weights_on_a_gpu(model, report.storage, layout) + kept - report.spread.offloaded_bytes
    return report.capacity_bytes is None or needed <= report.capacity_bytes
