"""The report on a pass as a page."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.errors import Refusal
from memwall.models.cache import DEFAULT_FORMAT
from memwall.render.bounds import compared_notes, mark, notes_section, steps_section
from memwall.render.layouts import exchange_section, layout_facts
from memwall.render.page import Page, Section, Table, numbers
from memwall.render.step_record import all_notes, own_notes, percent, shared_notes
from memwall.render.step_record import record as record
from memwall.render.step_record import rows as rows
from memwall.reports.step import StepReport
from memwall.units import (
    format_bytes,
    format_bytes_per_s,
    format_flops,
    format_flops_per_s,
    format_seconds,
    significant,
)

Row = StepReport | Refusal


def page(report: StepReport) -> Page:
    """The report for people."""
    return [
        Section(_heading(report), Table([*_facts(report), *_times(report)])),
        Section("Kernels, all repeats of each", _kernel_table(report)),
        *exchange_section(report),
        *steps_section(report.advice),
        *notes_section(all_notes(report)),
    ]


def compare_page(rows: Sequence[Row]) -> Page:
    """Several devices side by side."""
    first = next(row for row in rows if isinstance(row, StepReport))
    time = "a token" if first.phase == "decode" else "TTFT"
    header = ("GPU", time, "in turn", "estimate", "tokens/s", "a user", "MBU", "MFU", "limited by", "fits")
    notes = [*shared_notes(first), *compared_notes(rows, own_notes)]
    table = Table([_compare_row(row) for row in rows], header, frozenset(range(1, 8)))
    return [
        Section(_title(first), Table(_facts(first))),
        Section("At the bound, but for the estimate", table),
        *notes_section(notes),
    ]


def _compare_row(row: Row) -> tuple[str, ...]:
    if isinstance(row, Refusal):
        return (row.gpu, *["-"] * 9)
    return (
        row.device.name,
        format_seconds(row.bound_time_s) + mark(row.bounds),
        format_seconds(row.kernels_bound_time_s),
        format_seconds(row.estimate.time_s) if row.estimate else "-",
        significant(row.tokens_per_s),
        significant(row.tokens_per_s_per_user),
        percent(row.mbu),
        percent(row.mfu),
        row.whole.limited_by,
        {True: "yes", False: "no", None: "-"}[row.fits],
    )


def _kernel_table(report: StepReport) -> Table:
    """All repeats of each kernel together."""
    largest = max(line.time_s for line in report.lines)
    rows = []
    for line in report.lines:
        work, share = line.work, report.share(line)
        intensity = line.bound.arithmetic_intensity
        rows.append(
            (
                line.launch.name,
                str(line.launch.repeats),
                _flops_text(work.flops),
                format_bytes(work.traffic_bytes),
                "-" if intensity is None else significant(intensity, 3),
                line.bound.regime.removesuffix("-bound"),
                format_seconds(line.time_s),
                f"{100 * share:.1f}% {'<' if line.time_s == largest else ' '}",
            )
        )
    header = ("kernel", "x", "FLOPs", "traffic", "FLOP/B", "bound", "time", "share  ")
    table = numbers(rows, header)
    return table._replace(right=table.right - {5})


def _flops_text(flops: float) -> str:
    """FLOPs without a unit's noise where there are none."""
    return format_flops(flops).removesuffix("FLOP").rstrip() if flops else "-"


def _title(report: StepReport) -> str:
    how = "eager" if report.setting.eager else "fused"
    if report.setting.eager and report.setting.merged:
        how = "eager, merged projections"
    formats = [report.formats.dtype]
    if report.storage.linear.name != report.formats.dtype:
        formats.append(f"weights {report.storage.linear.name}")
    if report.setting.plain.kv not in (DEFAULT_FORMAT, report.setting.plain.activation):
        formats.append(f"KV {report.setting.plain.kv.name}")
    return f"step  {report.model.title}  {report.phase}  {', '.join(formats)}  {how}"


def _heading(report: StepReport) -> str:
    count = report.spread.layout.gpus
    several = f"{count} x " if count > 1 else ""
    return f"{_title(report)}  on {several}{report.device.title} ({report.device.name})"


