"""Expressions as people write them: 2 k m n, and as LaTeX; with the numbers in place of the symbols."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import sympy
from sympy.printing.latex import LatexPrinter
from sympy.printing.str import StrPrinter

from memwall.units import format_seconds

TO_UNIT = "\N{NO-BREAK SPACE}"
"""Between a number and its unit while spaces still mean products."""
DIGITS = 5


class _Plain(StrPrinter):  # type: ignore[misc]  # sympy is untyped
    """2 k m n instead of 2*k*m*n, x^2 instead of x**2, ceil and min instead of ceiling and Min."""

    def _print_Mul(self, expression: Any) -> str:  # noqa: N802 - sympy's name
        return str(super()._print_Mul(expression)).replace("*", " ")

    def _print_Pow(self, expression: Any, rational: bool = False) -> str:  # noqa: N802
        return str(super()._print_Pow(expression, rational)).replace("**", "^")

    def _print_Dummy(self, expression: Any) -> str:  # noqa: N802
        return str(expression.name)

    def _print_ceiling(self, expression: Any) -> str:
        return f"ceil({self._print(expression.args[0])})"

    def _print_Min(self, expression: Any) -> str:  # noqa: N802
        return f"min({', '.join(map(self._print, expression.args))})"

    def _print_Max(self, expression: Any) -> str:  # noqa: N802
        return f"max({', '.join(map(self._print, expression.args))})"


class _Numbers(_Plain):
    """Each symbol as its number: substituting first would have sympy sort the numbers by themselves, and
    they would stand under other symbols than their own.
    """

    def __init__(self, values: Mapping[Any, float]) -> None:
        super().__init__()
        self._values = values

    def _print_Symbol(self, expression: Any) -> str:  # noqa: N802
        value = self._values.get(expression)
        if value is None:
            return str(expression.name)
        return _time(value) if expression.name.partition("_")[0] == "T" else _number(value)

    _print_Dummy = _print_Symbol  # noqa: N815


def plain(expression: Any) -> str:
    """The formula on one line: 2 (H_kv d + H) + 3."""
    return str(_Plain().doprint(sympy.sympify(expression))).replace("**", "^")


def latex(expression: Any) -> str:
    r"""The formula as LaTeX: 2 \, k \, m \, n."""
    # sympy's table of mul_symbols has no thin space; what it does not know it writes as it stands
    return str(LatexPrinter({"mul_symbol": r" \, "}).doprint(sympy.sympify(expression)))


def with_numbers(expression: Any, values: Mapping[Any, float]) -> str:
    """The formula with each symbol's number in its place, not worked out: 2 x 4096 x 4096."""
    text = _Numbers(values).doprint(sympy.sympify(expression)).replace("**", "^")
    return re.sub(r"(?<=[\w)]) (?=[\w(])", " x ", text).replace(TO_UNIT, " ")


def _time(value: float) -> str:
    """138.91 us."""
    return format_seconds(value, DIGITS).replace(" ", TO_UNIT)


def _number(value: float) -> str:
    """4096, or 3.352e12."""
    if isinstance(value, int) or float(value).is_integer():
        whole = int(value)
        return str(whole) if whole < 10_000_000 else f"{float(whole):.5g}".replace("e+", "e")
    return f"{value:.5g}".replace("e+", "e")
