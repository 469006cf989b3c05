"""Whether an outcome of a record can be: its values, not only its keys, before anything is judged by them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from memwall.errors import MemwallError
from memwall.units import LARGEST_COUNT
from memwall.verify.case import Trial
from memwall.verify.outcome import FAILED, OK, SKIPPED, Outcome
from memwall.verify.predict import work_of

_PERCENTILES = ("p20_s", "p50_s", "p80_s")


def problems(outcome: Outcome) -> Iterator[str]:
    """What cannot be so, each in a few words."""
    if outcome.status not in (OK, *FAILED, *SKIPPED):
        yield f"status {outcome.status!r} is none"
    if not isinstance(outcome.trial.warm, bool):
        yield "warm is neither true nor false"
    yield from _numbers({"error": outcome.error, "tolerance": outcome.tolerance})
    if outcome.time is not None:
        yield from _time_problems(outcome.time)
    elif outcome.ok:
        yield "ok, but without a time"
    if outcome.counters is not None:
        counts = {name: value for name, value in outcome.counters._asdict().items() if name != "kernels"}
        yield from _numbers(counts)
    yield from _trial_problems(outcome.trial)


def _numbers(values: Mapping[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        if value is not None and not (_is_number(value) and value >= 0):
            yield f"{name} of {value!r} cannot be"


def _time_problems(time: Mapping[str, Any]) -> Iterator[str]:
    taken: list[Any] = [time.get(name) for name in _PERCENTILES]
    if not all(_is_number(each) and each > 0 for each in taken):
        yield f"times of {taken} s cannot be"
    elif taken != sorted(taken):
        yield f"percentiles out of order: {taken} s"


def _trial_problems(trial: Trial) -> Iterator[str]:
    wrong = [
        f"{name} of {size!r} cannot be"
        for name, size in trial.dims.items()
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= LARGEST_COUNT
    ]
    yield from wrong
    if wrong:
        return
    try:
        work_of(trial)
    except MemwallError as error:
        yield error.message
    except (TypeError, KeyError):
        yield f"{trial.op} has other dimensions than {', '.join(trial.dims) or 'none'}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
