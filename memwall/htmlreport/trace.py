"""Formulas as closed forms: what Python computes, written down while it computes it.

A `Traced` number carries the expression that made it, and its values at sample points. Formulas that were
written for counts run on it as they are; where they compare it, the samples say which branch to take, and
where they say both, the points are divided by that condition and each region gets a form of its own. So the
forms in a page are the formulas of the command line, not a second version of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from memwall.errors import NotAvailable, UsageError

Array: TypeAlias = np.ndarray[Any, Any]
Guard = tuple[int, bool]
"""A condition's node, and whether it holds."""


class Divided(Exception):
    """A condition that holds at some of the samples only."""

    def __init__(self, node: int, holds: Array) -> None:
        super().__init__("a condition divides the samples")
        self.node = node
        self.holds = holds


class Tape:
    """Every expression once, in the order in which it was made."""

    def __init__(self) -> None:
        self.nodes: list[tuple[Any, ...]] = []
        """("input", name), ("number", value), or an operation and the numbers of its operands."""
        self._known: dict[tuple[Any, ...], int] = {}

    def node(self, *parts: Any) -> int:
        """The number of an expression."""
        if parts not in self._known:
            self._known[parts] = len(self.nodes)
            self.nodes.append(parts)
        return self._known[parts]

    def of(self, value: Any) -> int:
        """The node of a traced or plain number."""
        return value.node if isinstance(value, Traced) else self.node("number", value)


_OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.true_divide,
    "//": np.floor_divide,
    "%": np.mod,
    "**": np.power,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
    "abs": np.abs,
    "round": np.round,
}


class Traced:
    """A number that remembers how it was made."""

    __slots__ = ("node", "tape", "values")
    __array_ufunc__ = None

    def __init__(self, tape: Tape, node: int, values: Array) -> None:
        self.tape = tape
        self.node = node
        self.values = values

    def _made(self, operation: str, left: Any, right: Any) -> Traced:
        node = self.tape.node(operation, self.tape.of(left), self.tape.of(right))
        return Traced(self.tape, node, _OPERATIONS[operation](_values(left), _values(right)))

    def __add__(self, other: Any) -> Any:
        return self if _is(other, 0) else self._made("+", self, other)

    def __radd__(self, other: Any) -> Any:
        return self if _is(other, 0) else self._made("+", other, self)

    def __sub__(self, other: Any) -> Any:
        return self._made("-", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._made("-", other, self)

    def __mul__(self, other: Any) -> Any:
        return self if _is(other, 1) else 0 if _is(other, 0) else self._made("*", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self if _is(other, 1) else 0 if _is(other, 0) else self._made("*", other, self)

    def __truediv__(self, other: Any) -> Any:
        return self if _is(other, 1) else self._made("/", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._made("/", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return self if _is(other, 1) else self._made("//", self, other)

    def __mod__(self, other: Any) -> Any:
        return self._made("%", self, other)

    def __rmod__(self, other: Any) -> Any:
        return self._made("%", other, self)

    def __pow__(self, other: Any) -> Any:
        return self._made("**", self, other)

    def __rpow__(self, other: Any) -> Any:
        return self._made("**", other, self)

    def __neg__(self) -> Any:
        return self._made("-", 0, self)

    def __abs__(self) -> Any:
        return Traced(self.tape, self.tape.node("abs", self.node), np.abs(self.values))

    def __round__(self, digits: int | None = None) -> Any:
        return Traced(self.tape, self.tape.node("round", self.node), np.round(self.values))

    def __lt__(self, other: Any) -> Any:
        return self._made("<", self, other)

    def __le__(self, other: Any) -> Any:
        return self._made("<=", self, other)

    def __gt__(self, other: Any) -> Any:
        return self._made(">", self, other)

    def __ge__(self, other: Any) -> Any:
        return self._made(">=", self, other)

    def __eq__(self, other: object) -> Any:
        return (
            self.node == other.node or self._made("==", self, other)
            if isinstance(other, Traced)
            else (isinstance(other, int | float) and self._made("==", self, other))
        )

    def __ne__(self, other: object) -> Any:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.node)

    def __bool__(self) -> bool:
        holds = np.asarray(self.values) != 0
        if holds.all():
            return True
        if not holds.any():
            return False
        raise Divided(self.node, holds)

    def __str__(self) -> str:
        return f"{np.ravel(self.values)[0]:g}"


def _values(value: Any) -> Any:
    return value.values if isinstance(value, Traced) else value


def _is(value: Any, number: int) -> bool:
    return isinstance(value, int | float) and value == number


class Region(NamedTuple):
    """Points that take the same path through the formulas, and what comes of it."""

    guards: tuple[Guard, ...]
    result: Any
    refusal: UsageError | NotAvailable | None = None


def regions(
    tape: Tape,
    samples: Mapping[str, Array],
    function: Callable[[Mapping[str, Traced]], Any],
    guards: tuple[Guard, ...] = (),
) -> list[Region]:
    """A function's closed forms, one for each region that the samples reach.

    Args:
        tape: where the expressions go.
        samples: values of each input at the same points; they have to reach every region.
        function: made of formulas on counts.
        guards: the conditions of the region so far.
    """
    inputs = {name: Traced(tape, tape.node("input", name), values) for name, values in samples.items()}
    try:
        return [Region(guards, function(inputs))]
    except (UsageError, NotAvailable) as error:
        return [Region(guards, None, error)]
    except Divided as divided:
        node, holds = divided.node, divided.holds
    found = []
    for side, kept in ((True, holds), (False, ~holds)):
        there = {name: values[kept] for name, values in samples.items()}
        found += regions(tape, there, function, (*guards, (node, side)))
    return found


def needed(tape: Tape, roots: set[int]) -> list[int]:
    """The nodes that some nodes rest on, in the order of the tape."""
    wanted: set[int] = set()
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        if node in wanted:
            continue
        wanted.add(node)
        kind, *parts = tape.nodes[node]
        if kind not in ("input", "number"):
            waiting += parts
    return sorted(wanted)


def script(tape: Tape, node: int) -> str:
    """One node as JavaScript, its operands by their names."""
    kind, *parts = tape.nodes[node]
    if kind == "input":
        return str(parts[0])
    if kind == "number":
        return _number(parts[0])
    operands = [name(tape, part) for part in parts]
    if kind in _CALLS:
        return _CALLS[kind].format(*operands)
    return f"{operands[0]}{kind}{operands[1]}"


_CALLS = {
    "//": "Math.floor({}/{})",
    "%": "({}%{}+{1})%{1}",
    "**": "Math.pow({},{})",
    "abs": "Math.abs({})",
    "round": "Math.round({})",
    "==": "{}==={}",
    "!=": "{}!=={}",
    "-": "{}-({})",
}
_CALLS["%"] = "({0}%{1}+{1})%{1}"


def name(tape: Tape, node: int) -> str:
    """How other expressions call a node: inputs and numbers by themselves."""
    kind, *parts = tape.nodes[node]
    if kind == "input":
        return str(parts[0])
    return _number(parts[0]) if kind == "number" else f"t{node}"


def _number(value: Any) -> str:
    text = repr(float(value)) if isinstance(value, float | np.floating) else str(int(value))
    return f"({text})" if text.startswith("-") else text
