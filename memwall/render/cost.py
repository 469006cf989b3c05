"""A cost as a record and as a page."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.errors import Refusal
from memwall.render.bounds import compared_notes, notes_section
from memwall.render.data import Record
from memwall.render.energy import energy_notes, energy_text
from memwall.render.fits import none_fits, sentence, verdict
from memwall.render.page import Page, Section, Table, numbers, star
from memwall.reports.cost import YEAR_HOURS, CostReport
from memwall.reports.evidence import confession, weak
from memwall.reports.expected import BASIS
from memwall.reports.lengths import too_long
from memwall.reports.link_notes import engine_remark, pass_remarks
from memwall.units import MEGA, format_seconds, significant

Row = CostReport | Refusal


def record(report: CostReport) -> Record:
    """The report for programs; prices are in the currency of --price."""
    prices, layout, decode = report.prices, report.layout, report.decode
    token_in, token_out = report.gpu_s_per_token_in, report.gpu_s_per_token_out
    return {
        "gpu": report.device.name,
        "model": report.model.name,
        "tp": layout.tp,
        "pp": layout.pp,
        "ep": layout.ep,
        "dp": layout.dp,
        "gpus": layout.gpus,
        "batch": decode.tokens.batch,
        "context": decode.tokens.seq_kv,
        "prompt": report.prefill.tokens.seq_q,
        "output_tokens": prices.output_tokens,
        "price_per_gpu_hour": prices.per_gpu_hour,
        "utilisation": prices.utilisation,
        "requests_per_s": prices.requests_per_s,
        "watts_per_gpu": report.power.value,
        "ttft_s": report.ttft_s,
        "tpot_s": report.tpot_s,
        "tokens_per_s": decode.tokens.batch / report.tpot_s,
        "price_per_million_tokens_in": report.price(token_in) * MEGA,
        "price_per_million_tokens_out": report.price(token_out) * MEGA,
        "joules_per_token_in": report.joules(token_in),
        "joules_per_token_out": report.joules(token_out),
        **_split_record(report),
        "gpu_s_per_request": report.gpu_s_per_request,
        "gpu_equivalents": report.gpu_equivalents,
        "price_per_year": report.price_per_year,
        "fits": decode.fits,
        "fits_with": report.instead or None,
        "defaults": list(report.defaults),
        "notes": notes(report),
    }


def page(report: CostReport) -> Page:
    """The report for people."""
    heading = f"{_title(report)}  on {report.layout.gpus} x {report.device.title} ({report.device.name})"
    return [
        *verdict(report.missing_bytes, report.instead),
        Section(heading, Table(_facts(report))),
        *notes_section([*shared_notes(report), *_basis(report)]),
    ]


def compare_page(rows: Sequence[Row]) -> Page:
    """Several choices side by side, and what the cheapest saves a year."""
    first = next(row for row in rows if isinstance(row, CostReport))
    header = ("GPU", "GPUs", "an hour", "TTFT", "TPOT", "M in", "M out", "J a token out", "a year", "fits")
    table = numbers([_compare_row(row) for row in rows], header)
    saving = _saving([row for row in rows if isinstance(row, CostReport)])
    notes_of = [*shared_notes(first), *saving, *compared_notes(rows, own_notes)]
    return [*none_fits(rows), Section(_title(first), table), *notes_section(notes_of)]


def notes(report: CostReport) -> list[str]:
    """Every assumption behind the numbers."""
    return [*shared_notes(report), *own_notes(report)]


def shared_notes(report: CostReport) -> list[str]:
    """What holds for every choice."""
    prices, decode = report.prices, report.decode
    lines = [f"by default: {', '.join(report.defaults)}"] if report.defaults else []
    lines += [
        f"times: {BASIS}",
        f"tokens in: prompts of {report.prefill.tokens.seq_q}, one at a time on each replica, nothing cached",
        f"tokens out: a batch of {decode.tokens.batch} decodes at {decode.tokens.seq_kv} tokens a sequence",
        "fits: weights and the cache of the batch; memwall capacity and plan count activations too",
        f"the GPUs serve in {significant(100 * prices.utilisation)} % of the hours paid for",
    ]
    lines += [*engine_remark([report.layout]), *report.layout.uneven(decode.tokens.batch)]
    lines += too_long(report.model, max(decode.tokens.seq_kv, report.prefill.tokens.seq_q))
    if prices.requests_per_s is not None:
        lines.append(
            f"a year has {YEAR_HOURS} hours; {significant(prices.requests_per_s)} requests/s all through it, "
            f"each answered with {prices.output_tokens} tokens; GPUs are counted in parts"
        )
    return lines


def own_notes(report: CostReport) -> list[str]:
    """What holds for one choice."""
    fit = [] if report.fits else [sentence(report.missing_bytes, report.instead)]
    return [*fit, *_basis(report)]


def _basis(report: CostReport) -> list[str]:
    power = report.power
    lines = [
        f"{power.value:g} W a GPU all the while ({power.source}): at most, and without the node's other parts"
    ]
    if report.prices.watts is not None:
        lines = [f"{power.value:g} W a GPU all the while, as given"]
    return [
        *lines,
        *energy_notes(report),
        *pass_remarks(report.device, [report.layout]),
        *map(confession, weak(report.decode.bounds)),
        *([confession(power)] if power.weak else []),
    ]


def _split_record(report: CostReport) -> Record:
    found: Record = {}
    for way, split in (("in", report.energy_in), ("out", report.energy_out)):
        found[f"memory_joules_per_token_{way}"] = split.memory_j
        found[f"link_joules_per_token_{way}"] = split.links_j
        found[f"other_joules_per_token_{way}"] = split.rest_j
    return found


def _title(report: CostReport) -> str:
    return f"cost  {report.model.title}  {report.decode.formats.text}  {report.layout.text}"


def _facts(report: CostReport) -> list[tuple[str, ...]]:
    token_in, token_out = report.gpu_s_per_token_in, report.gpu_s_per_token_out
    mark = star(bool(weak(report.decode.bounds)))
    rate = significant(report.decode.tokens.batch / report.tpot_s)
    hour = report.prices.per_gpu_hour
    facts: list[tuple[str, ...]] = [
        ("price", f"{hour:g} a GPU-hour", f"{hour * report.layout.gpus:g} an hour"),
        ("TTFT", format_seconds(report.ttft_s) + mark, f"{report.prefill.tokens.seq_q} tokens"),
        ("TPOT", format_seconds(report.tpot_s) + mark, f"{rate} tokens/s"),
        ("a million tokens in", _money(report.price(token_in) * MEGA), energy_text(report.energy_in)),
        ("a million tokens out", _money(report.price(token_out) * MEGA), energy_text(report.energy_out)),
    ]
    if report.gpu_s_per_request is not None:
        each = _money(report.price(report.gpu_s_per_request))
        facts.append(("a request", each, f"{significant(report.gpu_s_per_request)} GPU-seconds"))
    if report.gpu_equivalents is not None and report.price_per_year is not None:
        gpus = f"{significant(report.gpu_equivalents)} GPUs"
        facts.append(("at that rate", gpus, f"{_money(report.price_per_year)} a year"))
    return facts


def _compare_row(row: Row) -> tuple[str, ...]:
    if isinstance(row, Refusal):
        return (row.gpu, *["-"] * 9)
    token_in, token_out = row.gpu_s_per_token_in, row.gpu_s_per_token_out
    return (
        row.device.name,
        str(row.layout.gpus),
        f"{row.prices.per_gpu_hour:g}",
        format_seconds(row.ttft_s),
        format_seconds(row.tpot_s),
        _money(row.price(token_in) * MEGA),
        _money(row.price(token_out) * MEGA),
        significant(row.joules(token_out)),
        "-" if row.price_per_year is None else _money(row.price_per_year),
        "yes" if row.fits else "no",
    )


def _saving(rows: Sequence[CostReport]) -> list[str]:
    """What the cheapest saves over the dearest in a year at the rate given."""
    priced = [(row.price_per_year, row) for row in rows if row.price_per_year is not None]
    if len(priced) < 2:
        return []
    priced.sort(key=lambda pair: pair[0])
    (least, best), (most, worst) = priced[0], priced[-1]
    text = f"{best.device.name} saves {_money(most - least)} a year over {worst.device.name}"
    return [f"{text}: {_money(least)} against {_money(most)}, {significant(100 * (1 - least / most), 3)} %"]


def _money(amount: float) -> str:
    """An amount of the price's currency: cents, and thousands apart."""
    return f"{amount:,.2f}" if amount >= 1 else significant(amount, 3)
