"""Operators as records and pages: their docstrings are the documentation."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence

from memwall.ops.registry import Op, flag
from memwall.render.data import Record
from memwall.render.page import LaidOut, Page, Section, Table


def full_record(op: Op) -> Record:
    """The operator with its documentation."""
    return {**record(op), "documentation": inspect.getdoc(op.build)}


def record(op: Op) -> Record:
    """The operator under its documented keys."""
    return {
        "op": op.name,
        "aliases": list(op.aliases),
        "summary": summary(op),
        "required": list(op.required),
        "optional": [name for name in op.dims if name not in op.required],
        "default_shape": dict(op.default_shape),
        "implementations": list(op.impls),
        "takes_causal": op.takes("causal"),
        "example": op.command(),
    }


def list_page(ops: Sequence[Op]) -> Page:
    """Every operator, one row each."""
    rows = [(op.name, summary(op).partition(":")[0], _flags(op.required), _optional(op)) for op in ops]
    return [Section("", Table(rows, ("op", "what it is", "required", "optional")))]


def show_page(op: Op) -> Page:
    """One operator: its docstring, its flags, a command to copy."""
    doc = (inspect.getdoc(op.build) or "").splitlines()
    facts = [("required", _flags(op.required))]
    if _optional(op):
        facts.append(("optional", _optional(op)))
    facts += [("or", f"--{short} for {_flags(names)}") for short, names in op.shorthand.items()]
    if op.default_shape:
        facts.append(("default shape", " ".join(f"{k}={v}" for k, v in op.default_shape.items())))
    if op.impls:
        facts.append(("--impl", ", ".join(op.impls)))
    if op.aliases:
        facts.append(("also called", ", ".join(op.aliases)))
    return [
        Section(op.name, LaidOut(doc)),
        Section("On the command line", Table(facts)),
        Section("For example", LaidOut([op.command()])),
    ]


def summary(op: Op) -> str:
    """The first line of its docstring."""
    return (inspect.getdoc(op.build) or "").splitlines()[0].rstrip(".")


def _optional(op: Op) -> str:
    return _flags(d for d in op.dims if d not in op.required)


def _flags(dims: Iterable[str]) -> str:
    return " ".join(f"--{flag(dim)}" for dim in dims)
