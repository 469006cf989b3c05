"""The forms behind a page's sliders give the command line's numbers, here in Python's reading of them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest

import memwall
from memwall.catalog import MODELS
from memwall.errors import NotAvailable, UsageError
from memwall.htmlreport.forms import Forms, Pass, forms_of
from memwall.htmlreport.trace import Tape, Traced, operands
from memwall.models.load import load
from memwall.render.step_record import record

OPERATIONS: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "**": lambda a, b: a**b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "|": lambda a, b: a or b,
    "&": lambda a, b: a and b,
    "min": min,
    "max": max,
    "where": lambda condition, a, b: a if condition else b,
    "log2": math.log2,
    "ceil": math.ceil,
    "abs": abs,
    "round": round,
}


class Reading:
    """The forms at a point by their operations: a second reading, beside the browser's."""

    def __init__(self, tape: Tape, batch: int, context: int) -> None:
        self.tape = tape
        self.inputs = {"batch": batch, "context": context}
        self.known: dict[tuple[int, tuple[float, ...]], Any] = {}
        self.varies: set[int] = set()  # with the candidate of a choice
        for node, parts in enumerate(tape.nodes):
            if parts[0] == "candidate" or any(each in self.varies for each in operands(parts)):
                self.varies |= {node} if parts[0] != "least" else set()

    def value(self, node: int, candidate: tuple[float, ...] = ()) -> Any:
        """A node's value; within a choice, for one candidate."""
        key = (node, candidate if node in self.varies else ())
        if key not in self.known:
            self.known[key] = self._made(*self.tape.nodes[node], candidate=candidate)
        return self.known[key]

    def _made(self, kind: str, *parts: Any, candidate: tuple[float, ...]) -> Any:
        if kind == "input":
            return self.inputs[parts[0]]
        if kind == "number":
            return parts[0]
        if kind == "candidate":
            return candidate[parts[0]]
        if kind == "least":
            return min(self.value(parts[0], each) for each in parts[1])
        return OPERATIONS[kind](*(self.value(part, candidate) for part in parts))

    def of(self, form: Any) -> Any:
        """A form's value; a plain number is its own."""
        return self.value(form.node) if isinstance(form, Traced) else form


def at(forms: Forms, batch: int, context: int) -> tuple[dict[str, Any], Pass, Reading]:
    """What the page shows at a point, with the region that holds it."""
    reading = Reading(forms.tape, batch, context)
    of = reading.of
    holding = [
        region
        for region in forms.regions
        if all(bool(reading.value(node)) == side for node, side in region.guards)
    ]
    assert len(holding) == 1
    whole: Pass = holding[0].result
    linked = sum(each.repeats * of(each.bound_time_s) for each in whole.exchanges)
    between = [(each.repeats, of(each.estimate_time_s)) for each in whole.exchanges]
    known = None if any(time is None for _, time in between) else sum(n * time for n, time in between)
    busy = sum(k.repeats * of(k.estimate_time_s) for k in whole.kernels)
    stretch = of(whole.stretch)
    bounds = [(k.repeats, max(of(time) for _, time in k.limits)) for k in whole.kernels]
    found = {
        "flops": of(whole.flops),
        "traffic_bytes": round(of(whole.traffic_bytes)),
        "bound_time_s": stretch * max(of(time) for _, time in whole.limits),
        "kernels_bound_time_s": stretch * (sum(n * time for n, time in bounds) + linked),
        "communication_bound_time_s": linked,
        "communication_estimate_time_s": known,
        "estimate_time_s": of(whole.expected_stretch) * (busy + (linked if known is None else known))
        + of(whole.engine_time_s),
        "engine_time_s": of(whole.engine_time_s),
        "mfu": of(whole.matrix_s) / max(of(time) for _, time in whole.limits) * (1 - of(whole.bubble)),
        "activation_bytes": of(whole.activation_bytes),
        "microbatches": of(whole.microbatches),
        "bubble": of(whole.bubble),
        "estimate_bubble": 1 - (1 - of(whole.bubble)) * stretch / of(whole.expected_stretch),
        "resident_cache_bytes": of(whole.cache_bytes),
        "resident_weight_bytes": forms.weight_bytes,
        "capacity_bytes": forms.capacity_bytes,
        "basis": whole.basis,
    }
    for place, name in enumerate(("error_p50", "error_p90")):
        if whole.engine_errors:
            found[name] = whole.engine_errors[place]
            continue
        each = [getattr(k, name) for k in whole.kernels]
        weights = [k.repeats * of(k.estimate_time_s) for k in whole.kernels]
        found[name] = None if None in each else sum(w * e for w, e in zip(weights, each, strict=True)) / busy
    return found, whole, reading


