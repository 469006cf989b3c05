"""A few rows of a sweep as a page: what is the same in all of them above, what varies as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memwall.render.data import Record
from memwall.render.page import Lines, Page, Section, Table
from memwall.units import (
    format_bytes,
    format_flops,
    format_flops_per_s,
    format_seconds,
    significant,
)

SHOWN = {
    "flops": "FLOPs",
    "traffic_bytes": "traffic",
    "arithmetic_intensity": "FLOP/B",
    "regime": "regime",
    "attainable_flops_per_s": "attainable",
    "bound_time_s": "bound",
    "estimate_time_s": "estimate",
    "tokens_per_s": "tokens/s",
    "resident_cache_bytes": "cache",
    "usable_bytes": "usable",
    "weight_bytes": "weights",
    "kv_budget_bytes": "for the cache",
    "max_tokens": "tokens",
    "max_sequences": "sequences",
    "longest_context": "longest",
    "fits": "fits",
}
"""Results that a page has, and how it calls them; the others are in JSON and CSV."""
_HIDDEN = frozenset(
    ("read_bytes", "written_bytes", "limited_by", "kernels_bound_time_s", "tokens_per_s_per_user",
     "resident_weight_bytes", "reserve_bytes", "kv_bytes_per_token", "kv_bytes_per_sequence",
     "shortfall_bytes")
)  # fmt: skip

_OF_OPERATORS = ("flops", "arithmetic_intensity", "attainable_flops_per_s")
"""Of passes a page has tokens instead."""


def page(records: Sequence[Record]) -> Page:
    """The rows for people."""
    if not records:
        return [Section("", Lines(["no row meets the condition"]))]
    asked = [name for name in records[0] if name not in SHOWN and name not in _HIDDEN]
    same = [name for name in asked if len({record[name] for record in records}) == 1]
    varying = [name for name in asked if name not in same]
    results = [name for name in SHOWN if name in records[0]]
    if "tokens_per_s" in results:
        results = [name for name in results if name not in _OF_OPERATORS]
    heading = "  ".join(f"{name}={records[0][name]}" for name in same if name != "op")
    table = Table(
        [[*(str(record[name]) for name in varying), *_results(record, results)] for record in records],
        (*varying, *(SHOWN[name] for name in results)),
        frozenset(
            place
            for place, name in enumerate((*varying, *results))
            if all(isinstance(record[name], int | float | None) for record in records)
            and not isinstance(records[0][name], bool)
        ),
    )
    return [Section(f"{records[0]['op']}  {heading}".rstrip(), table)]


def _results(record: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    return [_text(name, record[name]) for name in names]


def _text(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if name == "flops":
        return format_flops(value)
    if name.endswith("_flops_per_s"):
        return format_flops_per_s(value)
    if name.endswith("_bytes"):
        return format_bytes(value)
    return format_seconds(value) if name.endswith("time_s") else significant(value)
