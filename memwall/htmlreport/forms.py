"""A pass of a model on a device as closed forms of batch and length, kernel by kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from memwall.bound import Bound, busy_terms
from memwall.errors import NotAvailable
from memwall.estimate.engine import Engine
from memwall.estimate.estimate import Estimate, estimate_in_pass, weakest
from memwall.estimate.library import library_named
from memwall.estimate.own import own_fits
from memwall.hardware import Device
from memwall.htmlreport.details import details_of
from memwall.htmlreport.trace import Array, Region, Tape, Traced, regions
from memwall.memory.budget import total_memory
from memwall.models.model import Model
from memwall.models.step.launch import Launch
from memwall.models.step.whole import kernels
from memwall.parallel.exchanges import Exchange
from memwall.parallel.memory import cache_on_a_gpu, weights_on_a_gpu
from memwall.parallel.stages import head_share
from memwall.program import Work, kernel_work
from memwall.reports.step import Line, StepReport
from memwall.reports.step_layout import Spread, busiest_link, engine_s, exchanged
from memwall.reports.step_setting import work_of
from memwall.reports.step_settled import Settled, settled

MOST_BATCH = 1 << 10
LONGEST = 131_072
"""Where the sliders end, unless the question lies beyond."""
_DOUBLED = (1, 2, 3, 5, 8, 13)


class Kernel(NamedTuple):
    """One launch of the pass: names, and numbers that are forms."""

    name: str
    kind: str
    detail: str
    """What tells it from others of its name; empty where none has it."""
    repeats: int
    flops: Any
    traffic_bytes: Any
    limits: tuple[tuple[str, Any], ...]
    """Each term's name and time [s]."""
    estimate_time_s: Any
    """None where only the bound is wanted, as below."""
    error_p50: float | None
    error_p90: float | None


class Link(NamedTuple):
    """An exchange of the pass."""

    name: str
    op: str
    gpus: int
    repeats: int
    bytes: Any
    bound_time_s: Any
    estimate_time_s: Any
    """None where nothing is known of such a link."""


class Pass(NamedTuple):
    """The whole pass; work and bytes are one GPU's."""

    flops: Any
    traffic_bytes: Any
    limits: tuple[tuple[str, Any], ...]
    each_tokens: Any
    """New tokens of one sequence."""
    batch: Any
    cache_bytes: Any
    microbatches: Any
    bubble: Any
    stretch: Any
    """Time of the pass over that of one microbatch through all stages."""
    expected_stretch: Any
    """The same of the estimate, whose stages are not alike; None where only the bound is wanted."""
    matrix_s: Any
    """Matrix FLOPs over their formats' peaks."""
    activation_bytes: Any
    absorbed: bool
    """Whether latent attention runs on the latent cache itself."""
    basis: str | None
    """Of the estimate."""
    engine_time_s: Any
    """What an engine adds to kernels and exchanges; 0 without one."""
    engine_errors: tuple[float, float] | None
    """Of its passes: half, and nine in ten, have been closer."""
    kernels: tuple[Kernel, ...]
    exchanges: tuple[Link, ...]


class Forms(NamedTuple):
    """The closed forms of one phase on one device."""

    tape: Tape
    regions: tuple[Region, ...]
    weight_bytes: int
    capacity_bytes: int | None


def forms_of(
    device: Device,
    model: Model,
    phase: str,
    words: Mapping[str, Any],
    most: tuple[int, int] = (MOST_BATCH, LONGEST),
    tape: Tape | None = None,
) -> Forms:
    """The forms of a phase, as functions of `batch` and of `context`, the prompt's length in a prefill.

    Args:
        device: the device.
        model: the model.
        phase: prefill or decode.
        words: formats, layout, library and calibration, as `memwall.step` takes them.
        most: the largest batch and context that a slider reaches.
        tape: where the forms are written; one for several lets them share what is alike.

    Raises:
        UsageError, NotAvailable: there is no answer at any point.
    """
    length = "seq" if phase == "prefill" else "context"
    weights: list[int] = []

    def answer(inputs: Mapping[str, Traced]) -> Pass:
        asked = {**words, "phase": phase, "batch": inputs["batch"], length: inputs["context"]}
        ready = settled(model, device, asked)
        weights.append(weights_on_a_gpu(model, ready.storage, ready.layout))
        return _pass(model, device, ready, words)

    tape = tape or Tape()
    found = tuple(regions(tape, _samples(*most), answer))
    answered = [region for region in found if region.refusal is None]
    if not answered and found[0].refusal:
        raise found[0].refusal
    try:
        capacity = int(total_memory(device).value)
    except NotAvailable:
        capacity = None
    return Forms(tape, tuple(answered), weights[-1], capacity)


