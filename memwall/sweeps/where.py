"""Conditions on rows: `regime == "compute-bound" and bound_time_s < 1e-3`, on whole columns at once."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from memwall.errors import UsageError, shown
from memwall.sweeps.headings import meant
from memwall.sweeps.points import Array
from memwall.sweeps.rows import Coded, Column, Rows, Word
from memwall.sweeps.where_hints import EXAMPLE, check_texts, hint, parsed

_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: np.true_divide,
    ast.Mod: np.mod,
}


def together(texts: Sequence[str]) -> str | None:
    """Several conditions as one, all of which rows have to meet; None of none.

    Raises:
        UsageError: one is empty.

    >>> together(["m > 8", "fits or m == 1"])
    '(m > 8) and (fits or m == 1)'
    """
    if not all(text.strip() for text in texts):
        raise UsageError("--where is empty", f"Write it like {EXAMPLE}, or leave it out")
    if len(texts) < 2:
        return next(iter(texts), None)
    return " and ".join(f"({text.strip()})" for text in texts)


class Condition:
    """A condition that was read once and is asked of many rows."""

    def __init__(
        self,
        text: str,
        columns: Iterable[str],
        texts: Mapping[str, Collection[str]] | None = None,
        closed: Collection[str] = (),
        unknown: Callable[[str], str] | None = None,
    ) -> None:
        """Read it.

        Args:
            text: the condition.
            columns: those of the rows.
            texts: columns that hold texts, and which; nothing where nobody knows.
            closed: columns that hold no others, whatever is swept.
            unknown: what to say of a column that is not there.

        Raises:
            UsageError: it is no condition, or names a column or a text that is not there.
        """
        self.text = text
        known, held = list(columns), texts or {}
        tree, meant_by = parsed(text), hint(text, known, held)
        if tree is None:
            raise _no_condition(text, meant_by)
        self._tree = tree
        for node in _columns(tree):
            if node not in known:
                likely = meant_by or (unknown(node) if unknown else meant(node, known))
                raise UsageError(f"--where: there is no column '{shown(node)}'", likely)
        check_texts(tree, held, closed)

    def places(self, rows: Rows) -> Array:
        """The rows for which it holds.

        Raises:
            UsageError: it compares a text with a number, or says nothing of a row.
        """
        try:
            with np.errstate(divide="ignore", invalid="ignore"):
                holds = np.asarray(self._value(self._tree, rows))
        except (TypeError, np.exceptions.DTypePromotionError):
            raise _no_condition(self.text) from None
        if holds.dtype != bool:
            raise _no_condition(self.text)
        return np.flatnonzero(np.broadcast_to(holds, (rows.length,)))

    def _value(self, node: ast.expr, rows: Rows) -> Any:
        match node:
            case ast.Constant(value=bool() | int() | float() | str()):
                return node.value
            case ast.Name() | ast.Attribute():
                return _cells(rows.columns[_dotted(node)])
            case ast.BoolOp():
                sides = [np.asarray(self._value(value, rows), dtype=bool) for value in node.values]
                both = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
                return both.reduce(np.broadcast_arrays(*sides))
            case ast.UnaryOp(op=ast.Not()):
                return np.logical_not(self._value(node.operand, rows))
            case ast.UnaryOp(op=ast.USub()):
                return -self._value(node.operand, rows)
            case ast.BinOp(op=op) if type(op) in _ARITHMETIC:
                left, right = self._value(node.left, rows), self._value(node.right, rows)
                return _ARITHMETIC[type(op)](left, self._divisor(op, right))
            case ast.Compare():
                return self._compared(node, rows)
        raise _no_condition(self.text)

    def _divisor(self, op: ast.operator, value: Any) -> Any:
        """What is divided by: nothing where it is 0, so that no comparison holds."""
        if not isinstance(op, ast.Div | ast.Mod):
            return value
        if isinstance(value, int | float) and not value:
            raise UsageError(f"--where '{shown(self.text)}' divides by 0", f"Write it like {EXAMPLE}")
        return np.where(np.asarray(value) == 0, np.nan, value)

    def _compared(self, node: ast.Compare, rows: Rows) -> Any:
        values = [self._value(each, rows) for each in (node.left, *node.comparators)]
        holds: Any = True
        for left, op, right in zip(values, node.ops, values[1:], strict=False):
            if type(op) not in _COMPARISONS:
                raise _no_condition(self.text)
            holds = np.logical_and(holds, _pair(left, _COMPARISONS[type(op)], right))
        return holds


def _pair(left: Any, compare: Callable[[Any, Any], Any], right: Any) -> Any:
    """A comparison; of texts only whether they are the same."""
    if isinstance(right, Coded):
        left, right = right, left
    if isinstance(left, Coded):
        if not isinstance(right, str) or compare not in (operator.eq, operator.ne):
            raise TypeError(right)
        return left.where(right) == (compare is operator.eq)
    if isinstance(left, str) != isinstance(right, str):
        raise TypeError(right)
    return compare(left, right) & _known(left) & _known(right)


def _known(value: Any) -> Any:
    """Where there is a number: what is unknown meets no comparison."""
    numbers = isinstance(value, np.ndarray) and value.dtype.kind == "f"
    return ~np.isnan(value) if numbers else np.True_


def _cells(column: Column) -> Any:
    """A column as conditions take it: an answer holds where it is yes."""
    if isinstance(column, Word):
        return column.text or ""
    if isinstance(column, Coded) and column.answers:
        return column.where(True)
    return column


def _columns(tree: ast.expr) -> list[str]:
    """The columns that an expression names; those of nested keys have dots."""
    found, inner = [], set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            inner.add(id(node.value))
        if isinstance(node, ast.Name | ast.Attribute) and id(node) not in inner:
            found.append(_dotted(node))
    return found


def _dotted(node: ast.expr) -> str:
    return ast.unparse(node)


def _no_condition(text: str, likely: str | None = None) -> UsageError:
    return UsageError(
        f"--where '{shown(text)}' is no condition on a row's columns", likely or f"Write it like {EXAMPLE}"
    )
