"""The attention report as a record and as a page."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.bound import Bound
from memwall.errors import Refusal
from memwall.render.bounds import (
    bound_record,
    compared_notes,
    estimate_record,
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

Row = AttentionReport | Refusal


def record(report: AttentionReport) -> Record:
    """The report under its documented keys."""
    return {
        **shape_record(report),
        "standard": _cost_record(report.standard),
        "flash": _cost_record(report.flash),
        "traffic_reduction": report.traffic_reduction,
        "layer_kinds": [
            {"layers": kind.repeats, **_kind_record(kind), **_traffic(kind)} for kind in report.kinds
        ],
        "defaults": list(report.defaults),
        **evidence_record(report.device, report.wholes, report.model),
        "notes": _notes(report),
        "advice": [step_record(step) for step in report.advice],
    }


def page(report: AttentionReport) -> Page:
    """The report for people."""
    costs, wholes = (report.standard, report.flash), report.wholes
    header = ("", "standard", "flash", "reduction")
    rows = [
        *(_traffic_row(f"traffic, {size}", pair) for size, pair in _sizes(report).items()),
        *(
            (f"FLOPs, {size}", *(format_flops(bound.work.flops) for bound in pair))
            for size, pair in _sizes(report).items()
        ),
        ("arithmetic intensity", *(intensity_text(bound) for bound in wholes)),
        ("regime", *(bound.regime for bound in wholes)),
        ("bound time, pass", *(format_seconds(bound.time_s) + mark([bound]) for bound in wholes)),
        ("kernels in turn, pass", *(format_seconds(cost.kernels_bound_time_s) for cost in costs)),
    ]
    if report.standard.estimate and report.flash.estimate:
        estimates = [format_seconds(cost.estimate.time_s) for cost in costs if cost.estimate]
        rows.append(("estimate, pass", *estimates))
    sections = [Section(heading(report), Table(facts(report))), Section("", numbers(rows, header))]
    if len(report.kinds) > 1:
        sections.append(Section("Kinds of layer", _kinds_table(report)))
    return [*sections, *steps_section(report.advice), *notes_section(_notes(report))]


def compare_page(rows: Sequence[Row]) -> Page:
    """Several devices side by side."""
    first = next(row for row in rows if isinstance(row, AttentionReport))
    header = ("GPU", "standard", "regime", "flash", "regime")
    table = [_compare_row(row) for row in rows]
    estimates = [
        _estimates_row(row) for row in rows if isinstance(row, AttentionReport) and row.flash.estimate
    ]
    named = ("GPU", "standard", "flash", "what flash rests on")
    notes = [*_shared_notes(first), *compared_notes(rows, _own_notes)]
    return [
        Section(_title(first), Table([*facts(first), *_work_facts(first)])),
        Section("Bound time of the pass", Table(table, header, frozenset({1, 3}))),
        *([Section("Estimate of the pass", Table(estimates, named, frozenset({1, 2})))] if estimates else []),
        *notes_section(notes),
    ]


def _compare_row(row: Row) -> tuple[str, ...]:
    if isinstance(row, Refusal):
        return (row.gpu, "-", "-", "-", "-")
    cells = [row.device.name]
    for whole in row.wholes:
        cells += [format_seconds(whole.time_s) + mark([whole]), whole.regime]
    return tuple(cells)


def _estimates_row(report: AttentionReport) -> tuple[str, ...]:
    standard, flash = report.standard.estimate, report.flash.estimate
    times = [format_seconds(each.time_s) if each else "-" for each in (standard, flash)]
    return (report.device.name, *times, flash.rests_on if flash else "-")


def shape_record(report: AttentionReport) -> Record:
    """What was asked."""
    return {
        "gpu": report.device.name,
        "op": "attention",
        "model": report.model.name if report.model else None,
        "shape": {"layers": report.layers, **report.tokens._asdict(), **_kind_record(report.kinds[0])},
        "dtype": report.formats.dtype,
        "kv_dtype": report.formats.kv,
        "causal": report.causal,
    }


def _cost_record(cost: Cost) -> Record:
    return {
        **bound_record(cost.whole),
        **(estimate_record(cost.estimate) if cost.estimate else {}),
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


def _sizes(report: AttentionReport) -> dict[str, tuple[Bound, Bound]]:
    """Standard's and flash's bounds at each size."""
    standard, flash = report.standard, report.flash
    return {
        "a head": (standard.per_head, flash.per_head),
        "a layer": (standard.per_layer, flash.per_layer),
        f"pass, {_many(report.layers, 'layer')}": report.wholes,
    }


def _traffic_row(name: str, pair: tuple[Bound, Bound]) -> tuple[str, ...]:
    standard, flash = (bound.work.traffic_bytes for bound in pair)
    return (name, format_bytes(standard), format_bytes(flash), f"{significant(standard / flash, 3)}x")


def _title(report: AttentionReport) -> str:
    what = report.model.title if report.model else "one layer"
    return f"attention  {what}  {report.formats.text}  {'causal' if report.causal else 'no mask'}"


def heading(report: AttentionReport) -> str:
    """What is asked, and on which device."""
    return f"{_title(report)}  on {report.device.title} ({report.device.name})"


def facts(report: AttentionReport) -> list[tuple[str, ...]]:
    """The shape in words."""
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
    works = [bound.work for bound in report.wholes]
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


def _estimate_notes(report: AttentionReport) -> list[str]:
    pairs = (("standard", report.standard.estimate), ("flash", report.flash.estimate))
    return [f"estimate of {name}: {each.rests_on}" for name, each in pairs if each]


def _notes(report: AttentionReport) -> list[str]:
    return [*_estimate_notes(report), *_shared_notes(report), *_own_notes(report)]


def _own_notes(report: AttentionReport) -> list[str]:
    """What holds on this device alone."""
    return remarks(report.device, report.wholes, report.cache_bytes)
