"""A sweep: what is asked, over which words and ranges, and the rows of each of its blocks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from memwall.bound import REGIMES
from memwall.errors import NotAvailable, UsageError
from memwall.sweeps.grid import Block, Grid
from memwall.sweeps.ops import LIMITS
from memwall.sweeps.points import Array, Values, evaluate
from memwall.sweeps.ranges import parse_axis
from memwall.sweeps.rows import Coded, Column, Rows, Word, joined
from memwall.sweeps.where import Condition

Words: TypeAlias = Mapping[str, str | None]
Answer: TypeAlias = Callable[[Values], Mapping[str, Any]]

_REGIMES = tuple(dict.fromkeys(REGIMES.values()))
_REGIME_OF = np.array([_REGIMES.index(regime) for regime in REGIMES.values()])


ESTIMATED_POINTS = 4096
"""Points a block with estimates: each compares dozens of tile plans."""


class LeftOut:
    """Points without an answer, counted by reason; reasons that differ in their numbers alone are one."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.examples: dict[str, str] = {}
        self.error: UsageError | NotAvailable | None = None
        """The first."""

    def add(self, error: UsageError | NotAvailable, points: int) -> None:
        """So many more points have no answer."""
        self.error = self.error or error
        kind = _NUMBER.sub("0", error.message)
        self.examples.setdefault(kind, error.message)
        self.counts[kind] = self.counts.get(kind, 0) + points

    def merge(self, counts: Mapping[str, int], examples: Mapping[str, str]) -> None:
        """Those of another part of the sweep."""
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
        return [f"{self.counts[kind]:,} points left out: {self.examples[kind]}" for kind in ordered]


_NUMBER = re.compile(r"\d+")


class Spec(NamedTuple):
    """A sweep as it was asked for, in plain texts, so that it travels to other machines."""

    what: str
    """An operator's name, `step` or `capacity`."""
    words: Mapping[str, tuple[str | None, ...]]
    """GPUs, formats and models: every combination is asked."""
    ranges: Mapping[str, str]
    """The dimensions as typed, the last one changing fastest."""
    settings: Mapping[str, Any]
    """What is the same at all points: causal, impl, what-ifs."""
    where: str | None = None
    block_points: int | None = None
    """Points a block at most, so that blocks are the same everywhere; None: as this machine has it."""


class Sweep:
    """A sweep, ready to be run block by block."""

    def __init__(self, spec: Spec, answers: Callable[[Words], Answer], results: tuple[str, ...]) -> None:
        self._answers = answers
        axes = (parse_axis(text, name, "--" + name.replace("_", "-")) for name, text in spec.ranges.items())
        most = spec.block_points or (ESTIMATED_POINTS if spec.settings.get("estimate") else None)
        self.grid = Grid(spec.words, tuple(axes), most)
        self.spec = spec._replace(block_points=self.grid.block_points)
        self.results = results
        self._words: Words | None = None
        self._answer: Answer | NotAvailable | None = None

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """A row's columns in their order."""
        words = [name for name, some in self.grid.words.items() if any(some)]
        dims = [axis.name for axis in self.grid.axes]
        results = [
            name
            for result in self.results
            for name in (("regime", result) if result == "limited_by" else (result,))
        ]
        return (*words[:1], "op", *dims, *words[1:], *results)

    @cached_property
    def condition(self) -> Condition | None:
        """What rows have to meet."""
        return Condition(self.spec.where, self.columns) if self.spec.where else None

    def rows(self, number: int, left_out: LeftOut | None = None) -> Rows | None:
        """The rows of a block for which the condition holds; None if none has an answer.

        Args:
            number: the block's.
            left_out: counts the points without an answer, by reason.
        """
        block = self.grid.block(number)
        answer = self._answer_for(block.words)
        reasons = LeftOut() if left_out is None else left_out
        if isinstance(answer, NotAvailable):
            reasons.add(answer, block.points)
            return None
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            rows = self._answered(block, answer, reasons)
        if rows is None or self.condition is None:
            return rows
        return rows.taken(self.condition.places(rows))

    def _answer_for(self, words: Words) -> Answer | NotAvailable:
        if self._words != words or self._answer is None:
            self._words = dict(words)
            try:
                self._answer = self._answers(words)
            except NotAvailable as error:
                self._answer = error
        return self._answer

    def _answered(self, block: Block, answer: Answer, reasons: LeftOut) -> Rows | None:
        parts, places = [], []
        if self.spec.settings.get("estimate"):  # which compares tile plans along an axis of its own
            block = block.flat
        for part in evaluate(block.values, answer, block.shape):
            count = block.points if part.where is None else len(part.where)
            if part.refusal is not None:
                reasons.add(part.refusal, count)
                continue
            parts.append(self._rows(block, part.where, part.columns, count))
            places.append(part.where)
        if not parts:
            return None
        if len(parts) == 1:
            return parts[0]
        order = np.argsort(np.concatenate([place for place in places if place is not None]), kind="stable")
        return joined(parts).taken(order)

    def _rows(self, block: Block, where: Array | None, results: Mapping[str, Any], count: int) -> Rows:
        columns: dict[str, Column] = {name: Word(text) for name, text in block.words.items()}
        columns["op"] = Word(self.spec.what)
        for name, value in block.values.items():
            whole = np.broadcast_to(np.asarray(value), block.shape).ravel()
            columns[name] = (whole if where is None else whole[where]).astype(np.int64)
        shape = block.shape if where is None else (count,)
        for name, value in results.items():
            columns[name] = np.broadcast_to(np.asarray(value), shape).ravel()
        limited_by = columns.get("limited_by")
        if isinstance(limited_by, np.ndarray):
            columns["limited_by"] = Coded(limited_by, LIMITS)
            columns["regime"] = Coded(_REGIME_OF[limited_by], _REGIMES)
        return Rows(count, {name: columns[name] for name in self.columns})


def plan(spec: Spec) -> Sweep:
    """The sweep that a spec asks for.

    Raises:
        UsageError: an unknown name, an empty range.
    """
    if not spec.ranges:
        raise UsageError("a sweep needs a range", "For example: --m 1:8192:log2 --n 4096 --k 4096")
    if spec.what == "capacity":
        from memwall.sweeps import capacities

        spec = spec._replace(block_points=spec.block_points or capacities.BLOCK_POINTS)
        return Sweep(spec, capacities.answers(spec.settings), capacities.RESULTS)
    if spec.what == "step":
        from memwall.sweeps.passes import RESULTS as OF_PASSES
        from memwall.sweeps.passes import answers as of_passes

        return Sweep(spec, of_passes(spec.settings), OF_PASSES)
    from memwall.sweeps.ops import RESULTS as OF_OPS
    from memwall.sweeps.ops import answers as of_ops

    more = ("estimate_time_s",) if spec.settings.get("estimate") else ()
    return Sweep(spec, of_ops(spec.what, spec.settings), (*OF_OPS, *more))
