"""Serving as a record and as a page."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.errors import Refusal
from memwall.render.bounds import compared_notes, notes_section
from memwall.render.data import Record
from memwall.render.fits import none_fits, sentence, verdict
from memwall.render.page import Page, Section, Table, numbers
from memwall.reports.lengths import too_long
from memwall.reports.link_notes import engine_remark, pass_remarks
from memwall.reports.serve import CHUNK, START_S, ServeReport
from memwall.units import format_bytes, format_seconds, significant

Row = ServeReport | Refusal


def record(report: ServeReport) -> Record:
    """The report for programs."""
    layout, demand = report.layout, report.demand
    return {
        "gpu": report.device.name,
        "model": report.model.name,
        "dtype": report.formats.dtype,
        "weight_dtype": report.formats.weight,
        "kv_dtype": report.formats.kv,
        "tp": layout.tp,
        "pp": layout.pp,
        "ep": layout.ep,
        "dp": layout.dp,
        "gpus": layout.gpus,
        "concurrency": demand.users,
        "isl": demand.isl,
        "osl": demand.osl,
        "rounds": demand.rounds,
        "ttft_s": report.ttft_s,
        "tpot_s": report.tpot_s if report.decodes else None,
        "tpot_decode_s": report.step_s if report.decodes else None,
        "prefill_s": report.alone_s,
        "request_s": report.request_s,
        "tokens_per_s": report.tokens_per_s,
        "tokens_per_s_per_gpu": report.tokens_per_s / layout.gpus,
        "tokens_per_s_per_user": 1 / report.tpot_s if report.decodes else None,
        "requests_per_s": report.requests_per_s,
        "needed_bytes": report.needed_bytes,
        "capacity_bytes": report.total_bytes,
        "fits": report.fits,
        "fits_with": report.instead or None,
        "basis": report.basis,
        "defaults": list(report.defaults),
        "assumed": list(report.device.assumed),
        "notes": notes(report),
    }


def page(report: ServeReport) -> Page:
    """The report for people."""
    heading = f"{_title(report)}  on {report.layout.gpus} x {report.device.title} ({report.device.name})"
    return [
        *verdict(report.missing_bytes, report.instead),
        Section(heading, Table(_facts(report))),
        *notes_section([*shared_notes(report), *pass_remarks(report.device, [report.layout])]),
    ]


def compare_page(rows: Sequence[Row]) -> Page:
    """Several GPUs side by side."""
    first = next(row for row in rows if isinstance(row, ServeReport))
    header = ("GPU", "TTFT", "TPOT", "tokens/s", "a GPU", "a user", "memory", "fits")
    table = numbers([_compare_row(row) for row in rows], header)
    notes_of = [*shared_notes(first), *compared_notes(rows, own_notes)]
    return [*none_fits(rows), Section(_title(first), table), *notes_section(notes_of)]


def notes(report: ServeReport) -> list[str]:
    """The definitions, printed with the numbers, and whether it fits."""
    return [*shared_notes(report), *own_notes(report)]


def shared_notes(report: ServeReport) -> list[str]:
    """What holds on every device."""
    demand = report.demand
    by_default = [f"by default: {', '.join(report.defaults)}"] if report.defaults else []
    return [
        *by_default,
        f"times: {report.basis}",
        f"requests in flight on all GPUs: {demand.users}; each sends the next once one is answered",
        "TPOT: time between two tokens of a user, others' prompts included; decoding alone is apart",
        f"TTFT: {format_seconds(START_S)} of the server, a prompt alone, a step, and the wait of the "
        f"first of {demand.rounds} rounds, when all come at once, as a mean over all",
        f"prompts are read together up to {CHUNK} tokens a pass; nothing of them is cached from before",
        "tokens/s: generated, of all users, over whole requests; of a user 1 / TPOT",
        *engine_remark([report.layout]),
        *report.layout.uneven(demand.users),
        *too_long(report.model, demand.isl + demand.osl),
    ]


def own_notes(report: ServeReport) -> list[str]:
    """What holds on one device."""
    fit = [] if report.fits else [sentence(report.missing_bytes, report.instead)]
    return [*fit, *pass_remarks(report.device, [report.layout])]


def _title(report: ServeReport) -> str:
    demand = report.demand
    users = "1 user" if demand.users == 1 else f"{demand.users} users"
    asked = f"{users}, {demand.isl} tokens in, {demand.osl} out"
    return f"serve  {report.model.title}  {report.formats.text}  {report.layout.text}  {asked}"


def _facts(report: ServeReport) -> list[tuple[str, ...]]:
    each = significant(report.tokens_per_s / report.layout.gpus)
    fits = "" if report.fits else ": does not fit"
    of = f"{format_bytes(report.needed_bytes)} of {format_bytes(report.total_bytes)}"
    return [
        ("TTFT", format_seconds(report.ttft_s), f"a prompt alone {format_seconds(report.alone_s)}"),
        ("TPOT", *_tpot(report)),
        ("a request", format_seconds(report.request_s), f"{significant(report.requests_per_s)} a second"),
        ("throughput", f"{significant(report.tokens_per_s)} tokens/s", f"{each} a GPU"),
        ("a user", f"{_user_rate(report)} tokens/s" if report.decodes else "none", ""),
        ("memory", of, f"on the fullest GPU{fits}"),
    ]


def _tpot(report: ServeReport) -> tuple[str, str]:
    if not report.decodes:
        return "none", "one token a request: there is no second to wait for"
    return format_seconds(report.tpot_s), f"decoding alone {format_seconds(report.step_s)}"


def _user_rate(report: ServeReport) -> str:
    return significant(1 / report.tpot_s)


def _compare_row(row: Row) -> tuple[str, ...]:
    if isinstance(row, Refusal):
        return (row.gpu, *["-"] * 7)
    return (
        row.device.name,
        format_seconds(row.ttft_s),
        format_seconds(row.tpot_s) if row.decodes else "-",
        significant(row.tokens_per_s),
        significant(row.tokens_per_s / row.layout.gpus),
        _user_rate(row) if row.decodes else "-",
        format_bytes(row.needed_bytes),
        "yes" if row.fits else "no",
    )
