"""The functions that an expression may call."""

from __future__ import annotations

import math
from collections.abc import Callable

from memwall.claims.quantity import Quantity
from memwall.errors import UsageError


def _plain(function: Callable[[float], float]) -> Callable[..., Quantity]:
    def apply(argument: Quantity) -> Quantity:
        try:
            return Quantity(function(argument.to("")))
        except (ValueError, OverflowError):
            raise UsageError("a function has no value there", "Check its argument") from None

    return apply


def _least(first: Quantity, *others: Quantity) -> Quantity:
    return min((first, *others), key=lambda each: (each - first).value)


def _most(first: Quantity, *others: Quantity) -> Quantity:
    return max((first, *others), key=lambda each: (each - first).value)


FUNCTIONS: dict[str, Callable[..., Quantity]] = {
    "min": _least,
    "max": _most,
    "sqrt": _plain(math.sqrt),
    "ceil": _plain(math.ceil),
    "floor": _plain(math.floor),
    "log2": _plain(math.log2),
    "exp": _plain(math.exp),
    "log": _plain(math.log),
}