def same(left: Any, right: Any) -> bool:
    """Numbers to the last digits, names and nulls as they are."""
    return left == right or (isinstance(left, int | float) and left == pytest.approx(right, rel=1e-11))


def check(forms: Forms, report: memwall.StepReport, batch: int, context: int) -> None:
    expected = record(report)
    found, whole, reading = at(forms, batch, context)
    wrong = {name: (each, expected[name]) for name, each in found.items() if not same(each, expected[name])}
    assert not wrong
    of = reading.of
    for kernel, line in zip(whole.kernels, expected["kernels"], strict=True):
        assert (kernel.name, kernel.kind, kernel.repeats) == (line["name"], line["kind"], line["repeats"])
        assert same(max(of(time) for _, time in kernel.limits), line["bound_time_s"]), kernel.name
        assert same(of(kernel.estimate_time_s), line["estimate_time_s"]), kernel.name
    for link, line in zip(whole.exchanges, expected["exchanges"], strict=True):
        assert (link.name, link.op, link.gpus, link.repeats) == tuple(
            line[name] for name in ("name", "op", "gpus", "repeats")
        )
        for name in ("bytes", "bound_time_s", "estimate_time_s"):
            assert same(of(getattr(link, name)), line[name]), (link.name, name)


def points(seed: str, number: int) -> list[tuple[int, int]]:
    draw = random.Random(seed)
    return [(draw.randint(1, 1024), round(2 ** draw.uniform(0, 17))) for _ in range(number)]


@pytest.mark.parametrize("model", MODELS.names())
def test_the_forms_of_every_model_give_the_steps_numbers(model: str) -> None:
    loaded, device = load(model), memwall.gpu("b200")
    for phase in ("decode", "prefill"):
        try:
            forms = forms_of(device, loaded, phase, {})
        except NotAvailable:
            assert not loaded.decodes
            continue
        for batch, context in points(model + phase, 2):
            length: dict[str, Any] = {"context" if phase == "decode" else "seq": context}
            check(forms, memwall.step(loaded, gpu=device, phase=phase, batch=batch, **length), batch, context)


LAYOUTS: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
    ("llama3-70b", "h100", {"tp": 8}),
    ("llama3-70b", "h200", {"tp": 4, "pp": 2, "kv_dtype": "fp8"}),
    ("llama3-70b", "b200", {"tp": 2, "pp": 4, "dp": 3, "sequence_parallel": True}),
    ("llama3-8b", "l40s", {"tp": 4}),
    ("llama3-8b", "rtx-4090", {"pp": 2, "dtype": "fp8", "library": "vllm"}),
    ("mixtral-8x7b", "a100", {"tp": 2, "ep": 4, "dp": 2, "imbalance": 1.3}),
    ("deepseek-v3", "h200", {"tp": 8, "dp": 4, "ep": 32}),
    ("deepseek-v3", "mi300x", {"tp": 8, "weight_dtype": "fp8"}),
    ("qwen3-next-80b-a3b", "gb200", {"tp": 4, "ep": 4}),
    ("gpt-oss-120b", "h100", {"dp": 8, "ep": 8}),
    ("bert-base", "h100", {"dp": 4}),
    ("llama3-8b", "h100", {"engine": "vllm", "tp": 2, "pp": 2}),
    ("llama3-70b", "h100", {"engine": "tensorrt-llm", "tp": 8}),
    ("llama3-8b", "rtx-4090", {"engine": "llama.cpp"}),
    ("mixtral-8x7b", "mi300x", {"engine": "vllm"}),
)


@pytest.mark.parametrize(("model", "gpu", "words"), LAYOUTS, ids=lambda each: str(each).replace(" ", ""))
def test_the_forms_of_a_layout_give_the_steps_numbers(model: str, gpu: str, words: Mapping[str, Any]) -> None:
    loaded, device = load(model), memwall.gpu(gpu)
    for phase in ("decode", "prefill") if loaded.decodes else ("prefill",):
        forms = forms_of(device, loaded, phase, words)
        for batch, context in points(f"{model}{gpu}{phase}", 6):
            asked: dict[str, Any] = {**words, "context" if phase == "decode" else "seq": context}
            report = memwall.step(loaded, gpu=device, phase=phase, batch=batch, **asked)
            check(forms, report, batch, context)


def test_a_layout_that_cannot_be_has_no_forms() -> None:
    with pytest.raises(UsageError, match="do not split so"):
        forms_of(memwall.gpu("h100"), load("llama3-70b"), "decode", {"tp": 7})


def test_without_estimates_there_are_none_in_the_forms() -> None:
    forms = forms_of(memwall.gpu("h100"), load("llama3-8b"), "decode", {"bound_only": True})
    (region,) = forms.regions
    assert {kernel.estimate_time_s for kernel in region.result.kernels} == {None}
    assert region.result.basis is None
