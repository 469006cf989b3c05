"""A whole pass of a model at many points: batch and context as arrays through the same kernels.

A layout (tp, pp, ep, dp) is the same for all points of a block, as the model, the GPU and the formats are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from memwall import hardware
from memwall.bound import Term, busy_terms
from memwall.errors import NotAvailable
from memwall.estimate.constants import Fit
from memwall.estimate.engine import Engine
from memwall.estimate.estimate import estimate_in_pass
from memwall.estimate.families import FEW_QUERIES
from memwall.estimate.library import Library, library_named
from memwall.estimate.own import own_fits
from memwall.hardware import Device
from memwall.memory.budget import total_memory
from memwall.models.load import load as load_model
from memwall.models.model import Model
from memwall.models.step.launch import Launch, Setting
from memwall.models.step.whole import kernels
from memwall.parallel.memory import cache_on_a_gpu, weights_on_a_gpu
from memwall.parallel.stages import head_share
from memwall.program import Kernel, kernel_work
from memwall.reports.step_layout import (
    OFFLOADS,
    Spread,
    busiest_link,
    check_offloads,
    engine_s,
    spread_of,
)
from memwall.reports.step_setting import work_of
from memwall.reports.step_settled import settled
from memwall.sweeps.ops import bounded
from memwall.sweeps.points import Array, Values
from memwall.sweeps.words import Words, changes_of

RESULTS = (
    "flops",
    "read_bytes",
    "written_bytes",
    "traffic_bytes",
    "arithmetic_intensity",
    "limited_by",
    "attainable_flops_per_s",
    "bound_time_s",
    "kernels_bound_time_s",
    "tokens_per_s",
    "tokens_per_s_per_user",
    "tokens_per_s_per_gpu",
    "communication_bound_time_s",
    "resident_weight_bytes",
    "resident_cache_bytes",
    "fits",
)
"""Columns, under the names that `memwall step --json` gives them."""

Asked = Mapping[str, Any]
"""What `memwall step` was asked, beside batch, context and prompt: formats, layout, library ..."""

UNASKED: Asked = dict.fromkeys(OFFLOADS)


class Pass(NamedTuple):
    """A pass at some points, settled as `memwall step` settles it."""

    setting: Setting
    """Of one GPU's kernels."""
    launches: tuple[Launch, ...]
    spread: Spread
    engine: Engine | None
    batch: Any
    """Sequences on all GPUs."""
    each: Any
    """New tokens of a sequence."""
    length: Any
    """Tokens of a sequence in the cache once the pass is done."""


def answers(settings: Mapping[str, Any]) -> Callable[[Words], Any]:
    """What answers for a model on a GPU in given formats and a given layout.

    Args:
        settings: phase, impl, eager, merged, library and others of `memwall step`; changes to the device.
    """

    def of(words: Words) -> Callable[[Values], Mapping[str, Any]]:
        device = hardware.load(str(words["gpu"]), changes_of(words, settings))
        model = load_model(str(words["model"]))
        asked = {**settings, **{name: word for name, word in words.items() if word is not None}}
        library, own = library_named(asked.get("library")), own_fits(asked.get("calibration"), device)

        def answer(values: Values) -> Mapping[str, Any]:
            settled = settle(device, model, asked, values)
            columns = _bounded(device, model, settled)
            if settings.get("estimate"):
                columns["estimate_time_s"] = _estimate(device, model, settled, library, own)
            return columns

        return answer

    return of


def settle(device: Device, model: Model, asked: Asked, values: Values) -> Pass:
    """The kernels of a pass and what its GPUs exchange, at one point or at many, as `memwall step` has them.

    Raises:
        UsageError, NotAvailable: as `memwall step` says.
    """
    given = {name: word for name, word in {**asked, "batch": 1, **values}.items() if word is not None}
    ready = settled(model, device, given)
    tokens, setting = ready.tokens, ready.setting
    encodes = bool(ready.source) and setting.prefill
    return Pass(
        setting,
        kernels(ready.part, setting),
        spread_of(model, device, ready.layout, setting, {**UNASKED, **asked, "batch": tokens.batch}),
        ready.engine,
        tokens.batch,
        ready.source if encodes else tokens.seq_q,
        1 if encodes else tokens.seq_kv,
    )


def _bounded(device: Device, model: Model, settled: Pass) -> dict[str, Any]:
    """The columns of the bound."""
    spread, launches = settled.spread, settled.launches
    link = busiest_link([*(e.term for e in spread.exchanges), *(e.term for e in spread.host)])
    columns = bounded(work_of(launches), device, [link] if link else [])
    for name in ("read_bytes", "written_bytes", "traffic_bytes"):  # experts that are met on average
        columns[name] = round(columns[name])
    columns["bound_time_s"] = spread.stretch * columns["bound_time_s"]
    tokens_per_s = settled.batch * settled.each / columns["bound_time_s"]
    between_s = spread.bound_time_s
    kernels_s = sum(launch.repeats * _time_s(launch, device) for launch in launches)
    return columns | {
        "kernels_bound_time_s": spread.stretch * (kernels_s + between_s),
        "tokens_per_s": tokens_per_s,
        "tokens_per_s_per_user": settled.each / columns["bound_time_s"],
        "tokens_per_s_per_gpu": tokens_per_s / spread.layout.gpus,
        "communication_bound_time_s": between_s,
        **_resident(device, model, settled),
    }


def _time_s(launch: Launch, device: Device) -> Array:
    """The bound of one launch [s]."""
    terms: list[Term] = busy_terms(kernel_work(launch.kernel), device)
    longest = np.asarray(terms[0].time_s)
    for term in terms[1:]:
        longest = np.maximum(longest, term.time_s)
    return longest


def _resident(device: Device, model: Model, settled: Pass) -> dict[str, Any]:
    """What has to be in a GPU's memory, and whether it is within it: yes, no, or nobody knows."""
    layout = settled.spread.layout
    weights = weights_on_a_gpu(model, settled.setting.storage, layout)
    kv, source = settled.setting.plain.kv, settled.setting.source
    kept = cache_on_a_gpu(model, settled.length, settled.batch, layout, kv, source)
    check_offloads(settled.spread, weights, kept)
    try:
        fits: Any = weights + kept - settled.spread.offloaded_bytes <= int(total_memory(device).value)
    except NotAvailable:
        fits = np.nan
    return {"resident_weight_bytes": weights, "resident_cache_bytes": kept, "fits": fits}


def _estimate(device: Device, model: Model, settled: Pass, library: Library, own: tuple[Fit, ...]) -> Any:
    """The expected time: kernels one after the other, and what passes over the links [s]."""
    bool(settled.setting.tokens.seq_q <= FEW_QUERIES)  # few queries have another formula: those points apart
    spread, engine = settled.spread, settled.engine

    def kernel_s(kernel: Kernel) -> Any:
        found = estimate_in_pass(kernel, device, library, own, settled.setting.eager)
        return (engine.estimated(found, device) if engine else found).time_s

    times = [kernel_s(launch.kernel) for launch in settled.launches]
    kernels_s = sum(launch.repeats * each for launch, each in zip(settled.launches, times, strict=True))
    stretch = spread.expected_stretch(model.layer_count, head_share(settled.launches, times))
    added_s = engine_s(engine, model, device, spread, settled.setting.tokens.batch) if engine else 0
    known = spread.estimate_time_s
    between_s = spread.bound_time_s if known is None else known
    return spread.beside_host(stretch * (kernels_s + between_s)) + added_s
