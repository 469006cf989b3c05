"""One derived quantity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import sympy

from memwall.explain.printing import latex, plain, with_numbers


class Derivation(NamedTuple):
    """One quantity: its formula, the numbers in it, and the result."""

    quantity: str
    symbol: str
    expression: Any
    """In symbols."""
    values: Mapping[Any, float]
    """What each symbol stands for."""
    unit: str
    assumption: str
    source: str

    @property
    def value(self) -> float | int:
        """The result; a whole number stays one."""
        result = sympy.sympify(self.expression).subs(self.values)
        return int(result) if result.is_Integer else float(result)

    @property
    def formula(self) -> str:
        """The formula on one line."""
        return plain(self.expression)

    @property
    def latex(self) -> str:
        """The formula as LaTeX."""
        return latex(self.expression)

    @property
    def substitution(self) -> str:
        """The formula with the numbers in it."""
        return with_numbers(self.expression, self.values)
