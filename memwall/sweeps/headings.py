"""How pages call the columns of a sweep, and which column a wrong name means."""

from __future__ import annotations

from collections.abc import Iterable

from memwall.errors import nearest

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
    "price_per_million_tokens_in": "price/M in",
    "price_per_million_tokens_out": "price/M out",
    "blocks_per_sm": "blocks/SM",
    "warps_per_sm": "warps/SM",
    "spilled_bytes_per_thread": "spilled/thread",
    "layout.tokens_per_s": "tokens/s",
}
"""Results that a page has, and how it calls them; the others are in JSON and CSV."""

OF_OPERATORS = ("flops", "arithmetic_intensity", "attainable_flops_per_s")
"""Of passes a page has tokens instead."""

_UNITS = ("_bytes_per_s", "_flops_per_s", "_time_s", "_bytes", "_per_s", "_s")


def heading(name: str) -> str:
    """What a page calls a column.

    >>> heading("bound_time_s"), heading("layout.ttft_s"), heading("dram_read_bytes")
    ('bound', 'TTFT', 'DRAM read')
    """
    if name in SHOWN:
        return SHOWN[name]
    last = name.rpartition(".")[2] if name.startswith("layout.") else name
    bare = next((last.removesuffix(unit) for unit in _UNITS if last.endswith(unit)), last)
    words = bare.replace("_", " ").replace(".", " ").split(" ")
    return " ".join(word.upper() if word in _INITIALS else word for word in words)


_INITIALS = frozenset(("ttft", "tpot", "tp", "pp", "ep", "dp", "dram", "l2", "mfu"))


def meant(name: str, known: Iterable[str]) -> str:
    """A hint at the column that was meant: by its heading on a page, or its spelling; then all of them.

    >>> meant("bound", ["m", "bound_time_s"])
    'Did you mean bound_time_s? m, bound_time_s'
    """
    columns = list(known)
    called = [
        column for column, heading in SHOWN.items() if heading.lower() == name.lower() and column in columns
    ]
    near = called or nearest(name, columns, 1)
    begins = [column for column in columns if name and column.startswith(name.lower())]
    hint = next(iter([*near, *begins]), None)
    return (f"Did you mean {hint}? " if hint else "") + ", ".join(columns)