def _pass(model: Model, device: Device, ready: Settled, words: Mapping[str, Any]) -> Pass:
    layout, setting, tokens, source = ready.layout, ready.setting, ready.tokens, ready.source
    decoding = ready.phase == "decode"
    launches = kernels(ready.part, setting)
    expected, details = _expected(launches, device, words, ready.engine), details_of(launches)
    spread = Spread(layout, exchanged(model, device, layout, setting), tokens.batch, decoding)
    whole = work_of(launches)
    link = busiest_link(each.term for each in spread.exchanges)
    length = 1 if source and not decoding else tokens.seq_kv
    return Pass(
        whole.flops,
        whole.traffic_bytes,
        (*_limits(whole, device), *([(link.limit, link.time_s)] if link else [])),
        source if source and not decoding else tokens.seq_q,
        tokens.batch,
        cache_on_a_gpu(model, length, tokens.batch, layout, setting.plain.kv, source),
        layout.microbatches(tokens.batch),
        spread.bubble,
        spread.stretch,
        _expected_stretch(model, spread, launches, expected),
        sum(count / device.peak(dtype).rate.value for dtype, count in whole.matrix_flops.items()),
        _activation_bytes(model, device, ready, launches, spread),
        setting.absorbed,
        *_rests_on(model, device, ready, spread, expected),
        tuple(_kernel(*each, device) for each in zip(launches, details, expected, strict=True)),
        tuple(map(_link, spread.exchanges)),
    )


def _expected_stretch(
    model: Model, spread: Spread, launches: Sequence[Launch], expected: Sequence[Estimate | None]
) -> Any:
    """That of the estimate's pass; None where only the bound is wanted."""
    times = [each.time_s for each in expected if each is not None]
    known = len(times) == len(launches)
    return spread.expected_stretch(model.layer_count, head_share(launches, times)) if known else None


def _rests_on(
    model: Model, device: Device, ready: Settled, spread: Spread, expected: Sequence[Estimate | None]
) -> tuple[str | None, Any, tuple[float, float] | None]:
    """The estimate's basis, and an engine's own time and errors where it is one's step."""
    basis = weakest(filter(None, expected))
    engine = ready.engine
    if engine is None or basis is None:
        return basis, 0, None
    own_s = engine_s(engine, model, device, spread, ready.setting.tokens.batch)
    fit = engine.on(device)
    return engine.basis(device), own_s, (fit.error_p50, fit.error_p90)


def _expected(
    launches: Sequence[Launch], device: Device, words: Mapping[str, Any], engine: Engine | None
) -> list[Estimate | None]:
    """The expected time of each kernel; None where only the bound is wanted."""
    if words.get("bound_only"):
        return [None] * len(launches)
    own, library = own_fits(words.get("calibration"), device), library_named(words.get("library"))
    eager = bool(words.get("eager"))
    found = [estimate_in_pass(launch.kernel, device, library, own, eager) for launch in launches]
    return [engine.estimated(each, device) if engine else each for each in found]


def _activation_bytes(
    model: Model, device: Device, ready: Settled, launches: Sequence[Launch], spread: Spread
) -> Any:
    """As the report on a pass counts them."""

    def unbound(work: Work) -> Bound:
        return Bound(work, device, (), ())

    lines = tuple(Line(launch, unbound(kernel_work(launch.kernel))) for launch in launches)
    given = (ready.phase, ready.tokens, ready.source, ready.formats, ready.storage, ready.setting)
    report = StepReport(device, model, *given, lines, unbound(work_of(launches)), 0, {}, (), spread)
    return report.activation_bytes


def _kernel(launch: Launch, detail: str, estimate: Estimate | None, device: Device) -> Kernel:
    work = kernel_work(launch.kernel)
    errors = (estimate.time_s, estimate.error_p50, estimate.error_p90) if estimate else (None, None, None)
    named = (launch.name, launch.kind, detail, launch.repeats)
    return Kernel(*named, work.flops, work.traffic_bytes, _limits(work, device), *errors)


def _link(each: Exchange) -> Link:
    what = each.what
    return Link(
        each.name, what.op, what.gpus, each.repeats, what.bytes, each.bound_time_s, each.estimate_time_s
    )


def _limits(work: Work, device: Device) -> tuple[tuple[str, Any], ...]:
    return tuple((term.limit, term.time_s) for term in busy_terms(work, device))


def _samples(most_batch: int, longest: int) -> Mapping[str, Array]:
    """Batches and contexts that reach every branch: around each power of two, and between."""
    batches, contexts = _spread(most_batch), _spread(longest)
    grid = np.meshgrid(batches, contexts, indexing="ij")
    return {"batch": grid[0].ravel(), "context": grid[1].ravel()}


def _spread(most: int) -> Array:
    values = {each for each in _DOUBLED if each <= most} | {most}
    power = 1
    while power <= most:
        values |= {each for each in (power - 1, power, power + 1, power * 3 // 2) if 1 <= each <= most}
        power *= 2
    return np.array(sorted(values), dtype=np.float64)
