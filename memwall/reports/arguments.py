"""What callers of a report hand over, checked before anything is computed."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from inspect import signature
from math import isfinite
from numbers import Real
from typing import Any, ParamSpec, TypeAlias, TypeVar

from memwall.errors import UsageError, shown
from memwall.models.load import load as load_model
from memwall.models.model import Model
from memwall.units import whole

P = ParamSpec("P")
R = TypeVar("R")

ModelLike: TypeAlias = str | os.PathLike[str] | Model
"""A model, or its name, or its file or folder."""
FROM_NONE = frozenset({"ahead", "hold", "source_tokens", "zero"})
"""What there may be none of."""


LOOKED_UP = frozenset({"op"})
"""Texts that have no default: the empty one is answered with those that there are."""


def model_of(model: ModelLike) -> Model:
    """The model that a caller means.

    Raises:
        UsageError: neither a model, nor a name, nor a path.
        UnknownName, FileError, NotAvailable: as they say.
    """
    if isinstance(model, Model):
        return model
    if isinstance(model, str | os.PathLike):
        return load_model(os.fspath(model))
    raise UsageError(
        f"model must be a name, a file or memwall.model(...), not {shown(repr(model))}",
        "For example: 'llama3-8b'",
    )


def checked(report: Callable[P, R]) -> Callable[P, R]:
    """A report whose numbers, texts and flags are looked at before anything is computed.

    Whole numbers are from 1 on (or 0, of a few), and numpy's become Python's; other numbers are finite; a
    path may stand for a text. What may be left out may be None.

    Raises:
        UsageError: when it is called with anything else.
    """
    kinds = {
        name: str(each.annotation).partition(" | None") for name, each in signature(report).parameters.items()
    }
    checks = {name: (CHECKS[kind], bool(none)) for name, (kind, none, _) in kinds.items() if kind in CHECKS}
    names = list(kinds)

    def looked_at(name: str, value: Any) -> Any:
        check, optional = checks.get(name, (None, True))
        return value if check is None or (optional and value is None) else check(name, value)

    @wraps(report)
    def called(*args: P.args, **given: P.kwargs) -> R:
        for name in given.keys() & checks.keys():
            given[name] = looked_at(name, given[name])
        return report(*map(looked_at, names, args), **given)

    return called


def _count(name: str, value: Any) -> int:
    least = 0 if name in FROM_NONE else 1
    return whole(value, name, f"For example: {name}={max(least, 8)}", least)


def _number(name: str, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, Real) or not isfinite(value):
        raise UsageError(
            f"{name} must be a finite number, not {shown(repr(value))}", f"For example: {name}=1.5"
        )
    return value


def text_of(name: str, value: Any) -> str:
    """A text that a caller hands over; a path may stand for one.

    Raises:
        UsageError: it is none, or empty.
    """
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str) or (not text and name not in LOOKED_UP):
        raise UsageError(f"{name} must be a text, not {shown(repr(value))}", "Leave it out for the default")
    return text


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{name} is True or False, not {shown(repr(value))}", f"For example: {name}=True")
    return value


CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "int": _count,
    "float": _number,
    "str": text_of,
    "bool": _flag,
}
"""By annotation."""
