"""The roofline report as a record and as a page."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.errors import Refusal
from memwall.render.bounds import (
    bound_record,
    compared_notes,
    estimate_record,
    evidence_record,
    intensity_text,
    mark,
    notes_section,
    ridge_text,
    step_record,
    steps_section,
    term_texts,
)
from memwall.render.data import Record
from memwall.render.page import Page, Section, Table
from memwall.reports.estimates import UNMEASURED
from memwall.reports.evidence import remarks
from memwall.reports.roofline import RooflineReport
from memwall.units import format_bytes, format_flops, format_flops_per_s, format_seconds, significant

FLASH_GENERATIONS = ("fa1", "fa2", "fa3")

Row = RooflineReport | Refusal


def record(report: RooflineReport) -> Record:
    """The report under its documented keys."""
    case, formats = report.case, report.formats
    bound = bound_record(report.bound)
    if case is None:  # only the sum of the bytes was given
        bound["read_bytes"] = bound["written_bytes"] = None
    return {
        "gpu": report.device.name,
        "op": report.op,
        "shape": dict(report.shape),
        "dtype": formats.dtype,
        "weight_dtype": formats.weight,
        "kv_dtype": formats.kv,
        "out_dtype": formats.out,
        "causal": case.causal if case else None,
        "impl": (case.impl or next(iter(case.op.impls), None)) if case else None,
        **bound,
        **({} if report.bound_only else estimate_record(report.estimate)),
        **({"estimate_kernel": report.estimate.kernel} if report.estimate and report.estimate.kernel else {}),
        "kernels_bound_time_s": report.kernels_bound_time_s if report.kernels else report.bound.time_s,
        "kernels": _kernel_records(report),
        "defaults": list(report.defaults),
        **evidence_record(report.device, [report.bound]),
        "notes": _notes(report),
        "advice": [step_record(step) for step in report.advice],
    }


def _kernel_records(report: RooflineReport) -> list[Record]:
    """Each kernel's bound and estimate."""
    parts = report.estimate.parts if report.estimate else ()
    estimates = [{"estimate_time_s": part.time_s} for part in parts] or [{} for _ in report.kernels]
    return [
        {"kernel": name, **bound_record(each), **estimated}
        for (name, each), estimated in zip(report.kernels, estimates, strict=False)
    ]


def page(report: RooflineReport) -> Page:
    """The report for people."""
    bound = report.bound
    sections = [Section(_heading(report), Table(_facts(report)))]
    terms = [(*term_texts(term), "<- limits" if term is bound.limiting else "") for term in bound.terms]
    sections.append(
        Section("Terms", Table(terms, ("term", "work", "rate", "time", ""), frozenset({1, 2, 3})))
    )
    if len(report.kernels) > 1:
        rows = [
            (
                name,
                format_flops(each.work.flops),
                format_bytes(each.work.traffic_bytes),
                format_seconds(each.time_s),
                each.limited_by,
            )
            for name, each in report.kernels
        ]
        sections.append(
            Section(
                "Kernels",
                Table(rows, ("kernel", "FLOPs", "traffic", "bound", "limited by"), frozenset({1, 2, 3})),
            )
        )
    steps = steps_section(report.advice, report.regime)
    return [*sections, *steps, *notes_section(_notes(report))]


def compare_page(rows: Sequence[Row]) -> Page:
    """Several devices side by side; one that cannot shows why."""
    first = next(row for row in rows if isinstance(row, RooflineReport))
    table = [_compare_row(row) for row in rows]
    header = ("GPU", "bound", "estimate", "regime", "limited by", "attainable", "ridge")
    notes = [*_shared_notes(first), *compared_notes(rows, _own_notes)]
    return [
        Section(_case_heading(first), Table(_work_facts(first))),
        Section("", Table(table, header, frozenset({1, 2, 5, 6}))),
        *notes_section(notes),
    ]


def _compare_row(row: Row) -> tuple[str, ...]:
    if isinstance(row, Refusal):
        return (row.gpu, "-", "-", "-", "-", "-", "-")
    bound = row.bound
    ridge = "-" if bound.ridge_point is None else significant(bound.ridge_point)
    return (
        row.device.name,
        format_seconds(bound.time_s) + mark([bound]),
        format_seconds(row.estimate.time_s) if row.estimate else "-",
        bound.regime,
        bound.limited_by,
        format_flops_per_s(bound.attainable_flops_per_s),
        ridge,
    )


def _case_heading(report: RooflineReport) -> str:
    shape = f"  {report.case.shape_text}" if report.case else ""
    impl = f"  {report.case.impl}" if report.case and report.case.impl else ""
    mask = {None: "", True: "  causal", False: "  no mask"}[report.case.causal if report.case else None]
    return f"{report.op}{shape}  {report.formats.text}{impl}{mask}"


def _heading(report: RooflineReport) -> str:
    return f"{_case_heading(report)}  on {report.device.title} ({report.device.name})"


def _work_facts(report: RooflineReport) -> list[tuple[str, ...]]:
    work = report.bound.work
    split = (
        f"read {format_bytes(work.read_bytes)}, written {format_bytes(work.written_bytes)}"
        if report.case
        else ""
    )
    return [
        ("FLOPs", format_flops(work.flops)),
        ("traffic", format_bytes(work.traffic_bytes), split),
        ("arithmetic intensity", intensity_text(report.bound)),
    ]


def _facts(report: RooflineReport) -> list[tuple[str, ...]]:
    bound = report.bound
    rows = [
        *_work_facts(report),
        ("ridge point", ridge_text(bound)),
        ("regime", bound.regime, f"limited by {bound.limited_by}"),
        ("attainable", format_flops_per_s(bound.attainable_flops_per_s), _share_of_peak(report)),
        ("bound time", format_seconds(bound.time_s) + mark([bound])),
    ]
    if report.estimate:
        rows.append(("estimate", format_seconds(report.estimate.time_s), report.estimate.rests_on))
    if len(report.kernels) > 1:
        rows.append(
            ("kernels in turn", format_seconds(report.kernels_bound_time_s), "the sum of their own bounds")
        )
    return rows


def _share_of_peak(report: RooflineReport) -> str:
    peak = report.bound.peak
    if peak is None or not report.bound.work.matrix_flops:  # other FLOPs run on two engines
        return ""
    share = significant(100 * report.bound.attainable_flops_per_s / peak.value, 3)
    return f"{share} % of {format_flops_per_s(peak.value)}"


def _shared_notes(report: RooflineReport) -> list[str]:
    notes = [f"by default: {', '.join(report.defaults)}"] if report.defaults else []
    if report.case:
        notes.append("compulsory traffic, each tensor once, caches cold: the least time, not an estimate")
    impl = report.case.impl if report.case else None
    if impl in UNMEASURED and not report.estimate and not report.bound_only:
        notes.append(f"no estimate: {UNMEASURED[impl]}")
    if report.case and report.case.impl in FLASH_GENERATIONS:
        notes.append("fa1, fa2 and fa3 have this floor in common; what each re-reads: attention --impl all")
    return notes


def _notes(report: RooflineReport) -> list[str]:
    return [*_shared_notes(report), *_own_notes(report)]


def _own_notes(report: RooflineReport) -> list[str]:
    """What holds on this device alone."""
    impl = report.case.impl if report.case else None
    own = remarks(report.device, [report.bound], report.footprint_bytes)
    if impl not in FLASH_GENERATIONS:
        return own
    from memwall.render.generations import needs_more  # which few need, and it loads much

    return [*needs_more(impl, report.device), *own]
