"""Fitting an engine's constants to measured passes, and how far off it is on GPUs and models left out.

Everything that the fitted constants do not touch is worked out once, so that a trial is a sum of arrays:

    pass = rest + host + sequence (batch - 1) + rank (tp - 1) + sync exchanges + layer layers + hop (pp - 1)
                + products(share, drawn or widened) + attention(lanes)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from memwall.estimate.constants import field_of, in_si, key_of, out_of_si
from memwall.estimate.engine import Constants, Engine, core_clocks_per_s
from memwall.estimate.minimise import Vector, minimise
from memwall.maths import smooth_maximum
from memwall.reports.passes import Decoded, decoded
from memwall.reports.step_report import Line
from memwall.units import significant

LINEAR = ("host_s", "sequence_s", "rank_s", "sync_s", "layer_s", "hop_s")
START = {
    field_of(key): in_si(key, value)
    for key, value in {
        "host_us": 1500, "sequence_us": 50, "rank_us": 200, "sync_us": 5, "layer_us": 100, "hop_us": 200,
        "product_share": 0.85, "product_bytes_per_clock": 5, "weights_per_clock": 5, "lanes_per_clock": 5,
    }.items()
}  # fmt: skip
"""Round numbers that a fit begins from, so that what is left out has no say in it."""
ALONE = 3.0
"""Weight of a row with one sequence, which the constants are mostly for."""


class Sample(NamedTuple):
    """Measured passes as arrays; products have a row each with zeros behind the last."""

    measured_s: Vector
    weight: Vector
    rest_s: Vector
    linear: Vector
    """Multiples of the LINEAR constants."""
    streamed_s: Vector
    """Each product's bytes / bandwidth."""
    drawn: Vector
    """Its bytes / clocks a second."""
    widened: Vector
    """Its matrix's elements / clocks a second."""
    lanes: Vector
    """Elements of K and V for each query head / clocks a second, all layers."""

    def of(self, chosen: Vector) -> Sample:
        """Some of them."""
        return Sample(*(array[chosen] for array in self))

    def time_s(self, c: Constants) -> Vector:
        """What the constants give."""
        time_s: Vector = self.rest_s + self.linear @ numpy.array([getattr(c, name) for name in LINEAR])
        if c.product_share:
            each: Any = self.streamed_s / c.product_share
            for amount, rate in (
                (self.drawn, c.product_bytes_per_clock),
                (self.widened, c.weights_per_clock),
            ):
                each = smooth_maximum(each, amount / rate, c.sharpness) if rate else each
            time_s = time_s + each.sum(axis=1)
        return time_s + self.lanes / c.lanes_per_clock if c.lanes_per_clock else time_s

    def errors(self, c: Constants) -> Vector:
        """Estimate / measured - 1."""
        return self.time_s(c) / self.measured_s - 1

    def loss(self, c: Constants) -> float:
        """The weighted mean of |log(estimate / measured)|."""
        return float(numpy.average(abs(numpy.log1p(self.errors(c))), weights=self.weight))


def sample(passes: Sequence[Decoded], engine: Engine) -> Sample:
    """The arrays of an engine's passes."""
    rows = [_row(each, engine) for each in passes]
    most = max(1, *(len(row[3]) for row in rows))
    padded = numpy.array([[*row[3], *[(0.0, 0.0, 0.0)] * (most - len(row[3]))] for row in rows])
    return Sample(
        numpy.array([each.measured_s for each in passes]),
        numpy.array([ALONE if each.step.tokens.batch == 1 else 1.0 for each in passes]),
        numpy.array([row[0] for row in rows]),
        numpy.array([row[1] for row in rows]),
        padded[:, :, 0],
        padded[:, :, 1],
        padded[:, :, 2],
        numpy.array([row[2] for row in rows]),
    )


_Row = tuple[float, list[float], float, list[tuple[float, float, float]]]


def _row(each: Decoded, engine: Engine) -> _Row:
    """What the constants do not touch, multiples of the linear ones, attention's elements, products."""
    report, device = each.step, each.step.device
    c, clocks, spread = engine.on(device).constants, core_clocks_per_s(device), report.spread
    rest_s, lanes = each.prefill_s + (spread.estimate_time_s or spread.bound_time_s), 0.0
    products = []
    for line in report.lines:
        n, estimate = line.launch.repeats, line.estimate
        run = estimate.parts[0].run if estimate else None
        if estimate is None or run is None:
            continue
        if c.product_share and run.family in ("gemm", "grouped_gemm"):
            products.append(_product(line, device.bandwidth.value, clocks))
        elif c.lanes_per_clock and run.family == "decode":
            s = run.shape
            lanes += n * s.batch * s.heads * s.seq_kv * (s.head_dim + s.head_dim_v) / clocks
            rest_s += n * s.traffic_bytes / device.bandwidth.value
        else:
            rest_s += n * float(estimate.time_s)
    layout, exchanges = spread.layout, sum(e.repeats for e in spread.exchanges)
    layers = sum(group.repeats for group in report.model.layers)
    among = [layout.tp - 1, exchanges if layout.tp > 1 else 0]
    linear = [1, report.setting.tokens.batch - 1, *among, layers, layout.pp - 1]
    return rest_s, [float(each) for each in linear], lanes, products


