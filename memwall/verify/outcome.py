"""What came of a trial: its check, its time and its counted bytes, as a record keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from memwall.verify.case import Trial, trial_of

OK = "ok"
FAILED = ("wrong", "error", "crashed", "timed-out")
"""Statuses that make a run's answer no."""
SKIPPED = ("out-of-memory", "missing")
"""Statuses that say why there is no number, and condemn nothing."""


class Counters(NamedTuple):
    """The hardware's counts of one cold run, all kernels of the trial together."""

    dram_read_bytes: int
    dram_written_bytes: int
    """What the run left dirty in L2 included: a flush after it counts that."""
    l2_bytes: int
    """lts__t_bytes.sum: with the crossings between the two halves of L2 where it has two."""
    kernels: tuple[str, ...]


class Outcome(NamedTuple):
    """What came of a trial."""

    trial: Trial
    status: str
    """ok, or one of FAILED or SKIPPED."""
    message: str = ""
    error: float | None = None
    """Largest |out - ref| / |ref| of its outputs against float64, on an irregular shape."""
    tolerance: float | None = None
    time: Mapping[str, Any] | None = None
    """p20_s, p50_s, p80_s [s] of one launch, and how they were taken."""
    counters: Counters | None = None

    @property
    def ok(self) -> bool:
        """Whether the kernel is right and was run."""
        return self.status == OK

    @property
    def time_s(self) -> float | None:
        """The median time of one launch [s]."""
        return float(self.time["p50_s"]) if self.time else None

    @property
    def record(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "trial": self.trial.record,
            "status": self.status,
            "message": self.message,
            "error": self.error,
            "tolerance": self.tolerance,
            "time": dict(self.time) if self.time else None,
            "counters": {**self.counters._asdict(), "kernels": list(self.counters.kernels)}
            if self.counters
            else None,
        }


def outcome_of(record: Mapping[str, Any]) -> Outcome:
    """An outcome from its JSON.

    Raises:
        KeyError, TypeError: it is none.
    """
    counters = record.get("counters")
    return Outcome(
        trial_of(record["trial"]),
        record["status"],
        record.get("message") or "",
        record.get("error"),
        record.get("tolerance"),
        record.get("time"),
        Counters(**{**counters, "kernels": tuple(counters["kernels"])}) if counters else None,
    )


def outcome_of_event(trial: Trial, event: Mapping[str, Any]) -> Outcome:
    """An outcome from what the worker said of a trial."""
    errors = event.get("errors") or {}
    error = max(errors.values(), default=None)
    finite = error if error is not None and error < float("inf") else None
    message = event.get("message", "")
    if event["status"] == "wrong":
        message = f"differs from float64 by {error:.2g}, allowed {event['tolerance']:.2g}"
    return Outcome(trial, event["status"], message, finite, event.get("tolerance"), event.get("time"))
