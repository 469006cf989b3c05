"""The report on a pass as a record and as a page."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.errors import NotAvailable, Refusal
from memwall.models.cache import DEFAULT_FORMAT
from memwall.render.bounds import (
    LIMITS,
    compared_notes,
    evidence_record,
    mark,
    notes_section,
)
from memwall.render.data import Record
from memwall.render.page import Page, Section, Table, numbers
from memwall.reports.evidence import confession, remarks
from memwall.reports.step import Line, StepReport, whole_bytes
from memwall.units import (
    format_bytes,
    format_bytes_per_s,
    format_flops,
    format_flops_per_s,
    format_seconds,
    significant,
)

Row = StepReport | Refusal

LITTLE = 0.01
"""Activations below this share of the traffic need no remark."""


def record(report: StepReport) -> Record:
    """The report under its documented keys."""
    whole, work = report.whole, report.whole.work
    times = {term.limit: term.time_s for term in whole.terms}
    decode = report.phase == "decode"
    return {
        "gpu": report.device.name,
        "model": report.model.name,
        "phase": report.phase,
        "batch": report.tokens.batch,
        "seq": None if decode else report.source or report.tokens.seq_q,
        "context": report.tokens.seq_kv,
        "encoder_tokens": report.source or None,
        "dtype": report.formats.dtype,
        "weight_dtype": report.storage.linear.name,
        "kv_dtype": report.setting.plain.kv.name,
        "impl": report.setting.impl,
        "eager": report.setting.eager,
        "flops": work.flops,
        "flops_by_engine": work.flops_by_engine,
        "read_bytes": whole_bytes(work.read_bytes),
        "written_bytes": whole_bytes(work.written_bytes),
        "traffic_bytes": whole_bytes(work.traffic_bytes),
        "weight_bytes": report.weight_bytes,
        "kv_read_bytes": report.read_bytes("cache"),
        "kv_written_bytes": report.written_bytes("cache"),
        "state_bytes": report.read_bytes("state") + report.written_bytes("state"),
        "activation_bytes": report.activation_bytes,
        "fusion_saves_bytes": report.saved_bytes,
        "arithmetic_intensity": whole.arithmetic_intensity,
        "ridge_point": whole.ridge_point,
        "regime": whole.regime,
        "limited_by": whole.limited_by,
        "bound_time_s": whole.time_s,
        "terms_s": {limit: times[limit] for limit in LIMITS if limit in times},
        "kernels_bound_time_s": report.kernels_bound_time_s,
        "ttft_s": None if decode else whole.time_s,
        "time_per_token_s": whole.time_s if decode else None,
        "tokens_per_s": report.tokens_per_s,
        "tokens_per_s_per_user": report.tokens_per_s_per_user,
        "tokens_per_s_per_gpu": report.tokens_per_s,
        "mbu": report.mbu,
        "mfu": report.mfu,
        "fits": report.fits,
        "capacity_bytes": _capacity(report),
        "resident_weight_bytes": report.resident_weight_bytes,
        "resident_cache_bytes": report.resident_cache_bytes,
        "kernels": [_kernel_record(line, report) for line in report.lines],
        "defaults": list(report.defaults),
        **evidence_record(report.device, report.bounds, report.model),
        "notes": _notes(report),
    }


def page(report: StepReport) -> Page:
    """The report for people."""
    return [
        Section(_heading(report), Table([*_facts(report), *_times(report)])),
        Section("Kernels, all repeats of each", _kernel_table(report)),
        *notes_section(_notes(report)),
    ]


def compare_page(rows: Sequence[Row]) -> Page:
    """Several devices side by side."""
    first = next(row for row in rows if isinstance(row, StepReport))
    time = "a token" if first.phase == "decode" else "TTFT"
    header = ("GPU", time, "in turn", "tokens/s", "a user", "MBU", "MFU", "limited by", "fits")
    notes = [*_shared_notes(first), *compared_notes(rows, _own_notes)]
    table = Table([_compare_row(row) for row in rows], header, frozenset(range(1, 7)))
    return [
        Section(_title(first), Table(_facts(first))),
        Section("At the bound", table),
        *notes_section(notes),
    ]


def warning(report: StepReport) -> str | None:
    """That it does not fit, and by how much; None if it does, or nobody knows."""
    if report.fits is not False:
        return None
    capacity = _capacity(report) or 0
    needed = report.resident_weight_bytes + report.resident_cache_bytes
    return (
        f"{report.model.name} does not fit on one {report.device.name}: weights "
        f"{format_bytes(report.resident_weight_bytes)} and cache {format_bytes(report.resident_cache_bytes)} "
        f"are {format_bytes(needed - capacity)} more than its {format_bytes(capacity)}"
    )


def _compare_row(row: Row) -> tuple[str, ...]:
    if isinstance(row, Refusal):
        return (row.gpu, *["-"] * 8)
    return (
        row.device.name,
        format_seconds(row.whole.time_s) + mark(row.bounds),
        format_seconds(row.kernels_bound_time_s),
        significant(row.tokens_per_s),
        significant(row.tokens_per_s_per_user),
        _percent(row.mbu),
        _percent(row.mfu),
        row.whole.limited_by,
        {True: "yes", False: "no", None: "-"}[row.fits],
    )


def _kernel_record(line: Line, report: StepReport) -> Record:
    """One launch; its share counts all its repeats."""
    launch, work = line.launch, line.bound.work
    return {
        "name": launch.name,
        "kind": launch.kind,
        "repeats": launch.repeats,
        "flops": work.flops,
        "read_bytes": whole_bytes(work.read_bytes),
        "written_bytes": whole_bytes(work.written_bytes),
        "traffic_bytes": whole_bytes(work.traffic_bytes),
        "arithmetic_intensity": line.bound.arithmetic_intensity,
        "regime": line.bound.regime,
        "limited_by": line.bound.limited_by,
        "bound_time_s": line.bound.time_s,
        "share": line.time_s / report.kernels_bound_time_s,
    }


def _kernel_table(report: StepReport) -> Table:
    """All repeats of each kernel together."""
    largest = max(line.time_s for line in report.lines)
    rows = []
    for line in report.lines:
        work, share = line.work, line.time_s / report.kernels_bound_time_s
        intensity = line.bound.arithmetic_intensity
        rows.append(
            (
                line.launch.name,
                str(line.launch.repeats),
                significant_flops(work.flops),
                format_bytes(work.traffic_bytes),
                "-" if intensity is None else significant(intensity, 3),
                line.bound.limited_by,
                format_seconds(line.time_s),
                _percent(share) + (" <-" if line.time_s == largest else ""),
            )
        )
    header = ("kernel", "x", "FLOPs", "traffic", "FLOP/B", "limit", "time", "share")
    table = numbers(rows, header)
    return table._replace(right=table.right - {5, 7})


def significant_flops(flops: float) -> str:
    """FLOPs without a unit's noise where there are none."""
    return format_flops(flops).removesuffix("FLOP").rstrip() if flops else "-"


