"""Records as JSON and CSV: the stable, documented form that other programs read.

A record is a dict of SI values under unit-suffixed keys. JSON is one document with its schema's
number; CSV is one row a record, nested keys joined with a dot; where the answer is a list (levels of a
hierarchy, kernels of an export, quantities of a derivation), one row for each of it. A list of
words is one cell; so are `weak_sources`, by their keys. Other lists of records are left to JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

SCHEMA = 1

Record = dict[str, Any]

_SENTENCES = "; "
_BETWEEN = {
    **dict.fromkeys(("assumed", "weak_sources"), ";"),
    **dict.fromkeys(("required", "optional"), " "),
    **dict.fromkeys(("defaults", "notes", "aliases", "implementations"), _SENTENCES),
}
"""What stands between the items of the lists that are a column always, empty ones too."""


def to_json(records: Sequence[Record], several: bool) -> str:
    """One object for one record; `{"schema": 1, "results": [...]}` for several."""
    document: Record = {"schema": SCHEMA, **({"results": list(records)} if several else records[0])}
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def to_csv(records: Sequence[Record]) -> str:
    """A header and one row a record."""
    import csv
    import io

    rows = [flat(record) for record in records]
    text = io.StringIO()
    writer = csv.DictWriter(text, _header(rows), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _header(rows: Sequence[Record]) -> list[str]:
    """Every row's columns in their own order, wherever the fullest row stands: errors come last."""
    header: list[str] = []
    for row in sorted(rows, key=len, reverse=True):
        place = len(header)
        for key in reversed(row):  # a new column goes before the one that follows it in its row
            if key in header:
                place = header.index(key)
            else:
                header.insert(place, key)
    return header


def flat(record: Mapping[str, Any], prefix: str = "") -> Record:
    """Nested mappings as one level of dotted keys; lists as text, or left out.

    >>> flat({"shape": {"m": 8}, "assumed": ["l2.capacity_mib", "unit.count"], "kernels": [{"flops": 2}]})
    {'shape.m': 8, 'assumed': 'l2.capacity_mib;unit.count'}
    """
    row: Record = {}
    for key, value in record.items():
        if isinstance(value, Mapping):
            row |= flat(value, f"{prefix}{key}.")
        elif not isinstance(value, list | tuple):
            row[f"{prefix}{key}"] = value
        elif key in _BETWEEN or _is_text(value):
            words = [item["key"] if isinstance(item, Mapping) else str(item) for item in value]
            row[f"{prefix}{key}"] = _BETWEEN.get(key, _SENTENCES).join(words)
    return row


def _is_text(items: Sequence[Any]) -> bool:
    return bool(items) and all(isinstance(item, str) for item in items)
