"""The explanation of an operator on a device, as a value: strings and numbers, no symbols."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from memwall.errors import UsageError
from memwall.explain.quantities import derivations
from memwall.explain.symbols import SHORT
from memwall.hardware import Device
from memwall.reports.roofline import RooflineReport, roofline


class Line(NamedTuple):
    """One quantity, ready to print."""

    quantity: str
    symbol: str
    formula: str
    latex: str
    substitution: str
    value: float | int
    unit: str
    assumption: str
    source: str


class Explanation(NamedTuple):
    """Every quantity of an operator on a device, derived."""

    base: RooflineReport
    symbols: Mapping[str, tuple[str, int]]
    """Each symbol's dimension and value."""
    lines: tuple[Line, ...]
    latex: bool

    @property
    def device(self) -> Device:
        """The device."""
        return self.base.device


def explain(op: str, *, latex: bool = False, **options: Any) -> Explanation:
    """Every quantity of an operator: formula, substitution, result, assumption, source.

    Args:
        op: an operator's name.
        latex: whether the page shows LaTeX.
        options: as `memwall.reports.roofline.roofline` takes them.

    Raises:
        UsageError, NotAvailable: as `roofline`.
    """
    base = roofline(op, **options)
    case = base.case
    if case is None:
        raise UsageError(
            "explain needs an operator", "For example: memwall explain gemm --m 4096 --n 4096 --k 4096"
        )
    found = derivations(case, base.device, source_of(case.op.build.__doc__ or ""))
    lines = tuple(
        Line(
            d.quantity, d.symbol, d.formula, d.latex, d.substitution, d.value, d.unit, d.assumption, d.source
        )
        for d in found
    )
    symbols = {SHORT.get(name, name): (name, value) for name, value in case.dims.items()}
    return Explanation(base, symbols, lines, latex)


def source_of(docstring: str) -> str:
    """What a docstring says after `Source:`, on one line."""
    _, marker, after = docstring.partition("Source:")
    return " ".join(after.split()).rstrip(".") if marker else "the definition"
