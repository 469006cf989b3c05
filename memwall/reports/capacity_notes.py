"""What a careful reader of a capacity report needs to know."""

from __future__ import annotations

from memwall.constant import Constant
from memwall.memory.sequences import POLICIES
from memwall.reports.capacity import CapacityReport
from memwall.reports.evidence import confession
from memwall.reports.lengths import too_long


def notes(report: CapacityReport) -> list[str]:
    """Everything: what holds on any device, and on this."""
    return [*shared_notes(report), *own_notes(report)]


def shared_notes(report: CapacityReport) -> list[str]:
    """What holds on every device."""
    question, model = report.question, report.model
    found = [f"by default: {', '.join(report.defaults)}"] if report.defaults else []
    if model.doubt:
        found.append(confession(model.doubt))
    found += _of_the_reserve(report)
    if question.weights_given_bytes is None and question.weight_dtype is not None:
        found.append("embedding, head, norms and routers stay at 16 bits")
    if question.tensor_parallel > 1:
        found.append(
            "bytes are of one GPU, tokens and sequences of all that share the model: heads, widths and "
            "vocabulary are split while there are any, a latent, an indexer's keys and norms are on each"
        )
    found += too_long(model, question.context, question.source_tokens)
    if len(report.policies) > 1:
        found.append(f"{question.policy}: {POLICIES[question.policy]}")
    return found + _of_what_is_left_out(report)


def own_notes(report: CapacityReport) -> list[str]:
    """What holds on this device alone."""
    found = [confession(report.total)] if report.total.weak else []
    if report.device.announced:
        found.append(f"{report.device.title} is announced, not shipping: its figures are its maker's plans")
    if report.device.own:
        found.append(f"{report.device.name} is read from {report.device.where}")
    if report.question.kv_memory_bytes is not None:
        found.append("the cache's memory is given: weights and reserve do not enter")
    return found


def weak_sources(report: CapacityReport) -> list[dict[str, str]]:
    """The recalled and assumed numbers behind it."""
    doubts: list[Constant] = [report.total] if report.total.weak else []
    doubts += [report.model.doubt] if report.model.doubt else []
    return [{"key": each.key, "kind": each.kind, "source": each.source} for each in doubts]


def _of_the_reserve(report: CapacityReport) -> list[str]:
    question = report.question
    if question.reserve_bytes is not None or question.kv_memory_bytes is not None:
        return []
    return [
        f"reserve = {question.chunk:,} tokens x 2 B x (2 hidden + widest module) + 256 x vocabulary x 6 B of "
        "logits: engines fill a pass with the prompts of many requests, however short each (--chunk); a "
        "module is the attention or MLP of a layer, and what is between its matrices; the CUDA context, NCCL "
        "and graphs take 0.3 GiB and more besides: state them with --reserve"
    ]


def _of_what_is_left_out(report: CapacityReport) -> list[str]:
    model = report.model
    return [] if model.decodes else [f"{model.name} does not generate: it keeps no cache"]
