"""A few rows of a sweep as a page: what is the same in all of them above, what varies as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memwall.render.data import Record
from memwall.render.page import Lines, Page, Section, Table
from memwall.sweeps.headings import heading
from memwall.units import (
    format_bytes,
    format_bytes_per_s,
    format_flops,
    format_flops_per_s,
    format_seconds,
    significant,
)

MOST_NAMES = 5
"""Columns of what was asked from which on they are not repeated in each part of a table."""


def page(
    records: Sequence[Record], what: str, asked: Sequence[str], results: Sequence[str], none: str
) -> Page:
    """The rows for people.

    Args:
        records: the rows.
        what: the operator or the command.
        asked: columns that say what was asked.
        results: columns of the answer that are shown.
        none: what to say where there is no row.
    """
    if not records:
        return [Section("", Lines([none]))]
    same = [name for name in asked if len({record[name] for record in records}) == 1]
    varying = [name for name in asked if name not in same]
    columns = [*varying, *results]
    title = "  ".join(f"{name}={_asked(records[0][name])}" for name in same if records[0][name] is not None)
    table = Table(
        [
            [*(_asked(record[name]) for name in varying), *(_text(name, record[name]) for name in results)]
            for record in records
        ],
        (*varying, *map(heading, results)),
        frozenset(
            place for place, name in enumerate(columns) if _numeric(record[name] for record in records)
        ),
        len(varying) if 0 < len(varying) < MOST_NAMES else 1,
    )
    return [Section(f"{what}  {title}".rstrip(), table)]


def _numeric(values: Any) -> bool:
    known = [value for value in values if value is not None]
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in known)


def _asked(value: Any) -> str:
    return _word(value) if value is None or isinstance(value, bool) else str(value)


def _word(value: bool | None) -> str:
    return "-" if value is None else "yes" if value else "no"


def _text(name: str, value: Any) -> str:
    if value is None or isinstance(value, bool):
        return _word(value)
    if isinstance(value, str):
        return value
    if name == "flops":
        return format_flops(value)
    if name.endswith("_flops_per_s"):
        return format_flops_per_s(value)
    if name.endswith("_bytes_per_s"):
        return format_bytes_per_s(value)
    if name.endswith("_bytes"):
        return format_bytes(value)
    return format_seconds(value) if name.endswith("_s") and "_per_s" not in name else significant(value)
