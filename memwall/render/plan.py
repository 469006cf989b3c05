"""A plan as a record and as a page."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.errors import Refusal
from memwall.render.bounds import compared_notes, notes_section
from memwall.render.data import Record
from memwall.render.page import Page, Section, Table, numbers
from memwall.reports.evidence import confession
from memwall.reports.expected import BASIS
from memwall.reports.lengths import too_long
from memwall.reports.link_notes import engine_remark, pass_remarks
from memwall.reports.plan import Candidate, PlanReport
from memwall.units import MEGA, format_bytes, format_seconds, significant

Row = PlanReport | Refusal
MOST = 12
"""Layouts of each kind that a page lists; the record has them all."""


def record(report: PlanReport) -> Record:
    """The report for programs."""
    targets = report.targets
    return {
        "gpu": report.device.name,
        "model": report.model.name,
        "gpus": report.gpus,
        "dtype": report.formats.dtype,
        "weight_dtype": report.formats.weight,
        "kv_dtype": report.formats.kv,
        "context": targets.context,
        "prompt": targets.prompt,
        "ttft_target_s": targets.ttft_s,
        "tpot_target_s": targets.tpot_s,
        "evaluated": report.evaluated,
        "meets": report.chosen is not None,
        "capacity_bytes": report.total_bytes,
        "price_per_gpu_hour": report.price_per_gpu_hour,
        "impossible": list(report.impossible),
        "enough_gpus": report.enough_gpus,
        "layouts": [{**_candidate(each), **_cost(report, each)} for each in report.candidates],
        "defaults": list(report.defaults),
        "assumed": list(report.device.assumed),
        "notes": notes(report),
    }


def rows(report: PlanReport) -> list[Record]:
    """The layouts, the best first, each with what it is of."""
    whole = record(report)
    of = {"gpu": whole["gpu"], "model": whole["model"], "gpus": whole["gpus"]}
    return [{**of, **each} for each in whole["layouts"]]


def page(report: PlanReport) -> Page:
    """The report for people."""
    good = [each for each in report.candidates if each.meets]
    bad = [each for each in report.candidates if not each.meets]
    heading = f"{_title(report)}  on {report.gpus} x {report.device.title} ({report.device.name})"
    sections = [Section(heading, Table(_facts(report, len(good))))]
    if good:
        sections.append(Section(_more("Layouts that meet them", good), _table(report, good[:MOST])))
    if bad:
        rows = [(each.layout.text, each.reason) for each in bad[:MOST]]
        sections.append(Section(_more("Why the others fail", bad), Table(rows, ("layout", "reason"))))
    return [*sections, *notes_section(notes(report))]


def compare_page(rows: Sequence[Row]) -> Page:
    """The best layout of each of several GPUs."""
    first = next(row for row in rows if isinstance(row, PlanReport))
    priced = () if first.price_per_gpu_hour is None else ("M tokens",)
    header = ("GPU", "layout", "batch", "TTFT", "TPOT", "tokens/s", "a GPU", *priced)
    lines = []
    for row in rows:
        best = None if isinstance(row, Refusal) else row.chosen
        name = row.gpu if isinstance(row, Refusal) else row.device.name
        cost = () if best is None or isinstance(row, Refusal) else _price(row, best)
        lines.append((name, *(_cells(best) if best else ("none", *["-"] * 5)), *cost))
    table = numbers(lines, header)
    table = table._replace(right=table.right - {1})
    return [
        Section(_title(first), table),
        *notes_section([*_definitions(first), *compared_notes(rows, _doubts)]),
    ]


def notes(report: PlanReport) -> list[str]:
    """What its reader should know: the definitions with the numbers."""
    return [*_definitions(report), *_doubts(report)]


def _doubts(report: PlanReport) -> list[str]:
    weak = report.device.bandwidth
    found = [confession(weak)] if weak.weak else []
    found += pass_remarks(report.device, [each.layout for each in report.candidates if each.meets])
    if report.enough_gpus:
        found.append(f"no layout of {report.gpus} GPUs holds it; some of --gpus {report.enough_gpus} do")
    return [*found, *(f"cannot be: {text}" for text in report.impossible)]


def _definitions(report: PlanReport) -> list[str]:
    by_default = [f"by default: {', '.join(report.defaults)}"] if report.defaults else []
    return [
        *by_default,
        f"times: {BASIS}",
        "TTFT: one prompt alone on its replica, nothing queued",
        "TPOT: time between two tokens of a user while the whole batch decodes, at the full context",
        "tokens/s = batch / TPOT, generated, of all users; a user has 1 / TPOT; every layout uses all GPUs",
        "fits: weights, the batch's cache at the full context, the activation estimate, on the fullest GPU",
        *engine_remark(each.layout for each in report.candidates),
        *too_long(report.model, report.targets.context),
    ]


def _title(report: PlanReport) -> str:
    return f"plan  {report.model.title}  {report.formats.text}"


def _facts(report: PlanReport, good: int) -> list[tuple[str, ...]]:
    targets = report.targets
    asked = [
        f"{name} {format_seconds(value)}"
        for name, value in (("TTFT", targets.ttft_s), ("TPOT", targets.tpot_s))
        if value is not None
    ]
    return [
        ("targets", ", ".join(asked) or "none", f"prompt {targets.prompt}, context {targets.context}"),
        (
            "layouts",
            f"{good} of {len(report.candidates)} meet them",
            f"{report.evaluated} with their batches",
        ),
        ("memory", format_bytes(report.total_bytes), "a GPU"),
    ]


def _table(report: PlanReport, candidates: Sequence[Candidate]) -> Table:
    rows = [(*_cells(each), format_bytes(each.needed_bytes), *_price(report, each)) for each in candidates]
    priced = () if report.price_per_gpu_hour is None else ("M tokens",)
    return numbers(rows, ("layout", "batch", "TTFT", "TPOT", "tokens/s", "a GPU", "memory", *priced))


def _price(report: PlanReport, each: Candidate) -> tuple[str, ...]:
    """A million generated tokens, in the price's currency."""
    price = report.price_per_token(each)
    return () if price is None else (significant(price * MEGA, 3),)


def _cells(each: Candidate) -> tuple[str, ...]:
    return (
        each.layout.text,
        str(each.batch),
        "-" if each.ttft_s is None else format_seconds(each.ttft_s),
        "-" if each.tpot_s is None else format_seconds(each.tpot_s),
        significant(each.tokens_per_s),
        significant(each.tokens_per_s_per_gpu),
    )


def _more(heading: str, rows: Sequence[Candidate]) -> str:
    return heading if len(rows) <= MOST else f"{heading} ({MOST} of {len(rows)}; --json has all)"


def _cost(report: PlanReport, each: Candidate) -> Record:
    price = report.price_per_token(each)
    return {"price_per_million_tokens_out": None if price is None else price * MEGA}


def _candidate(each: Candidate) -> Record:
    layout = each.layout
    return {
        "tp": layout.tp,
        "pp": layout.pp,
        "ep": layout.ep,
        "dp": layout.dp,
        "batch": each.batch or None,
        "meets": each.meets,
        "reason": each.reason or None,
        "ttft_s": each.ttft_s,
        "tpot_s": each.tpot_s,
        "tokens_per_s": each.tokens_per_s or None,
        "tokens_per_s_per_gpu": each.tokens_per_s_per_gpu or None,
        "tokens_per_s_per_user": 1 / each.tpot_s if each.tpot_s else None,
        "needed_bytes": each.needed_bytes or None,
    }
