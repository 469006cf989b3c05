"""Arithmetic over named numbers and memwall's own reports: read with a whitelist, never run as code.

    exact       5 * 1024*bit * 2619*MHz * 2           numbers, units, + - * / **, parentheses
    functions   max(a, b), min, sqrt, ceil, floor, log, log2, exp
    names       inputs and claims of the file; claim.low, claim.high of a range; text.claim of another text
    reports     gpu("h100").bandwidth_bytes_per_s, roofline("gemv", m=8192, k=8192).arithmetic_intensity

Every number has a dimension, so that bits are not taken for bytes, nor a sum made of bytes and seconds.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from memwall.claims import operations
from memwall.claims.functions import FUNCTIONS
from memwall.claims.quantity import Quantity, finite, readable, symbols
from memwall.errors import MemwallError, UsageError, nearest, shown

LONGEST, MOST_NODES = 600, 160
EXAMPLE = 'For example: 5 * 1024*bit * 2619*MHz * 2, or gpu("h100").bandwidth_bytes_per_s'
_LARGEST_LITERAL = float(f"1{'0' * 18}")


class Fact(NamedTuple):
    """What a name or a report stands for in a computation."""

    quantity: Quantity
    note: str = ""
    """Where it comes from, for people."""


Lookup = Callable[[str], Fact]
"""The number of a name; raises UsageError where there is none."""

_BINARY: dict[type[ast.operator], tuple[str, Callable[[Quantity, Quantity], Quantity]]] = {
    ast.Add: ("+", lambda a, b: a + b),
    ast.Sub: ("-", lambda a, b: a - b),
    ast.Mult: ("*", lambda a, b: a * b),
    ast.Div: ("/", lambda a, b: a / b),
    ast.Pow: ("**", lambda a, b: a**b),
}
_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "**": 3}


class Expression(NamedTuple):
    """A computation that has been read and is safe to evaluate."""

    text: str
    tree: ast.expr
    line: int = 0
    """Where it stands in its file, if it stands in one."""

    @property
    def single(self) -> bool:
        """Whether it is one name or report, with nothing to work out."""
        return bool(_dotted(self.tree) or _as_report(self.tree))

    @property
    def names(self) -> tuple[str, ...]:
        """The names that it needs looked up, in order: claims and inputs, not units."""
        return tuple(dict.fromkeys(_names(self.tree)))

    @property
    def reports(self) -> tuple[tuple[str, operations.Arguments, tuple[operations.Step, ...]], ...]:
        """The reports that it asks, in order."""
        found = (_as_report(node) for node in _outermost(self.tree))
        return tuple(dict.fromkeys(report for report in found if report))

    def evaluate(self, lookup: Lookup) -> Quantity:
        """Its value.

        Raises:
            UsageError: a unit that does not fit, a division by zero, an unknown metric.
            MemwallError: as a report says.
        """
        try:
            return finite(_value(self.tree, lookup))
        except (OverflowError, ArithmeticError):
            raise UsageError("the numbers grow too large", "Check the powers") from None

    def substituted(self, lookup: Lookup) -> str:
        """The computation with numbers in the place of names and reports."""
        return _written(self.tree, lookup)[0]


def parse(text: str) -> Expression:
    """An expression that holds nothing but what the module's docstring names.

    Raises:
        UsageError: anything else, or too long.
    """
    if len(text) > LONGEST:
        raise UsageError(f"an expression has at most {LONGEST} characters", "Split it: claims can use claims")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # Python would warn of 3in on stderr
            tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, SyntaxWarning, DeprecationWarning, ValueError, RecursionError, MemoryError):
        raise UsageError(f"'{shown(text, 60)}' is not an expression", EXAMPLE) from None
    if sum(1 for _ in ast.walk(tree)) > MOST_NODES:
        raise UsageError("the expression is too long", "Split it: claims can use claims")
    _check(tree)
    return Expression(text.strip(), tree)


def _check(node: ast.expr) -> None:
    """Only numbers, names, arithmetic, the functions and the reports.

    Raises:
        UsageError: anything else.
    """
    if isinstance(node, ast.Constant):
        _check_number(node)
    elif isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        _check(node.left)
        _check(node.right)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        _check(node.operand)
    elif isinstance(node, ast.Name) or _dotted(node):
        return
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
        if node.keywords or not node.args:
            raise UsageError(f"{node.func.id}(...) takes numbers", EXAMPLE)
        for argument in node.args:
            _check(argument)
    elif _as_report(node):
        return
    else:
        raise _refused(node)


def _check_number(node: ast.Constant) -> None:
    if isinstance(node.value, bool) or not isinstance(node.value, int | float):
        raise UsageError(f"{shown(ast.unparse(node))} is not a number", EXAMPLE)
    if abs(node.value) > _LARGEST_LITERAL:
        raise UsageError(f"{shown(ast.unparse(node))} is too large a number", "Use units: 1.6*PB")


def _refused(node: ast.AST) -> UsageError:
    inner = node
    while isinstance(inner, ast.Attribute | ast.Subscript):
        inner = inner.value
    if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name):
        called = inner.func.id
        if called in operations.OPERATIONS and inner is node:
            return UsageError(f"{called}(...) is a report: name one of its metrics", EXAMPLE)
        known = [*operations.OPERATIONS, *FUNCTIONS]
        near = nearest(called, known, limit=1)
        hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(known)}"
        return UsageError(f"'{shown(called)}(...)' is none of memwall's operations", hint)
    text = shown(ast.unparse(node), 60)
    return UsageError(f"'{text}' is not arithmetic: only numbers, names, + - * / ** and reports", EXAMPLE)


def _dotted(node: ast.AST) -> str | None:
    """a.b or a.b.c as one name; None for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) and len(parts) <= 2 else None


