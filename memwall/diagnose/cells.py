"""A cell of an export as a number in SI units, or what is wrong with it."""

from __future__ import annotations

from memwall.diagnose.metrics import Metric
from memwall.errors import shown
from memwall.units import GIGA, KILO, MEGA, TERA

PREFIXES = {"": 1, "k": KILO, "K": KILO, "M": MEGA, "G": GIGA, "T": TERA}
SECONDS = {"ns": 1 / GIGA, "us": 1 / MEGA, "usecond": 1 / MEGA, "ms": 1 / KILO, "msecond": 1 / KILO,
           "nsecond": 1 / GIGA, "s": 1.0, "second": 1.0}  # fmt: skip
BYTES = ("byte", "B", "b")
"""rocprof-compute writes Gb/s for gigabytes a second."""
COUNTS = ("hz", "Hz", "cycle", "inst", "sector")
ABSENT = ("", "n/a", "nan", "-")
"""How profilers write that a metric was not collected."""


class Unreadable(ValueError):
    """A cell that is there and cannot be used: a word, or a unit that is not known."""


def number(text: str) -> float | None:
    """A number as profilers write it, commas at the thousands; None for words and nothing."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None


def read_cell(text: str, unit: str, metric: Metric) -> float | None:
    """The value in SI units; None if the cell says that nothing was collected.

    Raises:
        Unreadable: a word, or a unit in which this metric cannot be.
    """
    value = number(text)
    if value is None:
        if text.strip().lower() in ABSENT:
            return None
        raise Unreadable(f"'{shown(text, 30)}' is no number")
    return in_si(value, unit, metric)


def in_si(value: float, unit: str, metric: Metric) -> float:
    """The value in SI units: 70.08 us, 1.04 Tbyte/s, 16.38 Kbyte/block, 50 %.

    Raises:
        Unreadable: a time, bytes or a share in a unit of something else.
    """
    first, _, per = unit.partition("/")
    first, per = first.strip(), per.strip()
    if metric.share:
        if unit and "%" not in unit and "pct" not in unit.lower() and "percent" not in unit.lower():
            raise _unknown(unit)
        return value / 100
    if metric.field == "time_s":
        if first not in SECONDS or per:
            raise _unknown(unit)
        return value * SECONDS[first]
    factor = _factor(first, BYTES)
    if "bytes" in metric.field:
        # An empty unit is the base unit, as for every count.
        rate = metric.field.endswith("_per_s")
        if unit and (factor is None or (rate and per not in ("s", "second"))):
            raise _unknown(unit)
        return value * (factor or 1)
    factor = _factor(first, COUNTS) if factor is None else factor
    return value * (metric.scale if factor is None else factor)


def _factor(unit: str, names: tuple[str, ...]) -> float | None:
    """What a unit's prefix stands for, if it is a prefix and one of the names."""
    found = (f for prefix, f in PREFIXES.items() for n in names if unit in (prefix + n, f"{prefix}{n}s"))
    return next(found, None)


def _unknown(unit: str) -> Unreadable:
    return Unreadable(f"unknown unit '{shown(unit, 30)}'" if unit else "without a unit")
