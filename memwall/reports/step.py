"""One pass of a model, kernel by kernel: what a prefill or a step of decoding must cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from memwall.bound import bound
from memwall.estimate.engine import Engine
from memwall.estimate.estimate import Estimate
from memwall.estimate.library import library_named
from memwall.estimate.own import own_fits
from memwall.hardware import Device
from memwall.models.step.launch import Launch
from memwall.models.step.sides import source_default
from memwall.models.step.whole import kernels
from memwall.program import Kernel, kernel_work
from memwall.reports.arguments import ModelLike, checked, model_of
from memwall.reports.case import DEFAULT_GPU, DeviceLike, device_of
from memwall.reports.expected import kernel_estimate
from memwall.reports.step_layout import check_offloads, spread_of, with_links
from memwall.reports.step_report import Line as Line
from memwall.reports.step_report import StepReport as StepReport
from memwall.reports.step_report import whole_bytes as whole_bytes
from memwall.reports.step_setting import total, work_of
from memwall.reports.step_settled import settled


@checked
def step(
    model: ModelLike,
    *,
    gpu: DeviceLike = DEFAULT_GPU,
    phase: str | None = None,
    batch: int = 1,
    context: int | None = None,
    seq: int | None = None,
    source_tokens: int | None = None,
    dtype: str | None = None,
    weight_dtype: str | None = None,
    kv_dtype: str | None = None,
    impl: str = "flash",
    eager: bool = False,
    merged: bool = False,
    tp: int = 1,
    pp: int = 1,
    ep: int = 1,
    dp: int = 1,
    sequence_parallel: bool = False,
    imbalance: float = 1.0,
    offload_weights: str | None = None,
    offload_cache: str | None = None,
    library: str | None = None,
    engine: str | None = None,
    calibration: str | None = None,
    bound_only: bool = False,
    changes: Mapping[str, str | float] | None = None,
    defaults: tuple[str, ...] = (),
) -> StepReport:
    """A whole pass of a model, kernel by kernel.

    Args:
        model: a model, or its name or file.
        gpu: a device, or its name or file.
        phase: prefill or decode; by default as `seq` or `context` says.
        batch: sequences.
        context: tokens of a sequence in the cache once the new ones are there.
        seq: tokens of the prompt; what the encoder reads where there is one.
        source_tokens: decode: what the encoder has read; by default all that its table has positions for,
            else as many as `context`.
        dtype: format that the linear layers compute in and are stored in; by default as the checkpoint has
            them: 16 bits, or the format that its activations are quantised to, where the device has it.
        weight_dtype: storage format of the linear layers.
        kv_dtype: storage format of the cache.
        impl: of attention: flash or standard.
        eager: every elementwise step and every projection a kernel of its own.
        merged: in an eager pass too, QKV is one product, and gate and up one.
        tp: GPUs that each matrix is cut between.
        pp: stages that the layers are cut in.
        ep: GPUs of the tp x dp that whole experts are spread over.
        dp: replicas of all but the experts; `batch` is of all together.
        sequence_parallel: norms and residual sums cut by tokens among the tp GPUs.
        imbalance: tokens of the busiest experts' GPU over the mean.
        offload_weights: of each GPU, kept in the host's memory and fetched in every pass: "40GiB".
        offload_cache: of each GPU's cache, the same.
        library: whose kernels are estimated: cublas, fa3, trtllm, vllm ...
        engine: whose step is estimated: llama.cpp, vllm ...; by default a pass compiled into a CUDA graph.
        calibration: a file of constants for the estimate, as `memwall calibrate` makes.
        bound_only: leave out the estimate.
        changes: what-ifs on the device.
        defaults: what the caller assumed on the user's behalf, for the report.

    Raises:
        UsageError: an unknown name, a shape that cannot be, or a layout that the model does not have.
        NotAvailable: the device has no peak for that format, or the model has no such phase.
    """
    asked = {
        "phase": phase, "batch": batch, "context": context, "seq": seq,
        "source_tokens": source_tokens, "dtype": dtype,
        "weight_dtype": weight_dtype, "kv_dtype": kv_dtype, "impl": impl, "eager": eager,
        "merged": merged, "tp": tp, "pp": pp, "ep": ep, "dp": dp,
        "sequence_parallel": sequence_parallel, "imbalance": imbalance,
        "offload_weights": offload_weights, "offload_cache": offload_cache,
        "library": library, "engine": engine, "calibration": calibration,
    }  # fmt: skip
    device = device_of(gpu, changes)
    loaded = model_of(model)
    ready = settled(loaded, device, asked)
    if ready.phase == "decode":
        defaults = (*defaults, *source_default(source_tokens, ready.source))
    defaults = defaults if dtype else (*defaults, f"dtype {ready.formats.dtype}")
    part, chosen, layout = ready.part, ready.setting, ready.layout
    other = kernels(part, chosen._replace(eager=not eager, merged=merged or eager))
    other_bytes = whole_bytes(work_of(other).traffic_bytes)
    lines = _lines(kernels(part, chosen), device)
    lines = lines if bound_only else _estimated(lines, device, library, calibration, ready.engine, eager)
    spread = spread_of(loaded, device, layout, chosen, asked)
    whole = with_links(bound(total(line.work for line in lines), device), spread)
    given = (ready.phase, ready.tokens, ready.source, ready.formats, ready.storage, chosen)
    rest = (whole, other_bytes, asked, defaults, spread, ready.engine)
    report = StepReport(device, loaded, *given, lines, *rest)
    check_offloads(spread, report.resident_weight_bytes, report.resident_cache_bytes)
    return report


def _lines(launches: Iterable[Launch], device: Device) -> tuple[Line, ...]:
    return tuple(Line(each, bound(kernel_work(each.kernel), device)) for each in launches)


def _estimated(
    lines: tuple[Line, ...],
    device: Device,
    library: str | None,
    calibration: str | None,
    engine: Engine | None,
    eager: bool,
) -> tuple[Line, ...]:
    """The lines with the expected time of each kernel."""
    own, named = own_fits(calibration, device), library_named(library)

    def estimated(kernel: Kernel) -> Estimate:
        found = kernel_estimate(kernel, device, named, own, eager)
        return engine.estimated(found, device) if engine else found

    return tuple(line._replace(estimate=estimated(line.launch.kernel)) for line in lines)
