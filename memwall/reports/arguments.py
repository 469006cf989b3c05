"""What callers of a report hand over, checked before anything is computed: a model, and whole numbers."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeAlias, TypeVar

from memwall.errors import UsageError, shown
from memwall.models.load import load as load_model
from memwall.models.model import Model
from memwall.units import whole

P = ParamSpec("P")
R = TypeVar("R")

ModelLike: TypeAlias = str | os.PathLike[str] | Model
"""A model, or its name, or its file or folder."""
COUNTS = ("int", "int | None")
"""Annotations of what is counted."""
FROM_NONE = frozenset({"ahead", "hold", "source_tokens", "zero"})
"""What there may be none of."""


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


def counted(report: Callable[P, R]) -> Callable[P, R]:
    """A report whose whole numbers are from 1 on (or 0, of a few); numpy's become Python's.

    Raises:
        UsageError: when it is called with one that is not.
    """
    names = {name for name, each in signature(report).parameters.items() if each.annotation in COUNTS}

    @wraps(report)
    def checked(*args: P.args, **given: P.kwargs) -> R:
        for name in given.keys() & names:
            if given[name] is not None:
                given[name] = _count(name, given[name])
        return report(*args, **given)

    return checked


def _count(name: str, value: Any) -> int:
    least = 0 if name in FROM_NONE else 1
    return whole(value, name, f"For example: {name}={max(least, 8)}", least)
