"""Measured against predicted: the row of each trial, its verdict, and the run's answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from memwall.errors import NotAvailable
from memwall.hardware import Device
from memwall.verify.case import Trial
from memwall.verify.outcome import FAILED, Outcome
from memwall.verify.predict import BOUND_SLACK, Prediction, predict

_SMALL_SHARE = 0.02
"""A side of the traffic below this share of it is not judged: it drowns in what else the GPU writes."""

Estimate = Callable[[Trial, Device], float | None]
"""The expected time of a good kernel [s]; None where there is no model of it."""


class Row(NamedTuple):
    """One trial, predicted and measured."""

    outcome: Outcome
    prediction: Prediction | None
    """None where the device has no such engine."""
    estimate_time_s: float | None

    @property
    def of_bound(self) -> float | None:
        """Bound / measured time: 1 is the least time that there is."""
        time_s = self.outcome.time_s
        if not time_s or self.prediction is None or not self.prediction.bound_time_s:
            return None
        return self.prediction.bound_time_s / time_s

    @property
    def estimate_error(self) -> float | None:
        """Estimate / measured time - 1: how far off the estimate is, above zero where it is too slow."""
        time_s = self.outcome.time_s
        return self.estimate_time_s / time_s - 1 if self.estimate_time_s and time_s else None

    @property
    def read_ratio(self) -> float | None:
        """Counted / predicted bytes read from main memory, where they may be more the least of them."""
        return self._ratio("read_bytes", "dram_read_bytes")

    @property
    def written_ratio(self) -> float | None:
        """Counted / predicted bytes written to main memory."""
        return self._ratio("written_bytes", "dram_written_bytes")

    @property
    def faults(self) -> tuple[str, ...]:
        """What is not as predicted, each with its number."""
        if self.outcome.status in FAILED:
            return (f"{self.outcome.status}: {self.outcome.message}".rstrip(": "),)
        return (*self._result_faults(), *self._time_faults(), *self._byte_faults())

    @property
    def verdict(self) -> str:
        """within, outside, reference (bytes not judged), time only, or the status of what did not run."""
        if self.outcome.status in FAILED or self.faults:
            return self.outcome.status if self.outcome.status in FAILED else "outside"
        if not self.outcome.ok or self.prediction is None:
            return "skipped"
        if self.outcome.counters is None:
            return "time only"
        return "within" if self.prediction.judged else "reference"

    def _ratio(self, side: str, counter: str) -> float | None:
        if self.outcome.counters is None or self.prediction is None:
            return None
        predicted = getattr(self.prediction.dram, side)
        share = predicted / self.prediction.dram.total_bytes
        return getattr(self.outcome.counters, counter) / predicted if share >= _SMALL_SHARE else None

    def _result_faults(self) -> Iterable[str]:
        error, tolerance = self.outcome.error, self.outcome.tolerance
        if error is not None and tolerance is not None and error > tolerance:
            yield f"differs from float64 by {error:.2g}, allowed {tolerance:.2g}"

    def _time_faults(self) -> Iterable[str]:
        if self.of_bound is not None and self.of_bound > 1 + BOUND_SLACK:
            yield f"beats its bound by {100 * (self.of_bound - 1):.1f} %"

    def _byte_faults(self) -> Iterable[str]:
        if self.prediction is None or not self.prediction.judged:
            return
        most_read = self.prediction.most_read_bytes / self.prediction.dram.read_bytes
        for what, ratio, most in (("reads", self.read_ratio, most_read), ("writes", self.written_ratio, 1.0)):
            share = self.prediction.band.share
            if ratio is not None and not 1 - share <= ratio <= most * (1 + share):
                expected = "1" if most == 1 else f"1 to {most:.3f}"
                yield f"{what} {ratio:.3f} of the predicted bytes, allowed {expected} +- {100 * share:.0f} %"


class Verification(NamedTuple):
    """A whole run."""

    device: Device
    machine: Mapping[str, Any]
    """The GPU, its driver and its libraries, as the worker found them."""
    rows: tuple[Row, ...]
    notes: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether something was held against its prediction, and nothing is wrong or outside its band."""
        return any(row.verdict != "skipped" for row in self.rows) and not any(row.faults for row in self.rows)

    @property
    def counted(self) -> bool:
        """Whether any row has counted bytes."""
        return any(row.outcome.counters for row in self.rows)

    @property
    def estimated(self) -> bool:
        """Whether any row has an estimate."""
        return any(row.estimate_time_s is not None for row in self.rows)


def verify(
    device: Device,
    machine: Mapping[str, Any],
    outcomes: Iterable[Outcome],
    notes: Iterable[str] = (),
    estimate: Estimate | None = None,
) -> Verification:
    """Hold outcomes against memwall's predictions.

    Args:
        device: what the predictions are for.
        machine: what the outcomes were measured on.
        outcomes: of a run, or of a record.
        notes: what was missing.
        estimate: the model of expected times, where there is one.
    """
    rows = tuple(_row(outcome, device, estimate) for outcome in outcomes)
    return Verification(device, machine, rows, tuple(notes))


def _row(outcome: Outcome, device: Device, estimate: Estimate | None) -> Row:
    try:
        prediction = predict(outcome.trial, device)
    except NotAvailable:
        return Row(outcome, None, None)
    return Row(outcome, prediction, estimate(outcome.trial, device) if estimate else None)
