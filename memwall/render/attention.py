"""The attention report as a record and as a page."""

from __future__ import annotations

from memwall.bound import Bound
from memwall.errors import NotAvailable
from memwall.render.bounds import (
    bound_record,
    evidence_record,
    intensity_text,
    mark,
    notes_section,
    step_record,
    steps_section,
)
from memwall.render.data import Record
from memwall.render.page import Page, Section, Table, numbers
from memwall.reports.attention import IMPLS, AttentionReport, Cost, LayerKind
from memwall.reports.evidence import confession, remarks
from memwall.units import format_bytes, format_flops, format_seconds, significant

Row = AttentionReport | tuple[str, NotAvailable]


def record(report: AttentionReport) -> Record:
    """The report under its documented keys."""
    first = report.kinds[0]
    return {
        "gpu": report.device.name,
        "op": "attention",
        "model": report.model.name if report.model else None,
        "shape": {"layers": report.layers, **report.tokens._asdict(), **_kind_record(first)},
        "dtype": report.formats.dtype,
        "kv_dtype": report.formats.kv,
        "causal": report.causal,
        "standard": _cost_record(report.standard),
        "flash": _cost_record(report.flash),
        "traffic_reduction": report.traffic_reduction,
        "layer_kinds": [
            {"layers": kind.repeats, **_kind_record(kind), **_traffic(kind)} for kind in report.kinds
        ],
        "defaults": list(report.defaults),
        **evidence_record(report.device, [report.standard.whole, report.flash.whole], report.model),
        "notes": _notes(report),
        "advice": [step_record(step) for step in report.advice],
    }


def page(report: AttentionReport) -> Page:
    """The report for people."""
    costs = {"standard": report.standard, "flash": report.flash}
    header = ("", "standard", "flash", "reduction")
    rows = []
    for size, scope in _scopes(report):
        works = [_at(cost, scope).work for cost in costs.values()]
        reduction = f"{significant(works[0].traffic_bytes / works[1].traffic_bytes, 3)}x"
        rows.append((f"traffic, {size}", *(format_bytes(work.traffic_bytes) for work in works), reduction))
    for size, scope in _scopes(report):
        rows.append(
            (f"FLOPs, {size}", *(format_flops(_at(cost, scope).work.flops) for cost in costs.values()))
        )
    wholes = [cost.whole for cost in costs.values()]
    rows.append(("arithmetic intensity", *(intensity_text(bound) for bound in wholes)))
    rows.append(("regime", *(bound.regime for bound in wholes)))
    rows.append(("bound time, pass", *(format_seconds(bound.time_s) + mark([bound]) for bound in wholes)))
    rows.append(
        ("kernels in turn, pass", *(format_seconds(cost.kernels_bound_time_s) for cost in costs.values()))
    )
    sections = [Section(_heading(report), Table(_facts(report))), Section("", numbers(rows, header))]
    if len(report.kinds) > 1:
        sections.append(Section("Kinds of layer", _kinds_table(report)))
    steps = steps_section(report.advice)
    return [*sections, *steps, *notes_section(_notes(report))]


def compare_page(rows: list[Row]) -> Page:
    """Several devices side by side."""
    first = next(row for row in rows if isinstance(row, AttentionReport))
    header = ("GPU", "standard", "regime", "flash", "regime")
    table = [_compare_row(row) for row in rows]
    notes = [f"{_name(row)}: {note}" for row in rows for note in _row_notes(row)]
    facts = [*_facts(first), *_work_facts(first)]
    title = _title(first)
    return [
        Section(title, Table(facts)),
        Section("Bound time of the pass", Table(table, header, frozenset({1, 3}))),
        *notes_section([*_shared_notes(first), *notes]),
    ]


def _compare_row(row: Row) -> tuple[str, ...]:
    if not isinstance(row, AttentionReport):
        return (row[0], "-", "-", "-", "-")
    cells = [row.device.name]
    for cost in (row.standard, row.flash):
        cells += [format_seconds(cost.whole.time_s) + mark([cost.whole]), cost.whole.regime]
    return tuple(cells)


def _name(row: Row) -> str:
    return row.device.name if isinstance(row, AttentionReport) else row[0]


def _row_notes(row: Row) -> list[str]:
    if isinstance(row, AttentionReport):
        return remarks(row.device, [row.standard.whole, row.flash.whole], row.cache_bytes)
    return [str(row[1])]


