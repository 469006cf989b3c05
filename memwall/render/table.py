"""A sweep's rows in memory, as a record and as the page that a notebook shows."""

from __future__ import annotations

from numbers import Real
from typing import Any

from memwall.render.data import Record
from memwall.render.page import Page, Section
from memwall.render.page import Table as Rows
from memwall.sweeps.table import Table
from memwall.units import GIGA, significant

FIRST = 20
"""Rows that a notebook shows; a data frame has them all."""


def record(table: Table) -> Record:
    """All rows, and how many points have none."""
    return {"rows": table.to_rows(), "left_out": table.left_out.points}


def page(table: Table) -> Page:
    """The first rows for people."""
    names = list(table.columns)
    first = table.to_rows()[:FIRST]
    cells = [[_text(row[name]) for name in names] for row in first]
    numbers = frozenset(
        place for place, name in enumerate(names) if all(_is_number(row[name]) for row in first)
    )
    left_out = f", {table.left_out.points} points left out" if table.left_out.points else ""
    shown = f"the first {FIRST} of {len(table)} rows" if len(table) > FIRST else f"{len(table)} rows"
    return [Section(f"sweep  {shown}{left_out}", Rows(cells, names, numbers))]


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _text(value: Any) -> str:
    if value is None:
        return "-"
    large = _is_number(value) and value >= GIGA  # a whole rate is written as its neighbours are
    return significant(value) if isinstance(value, float) or large else str(value)
