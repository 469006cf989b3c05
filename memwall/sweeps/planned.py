"""A sweep as it was asked for, and what all kinds of sweep can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

from memwall.sweeps.grid import Grid
from memwall.sweeps.headings import meant
from memwall.sweeps.left_out import LeftOut
from memwall.sweeps.rows import Rows
from memwall.sweeps.where import Condition
from memwall.sweeps.words import Value


class Spec(NamedTuple):
    """A sweep as it was asked for, in plain texts, so that it travels to other machines."""

    what: str
    """An operator's name, or what a command reports: `step`, `serve` ..."""
    words: Mapping[str, tuple[Value, ...]]
    """GPUs, formats, models, layouts, choices and what-ifs: every combination is asked."""
    ranges: Mapping[str, str]
    """The dimensions as typed, the last one changing fastest."""
    settings: Mapping[str, Any]
    """What is the same at all points: causal, impl, what-ifs."""
    where: str | None = None
    block_points: int | None = None
    """Points a block at most, so that blocks are the same everywhere; None: as this machine has it."""
    report: bool = False
    """Whether a command's report is asked at each point, and not formulas on arrays."""
    columns: tuple[tuple[str, str], ...] = ()
    """Of reports: the columns and what they hold, so that they are the same everywhere; else none."""


class Planned(ABC):
    """A sweep, ready to be run block by block."""

    spec: Spec
    grid: Grid

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """A row's columns in their order."""

    @property
    @abstractmethod
    def shown(self) -> tuple[str, ...]:
        """Results that a page shows; all are in JSON, CSV and Parquet."""

    @property
    def asked(self) -> tuple[str, ...]:
        """The columns that say what was asked."""
        words = {name for name, some in self.grid.words.items() if any(word is not None for word in some)}
        names = words | {axis.name for axis in self.grid.axes}
        return tuple(name for name in self.columns if name in names)

    @abstractmethod
    def block(self, number: int, left_out: LeftOut) -> Rows | None:
        """All rows of a block; None if none has an answer."""

    @cached_property
    def condition(self) -> Condition | None:
        """What rows have to meet."""
        if not self.spec.where:
            return None
        return Condition(self.spec.where, self.columns, self.texts, self.closed, self.hint)

    @property
    def texts(self) -> Mapping[str, tuple[str, ...]]:
        """Columns of texts and which they hold; of words those that are asked, of others nothing."""
        return {
            name: tuple(str(word or "") for word in some)
            for name, some in self.grid.words.items()
            if name in self.columns and all(isinstance(word, str | None) for word in some)
        }

    @property
    def closed(self) -> tuple[str, ...]:
        """Columns of texts that hold no others, whatever is asked."""
        return ()

    def hint(self, column: str) -> str:
        """What to say of a column that is not there."""
        return meant(column, self.columns)

    def rows(self, number: int, left_out: LeftOut | None = None) -> Rows | None:
        """The rows of a block for which the condition holds; None if none has an answer.

        Args:
            number: the block's.
            left_out: counts the points without an answer, by reason.
        """
        condition = self.condition  # read before anything is computed
        rows = self.block(number, LeftOut() if left_out is None else left_out)
        return rows if rows is None or condition is None else rows.taken(condition.places(rows))
