"""A number of a device with its source, and what it was computed from.

Every rate in a result is a `Constant`. One that is computed from others (a peak at maximum clock, a
special-function rate, a bandwidth from bus width and pin rate) keeps them as its parts, so that a
result can confess to each weak number that it rests on, under that number's own key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

KINDS = ("seen", "recalled", "derived", "measured", "assumed")
"""How a number may be known. An entry among a file's sources is of exactly one kind."""

WEAK = ("assumed", "recalled")
"""Source kinds that a result must confess to, the weaker first."""

WHAT_IF = "a what-if"
"""How a file's sources name a number that `--set` made."""


class Constant(NamedTuple):
    """One number that results rest on, in SI units."""

    key: str
    """Its path in the device's file, as `--set` takes it: memory.bandwidth_gb_per_s."""
    value: float
    kind: str
    """One of KINDS; of a computed number the weakest of its parts."""
    source: str
    note: str = ""
    parts: tuple[Constant, ...] = ()
    """What it was computed from; empty for a number of the file."""

    @property
    def weak(self) -> bool:
        """Whether the number, or one that it was computed from, is merely recalled or assumed."""
        return self.kind in WEAK

    @property
    def leaves(self) -> tuple[Constant, ...]:
        """The numbers of the file that it comes down to."""
        if not self.parts:
            return (self,)
        return tuple(leaf for part in self.parts for leaf in part.leaves)

    def computed(self, value: float, parts: tuple[Constant, ...], note: str) -> Constant:
        """The number as computed from others, under its own key."""
        weakest = min(parts, key=lambda part: WEAK.index(part.kind) if part.kind in WEAK else len(WEAK))
        return self._replace(value=value, kind=weakest.kind, source=weakest.source, note=note, parts=parts)


def kind_and_text(entry: Mapping[str, Any]) -> tuple[str, str]:
    """An entry of a file's `source`: ("seen", "H100 datasheet") of {seen: H100 datasheet, for: [...]}."""
    kind = next(kind for kind in KINDS if entry.get(kind))
    return kind, entry[kind]


class Peak(NamedTuple):
    """The rate of an engine, and which engine it is."""

    engine: str
    """matrix or vector."""
    rate: Constant
    """FLOP/s, dense."""
