"""How far the estimates of whole passes are from measured ones: in engines, and in PyTorch on one H200."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from memwall import hardware
from memwall.catalog import shipped_text
from memwall.models.load import load
from memwall.reports.step import StepReport, step
from memwall.units import KILO

DECODE = "configs/measurements/decode.csv"
PASSES = "configs/measurements/passes.csv"
ATTENTION = {"flash": "fa2", "cudnn": "cudnn"}
"""The kernels of passes.csv: FlashAttention-2, and cuDNN's, of FA3's class in prefill."""
KEYS = ("engine", "gpu", "model")


class MeasuredPass(NamedTuple):
    """A whole pass, or a token of an answer, beside its bound and its estimate."""

    engine: str
    gpu: str
    gpus: int
    model: str
    weights: str
    batch: int
    tokens: int
    """In the cache in the middle of the answer; of a prefill, the prompt's."""
    measured_s: float
    bound_s: float
    estimate_s: float

    @property
    def error(self) -> float:
        """Estimate / measured - 1."""
        return self.estimate_s / self.measured_s - 1


class PassLine(NamedTuple):
    """Errors of the passes that have some keys in common."""

    key: tuple[str, ...]
    rows: int
    median: float
    p90: float
    within_25: float
    bias: float


def table(path: str) -> list[dict[str, str]]:
    """The rows of a shipped table; lines that begin with # are remarks."""
    lines = (line for line in shipped_text(path).splitlines() if not line.startswith("#"))
    return list(csv.DictReader(lines))


_device = cache(hardware.load)  # loaded once each, so that equal kernels are worked out once
_model = cache(load)


@cache
def decoding() -> tuple[MeasuredPass, ...]:
    """Every shipped row of decoding in an engine.

    time a token = step at the mean context, prompt + generated / 2
                   + prefill of the prompt / generated, where the clock ran from the request on
    """
    return tuple(each.judged for each in decoded())


class Decoded(NamedTuple):
    """A row of decoding with the reports that it is judged by."""

    row: dict[str, str]
    step: StepReport
    """At the mean context."""
    prefill: StepReport | None
    """Of the prompt, where the clock ran from the request on."""

    @property
    def generated(self) -> int:
        """Tokens of an answer."""
        return int(self.row["generated"])

    @property
    def measured_s(self) -> float:
        """A token of every sequence [s]."""
        return int(self.row["batch"]) / float(self.row["tokens_per_s"])

    @property
    def prefill_s(self) -> float:
        """The prefill's part of a token, as estimated [s]."""
        found = self.prefill.estimate if self.prefill else None
        return found.time_s / self.generated if found else 0.0

    @property
    def judged(self) -> MeasuredPass:
        """The row beside its bound and its estimate."""
        row, estimate = self.row, self.step.estimate
        first_s = self.prefill.bound_time_s / self.generated if self.prefill else 0.0
        return MeasuredPass(
            row["engine"], row["gpu"], int(row["gpus"]), row["model"], row["weights"], int(row["batch"]),
            self.step.tokens.seq_kv, self.measured_s, self.step.bound_time_s + first_s,
            (estimate.time_s if estimate else 0.0) + self.prefill_s,
        )  # fmt: skip


@cache
def decoded() -> tuple[Decoded, ...]:
    """The shipped rows of decoding with their reports."""
    return tuple(_decoded(row) for row in table(DECODE))


def _decoded(row: dict[str, str]) -> Decoded:
    batch, prompt, generated = (int(row[key]) for key in ("batch", "prompt", "generated"))
    count, stages = int(row["gpus"]), row["layout"] == "pp"

    def of(context: int | None, seq: int | None) -> StepReport:
        return step(
            _model(row["model"]),
            gpu=_device(row["gpu"]),
            context=context,
            seq=seq,
            batch=batch,
            weight_dtype=None if row["weights"] == "16-bit" else row["weights"],
            engine=row["engine"],
            tp=1 if stages else count,
            pp=count if stages else 1,
        )

    prefill = of(None, prompt) if row["clock"] == "request" else None
    return Decoded(row, of(prompt + generated // 2, None), prefill)


@cache
def decoders() -> tuple[MeasuredPass, ...]:
    """Passes of Llama-shaped decoders in PyTorch: eager, and compiled."""
    return tuple(_passed(row) for row in table(PASSES))


def _passed(row: dict[str, str]) -> MeasuredPass:
    eager, tokens, batch = row["form"] == "eager", int(row["tokens"]), int(row["batch"])
    prefill = row["phase"] == "prefill"
    report = step(
        _model(row["model"]),
        gpu=_device("h200"),
        batch=batch,
        seq=tokens if prefill else None,
        context=None if prefill else tokens,
        eager=eager,
        merged=eager,
        library=ATTENTION[row["attention"]],
    )
    estimate_s = report.estimate.time_s if report.estimate else 0.0
    named = f"PyTorch, {'eager' if eager else 'compiled'}"
    measured_s = float(row["time_ms"]) / KILO
    return MeasuredPass(
        named, "h200", 1, row["model"], "16-bit", batch, tokens,
        measured_s, report.bound_time_s, estimate_s,
    )  # fmt: skip


def lines(passes: Sequence[MeasuredPass], by: Sequence[str] = ("engine", "gpu")) -> Iterator[PassLine]:
    """The errors by engine and GPU, or by any of KEYS."""
    import numpy

    groups: dict[tuple[str, ...], list[float]] = {}
    for each in passes:
        groups.setdefault(tuple(getattr(each, key) for key in by), []).append(each.error)
    for key, found in sorted(groups.items()):
        errors = numpy.array(found)
        size = numpy.abs(errors)
        bias = float(numpy.exp(numpy.log1p(errors).mean()))
        within = float((size <= 0.25).mean())
        yield PassLine(
            key, len(found), float(numpy.median(size)), float(numpy.quantile(size, 0.9)), within, bias
        )
