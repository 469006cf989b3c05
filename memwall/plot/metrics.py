"""How wide a text is, without a font at hand: the widths of common sans-serif letters, on the wide side."""

from __future__ import annotations

_NARROW, _WIDE = frozenset("iljftI.,:;'|!()[] r/·"), frozenset("mwMWGOQ@%—")
_EM = {"narrow": 0.36, "plain": 0.60, "wide": 0.90}


def width_of(text: str, height: float) -> float:
    """Pixels that a text takes at a font height, by widths that no common sans-serif font exceeds by much."""
    ems = sum(
        _EM["narrow"] if letter in _NARROW else _EM["wide"] if letter in _WIDE else _EM["plain"]
        for letter in text
    )
    return ems * height
