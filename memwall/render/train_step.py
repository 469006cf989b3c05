"""A training step as a record and as a page."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.errors import Refusal
from memwall.render.bounds import compared_notes, notes_section
from memwall.render.data import Record
from memwall.render.page import Page, Section, Table, numbers
from memwall.reports.lengths import too_long
from memwall.reports.link_notes import link_remarks
from memwall.reports.train_step import TrainStepReport, half_of
from memwall.units import format_bytes, format_flops, format_seconds, significant

Row = TrainStepReport | Refusal


def record(report: TrainStepReport) -> Record:
    """The report for programs; work and bytes are one GPU's."""
    setup, layout = report.setup, report.layout
    return {
        "gpu": report.device.name,
        "model": report.model.name,
        "gpus": layout.gpus,
        "tp": layout.tp,
        "pp": layout.pp,
        "ep": layout.ep,
        "dp": layout.dp,
        "zero": setup.zero,
        "sequence_parallel": layout.sequence_parallel,
        "checkpointing": setup.run.checkpointing,
        "seq": setup.run.seq,
        "micro_batch": setup.run.batch,
        "microbatches": report.microbatches,
        "tokens": report.tokens,
        "flops": report.flops,
        "model_flops": report.model_flops,
        "bound_time_s": report.bound_time_s,
        **_estimate_record(report),
        "limited_by": report.limited_by,
        "terms_s": {term.limit: term.time_s for term in report.terms},
        "bubble": report.bubble,
        "tokens_per_s": report.tokens_per_s,
        "tokens_per_s_per_gpu": report.tokens_per_s / layout.gpus,
        "mfu": report.mfu,
        "needed_bytes": report.needs.total,
        "usable_bytes": report.usable_bytes,
        "fits": report.fits,
        "communication_bound_time_s": report.communication_bound_time_s,
        "exchanges": [
            {
                "name": each.name,
                "op": each.what.op,
                "bytes": each.what.bytes,
                "gpus": each.what.gpus,
                "nodes": each.group.nodes,
                "repeats": each.repeats,
                "bound_time_s": each.bound_time_s,
                "estimate_time_s": each.group.estimate_s(each.what),
            }
            for each in report.exchanges
        ],
        "defaults": list(report.defaults),
        "notes": notes(report),
    }


def page(report: TrainStepReport) -> Page:
    """The report for people."""
    layout = report.layout
    title = f"train-step  {report.model.title}  {layout.text}, ZeRO {report.setup.zero}"
    heading = f"{title}  on {layout.gpus} x {report.device.title} ({report.device.name})"
    return [
        Section(heading, Table(_facts(report))),
        *_exchanges(report),
        *notes_section(notes(report)),
    ]


def warning(report: TrainStepReport) -> str | None:
    """That it does not fit, and by how much; None if it does, or nobody knows."""
    if report.fits is not False:
        return None
    needed_bytes, usable_bytes = report.needs.total, report.usable_bytes or 0
    return (
        f"{report.model.name} does not fit: each {report.device.name} needs {format_bytes(needed_bytes)}, "
        f"{format_bytes(needed_bytes - usable_bytes)} more than its {format_bytes(usable_bytes)}"
    )


def compare_page(rows: Sequence[Row]) -> Page:
    """Several GPUs side by side."""
    first = next(row for row in rows if isinstance(row, TrainStepReport))
    header = ("GPU", "step", "estimate", "tokens/s", "a GPU", "MFU", "limited by", "fits")
    table = numbers([_compare_row(row) for row in rows], header)
    title = f"train-step  {first.model.title}  {first.layout.text}, ZeRO {first.setup.zero}"
    said = [*_definitions(first), *compared_notes(rows, _doubts)]
    return [Section(title, table), *notes_section(said)]


def notes(report: TrainStepReport) -> list[str]:
    """What its reader should know."""
    return [*_definitions(report), *_doubts(report)]


def _doubts(report: TrainStepReport) -> list[str]:
    half = half_of(report.device)
    stands_in = ["no bf16 unit: fp16 stands in for it, and needs its loss scaled"] if half == "fp16" else []
    return stands_in + link_remarks(
        link for each in report.exchanges for _, link in each.group.stages(each.what)
    )


def _definitions(report: TrainStepReport) -> list[str]:
    by_default = [f"by default: {', '.join(report.defaults)}"] if report.defaults else []
    return [
        *by_default,
        "a bound: everything overlaps; of the backward pass only matrix FLOPs and exchanges are counted",
        *_of_estimate(report),
        "exchanges: their time if nothing hides them; MFU: model FLOPs, without what is computed again",
        *too_long(report.model, report.setup.run.seq),
    ]


