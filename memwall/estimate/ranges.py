"""What a constant of a calibration may be: a slip in a file must not become a time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from memwall.units import MEGA

SHARES = ("bandwidth_share", "matrix_share")
"""No kernel exceeds the memory's bandwidth or the matrix unit's peak."""
DIVISORS = (
    "unit_bytes_per_clock", "cta_bytes_per_clock", "warm_bytes_per_clock", "warm_gain", "exp_share", "wide",
    "sharpness", "slots", "most_splits", "least_keys", "packed", "padded", "rows", "cols", "resident_rows",
)  # fmt: skip
"""Nothing runs without them."""
MOST = MEGA
"""Microseconds, clocks, bytes a clock, elements: no constant of a kernel is larger."""


class OutOfRange(ValueError):
    """A constant that cannot be; the key, and what is allowed."""

    def __init__(self, key: str, value: Any, allowed: str) -> None:
        super().__init__(f"{key} must be {allowed}, not {value!r}")
        self.key = key


def checked(constants: Mapping[str, Any]) -> dict[str, float]:
    """The constants of a fit, in the file's units.

    Raises:
        OutOfRange: one that cannot be.

    >>> checked({"launch_us": 2})
    {'launch_us': 2}
    """
    for key, value in constants.items():
        low_is_in = key not in (*SHARES, *DIVISORS)
        most = 1 if key in SHARES else MOST
        number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not number or not 0 <= value <= most or (value == 0 and not low_is_in):
            allowed = f"{'a number from 0' if low_is_in else 'a number above 0'} to {most:g}"
            raise OutOfRange(key, value, allowed)
    return dict(constants)


def checked_error(key: str, value: Any) -> float | None:
    """A relative error, where there is one.

    Raises:
        OutOfRange: none that can be.
    """
    if value is None:
        return None
    return checked({key: value})[key]
