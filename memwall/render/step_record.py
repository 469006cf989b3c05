"""The report on a pass as a record, and the remarks that its record and its page share."""

from __future__ import annotations

from memwall.render.bounds import LIMITS, estimate_record, evidence_record, step_record
from memwall.render.data import Record
from memwall.render.layouts import layout_own_notes, layout_record, layout_shared_notes
from memwall.reports.evidence import confession, remarks
from memwall.reports.lengths import too_long
from memwall.reports.step import Line, StepReport, whole_bytes
from memwall.units import format_bytes, format_seconds, significant

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
        "context": report.length,
        "encoder_tokens": report.source or None,
        "dtype": report.formats.dtype,
        "weight_dtype": report.storage.linear.name,
        "kv_dtype": report.setting.plain.kv.name,
        "impl": report.setting.impl,
        "eager": report.setting.eager,
        "merged": report.setting.merged,
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
        "bound_time_s": report.bound_time_s,
        **estimate_record(report.estimate),
        "estimate_tokens_per_s": _estimated_rate(report),
        "engine": report.engine.name if report.engine else None,
        "engine_time_s": report.engine_time_s,
        "terms_s": {limit: times[limit] for limit in LIMITS if limit in times},
        "kernels_bound_time_s": report.kernels_bound_time_s,
        "ttft_s": None if decode else report.bound_time_s,
        "time_per_token_s": report.bound_time_s if decode else None,
        "tokens_per_s": report.tokens_per_s,
        "tokens_per_s_per_user": report.tokens_per_s_per_user,
        "tokens_per_s_per_gpu": report.tokens_per_s / report.spread.layout.gpus,
        "mbu": report.mbu,
        "mfu": report.mfu,
        "fits": report.fits,
        "capacity_bytes": report.capacity_bytes,
        "resident_weight_bytes": report.resident_weight_bytes,
        "resident_cache_bytes": report.resident_cache_bytes,
        **layout_record(report),
        "kernels": [_kernel_record(line, report) for line in report.lines],
        "defaults": list(report.defaults),
        **evidence_record(report.device, report.bounds, report.model),
        "notes": all_notes(report),
        "advice": [step_record(step) for step in report.advice],
    }


def rows(report: StepReport) -> list[Record]:
    """The pass's kernels, each with the GPU, model and phase that it is of."""
    of = {"gpu": report.device.name, "model": report.model.name, "phase": report.phase}
    return [{**of, **_kernel_record(line, report)} for line in report.lines]


def _estimated_rate(report: StepReport) -> float | None:
    """Tokens of the whole batch a second, at the estimate."""
    return report.new_tokens / report.estimate.time_s if report.estimate else None


def warning(report: StepReport) -> str | None:
    """That it does not fit, and by how much; None if it does, or nobody knows."""
    capacity, needed = report.capacity_bytes, report.resident_bytes
    if capacity is None or needed <= capacity:
        return None
    return (
        f"{report.model.name} does not fit on {_where(report)}: weights "
        f"{format_bytes(report.resident_weight_bytes)} and cache {format_bytes(report.resident_cache_bytes)} "
        f"are {format_bytes(needed - capacity)} more than its {format_bytes(capacity)}"
    )


def _where(report: StepReport) -> str:
    layout = report.spread.layout
    if layout.gpus == 1:
        return f"one {report.device.name}"
    return f"{layout.gpus} {report.device.name} ({layout.text}), on each"


def all_notes(report: StepReport) -> list[str]:
    """All that its reader should know."""
    return [*shared_notes(report), *own_notes(report)]


def shared_notes(report: StepReport) -> list[str]:
    """What holds on every device."""
    model = report.model
    notes = [f"by default: {', '.join(report.defaults)}"] if report.defaults else []
    if report.phase == "decode":
        notes.append("the new token is counted in the context: attention reads as many keys")
    notes += _without_engine(report)
    if any(launch.kind == "routing" for launch in (line.launch for line in report.lines)):
        notes.append(
            "experts: those that the batch meets on average with even routing, N (1 - (1 - k/N)^tokens)"
        )
    if model.towers:
        notes.append("text alone: the towers for images and sound do not run")
    notes += layout_shared_notes(report)
    generated = 0 if report.source and report.phase == "prefill" else report.tokens.seq_kv
    notes += too_long(model, generated, report.source)
    notes += [confession(model.doubt)] if model.doubt else []
    return [*notes, *model.notes]


def own_notes(report: StepReport) -> list[str]:
    """What holds on this device alone."""
    notes = [*remarks(report.device, report.bounds), *_engine_notes(report)]
    too_large = warning(report)
    if too_large:
        notes.append(too_large)
    notes += layout_own_notes(report)
    if report.setting.absorbed:
        notes.append(
            "latent attention absorbed: on this device faster than making K and V of the whole cache"
        )
    share = report.activation_bytes / report.whole.work.traffic_bytes
    if report.whole.limited_by == "hbm" and share > LITTLE:
        notes.append(f"activations are {percent(share)} of the traffic; those that stay in L2 cost less")
    return notes


def _engine_notes(report: StepReport) -> list[str]:
    """Whose step is estimated, and what that adds to the kernels."""
    engine = report.engine
    if report.estimate is None or engine is None:
        return []
    own = format_seconds(report.engine_time_s)
    notes = [f"a step of {engine.title}: {own} of its own, for its host, launches and waits"]
    if report.spread.layout.pp > 1:
        notes.append("that is counted once for all microbatches: no measured pipeline stands behind it")
    if engine.gpus and report.device.name not in engine.gpus:
        notes.append(f"fitted on other GPUs: {', '.join(engine.gpus)}")
    return notes


def _without_engine(report: StepReport) -> list[str]:
    """What is assumed of the host where no engine's step is estimated."""
    asked = report.asked["engine"]
    if report.estimate is None or report.engine is not None:
        return []
    if asked:
        return [f"--engine {asked} is of decoding: this prefill is estimated as kernels alone"]
    if report.phase != "decode":
        return []
    return ["the estimate is of kernels alone, in a CUDA graph; with an engine's host: --engine vllm"]


def percent(share: float) -> str:
    """53.5 %; what is below a thousandth is 0 %."""
    return f"{significant(100 * share, 3)} %" if share >= LITTLE / 10 else "0 %"


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
        "estimate_time_s": line.estimate.time_s if line.estimate else None,
        "share": report.share(line),
    }
