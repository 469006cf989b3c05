"""What a condition that cannot be read was meant to say."""

from __future__ import annotations

import re
from collections.abc import Iterable

from memwall.sweeps.headings import meant

EXAMPLE = "--where 'regime == \"compute-bound\"'"
_WORDS = ((r"&&|\bAND\b", "and"), (r"\|\||\bOR\b", "or"), (r"\bNOT\b", "not"), (r"(?<![=<>!])=(?!=)", "=="))
_AMOUNT = re.compile(r"(?<![\w.])(\d[\d_.]*)\s?([kKMGTPmuµn]?i?[A-Za-z]\w*)\b")
_EXPONENT = re.compile(r"e\d+", re.IGNORECASE)


def advice(text: str) -> str:
    """How to write it.

    >>> advice("m = 4 && n == 8")
    "Write it like --where 'm == 4 and n == 8'"
    >>> advice("bound_time_s < 10us")
    "Numbers are in SI units, as in the columns' names: 33.6e6 for 33.6 MB, 10e-6 for 10 us"
    """
    told = text
    for pattern, word in _WORDS:
        told = re.sub(pattern, word, told)
    if told != text:
        return f"Write it like --where '{told}'"
    amount = _AMOUNT.search(text)
    if amount and not _EXPONENT.fullmatch(amount[2]):
        return "Numbers are in SI units, as in the columns' names: 33.6e6 for 33.6 MB, 10e-6 for 10 us"
    if re.search(r"\bin\b", text):
        return "Write it like --where 'm == 4 or m == 8'"
    return f"Write it like {EXAMPLE}"


def column_meant(name: str, text: str, known: Iterable[str]) -> str:
    """What a name that is no column was meant to be: a text without its quotes, or another column.

    >>> column_meant("memory", "regime == memory-bound", ["m", "regime"])
    'A text needs quotes: regime == "memory-bound"'
    >>> column_meant("estimate_time_s", "estimate_time_s < 1", ["m", "bound_time_s"])
    'Add --estimate'
    """
    bare = re.search(rf"(\w+)\s*([=!]=)\s*({re.escape(name)}[\w-]*)", text)
    if bare and bare[1] in known:
        return f'A text needs quotes: {bare[1]} {bare[2]} "{bare[3]}"'
    return "Add --estimate" if name == "estimate_time_s" else meant(name, known)
