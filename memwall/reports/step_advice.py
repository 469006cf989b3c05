"""What to do next about a pass, each step with its bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from memwall.bound import Bound
from memwall.dtypes import find
from memwall.hardware import Device
from memwall.memory.question import Question
from memwall.models.storage import storage_of, weight_bytes
from memwall.parallel.fit import flags
from memwall.reports.capacity import CapacityReport, solve
from memwall.reports.fitting import roomier
from memwall.reports.levers import NARROWER_WEIGHTS
from memwall.reports.step import StepReport, step
from memwall.reports.steps import Step, faster, narrower
from memwall.units import format_bytes, significant

MOST = 16_384
"""Sequences of a replica up to which a batch is looked for that is no longer memory-bound."""


def next_steps(report: StepReport) -> tuple[Step, ...]:
    """What makes it fit; fusion, narrower formats and a larger batch, as far as they gain."""
    makers = (_fit, _fusion, _weights, _cache, _batch)
    return tuple(made for make in makers for made in make(report))


def _again(report: StepReport, **changes: Any) -> StepReport:
    return step(report.model, gpu=report.device, **{**report.asked, **changes, "bound_only": True})


def _bound_with(report: StepReport, **changes: Any) -> Callable[[Device], Bound]:
    return lambda _: _again(report, **changes).whole


def _fit(report: StepReport) -> Iterator[Step]:
    """Weights narrow enough for one GPU, and how many GPUs hold it as it is."""
    if report.fits is not False:
        return
    formats = []
    for name in NARROWER_WEIGHTS:
        narrower = find(name).bits < report.storage.linear.bits
        needed = (
            weight_bytes(report.model, storage_of(report.model, name)).total + report.resident_cache_bytes
        )
        if narrower and needed <= (report.capacity_bytes or 0):
            formats.append(f"{name} ({format_bytes(needed)})")
    ways = [f"--weight-dtype {', '.join(formats)}"] if formats else []
    fewest = _shared(report).fewest_gpus
    if fewest:
        model, gpu = report.model.name, report.device.name
        ways.append(f"{fewest} GPUs share it: memwall capacity --model {model} --gpu {gpu} --tp {fewest}")
    elif layouts := roomier(report):
        ways.append(f"laid out wider or deeper: {', or '.join(map(flags, layouts))}")
    yield Step("fit", "; ".join(ways) or "no format, and no layout of these GPUs, holds it")


def _shared(report: StepReport) -> CapacityReport:
    """The same weights and caches, as capacity has them."""
    weights = report.asked["weight_dtype"] or report.asked["dtype"]
    question = Question(
        report.model, report.length, report.tokens.batch, 1, weights, report.setting.plain.kv.name,
        source_tokens=report.source,
    )  # fmt: skip
    return solve(question, report.device)


def _fusion(report: StepReport) -> Iterator[Step]:
    if report.setting.impl == "standard":
        then = _again(report, impl="flash").whole
        found = faster("fusion", "flash attention keeps S and P on chip", report.whole, then)
        yield from [found] if found else []
    if report.setting.eager:
        then = _again(report, eager=False, merged=False).whole
        found = faster("fusion", "elementwise steps in the kernels beside them", report.whole, then)
        yield from [found] if found else []


def _weights(report: StepReport) -> Iterator[Step]:
    """Linear layers that compute in fp8, and such as only store four bits."""
    if report.storage.linear.bits <= 8:
        return
    choices = [
        ("fp8", _bound_with(report, dtype="fp8", weight_dtype=None)),
        ("int4-g128", _bound_with(report, weight_dtype="int4-g128")),
    ]
    found = narrower("quantisation", "linear layers", choices, report.whole)
    yield from [found] if found else []


def _cache(report: StepReport) -> Iterator[Step]:
    if report.phase != "decode" or report.setting.plain.kv.bits <= 8:
        return
    found = narrower("KV cache", "cache", [("fp8", _bound_with(report, kv_dtype="fp8"))], report.whole)
    yield from [found] if found else []


def _batch(report: StepReport) -> Iterator[Step]:
    """The batch from which on the products limit, or that none does since each sequence brings its cache."""
    if report.phase != "decode" or report.whole.limited_by != "hbm":
        return
    sized = partial(_again, report)
    most = sized(batch=max(MOST * report.spread.layout.dp, report.tokens.batch))
    if most.whole.limited_by == "hbm":
        half = sized(batch=most.tokens.batch // 2)
        rate = (most.tokens.batch - half.tokens.batch) / (most.whole.time_s - half.whole.time_s)
        text = "Memory-bound at any batch, since each sequence brings its cache: towards "
        yield Step("batch", f"{text}{significant(rate)} tokens/s")
        return
    low, high = report.tokens.batch, most.tokens.batch
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if sized(batch=middle).whole.limited_by == "hbm" else (low, middle)
    then = sized(batch=high)
    reached = f"{significant(then.tokens_per_s)} tokens/s, {significant(then.tokens_per_s_per_user)} a user"
    cache = f"their cache takes {format_bytes(then.resident_cache_bytes)}"
    text = f"At batch {high} this becomes compute-bound: {reached}; {cache}"
    yield Step("batch", text, then.whole.time_s, ("batch", high))
