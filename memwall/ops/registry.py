"""Which operators there are, and building one from what a user typed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from memwall.dtypes import Precision
from memwall.errors import UnknownName, UsageError, nearest, shown
from memwall.program import Program
from memwall.units import whole

FAMILIES = (
    "gemm",
    "attention",
    "norm",
    "softmax",
    "elementwise",
    "rope",
    "gather",
    "moe",
    "scan",
    "sampling",
)
"""The files of this folder that define operators."""

Dims = dict[str, Any]
_SETTINGS = ("precision", "causal", "impl")


class Op(NamedTuple):
    """One operator."""

    name: str
    build: Callable[..., Program]
    aliases: tuple[str, ...]
    default_shape: Mapping[str, int]
    """The shape when the user gives none; empty: the shape must be given."""
    example: Mapping[str, int]
    """A sensible shape, for messages and help."""
    complete: Callable[[Dims], Dims] | None
    """Fills in dimensions that follow from others, and checks how they fit together."""
    impls: tuple[str, ...]
    """The implementations it knows, its default first."""
    shorthand: Mapping[str, tuple[str, ...]]
    """Flags that set several dimensions at once: seq for seq_q and seq_kv."""
    mask: Callable[[Dims, bool | None], bool] | None
    """The mask for a shape: as asked, else by default; checks that it fits."""
    rows: str | None
    """The dimension that adds rows to the same weights."""

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """Its function's parameters."""
        return _parameters(self.build)

    @property
    def dims(self) -> tuple[str, ...]:
        """The names of its dimensions, required ones first."""
        return _dims(self.build)

    @property
    def required(self) -> tuple[str, ...]:
        """The dimensions that have no default."""
        return _required(self.build)

    def takes(self, setting: str) -> bool:
        """Whether it has a setting such as `causal`."""
        return setting in self.parameters

    def command(self, shape: Mapping[str, int] | None = None) -> str:
        """A command line that works, to copy from a message."""
        flags = " ".join(f"--{flag(name)} {value}" for name, value in (shape or self.example).items())
        return f"memwall roofline --op {self.name} {flags}"