def _cost_record(cost: Cost) -> Record:
    return {
        **bound_record(cost.whole),
        "kernels_bound_time_s": cost.kernels_bound_time_s,
        "per_layer": bound_record(cost.per_layer),
        "per_head": bound_record(cost.per_head),
    }


def _kind_record(kind: LayerKind) -> Record:
    return {
        "heads": kind.heads,
        "kv_heads": kind.kv_heads,
        "head_dim": kind.head_dim,
        "head_dim_v": kind.head_dim_v,
        "window": kind.window,
        "absorbed": kind.absorbed,
    }


def _traffic(kind: LayerKind) -> Record:
    works = {impl: kind.programs[impl].work for impl in IMPLS}
    return {impl: {"flops": work.flops, "traffic_bytes": work.traffic_bytes} for impl, work in works.items()}


def _scopes(report: AttentionReport) -> list[tuple[str, str]]:
    layers = "1 layer" if report.layers == 1 else f"{report.layers} layers"
    return [("a head", "head"), ("a layer", "layer"), (f"pass, {layers}", "whole")]


def _at(cost: Cost, scope: str) -> Bound:
    return {"head": cost.per_head, "layer": cost.per_layer, "whole": cost.whole}[scope]


def _title(report: AttentionReport) -> str:
    what = report.model.title if report.model else "one layer"
    return f"attention  {what}  {report.formats.text}  {'causal' if report.causal else 'no mask'}"


def _heading(report: AttentionReport) -> str:
    return f"{_title(report)}  on {report.device.title} ({report.device.name})"


def _facts(report: AttentionReport) -> list[tuple[str, ...]]:
    first, tokens = report.kinds[0], report.tokens
    heads = f"{_many(first.heads, 'query head')}, {_many(first.kv_heads, 'KV head')} of {first.head_dim}"
    if first.head_dim_v != first.head_dim:
        heads += f" (values {first.head_dim_v})"
    if first.absorbed:
        heads = f"{_many(first.heads, 'query head')} on one latent of {first.head_dim}, absorbed"
    if first.window is not None:
        heads += f", window {first.window}"
    length = f"{tokens.seq_q} new of {tokens.seq_kv} tokens" if tokens.cached else f"{tokens.seq_kv} tokens"
    return [("shape", heads), ("", f"{tokens.batch} x {length}")]


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _work_facts(report: AttentionReport) -> list[tuple[str, ...]]:
    works = [cost.whole.work for cost in (report.standard, report.flash)]
    standard, flash = (f"{format_bytes(w.traffic_bytes)}, {format_flops(w.flops)}" for w in works)
    return [
        ("standard", standard),
        ("flash", flash, f"{significant(report.traffic_reduction, 3)}x fewer bytes"),
    ]


def _kinds_table(report: AttentionReport) -> Table:
    rows = []
    for kind in report.kinds:
        works = [kind.programs[impl].work for impl in IMPLS]
        window = "all" if kind.window is None else str(kind.window)
        rows.append(
            (
                str(kind.repeats),
                window,
                *(format_bytes(w.traffic_bytes) for w in works),
                format_flops(works[1].flops),
            )
        )
    return numbers(
        rows, ("layers", "keys seen", "standard, a layer", "flash, a layer", "flash FLOPs, a layer")
    )


def _shared_notes(report: AttentionReport) -> list[str]:
    notes = [f"by default: {', '.join(report.defaults)}"] if report.defaults else []
    if report.tokens.decoding:
        notes.append("flash is its compulsory floor: Q, K, V and O once")
    else:
        notes.append(
            "flash is its compulsory floor: Q, K, V and O once; real kernels re-read K and V, mostly from L2"
        )
    if report.causal and not report.tokens.decoding:
        notes.append(
            "causal: flash counts the visible pairs exactly; standard computes and moves the whole square"
        )
    if report.model and report.model.doubt:
        notes.append(confession(report.model.doubt))
    if len(report.kinds) > 1:
        notes.append("a head and a layer are of the first kind of layer below; the pass has them all")
    if report.kinds[0].heads != report.kinds[0].kv_heads:
        notes.append("a head is a query head with its share of the K and V that its group reads")
    return notes


def _notes(report: AttentionReport) -> list[str]:
    return [
        *_shared_notes(report),
        *remarks(report.device, [report.standard.whole, report.flash.whole], report.cache_bytes),
    ]
