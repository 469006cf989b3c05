"""A whole pass of a model at many points: batch and context as arrays through the same kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from memwall import hardware
from memwall.bound import busy_terms
from memwall.errors import NotAvailable
from memwall.hardware import Device
from memwall.memory.budget import total_memory
from memwall.models import cache
from memwall.models.load import load as load_model
from memwall.models.model import Model
from memwall.models.step.launch import Launch, Setting
from memwall.models.step.whole import kernels
from memwall.models.storage import weight_bytes
from memwall.program import kernel_work
from memwall.reports.step_setting import fastest, formats_of, phase_of, setting_of, tokens_of, work_of
from memwall.sweeps.ops import bounded
from memwall.sweeps.points import Array, Values

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
    "resident_weight_bytes",
    "resident_cache_bytes",
    "fits",
)
"""Columns, under the names that `memwall step --json` gives them."""


def answers(settings: Mapping[str, Any]) -> Callable[[Mapping[str, str | None]], Any]:
    """What answers for a model on a GPU in given formats.

    Args:
        settings: phase, impl, eager, merged, and changes to the device.
    """

    def of(words: Mapping[str, str | None]) -> Callable[[Values], Mapping[str, Any]]:
        device = hardware.load(str(words["gpu"]), settings.get("changes"))
        model = load_model(str(words["model"]))

        def answer(values: Values) -> Mapping[str, Any]:
            return _answer(device, model, words, settings, values)

        return answer

    return of


def _answer(
    device: Device, model: Model, words: Mapping[str, str | None], settings: Mapping[str, Any], values: Values
) -> Mapping[str, Any]:
    setting = setting_at(device, model, words, settings, values)
    launches = kernels(model, setting)
    columns = bounded(work_of(launches), device)
    for name in ("read_bytes", "written_bytes", "traffic_bytes"):  # experts that are met on average
        columns[name] = np.round(columns[name])
    each = setting.source if setting.source and setting.prefill else setting.tokens.seq_q
    per_user = each / columns["bound_time_s"]
    return columns | {
        "kernels_bound_time_s": sum(launch.repeats * _time_s(launch, device) for launch in launches),
        "tokens_per_s": setting.tokens.batch * per_user,
        "tokens_per_s_per_user": per_user,
        **_resident(device, model, setting),
    }


def setting_at(
    device: Device, model: Model, words: Mapping[str, str | None], settings: Mapping[str, Any], values: Values
) -> Setting:
    """What the kernels of the pass are made under, as `memwall step` settles it; of counts or of arrays.

    Raises:
        UsageError, NotAvailable: as `memwall step` says.
    """
    batch, seq, context = values.get("batch", 1), values.get("seq"), values.get("context")
    phase = phase_of(model, settings.get("phase"), seq, context)
    tokens, source = tokens_of(model, phase, batch, seq, context, None)
    named = (words.get(name) for name in ("dtype", "weight_dtype", "kv_dtype"))
    formats, storage = formats_of(model, device, *named)
    eager, merged = bool(settings.get("eager")), bool(settings.get("merged"))
    setting = setting_of(device, formats, storage, tokens, phase)
    setting = setting._replace(source=source, impl=settings.get("impl") or "flash")
    return fastest(model, setting._replace(eager=eager, merged=merged or not eager), device)


def _time_s(launch: Launch, device: Device) -> Array:
    """The bound of one launch [s]."""
    times = [np.asarray(term.time_s) for term in busy_terms(kernel_work(launch.kernel), device)]
    longest = times[0]
    for time_s in times[1:]:
        longest = np.maximum(longest, time_s)
    return longest


def _resident(device: Device, model: Model, setting: Setting) -> Mapping[str, Any]:
    """What has to be in memory, and whether it is within the device's."""
    weights = weight_bytes(model, setting.storage).total
    kept: Any = 0
    if model.decodes:
        length = 1 if setting.source and setting.prefill else setting.tokens.seq_kv
        kept = setting.tokens.batch * cache.resident_bytes(model, length, setting.source, setting.plain.kv)
    try:
        fits: Any = np.asarray(weights + kept <= int(total_memory(device).value))
    except NotAvailable:
        fits = np.False_
    return {"resident_weight_bytes": weights, "resident_cache_bytes": kept, "fits": fits}
