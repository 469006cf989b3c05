"""A pass of a model on a device as closed forms of batch and length, kernel by kernel."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from memwall.bound import busy_terms
from memwall.errors import NotAvailable
from memwall.hardware import Device
from memwall.htmlreport.trace import Array, Region, Tape, Traced, name, needed, regions, script
from memwall.memory.budget import total_memory
from memwall.models import cache
from memwall.models.model import Model
from memwall.models.step.whole import kernels
from memwall.models.storage import weight_bytes
from memwall.program import Work, kernel_work
from memwall.reports.step_setting import work_of
from memwall.sweeps.passes import setting_at

MOST_BATCH = 1 << 10
LONGEST = 131_072
"""Where the sliders end, unless the question lies beyond."""
_DOUBLED = (1, 2, 3, 5, 8, 13)


class Kernel(NamedTuple):
    """One launch of the pass: names, and numbers that are forms."""

    name: str
    kind: str
    repeats: int
    flops: Any
    traffic_bytes: Any
    limits: tuple[tuple[str, Any], ...]
    """Each term's name and time [s]."""


class Pass(NamedTuple):
    """The whole pass."""

    flops: Any
    traffic_bytes: Any
    limits: tuple[tuple[str, Any], ...]
    each_tokens: Any
    """New tokens of one sequence."""
    batch: Any
    cache_bytes: Any
    kernels: tuple[Kernel, ...]


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
    words: Mapping[str, str | None],
    most: tuple[int, int] = (MOST_BATCH, LONGEST),
) -> Forms:
    """The forms of a phase, as functions of `batch` and of `context`, the prompt's length in a prefill.

    Args:
        device: the device.
        model: the model.
        phase: prefill or decode.
        words: dtype, weight_dtype and kv_dtype.
        most: the largest batch and context that a slider reaches.

    Raises:
        UsageError, NotAvailable: there is no answer at any point.
    """
    length = "seq" if phase == "prefill" else "context"
    weights: list[int] = []

    def answer(inputs: Mapping[str, Traced]) -> Pass:
        values = {"batch": inputs["batch"], length: inputs["context"]}
        setting = setting_at(device, model, {**words, "phase": phase}, values)
        launches = kernels(model, setting)
        weights.append(weight_bytes(model, setting.storage).total)
        tokens = setting.tokens.seq_kv
        kept = cache.resident_bytes(
            model, 1 if setting.source and setting.prefill else tokens, setting.source, setting.plain.kv
        )
        works = [kernel_work(launch.kernel) for launch in launches]
        whole = work_of(launches)
        each = setting.source if setting.source and setting.prefill else setting.tokens.seq_q
        return Pass(
            whole.flops,
            whole.traffic_bytes,
            _limits(whole, device),
            each,
            setting.tokens.batch,
            setting.tokens.batch * kept if model.decodes else 0,
            tuple(
                Kernel(
                    launch.name,
                    launch.kind,
                    launch.repeats,
                    work.flops,
                    work.traffic_bytes,
                    _limits(work, device),
                )
                for launch, work in zip(launches, works, strict=True)
            ),
        )

    tape = Tape()
    found = tuple(regions(tape, _samples(*most), answer))
    answered = [region for region in found if region.refusal is None]
    if not answered and found[0].refusal:
        raise found[0].refusal
    try:
        capacity = int(total_memory(device).value)
    except NotAvailable:
        capacity = None
    return Forms(tape, tuple(answered), weights[-1], capacity)


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


def script_of(forms: Forms) -> str:
    """The forms as a JavaScript array of {when, at}: whether a region holds a point, and the pass there."""
    parts = [_region(forms.tape, region) for region in forms.regions]
    return "[" + ",\n".join(parts) + "]"


def _region(tape: Tape, region: Region) -> str:
    conditions = [node for node, _ in region.guards]
    holds = [name(tape, node) if side else f"!({name(tape, node)})" for node, side in region.guards]
    when = f"{_body(tape, conditions)}return {'&&'.join(holds) or 'true'};"
    whole: Pass = region.result
    written = _pass(tape, whole)
    at = f"{_body(tape, _roots(whole))}return {written};"
    return f"{{when:(batch,context)=>{{{when}}},\nat:(batch,context)=>{{{at}}}}}"


def _roots(value: Any) -> list[int]:
    """The nodes of all forms in a pass."""
    if isinstance(value, Traced):
        return [value.node]
    if isinstance(value, tuple):
        return [node for each in value for node in _roots(each)]
    return []


def _body(tape: Tape, roots: list[int]) -> str:
    lines = [node for node in needed(tape, set(roots)) if tape.nodes[node][0] not in ("input", "number")]
    return "".join(f"const t{node}={script(tape, node)};" for node in lines)


def _pass(tape: Tape, whole: Pass) -> str:
    rows = ",\n".join(_written(tape, kernel._asdict()) for kernel in whole.kernels)
    head = _written(tape, {**whole._asdict(), "kernels": None})
    return head.removesuffix("null}") + f"[\n{rows}]}}"


def _written(tape: Tape, value: Any) -> str:
    """Names and forms as a JavaScript object."""
    if isinstance(value, Traced):
        return name(tape, value.node)
    if isinstance(value, Mapping):
        inner = ",".join(f"{key}:{_written(tape, each)}" for key, each in value.items())
        return f"{{{inner}}}"
    if isinstance(value, tuple):
        return f"[{','.join(_written(tape, each) for each in value)}]"
    return json.dumps(value)
