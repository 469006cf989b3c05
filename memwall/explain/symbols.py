"""Symbols for dimensions and rates, and a device whose rates are symbols."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy

from memwall.constant import Constant, Peak
from memwall.hardware import Device

SHORT = {
    "batch": "B",
    "heads": "H",
    "kv_heads": "H_kv",
    "head_dim": "d",
    "head_dim_v": "d_v",
    "seq_q": "S_q",
    "seq_kv": "S_kv",
    "window": "W",
    "rows": "R",
    "cols": "C",
    "vocab": "V",
    "experts": "E",
}
"""How the field writes a dimension; m, n, k and the rest are written as they are."""

BANDWIDTH, PEAK, LANES, SPECIAL = "beta", "P", "P_v", "P_s"


def dimension(name: str) -> sympy.Symbol:
    """A positive whole number of that name."""
    return sympy.Symbol(SHORT.get(name, name), positive=True, integer=True)


def dimensions(dims: Mapping[str, Any]) -> dict[str, sympy.Symbol]:
    """A symbol for each dimension that has a value."""
    return {name: dimension(name) for name, value in dims.items() if value is not None}


def rate(name: str) -> sympy.Symbol:
    """A positive rate of that name."""
    return sympy.Symbol(name, positive=True)


class SymbolicDevice:
    """A device as `memwall.bound` sees it, its rates symbols; it has what the real one has."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.values: dict[sympy.Symbol, Constant] = {}
        """Each symbol's constant."""
        self.bandwidth = self._symbol(BANDWIDTH, device.bandwidth)
        self.vector_peak = device.vector_peak and self._symbol(LANES, device.vector_peak)
        self.special_rate = device.special_rate and self._symbol(SPECIAL, device.special_rate)

    def peak(self, dtype: str) -> Peak:
        """The format's peak."""
        engine, constant = self._device.peak(dtype)
        return Peak(engine, self._symbol(PEAK, constant))

    def _symbol(self, name: str, constant: Constant) -> Constant:
        symbol = rate(name)
        self.values[symbol] = constant
        return constant._replace(value=symbol)