def _product(line: Line, bytes_per_s: float, clocks_per_s: float) -> tuple[float, float, float]:
    estimate = line.estimate
    s = estimate.parts[0].run.shape if estimate else None
    n = line.launch.repeats
    size = n * float(s.traffic_bytes) if s else 0.0
    elements = n * float(s.products * s.n * s.k) if s else 0.0
    return size / bytes_per_s, size / clocks_per_s, elements / clocks_per_s


def fit(data: Sample, chosen: Constants, fields: Sequence[str]) -> Constants:
    """The constants with the least mean |log(estimate / measured)|; those that are not fitted as `chosen`."""

    def at(logs: Vector) -> Constants:
        return chosen._replace(**dict(zip(fields, map(float, numpy.exp(logs)), strict=True)))

    def loss(logs: Vector) -> float:
        c = at(logs)
        beyond = max(0.0, c.product_share - 1)
        return data.loss(c) + 10 * beyond

    return at(minimise(loss, numpy.log([START[name] for name in fields]), 2))


def held_out(passes: Sequence[Decoded], engine: Engine, by: str) -> Vector:
    """Errors of passes with one sequence, each from a fit without those of its own `gpu` or `model`."""
    data = sample(passes, engine)
    found = engine.on(passes[0].step.device)
    keys = numpy.array([each.row[by] for each in passes])
    alone = data.weight == ALONE
    errors = []
    for key in sorted(set(keys)):
        left_out = keys == key
        fitted = fit(data.of(~left_out), found.constants, found.fitted)
        errors.append(data.of(left_out & alone).errors(fitted))
    return numpy.concatenate(errors)


class Refit(NamedTuple):
    """An engine's constants on one vendor's software, fitted anew."""

    constants: Constants
    fitted: tuple[str, ...]
    by_gpu: Vector | None
    """Errors of GPUs left out, one sequence each; None where only one was measured."""
    by_model: Vector
    """The same of models."""

    @property
    def judged(self) -> Vector:
        """The errors that a file states: of GPUs left out, else of models."""
        return numpy.abs(self.by_model if self.by_gpu is None else self.by_gpu)


def refit(passes: Sequence[Decoded], engine: Engine) -> Refit:
    """The constants of passes of one vendor's GPUs, and their errors on what is left out."""
    found = engine.on(passes[0].step.device)
    constants = fit(sample(passes, engine), found.constants, found.fitted)
    several = len({each.row["gpu"] for each in passes}) > 1
    by_gpu = held_out(passes, engine, "gpu") if several else None
    return Refit(constants, found.fitted, by_gpu, held_out(passes, engine, "model"))


def refits(engine: Engine) -> list[Refit]:
    """Of every vendor that the engine has constants for, in the order of its file."""
    own = [each for each in decoded() if each.row["engine"] == engine.name]
    named = [[each for each in own if each.step.device.data["vendor"] == v] for v in engine.by_vendor]
    others = [each for each in own if each.step.device.data["vendor"] not in engine.by_vendor]
    return [refit(passes, engine) for passes in (others, *named)]


def rewritten(text: str, found: Sequence[Refit]) -> str:
    """An engine's file with the constants and errors of such fits, vendor after vendor; the rest stays."""
    blocks = re.split(r"(?<=\}\n)", text.rstrip("\n") + "\n")[: len(found)]
    return "".join(_block(block, each) for block, each in zip(blocks, found, strict=True))


def _block(text: str, found: Refit) -> str:
    median, p90 = numpy.quantile(found.judged, (0.5, 0.9))
    text = re.sub(r"error_p50: \S+", f"error_p50: {median:.3f}", text)
    text = re.sub(r"error_p90: \S+", f"error_p90: {p90:.3f}", text)
    for field in found.fitted:
        value = significant(out_of_si(field, getattr(found.constants, field)), 4)
        text = re.sub(rf"([{{ ]{key_of(field)}: )[\d.]+", rf"\g<1>{value}", text)
    return text
