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
from memwall.reports.serve import ServeReport
from memwall.reports.serve_engines import CHUNK
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
        "spread": demand.spread,
        "engine": report.serving.engine.name,
        "max_batch": report.serving.max_batch,
        "at_once": report.slots,
        "requests": report.seen.requests,
        "ttft_s": report.ttft_s,
        "ttft_median_s": report.seen.ttft_median_s,
        "ttft_p90_s": report.seen.ttft_p90_s,
        "queue_s": report.seen.queue_s,
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
        *verdict(report.missing_bytes, report.instead, *_few(report)),
        Section(heading, Table(_facts(report))),
        *notes_section(
            [
                *shared_notes(report),
                *(_few(report) if report.fits else []),
                *pass_remarks(report.device, [report.layout]),
            ]
        ),
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
        f"{demand.users} requests in flight on all GPUs; each user sends the next as soon as one is answered",
        *_definitions(report),
        "tokens/s: generated, of all users, over whole requests; of a user 1 / TPOT",
        *engine_remark([report.layout]),
        *report.layout.uneven(demand.users),
        *too_long(report.model, demand.isl + demand.osl),
    ]


def _definitions(report: ServeReport) -> list[str]:
    """TTFT and TPOT, and the scheduling that they come from."""
    demand, serving = report.demand, report.serving
    lengths = "" if demand.spread == 1 else f", lengths from {significant(demand.spread)} of isl and osl up"
    step_s, token_s = serving.host_s
    return [
        f"all users begin at once, {report.seen.requests // report.users_each} requests each{lengths}",
        "TPOT: (a request's time - its TTFT) / (osl - 1), others' prompts included, a mean of all requests; "
        "decoding alone is a step of all",
        f"TTFT: {format_seconds(serving.engine.start_s)} of server and network, the wait for a place and a "
        "step, and the pass that reads the prompt; a mean of all requests",
        f"{serving.engine.name}: {_scheduling(report)}; nothing of prompts is cached from before",
        f"the host adds {format_seconds(step_s)} to a step and {format_seconds(token_s)} for each who runs",
    ]


def _scheduling(report: ServeReport) -> str:
    """How prompts come into passes."""
    serving = report.serving
    rules = serving.rules(report.slots, report.demand.isl)
    if rules.prefill_first:
        how = f"prompts are read first, up to {CHUNK} tokens a pass, and decoding rests"
    else:
        how = f"a pass reads up to {rules.limit} tokens of prompts and makes everyone's next token"
    waits = [
        f"steps are scheduled {rules.ahead} ahead" if rules.ahead else "",
        f"requests are looked for every {rules.poll} steps" if rules.poll > 1 else "",
        f"the first is held for {rules.hold} steps more" if rules.hold else "",
    ]
    return "; ".join([how, *filter(None, waits)])


def own_notes(report: ServeReport) -> list[str]:
    """What holds on one device."""
    fit = [] if report.fits else [sentence(report.missing_bytes, report.instead)]
    return [*fit, *_few(report), *pass_remarks(report.device, [report.layout])]


def _few(report: ServeReport) -> list[str]:
    """Where fewer than all users run at once."""
    if report.slots == report.users_each:
        return []
    wait = format_seconds(report.seen.queue_s)
    return [
        f"{report.slots} of {report.users_each} users of a replica run at once; "
        f"a request waits {wait} for a place"
    ]


def _title(report: ServeReport) -> str:
    demand = report.demand
    users = "1 user" if demand.users == 1 else f"{demand.users} users"
    asked = f"{users}, {demand.isl} tokens in, {demand.osl} out"
    return f"serve  {report.model.title}  {report.formats.text}  {report.layout.text}  {asked}"


def _facts(report: ServeReport) -> list[tuple[str, ...]]:
    seen = report.seen
    each = significant(report.tokens_per_s / report.layout.gpus)
    fits = "" if report.fits else ": does not fit"
    of = f"{format_bytes(report.needed_bytes)} of {format_bytes(report.total_bytes)}"
    return [
        ("TTFT", format_seconds(report.ttft_s), f"a prompt alone {format_seconds(report.alone_s)}"),
        ("  median", format_seconds(seen.ttft_median_s), f"90 % by {format_seconds(seen.ttft_p90_s)}"),
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