@cache  # every question about an operator's dimensions asks for them
def _parameters(build: Callable[..., Program]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(build).parameters


@cache
def _dims(build: Callable[..., Program]) -> tuple[str, ...]:
    return tuple(name for name in _parameters(build) if name not in _SETTINGS)


@cache
def _required(build: Callable[..., Program]) -> tuple[str, ...]:
    parameters = _parameters(build)
    return tuple(d for d in _dims(build) if parameters[d].default is inspect.Parameter.empty)


_OPS: dict[str, Op] = {}


def operator(
    *,
    example: Mapping[str, int],
    aliases: tuple[str, ...] = (),
    default_shape: Mapping[str, int] | None = None,
    complete: Callable[[Dims], Dims] | None = None,
    impls: tuple[str, ...] = (),
    shorthand: Mapping[str, tuple[str, ...]] | None = None,
    mask: Callable[[Dims, bool | None], bool] | None = None,
    rows: str | None = None,
) -> Callable[[Callable[..., Program]], Callable[..., Program]]:
    """Register a function as the operator of its name."""

    def register(build: Callable[..., Program]) -> Callable[..., Program]:
        name = build.__name__
        _OPS[name] = Op(
            name, build, aliases, default_shape or {}, example, complete, impls, shorthand or {}, mask, rows
        )
        return build

    return register


def ops() -> Mapping[str, Op]:
    """Every operator by its name."""
    for family in FAMILIES:
        import_module(f"memwall.ops.{family}")
    return _OPS


def find(name: str) -> Op:
    """The operator of that name or alias; `-` and `_` are one.

    Raises:
        UnknownName: with the nearest names.
    """
    known = ops()
    key = name.strip().lower().replace("-", "_").replace("+", "_")
    found = known.get(key) or next((op for op in known.values() if key in op.aliases), None)
    if found is None:
        spellings = [*known, *(alias for op in known.values() for alias in op.aliases)]
        raise UnknownName("op", name, spellings, "memwall op list")
    return found


def resolve(op: Op, given: Mapping[str, int | None]) -> tuple[Dims, bool]:
    """The operator's full shape, and whether it is its default shape.

    Args:
        op: the operator.
        given: the dimensions that the user named; None means not named.

    Raises:
        UsageError: a dimension that it does not have, or lacks, or that does not fit the others.
    """
    hint = f"For example: {op.command()}"
    named = {name: value for name, value in given.items() if value is not None}
    dims = {name: whole(value, f"{op.name}: {name}", hint) for name, value in named.items()}
    defaulted = bool(op.default_shape) and not any(name in op.required for name in dims)
    if defaulted:
        dims = {**op.default_shape, **dims}
    return settle(op, dims), defaulted


def settle(op: Op, given: Mapping[str, Any]) -> Dims:
    """The full shape, with what follows from the given sizes; of counts, or of arrays of them.

    Raises:
        UsageError: as `resolve` says.
    """
    dims = _spelt_out(op, dict(given))
    if op.complete:
        dims = op.complete(dims)
    _check_names(op, dims)
    full = {**{name: op.parameters[name].default for name in op.dims}, **dims}
    return {name: full[name] for name in op.dims if full[name] is not None}


def build(
    op: Op, dims: Dims, precision: Precision, causal: bool | None = None, impl: str | None = None
) -> Program:
    """The program of an operator of that full shape.

    Raises:
        UsageError: a setting that the operator does not have.
    """
    settings: dict[str, Any] = {"precision": precision}
    if causal is not None:
        _check_setting(op, "causal", "--causal")
        settings["causal"] = causal
    if impl is not None:
        _check_setting(op, "impl", "--impl")
        if impl not in op.impls:
            near = [f"Did you mean {name}? " for name in nearest(impl, op.impls, 1)]
            raise UsageError(
                f"{op.name} has no implementation '{shown(impl)}'",
                f"{''.join(near)}Choose from: {', '.join(op.impls)}",
            )
        settings["impl"] = impl
    return op.build(**dims, **settings)


def flag(name: str) -> str:
    """A dimension's name as a flag spells it: kv_heads -> kv-heads."""
    return name.replace("_", "-")


def _spelt_out(op: Op, dims: Dims) -> Dims:
    """Shorthands as the dimensions that they stand for.

    Raises:
        UsageError: a shorthand beside a dimension that it sets.
    """
    full = dict(dims)
    for short, names in op.shorthand.items():
        if short not in full:
            continue
        both = [name for name in names if name in full]
        if both:
            flags = " and ".join("--" + flag(name) for name in names)
            raise UsageError(
                f"{op.name}: --{flag(short)} sets {flags}", f"Leave out --{flag(short)}, or the others"
            )
        full |= dict.fromkeys(names, full.pop(short))
    return full


def _needed(op: Op, missing: Sequence[str]) -> list[str]:
    """The missing dimensions as one would type them, by a shorthand where it covers them."""
    needed = list(missing)
    for short, names in op.shorthand.items():
        if set(names) <= set(needed):
            needed = [name for name in needed if name not in names] + [short]
    return ["--" + flag(name) for name in needed]


def _check_names(op: Op, dims: Dims) -> None:
    known = set(op.dims)
    unknown = [name for name in dims if name not in known]
    if unknown:
        has = ", ".join("--" + flag(d) for d in op.dims)
        raise UsageError(
            f"{op.name} has no --{flag(unknown[0])}", f"Its shape is {has}; memwall op show {op.name}"
        )
    missing = [name for name in op.required if name not in dims]
    if missing:
        raise UsageError(f"{op.name} needs {', '.join(_needed(op, missing))}", f"For example: {op.command()}")


def _check_setting(op: Op, setting: str, option: str) -> None:
    if not op.takes(setting):
        raise UsageError(f"{op.name} has no {option}", f"See memwall op show {op.name}")
