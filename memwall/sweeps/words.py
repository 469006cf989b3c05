"""What is the same at all points of a block: GPUs, models, formats, layouts, choices, what-ifs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

Value: TypeAlias = str | int | float | bool | None
"""A text, a number, or None: as the report has it by default."""
Words: TypeAlias = Mapping[str, Any]
"""One value for each name. A name with a dot in it is a key of the GPU's file: a what-if."""


OF_PASSES = ("batch", "context", "seq", "source_tokens")
"""What of a pass goes as an array through the formulas; of operators it is every dimension."""


def changes_of(words: Words, settings: Mapping[str, Any]) -> dict[str, str]:
    """The what-ifs on the device: those of all points, and those of these points.

    >>> changes_of({"gpu": "h100", "l2.capacity_mib": 96}, {"changes": {"clocks.max_mhz": "1500"}})
    {'clocks.max_mhz': '1500', 'l2.capacity_mib': '96'}
    """
    of_all: Mapping[str, str] = settings.get("changes") or {}
    return {**of_all, **{name: str(word) for name, word in words.items() if is_change(name)}}


def is_change(name: str) -> bool:
    """Whether a word is a key of the GPU's file."""
    return "." in name
