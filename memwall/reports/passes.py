"""How far the estimates of whole passes are from measured ones: decoding in engines, and decoders on one H200."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from memwall.catalog import shipped_text
from memwall.reports.step import step
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
        """estimate / measured - 1."""
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


@cache
def decoding() -> tuple[MeasuredPass, ...]:
    """Every shipped row of decoding in an engine.

        time a token = step at the mean context, prompt + generated / 2
                       + prefill of the prompt / generated, where the clock ran from the request on
    """
    return tuple(_decoded(row) for row in table(DECODE))


def _decoded(row: dict[str, str]) -> MeasuredPass:
    batch, prompt, generated = (int(row[key]) for key in ("batch", "prompt", "generated"))
    context, count = prompt + generated // 2, int(row["gpus"])
    stages = row["layout"] == "pp"
    weights = None if row["weights"] == "16-bit" else row["weights"]
    shared = {"tp": 1 if stages else count, "pp": count if stages else 1, "batch": batch}

    def of(context: int | None, seq: int | None) -> tuple[float, float]:
        report = step(
            row["model"],
            gpu=row["gpu"],
            context=context,
            seq=seq,
            weight_dtype=weights,
            engine=row["engine"],
            **shared,  # type: ignore[arg-type]
        )
        assert report.estimate is not None
        return report.bound_time_s, report.estimate.time_s

    bound_s, estimate_s = of(context, None)
    if row["clock"] == "request":
        first = of(None, prompt)
        bound_s, estimate_s = bound_s + first[0] / generated, estimate_s + first[1] / generated
    measured_s = batch / float(row["tokens_per_s"])
    return MeasuredPass(
        row["engine"], row["gpu"], count, row["model"], row["weights"], batch, context,
        measured_s, bound_s, estimate_s,
    )  # fmt: skip


@cache
def decoders() -> tuple[MeasuredPass, ...]:
    """Passes of Llama-shaped decoders in PyTorch: eager, and compiled."""
    return tuple(_passed(row) for row in table(PASSES))


def _passed(row: dict[str, str]) -> MeasuredPass:
    eager, tokens, batch = row["form"] == "eager", int(row["tokens"]), int(row["batch"])
    prefill = row["phase"] == "prefill"
    report = step(
        row["model"],
        gpu="h200",
        batch=batch,
        seq=tokens if prefill else None,
        context=None if prefill else tokens,
        eager=eager,
        merged=eager,
        library=ATTENTION[row["attention"]],
    )
    assert report.estimate is not None
    named = f"PyTorch, {'eager' if eager else 'compiled'}"
    measured_s = float(row["time_ms"]) / KILO
    return MeasuredPass(
        named, "h200", 1, row["model"], "16-bit", batch, tokens,
        measured_s, report.bound_time_s, report.estimate.time_s,
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
