"""A training run's memory as a record and as a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memwall.errors import Refusal
from memwall.memory.backward import CHECKPOINTING
from memwall.memory.training import OPTIMIZERS
from memwall.render.bounds import compared_notes, notes_section
from memwall.render.data import Record
from memwall.render.page import Page, Section, Table, star
from memwall.reports.evidence import confession
from memwall.reports.lengths import too_long
from memwall.reports.training import GRADIENTS, TrainingReport
from memwall.units import GIBI, format_memory, format_parameters, significant

Row = TrainingReport | Refusal


def record(report: TrainingReport) -> Record:
    """The report under its documented keys."""
    setup, needs = report.setup, report.needs
    run = setup.run
    return {
        "gpu": report.given.name if report.given else None,
        "model": report.model.name,
        "parameters": report.parameters,
        "gpus": setup.gpus,
        "tensor_parallel": run.tensor_parallel,
        "pipeline_parallel": setup.pipeline,
        "data_parallel": setup.data_parallel,
        "expert_parallel": setup.expert_parallel,
        "sequence_parallel": run.sequence_parallel,
        "zero": setup.zero,
        "optimizer": setup.optimizer,
        "grad_dtype": _gradient_format(report),
        "seq": run.seq,
        "micro_batch": run.batch,
        "checkpointing": run.checkpointing,
        "attention": run.attention,
        "dropout": run.dropout,
        "parameter_bytes": needs.parameters,
        "gradient_bytes": needs.gradients,
        "optimizer_bytes": needs.optimizer,
        "state_bytes": needs.states,
        "activation_bytes": needs.activations,
        "working_bytes": needs.working,
        "total_bytes": needs.total,
        "usable_bytes": report.usable_bytes,
        "fits": report.fits,
        "shortfall_bytes": report.shortfall_bytes,
        "choices": {f"zero_{zero}": dict(row) for zero, row in report.choices.items()},
        "defaults": list(report.defaults),
        "assumed": list(report.given.assumed) if report.given else [],
        "weak_sources": _weak_sources(report),
        "notes": [*_shared_notes(report), *_own_notes(report)],
    }


def page(report: TrainingReport) -> Page:
    """The report for people."""
    on = f"  on {report.device.title} ({report.device.name})" if report.given else ""
    sections = [Section(_title(report) + on, Table(_rows(report)))]
    sections.append(Section("By ZeRO stage and checkpointing", _choices_table(report)))
    return [*sections, *notes_section([*_shared_notes(report), *_own_notes(report)])]


def compare_page(rows: Sequence[Row]) -> Page:
    """Several devices side by side."""
    first = next(row for row in rows if isinstance(row, TrainingReport))
    table = Table([_compare_row(row) for row in rows], ("GPU", "usable", "fits"), frozenset({1}))
    notes = [*_shared_notes(first), *compared_notes(rows, _own_notes)]
    return [
        Section(_title(first), Table(_rows(first)[:-1])),
        Section("", table),
        Section("By ZeRO stage and checkpointing", _choices_table(replace(first, usable_bytes=None))),
        *notes_section(notes),
    ]


def _compare_row(row: Row) -> tuple[str, ...]:
    if isinstance(row, Refusal):
        return (row.gpu, "-", "-")
    weak = star(bool(row.total and row.total.weak))
    return row.device.name, format_memory(row.usable_bytes or 0) + weak, _verdict(row)


def _title(report: TrainingReport) -> str:
    setup = report.setup
    run = setup.run
    sequence = " with sp" if run.sequence_parallel else ""
    split = f"tp {run.tensor_parallel}{sequence} x pp {setup.pipeline} x dp {setup.data_parallel}"
    split += f", ep {setup.expert_parallel}" if setup.expert_parallel > 1 else ""
    many = "1 GPU" if setup.gpus == 1 else f"{setup.gpus} GPUs, {split}, ZeRO {setup.zero}"
    return f"train-memory  {report.model.title}  {OPTIMIZERS[setup.optimizer].title}  {many}"


def _rows(report: TrainingReport) -> list[tuple[str, ...]]:
    setup, needs = report.setup, report.needs
    run = setup.run
    again = "no" if run.checkpointing == "none" else run.checkpointing
    tokens = f"{run.batch} x {run.seq:,} tokens, {again} checkpointing, {run.attention} attention"
    if setup.pipeline > 1:
        tokens += ", every micro-batch in flight"
    each = f"{format_parameters(report.parameters)} in all"
    rows: list[tuple[str, ...]] = [
        ("parameters", format_memory(needs.parameters), f"{each}, 16 bits"),
        ("gradients", format_memory(needs.gradients), _gradient_format(report)),
        ("optimizer", format_memory(needs.optimizer), _optimizer_text(report)),
        ("activations", format_memory(needs.activations), tokens),
    ]
    if needs.working:
        rows.append(("working", format_memory(needs.working), _working_text(report)))
    rows.append(("total, a GPU", format_memory(needs.total)))
    if report.usable_bytes is None or report.total is None:
        return rows
    usable = format_memory(report.usable_bytes) + star(report.total.weak)
    return [*rows, ("usable", usable, _verdict(report))]


def _optimizer_text(report: TrainingReport) -> str:
    optimizer = OPTIMIZERS[report.setup.optimizer]
    if optimizer.factored:
        return "an fp32 copy, and an average a row and a column"
    if not optimizer.moments:
        return "an fp32 copy"
    many = "an average" if optimizer.moments == 1 else f"{optimizer.moments} averages"
    return f"an fp32 copy, and {many} of {significant(optimizer.moment_bytes)} B"


def _working_text(report: TrainingReport) -> str:
    setup = report.setup
    words = [] if setup.run.checkpointing == "none" else ["a layer computed again"]
    if setup.data_parallel > 1 and setup.zero == 3:
        words.append("two layers gathered and one's gradients")
    if setup.data_parallel > 1 and setup.zero == 2:
        words.append("a layer's gradients")
    return ", ".join(words)


def _gradient_format(report: TrainingReport) -> str:
    return next(name for name, size in GRADIENTS.items() if size == report.setup.gradient_bytes)


def _verdict(report: TrainingReport) -> str:
    short = report.shortfall_bytes or 0
    return "fits" if report.fits else f"does not fit: {format_memory(short)} short"


def _choices_table(report: TrainingReport) -> Table:
    usable, run = report.usable_bytes, report.setup.run
    rows = []
    for zero, totals in report.choices.items():
        cells = [f"ZeRO {zero}"]
        for kind, total in totals.items():
            fits = "" if usable is None or total > usable else " fits"
            here = " <-" if (zero, kind) == (report.setup.zero, run.checkpointing) else ""
            cells.append(f"{significant(total / GIBI)} GiB{fits}{here}")
        rows.append(tuple(cells))
    return Table(rows, ("", *CHECKPOINTING), frozenset(range(1, 4)))


def _weak_sources(report: TrainingReport) -> list[dict[str, str]]:
    doubts = [doubt for doubt in (report.total, report.model.doubt) if doubt and doubt.weak]
    return [{"key": each.key, "kind": each.kind, "source": each.source} for each in doubts]


def _shared_notes(report: TrainingReport) -> list[str]:
    setup = report.setup
    found = [f"by default: {', '.join(report.defaults)}"] if report.defaults else []
    if report.model.doubt:
        found.append(confession(report.model.doubt))
    found.append("states as arXiv:1910.02054 (ZeRO) has them, activations counted as in arXiv:2205.05198")
    found += too_long(report.model, setup.run.seq)
    if setup.run.attention == "flash":
        found.append("flash computes its probabilities again by itself: selective saves nothing more")
    if setup.zero and setup.data_parallel == 1:
        found.append(f"ZeRO {setup.zero} divides over data-parallel GPUs: with one, it changes nothing")
    if setup.run.sequence_parallel:
        found.append("sp: sequence parallelism splits norms and residual sums over the tp GPUs, too")
    if setup.pipeline > 1:
        found.append("of the fullest stage; one forward, one backward: stage i of pp has pp - i in flight")
    if OPTIMIZERS[setup.optimizer].source:
        found.append(f"{OPTIMIZERS[setup.optimizer].title}: {OPTIMIZERS[setup.optimizer].source}")
    found.append("logits once, in 32 bits: frameworks that keep them in 16 too, or their gradient, take more")
    if report.model.towers:
        found.append("activations of the image and sound towers are not counted")
    found.append("not counted: CUDA context, NCCL's buffers, what the allocator leaves idle: spare some GiB")
    return found


def _own_notes(report: TrainingReport) -> list[str]:
    found = [confession(report.total)] if report.total and report.total.weak else []
    known = report.given.dtypes() if report.given else ("bf16",)
    if "bf16" not in known and "fp16" in known:
        found.append("no bf16 unit: fp16, as many bytes, stands in for it, and needs its loss scaled")
    return found
