"""Diagnoses as a record and as a page."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.diagnose.report import DiagnoseReport, Diagnosis
from memwall.errors import Refusal, shown
from memwall.render.bounds import notes_section
from memwall.render.data import Record
from memwall.render.page import Lines, Page, Section, Table
from memwall.units import (
    format_bytes,
    format_bytes_per_s,
    format_flops,
    format_flops_per_s,
    format_seconds,
    significant,
)

FIRST_UNKNOWN = 8


def record(report: DiagnoseReport) -> Record:
    """The report under its documented keys."""
    return {
        "gpu": report.device.name,
        "format": report.export.format,
        "kernels": [_kernel_record(each) for each in report.kernels],
        "predicted": _predicted_record(report),
        "unknown_metrics": list(report.export.unknown),
        "defaults": list(report.defaults),
    }


def rows(report: DiagnoseReport) -> list[Record]:
    """The kernels, each with its GPU, how each check came out, and the next steps in words."""
    of = {"gpu": report.device.name, "format": report.export.format}
    made = []
    for each in report.kernels:
        words = {
            "checks": {check.name.lower().replace(" ", "_"): check.status for check in each.checks},
            "steps": [f"{step.action}: {step.text}" for step in each.steps],
            "impossible": list(each.impossible.values()),
            "missing": [field for field, _ in each.profile.missing],
        }
        made.append({**of, **_kernel_record(each), **words})
    rest = {"unknown_metrics": report.export.unknown, "defaults": report.defaults}
    predicted = _predicted_record(report)
    return [{**row, **({"predicted": predicted} if predicted else {}), **rest} for row in made]


def page(report: DiagnoseReport) -> Page:
    """The report for people: a kernel after the other."""
    title = f"diagnosis  {report.export.format}  on {report.device.title} ({report.device.name})"
    header = ("kernel", "time", "DRAM", "rate", "FLOP/B", "FLOP/s", "of roof", "regime")
    rows = [_row(each) for each in report.kernels]
    sections = [Section(title, Table(rows, header, frozenset({1, 2, 3, 4, 5, 6})))]
    for number, each in enumerate(report.kernels, 1):
        sections += _kernel_sections(number, each)
    if report.predicted:
        sections.append(Section("Counted against predicted", _predicted_table(report)))
        if report.beaten:
            sections.append(Section("Not comparable", Lines([report.beaten])))
    return [*sections, *notes_section(_notes(report))]


def compare_page(rows: Sequence[DiagnoseReport | Refusal]) -> Page:
    """An export is of one device."""
    return [section for row in rows if isinstance(row, DiagnoseReport) for section in page(row)]


def _kernel_record(each: Diagnosis) -> Record:
    values = each.values
    return {
        "kernel": each.profile.kernel,
        "time_s": each.time_s,
        "regime": each.regime,
        "flops": each.flops,
        "engine": each.profile.engine,
        "dram_read_bytes": values.get("dram_read_bytes"),
        "dram_written_bytes": values.get("dram_written_bytes"),
        "dram_bytes": each.dram_bytes,
        "l2_counter_bytes": values.get("l2_counter_bytes"),
        "arithmetic_intensity": each.intensity,
        "ridge_point": each.ridge,
        "achieved_bytes_per_s": each.achieved_bytes_per_s,
        "achieved_flops_per_s": each.achieved_flops_per_s,
        "roof_flops_per_s": each.roof_flops_per_s,
        "checks": [check._asdict() for check in each.checks],
        "steps": [step._asdict() for step in each.steps],
        "impossible": [{"metric": field, "text": text} for field, text in each.impossible.items()],
        "unreadable": list(each.profile.unreadable),
        "missing": [{"metric": field, "flag": flag} for field, flag in each.profile.missing],
    }


def _predicted_record(report: DiagnoseReport) -> Record | None:
    if report.predicted is None:
        return None
    base, model = report.predicted
    return {
        "op": base.op,
        "shape": dict(base.shape),
        "bound_time_s": base.bound_time_s,
        "counted_time_s": report.counted("time_s"),
        "compulsory_read_bytes": base.bound.work.read_bytes,
        "dram_read_bytes": model.dram.read_bytes,
        "counted_dram_read_bytes": report.counted("dram_read_bytes"),
        "dram_written_bytes": model.dram.written_bytes,
        "counted_dram_written_bytes": report.counted("dram_written_bytes"),
        "l2_counter_bytes": model.l2_counter_bytes,
        "counted_l2_bytes": report.counted("l2_counter_bytes"),
        "impossible": report.beaten or None,
        "assumes": model.assumes,
    }


def _row(each: Diagnosis) -> tuple[str, ...]:
    roof, reached = each.roof_flops_per_s, each.achieved_flops_per_s
    share = f"{significant(100 * reached / roof, 3)} %" if roof and reached else "-"
    return (
        shown(each.profile.kernel, 36),
        "-" if each.time_s is None else format_seconds(each.time_s),
        "-" if each.dram_bytes is None else format_bytes(each.dram_bytes),
        "-" if each.achieved_bytes_per_s is None else format_bytes_per_s(each.achieved_bytes_per_s),
        "-" if each.intensity is None else significant(each.intensity),
        "-" if reached is None else format_flops_per_s(reached),
        share,
        each.regime,
    )


def _kernel_sections(number: int, each: Diagnosis) -> list[Section]:
    rows = [(check.name, check.healthy, check.status, check.text) for check in each.checks]
    steps = [f"{i}. {step.action}: {step.text}" for i, step in enumerate(each.steps, 1)]
    sections = [
        Section(
            f"{number}  {shown(each.profile.kernel, 60)}", Table(rows, ("check", "healthy", "", "found"))
        ),
        Section(f"Next steps ({each.regime})", Lines(steps)),
    ]
    wrong = [*each.impossible.values(), *(f"unreadable: {text}" for text in each.profile.unreadable)]
    if wrong:
        sections.insert(1, Section("Not judged", Lines(wrong)))
    flags = list(dict.fromkeys(flag for _, flag in each.profile.missing))
    if flags:
        fields = ", ".join(field for field, _ in each.profile.missing)
        tool = "rocprof-compute analyze" if each.profile.by_rocprof else "ncu"
        sections.append(Section("Missing", Lines([fields, f"collect them: {tool} {' '.join(flags)}"])))
    return sections


def _predicted_table(report: DiagnoseReport) -> Table:
    assert report.predicted is not None  # noqa: S101 - asked before
    base, model = report.predicted
    pairs = (
        ("DRAM read", model.dram.read_bytes, report.counted("dram_read_bytes"), format_bytes),
        ("DRAM written", model.dram.written_bytes, report.counted("dram_written_bytes"), format_bytes),
        ("L2 counter", model.l2_counter_bytes, report.counted("l2_counter_bytes"), format_bytes),
        ("FLOPs", base.flops, _flops(report), format_flops),
        ("time, and its bound", base.bound_time_s, report.counted("time_s"), format_seconds),
    )
    rows = []
    for name, predicted, counted, text in pairs:
        ratio = f"{significant(counted / predicted, 3)}x" if counted is not None and predicted else "-"
        rows.append((name, text(predicted), "-" if counted is None else text(counted), ratio))
    return Table(rows, ("", "predicted", "counted", "ratio"), frozenset({1, 2, 3}))


def _flops(report: DiagnoseReport) -> float | None:
    found = [each.flops for each in report.kernels]
    return None if any(value is None for value in found) else sum(value or 0.0 for value in found)


def _notes(report: DiagnoseReport) -> list[str]:
    notes = [f"by default: {', '.join(report.defaults)}"] if report.defaults else []
    if report.predicted:
        notes.append(f"predicted: L2 cold; {report.predicted[1].assumes}")
        notes.append("counted writes hold dirty lines that were there before, and miss those that stay in L2")
    unknown = report.export.unknown
    if unknown:
        first = ", ".join(shown(name, 60) for name in unknown[:FIRST_UNKNOWN])
        more = (
            f" and {len(unknown) - FIRST_UNKNOWN} more (--json lists them)"
            if len(unknown) > FIRST_UNKNOWN
            else ""
        )
        notes.append(f"not used: {first}{more}")
    return notes
