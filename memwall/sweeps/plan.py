"""A sweep: what is asked, over which words and ranges, and the rows of each of its blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from memwall.bound import REGIMES
from memwall.errors import NotAvailable, UsageError
from memwall.sweeps.grid import Block, Grid
from memwall.sweeps.headings import OF_OPERATORS, SHOWN
from memwall.sweeps.left_out import LeftOut
from memwall.sweeps.ops import LIMITS
from memwall.sweeps.planned import Planned, Spec
from memwall.sweeps.points import Array, Values, evaluate
from memwall.sweeps.ranges import parse_axis
from memwall.sweeps.reports import Reports
from memwall.sweeps.rows import Coded, Column, Rows, Word, joined, same, yes_or_no
from memwall.sweeps.words import Words

Answer: TypeAlias = Callable[[Values], Mapping[str, Any]]

_REGIMES = tuple(dict.fromkeys(REGIMES.values()))
_REGIME_OF = np.array([_REGIMES.index(regime) for regime in REGIMES.values()])


ESTIMATED_POINTS = 4096
"""Points a block with estimates: each compares dozens of tile plans."""
ESTIMATES = ("estimate_time_s", "estimate")
"""The expected time, by its name and its heading."""


class Sweep(Planned):
    """A sweep of formulas on arrays."""

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
        words = [name for name, some in self.grid.words.items() if any(word is not None for word in some)]
        dims = [axis.name for axis in self.grid.axes]
        results = [
            name
            for result in self.results
            for name in (("regime", result) if result == "limited_by" else (result,))
        ]
        return (*words[:1], "op", *dims, *words[1:], *results)

    @property
    def shown(self) -> tuple[str, ...]:
        """Results that a page shows: of passes tokens instead of FLOPs."""
        hidden = OF_OPERATORS if "tokens_per_s" in self.columns else ()
        return tuple(name for name in SHOWN if name in self.columns and name not in hidden)

    @property
    def texts(self) -> Mapping[str, tuple[str, ...]]:
        """Columns of texts and which they hold."""
        return {**super().texts, "op": (self.spec.what,), "regime": _REGIMES, "limited_by": LIMITS}

    @property
    def closed(self) -> tuple[str, ...]:
        """Columns of texts that hold no others, whatever is asked."""
        return ("regime", "limited_by")

    def hint(self, column: str) -> str:
        """What to say of a column that is not there, or only where it is asked for."""
        estimate = column in ESTIMATES and not self.spec.settings.get("estimate")
        return "Add --estimate" if estimate else super().hint(column)

    def block(self, number: int, left_out: LeftOut) -> Rows | None:
        """All rows of a block; None if none has an answer."""
        block = self.grid.block(number)
        answer = self._answer_for(block.words)
        if isinstance(answer, NotAvailable):
            left_out.add(answer, block.points)
            return None
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return self._answered(block, answer, left_out)

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
        columns: dict[str, Column] = {name: same(word, count) for name, word in block.words.items()}
        columns["op"] = Word(self.spec.what)
        for name, value in block.values.items():
            whole = np.broadcast_to(np.asarray(value), block.shape).ravel()
            columns[name] = (whole if where is None else whole[where]).astype(np.int64)
        shape = block.shape if where is None else (count,)
        for name, value in results.items():
            kind = np.int8 if name == "limited_by" else np.float64  # ints beyond 2^63 too
            columns[name] = np.broadcast_to(np.asarray(value, kind), shape).ravel()
        limited_by, fits = columns.get("limited_by"), columns.get("fits")
        if isinstance(limited_by, np.ndarray):
            columns["limited_by"] = Coded(limited_by, LIMITS)
            columns["regime"] = Coded(_REGIME_OF[limited_by], _REGIMES)
        if isinstance(fits, np.ndarray):
            columns["fits"] = yes_or_no(fits)
        return Rows(count, {name: columns[name] for name in self.columns})


def plan(spec: Spec) -> Planned:
    """The sweep that a spec asks for.

    Raises:
        UsageError: an unknown name, an empty range.
    """
    if spec.report:
        return Reports(spec)
    if not spec.ranges:
        raise UsageError("a sweep needs a range", "For example: --m 1:8192:log2 --n 4096 --k 4096")
    more = ("estimate_time_s",) if spec.settings.get("estimate") else ()
    if spec.what == "step":
        from memwall.sweeps.passes import RESULTS as OF_PASSES
        from memwall.sweeps.passes import answers as of_passes

        return Sweep(spec, of_passes(spec.settings), (*OF_PASSES, *more))
    from memwall.sweeps.ops import RESULTS as OF_OPS
    from memwall.sweeps.ops import answers as of_ops

    return Sweep(spec, of_ops(spec.what, spec.settings), (*OF_OPS, *more))