def _as_report(node: ast.AST) -> tuple[str, operations.Arguments, tuple[operations.Step, ...]] | None:
    """A report's call and the path after it; None if the node is none.

    Raises:
        UsageError: an argument that is neither a word nor a number.
    """
    path: list[operations.Step] = []
    while isinstance(node, ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Attribute):
            path.append(node.attr)
        elif isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str | int):
            path.append(node.slice.value)
        else:
            return None
        node = node.value
    if not (path and isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        return None
    if node.func.id not in operations.OPERATIONS:
        return None
    positional = tuple(_argument(each) for each in node.args)
    named = tuple((str(each.arg), _argument(each.value)) for each in node.keywords if each.arg)
    if len(named) != len(node.keywords):
        raise UsageError("** is not read", EXAMPLE)
    return node.func.id, (positional, named), tuple(reversed(path))


def _argument(node: ast.expr) -> Any:
    """A report's argument: a word, a number, True or False, or whole-number arithmetic such as 128*1024."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bool | int | float):
        return node.value
    if isinstance(node, ast.BinOp) and not any(
        isinstance(each, ast.Name | ast.Call) for each in ast.walk(node)
    ):
        _check(node)
        number = _value(node, _nothing).value
        return int(number) if number == int(number) else number
    raise UsageError(
        f"'{shown(ast.unparse(node))}' is no argument of a report",
        'A word in quotes or a number: m=4096, gpu="h100"',
    )


def _nothing(name: str) -> Fact:
    raise UsageError(f"'{shown(name)}' is not known here", EXAMPLE)


def _outermost(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes from the top, without looking inside a report or a dotted name."""
    yield node
    if isinstance(node, ast.Attribute | ast.Subscript):
        return
    for child in ast.iter_child_nodes(node):
        yield from _outermost(child)


def _names(tree: ast.AST) -> Iterator[str]:
    functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in _outermost(tree):
        name = _dotted(node)
        if name and id(node) not in functions and not ("." not in name and name in symbols()):
            yield name


def _value(node: ast.expr, lookup: Lookup) -> Quantity:
    if isinstance(node, ast.Constant):
        return Quantity(node.value)  # type: ignore[arg-type]
    if isinstance(node, ast.BinOp):
        return _BINARY[type(node.op)][1](_value(node.left, lookup), _value(node.right, lookup))
    if isinstance(node, ast.UnaryOp):
        return -_value(node.operand, lookup)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
        arguments = [_value(each, lookup) for each in node.args]
        try:
            return FUNCTIONS[node.func.id](*arguments)
        except TypeError:
            raise UsageError(f"{node.func.id}(...) takes another number of arguments", EXAMPLE) from None
    name = _dotted(node)
    if name:
        return symbols()[name] if name in symbols() else lookup(name).quantity
    report = _as_report(node)
    if report is None:
        raise _refused(node)
    return operations.value(*report)


def _written(node: ast.expr, lookup: Lookup) -> tuple[str, int]:
    """A node with its numbers, and how strongly it binds."""
    if isinstance(node, ast.BinOp):
        sign = _BINARY[type(node.op)][0]
        own = _PRECEDENCE[sign]
        left, right = _written(node.left, lookup), _written(node.right, lookup)
        before = f"({left[0]})" if left[1] < own else left[0]
        after = f"({right[0]})" if right[1] < own + (sign in "-/") else right[0]
        return f"{before} {sign} {after}", own
    if isinstance(node, ast.UnaryOp):
        return f"-{_written(node.operand, lookup)[0]}", 3
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return f"{node.func.id}({', '.join(_written(each, lookup)[0] for each in node.args)})", 4
    if isinstance(node, ast.Constant):
        return f"{node.value:,}" if isinstance(node.value, int) else str(node.value), 4
    name = _dotted(node)
    if name and name in symbols():
        return name, 4
    try:
        return readable(_value(node, lookup)), 4
    except MemwallError:
        return ast.unparse(node), 4
