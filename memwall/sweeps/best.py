"""The best rows of a sweep by one column, without keeping the others."""

from __future__ import annotations

import numpy as np

from memwall.errors import UsageError, shown
from memwall.sweeps.headings import meant
from memwall.sweeps.planned import Planned
from memwall.sweeps.points import Array
from memwall.sweeps.rows import Coded, Rows, Word, joined

SMALLER = ("_s", "_bytes")
"""Columns whose smallest value is best: times and bytes. Of rates and intensities it is the largest."""


class Best:
    """The best rows so far."""

    def __init__(self, column: str, count: int = 1) -> None:
        self.column = column
        self.count = count
        self.rows: Rows | None = None

    @property
    def least(self) -> bool:
        """Whether less is better."""
        return self.column.endswith(SMALLER) and not self.column.endswith("_per_s")

    def check(self, sweep: Planned) -> None:
        """See that there is such a column, before anything is computed.

        Raises:
            UsageError: there is none.
        """
        if self.column not in sweep.columns:
            raise UsageError(f"--best: there is no column '{shown(self.column)}'", sweep.hint(self.column))

    def add(self, rows: Rows) -> None:
        """Look at more rows.

        Raises:
            UsageError: there is no such column, or it is no number.
        """
        column = rows.columns.get(self.column)
        if column is None or isinstance(column, Word | Coded):
            numbers = [name for name, each in rows.columns.items() if not isinstance(each, Word | Coded)]
            raise UsageError(
                f"--best: there is no number '{shown(self.column)}' in a row", meant(self.column, numbers)
            )
        if not rows.length:
            return
        column = np.where(np.isnan(column), np.inf if self.least else -np.inf, column)
        places = _places(column if self.least else -column, self.count)
        few = rows.taken(places)
        together = few if self.rows is None else joined([self.rows, few])
        ranked = together.columns[self.column]
        assert isinstance(ranked, np.ndarray)  # noqa: S101 - it was above
        ranked = np.where(np.isnan(ranked), np.inf if self.least else -np.inf, ranked)
        self.rows = together.taken(_places(ranked if self.least else -ranked, self.count))


def _places(values: Array, count: int) -> Array:
    """The first of the smallest, in order; equal ones as they came."""
    if count < len(values):
        kth = np.partition(values, count - 1)[count - 1]
        few = np.flatnonzero(values <= kth)
    else:
        few = np.arange(len(values))
    ranked: Array = few[np.argsort(values[few], kind="stable")][:count]
    return ranked