def _of_estimate(report: TrainStepReport) -> list[str]:
    if report.estimate is None:
        return []
    return [
        "estimate: no measured training step stands behind it; good kernels of inference, forward and "
        "backward, one after the other, the replicas' exchanges hidden behind them or not; the loss, unfused "
        "steps and jitter between GPUs come on top"
    ]


def _facts(report: TrainStepReport) -> list[tuple[str, ...]]:
    setup, layout = report.setup, report.layout
    run = setup.run
    batches = f"{layout.dp} replicas x {report.microbatches} micro-batches of {run.batch} x {run.seq}"
    times = ", ".join(f"{term.limit} {format_seconds(term.time_s)}" for term in report.terms)
    waits = f"; a stage waits {significant(100 * report.bubble, 3)} %" if setup.pipeline > 1 else ""
    each = f"{significant(report.tokens_per_s / layout.gpus)} a GPU, MFU {significant(100 * report.mfu, 3)} %"
    fits = {True: "", False: ": does not fit", None: ""}[report.fits]
    limits = f"limited by {report.limited_by}: {times}{waits}"
    usable = format_bytes(report.usable_bytes or 0)
    return [
        ("tokens", f"{report.tokens:,} a step", batches),
        ("FLOPs", format_flops(report.flops), f"a GPU, {format_flops(report.model_flops)} of the model's"),
        ("bound time", f"at least {format_seconds(report.bound_time_s)}", limits),
        ("throughput", f"at most {significant(report.tokens_per_s)} tokens/s", each),
        *_estimated(report),
        ("memory", f"{format_bytes(report.needs.total)} of {usable}", f"memwall train-memory{fits}"),
    ]


def _estimated(report: TrainStepReport) -> list[tuple[str, ...]]:
    estimate = report.estimate
    if estimate is None:
        return []
    least, most = estimate.time_s, estimate.in_turn_s
    rates = [significant(report.tokens / time_s) for time_s in (most, least)]
    shares = [significant(100 * report.mfu_in(time_s), 3) for time_s in (most, least)]
    parts = [("kernels", estimate.kernels_s), ("exchanges inside", estimate.inside_s)]
    parts += [("between replicas", estimate.replicas_s), ("optimizer", estimate.optimizer_s)]
    spent = ", ".join(f"{name} {format_seconds(time_s)}" for name, time_s in parts if time_s)
    time = _range([format_seconds(least), format_seconds(most)])
    what = f"{_range(rates)} tokens/s, MFU {_range(shares)} %; {spent}; {estimate.kernels.basis}"
    return [("estimate", time, what)]


def _range(ends: Sequence[str]) -> str:
    return " to ".join(dict.fromkeys(ends))


def _estimate_record(report: TrainStepReport) -> Record:
    estimate = report.estimate
    return {
        "estimate_time_s": estimate.time_s if estimate else None,
        "estimate_in_turn_time_s": estimate.in_turn_s if estimate else None,
        "estimate_basis": estimate.kernels.basis if estimate else None,
        "estimate_tokens_per_s": report.tokens / estimate.time_s if estimate else None,
        "estimate_mfu": report.mfu_in(estimate.time_s) if estimate else None,
    }


def _exchanges(report: TrainStepReport) -> list[Section]:
    if not report.exchanges:
        return []
    rows = []
    for each in report.exchanges:
        known = each.group.estimate_s(each.what)
        rows.append(
            (
                f"{each.name.partition('.')[0]}: {each.what.op} of {each.what.gpus}",
                str(each.repeats),
                format_bytes(each.what.bytes),
                str(each.group.nodes),
                format_seconds(each.repeats * each.bound_time_s),
                "-" if known is None else format_seconds(each.repeats * known),
            )
        )
    return [
        Section("Over the links", numbers(rows, ("exchange", "x", "bytes", "nodes", "bound", "estimate")))
    ]


def _compare_row(row: Row) -> tuple[str, ...]:
    if isinstance(row, Refusal):
        return (row.gpu, *["-"] * 7)
    return (
        row.device.name,
        format_seconds(row.bound_time_s),
        format_seconds(row.estimate.time_s) if row.estimate else "-",
        significant(row.tokens_per_s),
        significant(row.tokens_per_s / row.layout.gpus),
        f"{significant(100 * row.mfu, 3)} %",
        row.limited_by,
        {True: "yes", False: "no", None: "-"}[row.fits],
    )
