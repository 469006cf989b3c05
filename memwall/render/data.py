"""Records as JSON and CSV: the stable, documented form that other programs read.

A record is a dict of SI values under unit-suffixed keys. JSON is one document with its schema's
number; CSV is one row a record, nested keys joined with a dot, lists left to JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

SCHEMA = 1

Record = dict[str, Any]


def to_json(records: Sequence[Record], several: bool) -> str:
    """One object for one record; `{"schema": 1, "results": [...]}` for several."""
    document: Record = {"schema": SCHEMA, **({"results": list(records)} if several else records[0])}
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def to_csv(records: Sequence[Record]) -> str:
    """A header and one row a record."""
    import csv
    import io

    rows = [flat(record) for record in records]
    header = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, header, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def flat(record: Mapping[str, Any], prefix: str = "") -> Record:
    """Nested mappings as one level of dotted keys; lists are left out."""
    row: Record = {}
    for key, value in record.items():
        if isinstance(value, Mapping):
            row |= flat(value, f"{prefix}{key}.")
        elif not isinstance(value, list | tuple):
            row[f"{prefix}{key}"] = value
    return row