def _facts(report: StepReport) -> list[tuple[str, ...]]:
    """What holds on every device."""
    work = report.whole.work
    traffic = [f"weights {format_bytes(report.weight_bytes)}"]
    for what, amount in (
        ("KV read", report.read_bytes("cache")),
        ("states", report.read_bytes("state") + report.written_bytes("state")),
        ("activations", report.activation_bytes),
    ):
        traffic += [f"{what} {format_bytes(amount)}"] if amount else []
    saved = f"{format_bytes(report.saved_bytes)}"
    compared = report.asked["merged"] and not report.setting.eager
    against = "of an eager pass whose projections are merged" if compared else ""
    return [
        *layout_facts(report),
        ("tokens", *_tokens_text(report)),
        ("FLOPs", format_flops(work.flops)),
        ("traffic", format_bytes(work.traffic_bytes), ", ".join(traffic)),
        ("fusion", f"{'would save' if report.setting.eager else 'saves'} {saved}", against),
    ]


def _tokens_text(report: StepReport) -> tuple[str, str]:
    tokens = report.tokens
    if report.phase == "decode":
        encoded = f", {report.source} of the encoder" if report.source else ""
        return f"{tokens.batch} x 1 new", f"{tokens.seq_kv} in the cache with it{encoded}"
    if report.source:
        return f"{tokens.batch} x {report.source}", "through the encoder, 1 through the decoder"
    before = tokens.seq_kv - tokens.seq_q
    return f"{tokens.batch} x {tokens.seq_q}", f"after {before} in the cache" if before else ""


def _times(report: StepReport) -> list[tuple[str, ...]]:
    """What holds on this device."""
    whole = report.whole
    intensity = whole.arithmetic_intensity
    ridge = "" if whole.ridge_point is None else f"ridge point {significant(whole.ridge_point)}"
    what = "time per token" if report.phase == "decode" else "time to first token"
    least = f"at least {format_seconds(report.bound_time_s)}{mark(report.bounds)}"
    in_turn = f"kernels one after the other {format_seconds(report.kernels_bound_time_s)}"
    rate = f"at most {significant(report.tokens_per_s)} tokens/s"
    user = f"{significant(report.tokens_per_s_per_user)} a user"
    bandwidth = format_bytes_per_s(report.device.bandwidth.value)
    peak = f", MFU {percent(report.mfu)}"
    if len(whole.work.matrix_flops) > 1:
        peak += " of the formats' peaks"
    elif whole.peak:
        peak += f" of {format_flops_per_s(whole.peak.value)}"
    return [
        ("intensity", "-" if intensity is None else f"{significant(intensity)} FLOP/B", ridge),
        ("regime", whole.regime, f"limited by {whole.limited_by}"),
        (what, least, in_turn),
        ("throughput", rate, user),
        ("at the bound", f"MBU {percent(report.mbu)}", f"of {bandwidth}{peak}"),
        *_estimated(report),
        ("memory", *_memory(report)),
    ]


def _estimated(report: StepReport) -> list[tuple[str, ...]]:
    """What good kernels take, one after the other with what passes over the links."""
    if report.estimate is None:
        return []
    time, basis = format_seconds(report.estimate.time_s), report.estimate.rests_on
    rate = significant(report.new_tokens / report.estimate.time_s)
    user = significant(report.new_tokens / report.tokens.batch / report.estimate.time_s)
    return [("estimate", time, f"{rate} tokens/s, {user} a user; {basis}")]


def _memory(report: StepReport) -> tuple[str, str]:
    needed, capacity = report.resident_bytes, report.capacity_bytes
    of = "" if capacity is None else f" of {format_bytes(capacity)}"
    parts = f"weights {format_bytes(report.resident_weight_bytes)}"
    if report.resident_cache_bytes:
        parts += f", cache {format_bytes(report.resident_cache_bytes)}"
    offloaded = report.spread.offloaded_bytes
    parts += f", of these {format_bytes(offloaded)} in the host's" if offloaded else ""
    fits = {True: "", False: ": does not fit", None: ""}[report.fits]
    return format_bytes(needed) + of, parts + fits
