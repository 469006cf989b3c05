"""Formulas as closed forms: what Python computes, written down while it computes it.

A `Traced` number carries the expression that made it, which has values at sample points. Formulas that were
written for counts run on it as they are. What memwall.maths chooses between is written down as a choice;
where a formula itself branches, the samples say which way, and where they say both, the points are divided by
that condition and each region gets a form of its own. So the forms in a page are the formulas of the command
line, not a second version of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
        """An operation and the numbers of its operands, or one of

        ("input", name)             a slider
        ("number", value)           a constant; a word, too, where a name is chosen
        ("candidate", place)        the number at that place of a candidate, inside of "least"
        ("least", form, candidates) the least value of a form over them
        """
        self._known: dict[tuple[Any, ...], int] = {}
        self._values: dict[int, Any] = {}

    def sample(self, samples: Mapping[str, Array]) -> dict[str, Traced]:
        """The inputs, with the points at which conditions are looked at from now on."""
        inputs = {name: Traced(self, self.node("input", name)) for name in samples}
        self._values = {each.node: samples[name] for name, each in inputs.items()}
        return inputs

    def values(self, node: int) -> Any:
        """An expression at the points; only what a condition rests on is ever worked out."""
        waiting = [node]
        while waiting:
            last = waiting[-1]
            missing = [each for each in operands(self.nodes[last]) if each not in self._values]
            waiting += missing
            if not missing:
                waiting.pop()
                self._values[last] = self._computed(last)
        return self._values[node]

    def _computed(self, node: int) -> Any:
        kind, *parts = self.nodes[node]
        if kind in ("input", "number"):
            return self._values.get(node, parts[0])
        if kind not in _OPERATIONS:
            raise TypeError(f"no condition may rest on a {kind}")
        return _OPERATIONS[kind](*(self._values[part] for part in parts))

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
    "|": np.logical_or,
    "&": np.logical_and,
    "abs": np.abs,
    "round": np.round,
    "ceil": np.ceil,
    "min": np.minimum,
    "max": np.maximum,
    "where": np.where,
    "log2": np.log2,
}


class Traced:
    """A number that remembers how it was made."""

    __slots__ = ("node", "tape")
    __array_ufunc__ = None

    def __init__(self, tape: Tape, node: int) -> None:
        self.tape = tape
        self.node = node

    def noted(self, operation: str, *operands: Any) -> Traced:
        """What an operation makes of numbers of which some are traced; memwall.maths asks for it."""
        return Traced(self.tape, self.tape.node(operation, *map(self.tape.of, operands)))

    def noted_least(self, formula: Callable[..., Any], candidates: Sequence[tuple[float, ...]]) -> Traced:
        """The least value of a formula over its candidates' arguments, written down once for all of them."""
        places = range(len(candidates[0]))
        form = formula(*(Traced(self.tape, self.tape.node("candidate", place)) for place in places))
        return Traced(self.tape, self.tape.node("least", self.tape.of(form), tuple(candidates)))

    def _made(self, operation: str, left: Any, right: Any) -> Traced:
        return self.noted(operation, left, right)

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

    def __rfloordiv__(self, other: Any) -> Any:
        return self._made("//", other, self)

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
        return self.noted("abs", self)

    def __round__(self, digits: int | None = None) -> Any:
        return self.noted("round", self)

    def __ceil__(self) -> Any:
        return self.noted("ceil", self)

    def __and__(self, other: Any) -> Any:
        return self._made("&", self, other)

    def __rand__(self, other: Any) -> Any:
        return self._made("&", other, self)

    def __or__(self, other: Any) -> Any:
        return self._made("|", self, other)

    def __ror__(self, other: Any) -> Any:
        return self._made("|", other, self)

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
        holds = np.asarray(self.tape.values(self.node)) != 0
        if holds.all():
            return True
        if not holds.any():
            return False
        raise Divided(self.node, holds)

    def __str__(self) -> str:
        return f"{np.ravel(self.tape.values(self.node))[0]:g}"


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
    try:
        with np.errstate(all="ignore"):  # of the ways between which a choice stands, some cannot be
            return [Region(guards, function(tape.sample(samples)))]
    except (UsageError, NotAvailable) as error:
        return [Region(guards, None, error)]
    except Divided as divided:
        node, holds = divided.node, divided.holds
    found = []
    for side, kept in ((True, holds), (False, ~holds)):
        there = {name: values[kept] for name, values in samples.items()}
        found += regions(tape, there, function, (*guards, (node, side)))
    return found


def operands(node: tuple[Any, ...]) -> tuple[int, ...]:
    """The nodes that a node rests on."""
    kind, *parts = node
    if kind in ("input", "number", "candidate"):
        return ()
    return (parts[0],) if kind == "least" else tuple(parts)


def needed(tape: Tape, roots: set[int]) -> list[int]:
    """The nodes that some nodes rest on, in the order of the tape."""
    wanted: set[int] = set()
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        if node not in wanted:
            wanted.add(node)
            waiting += operands(tape.nodes[node])
    return sorted(wanted)
