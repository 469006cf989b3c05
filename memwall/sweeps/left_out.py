"""The points of a sweep that have no answer, counted by reason."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from memwall.errors import NotAvailable, UsageError


class LeftOut:
    """Points without an answer, counted by reason; reasons that differ in their numbers alone are one."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.examples: dict[str, str] = {}
        self.error: UsageError | NotAvailable | None = None
        """The first."""
        self.columns: set[str] = set()
        """Results of some points that the rows have no column for."""

    def add(self, error: UsageError | NotAvailable, points: int) -> None:
        """So many more points have no answer."""
        self.error = self.error or error
        kind = _NUMBER.sub("0", error.message)
        self.examples.setdefault(kind, error.message)
        self.counts[kind] = self.counts.get(kind, 0) + points

    def merge(
        self, counts: Mapping[str, int], examples: Mapping[str, str], columns: Iterable[str] = ()
    ) -> None:
        """Those of another part of the sweep."""
        self.columns |= set(columns)
        for kind, points in counts.items():
            self.counts[kind] = self.counts.get(kind, 0) + points
            self.examples.setdefault(kind, examples[kind])

    @property
    def points(self) -> int:
        """How many in all."""
        return sum(self.counts.values())

    @property
    def lines(self) -> list[str]:
        """Each reason with how many points it left out, most first."""
        ordered = sorted(self.counts, key=lambda kind: -self.counts[kind])
        lines = [f"{_points(self.counts[kind])} left out: {self.examples[kind]}" for kind in ordered]
        if self.columns:
            lines.append(f"columns left out, which few points have: {', '.join(sorted(self.columns))}")
        return lines


def _points(count: int) -> str:
    return f"{count:,} point{'' if count == 1 else 's'}"


_NUMBER = re.compile(r"\d+")