def _title(report: StepReport) -> str:
    how = "eager" if report.setting.eager else "fused"
    formats = [report.formats.dtype]
    if report.storage.linear.name != report.formats.dtype:
        formats.append(f"weights {report.storage.linear.name}")
    if report.setting.plain.kv not in (DEFAULT_FORMAT, report.setting.plain.activation):
        formats.append(f"KV {report.setting.plain.kv.name}")
    return f"step  {report.model.title}  {report.phase}  {', '.join(formats)}  {how}"


def _heading(report: StepReport) -> str:
    return f"{_title(report)}  on {report.device.title} ({report.device.name})"


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
    return [
        ("tokens", *_tokens_text(report)),
        ("FLOPs", format_flops(work.flops)),
        ("traffic", format_bytes(work.traffic_bytes), ", ".join(traffic)),
        ("fusion", f"{'would save' if report.setting.eager else 'saves'} {saved}"),
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
    in_turn = f"kernels one after the other {format_seconds(report.kernels_bound_time_s)}"
    rate = f"{significant(report.tokens_per_s)} tokens/s"
    user = f"{significant(report.tokens_per_s_per_user)} a user"
    bandwidth = format_bytes_per_s(report.device.bandwidth.value)
    peak = f", MFU {_percent(report.mfu)}"
    if len(whole.work.matrix_flops) > 1:
        peak += " of the formats' peaks"
    elif whole.peak:
        peak += f" of {format_flops_per_s(whole.peak.value)}"
    return [
        ("intensity", "-" if intensity is None else f"{significant(intensity)} FLOP/B", ridge),
        ("regime", whole.regime, f"limited by {whole.limited_by}"),
        (what, format_seconds(whole.time_s) + mark(report.bounds), in_turn),
        ("throughput", rate, user),
        ("at the bound", f"MBU {_percent(report.mbu)}", f"of {bandwidth}{peak}"),
        ("memory", *_memory(report)),
    ]


def _memory(report: StepReport) -> tuple[str, str]:
    needed = report.resident_weight_bytes + report.resident_cache_bytes
    capacity = _capacity(report)
    of = "" if capacity is None else f" of {format_bytes(capacity)}"
    parts = f"weights {format_bytes(report.resident_weight_bytes)}"
    if report.resident_cache_bytes:
        parts += f", cache {format_bytes(report.resident_cache_bytes)}"
    fits = {True: "", False: ": does not fit", None: ""}[report.fits]
    return format_bytes(needed) + of, parts + fits


def _capacity(report: StepReport) -> int | None:
    try:
        return round(report.device.capacity.value)
    except NotAvailable:
        return None


def _percent(share: float) -> str:
    return f"{significant(100 * share, 3)} %" if share >= LITTLE / 10 else "0 %"


def _notes(report: StepReport) -> list[str]:
    return [*_shared_notes(report), *_own_notes(report)]


def _shared_notes(report: StepReport) -> list[str]:
    model = report.model
    notes = [f"by default: {', '.join(report.defaults)}"] if report.defaults else []
    if report.phase == "decode":
        notes.append("the new token is counted in the context: attention reads as many keys")
    if any(launch.kind == "routing" for launch in (line.launch for line in report.lines)):
        notes.append(
            "experts: those that the batch meets on average with even routing, N (1 - (1 - k/N)^tokens)"
        )
    if model.towers:
        notes.append("text alone: the towers for images and sound do not run")
    if model.context and report.tokens.seq_kv > model.context:
        notes.append(f"{report.tokens.seq_kv} tokens are more than the {model.context} it was made for")
    notes += [confession(model.doubt)] if model.doubt else []
    return [*notes, *model.notes]


def _own_notes(report: StepReport) -> list[str]:
    """What holds on this device alone."""
    notes = remarks(report.device, report.bounds)
    too_large = warning(report)
    if too_large:
        notes.append(too_large)
    if report.setting.absorbed:
        notes.append(
            "latent attention absorbed: on this device faster than making K and V of the whole cache"
        )
    share = report.activation_bytes / report.whole.work.traffic_bytes
    if report.whole.limited_by == "hbm" and share > LITTLE:
        notes.append(f"activations are {_percent(share)} of the traffic; those that stay in L2 cost less")
    return notes
