"""A sweep of any command's report, asked point by point: the columns are the scalars of its JSON.

Which columns there are is found from a few points before the first row is written, and kept in the spec, so
that every shard, worker and resumed run has the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from memwall import hardware
from memwall.errors import NotAvailable, UsageError
from memwall.hardware import Device
from memwall.models.load import load as load_model
from memwall.sweeps.grid import Grid
from memwall.sweeps.kinds import KINDS, records_of, report_of
from memwall.sweeps.left_out import LeftOut
from memwall.sweeps.planned import Planned, Spec
from memwall.sweeps.ranges import parse_axis
from memwall.sweeps.rows import YES_OR_NO, Coded, Column, Rows
from memwall.sweeps.words import changes_of, is_change

BLOCK_POINTS = 8
"""Points a block: few, since one may take a second."""
SAMPLED, SEARCHED = 4, 256
"""Blocks whose ends say which columns there are, and how many are tried until one has an answer."""
COUNT, NUMBER, TEXT, ANSWER = "count", "number", "text", "yes or no"
_UNITS = ("_s", "_bytes", "_flops", "_ops", "_per_token", "_per_request", "_per_year", "_per_gpu_hour")
"""Endings of a number's name, for one that no point of the sample has."""

Point = Mapping[str, Any]
Record = dict[str, Any]


class Reports(Planned):
    """A sweep of one command's report."""

    def __init__(self, spec: Spec) -> None:
        self._kind = KINDS[spec.what]
        self._report = report_of(self._kind)
        axes = (parse_axis(text, name, "--" + name.replace("_", "-")) for name, text in spec.ranges.items())
        self.grid = Grid(spec.words, tuple(axes), spec.block_points or BLOCK_POINTS)
        self.spec = spec._replace(block_points=self.grid.block_points)
        self._model = lru_cache(maxsize=8)(load_model)
        columns = tuple((name, held) for name, held in spec.columns) or self._found()
        self.spec = self.spec._replace(columns=columns)
        self._held = dict(columns)

    @property
    def columns(self) -> tuple[str, ...]:
        """A row's columns in their order."""
        return tuple(self._held)

    @property
    def shown(self) -> tuple[str, ...]:
        """Results that a page shows."""
        return tuple(name for name in self._kind.shown if name in self._held and name not in self.asked)

    @property
    def texts(self) -> Mapping[str, tuple[str, ...]]:
        """Columns of texts and which they hold; nobody knows before what answers hold."""
        asked = super().texts
        return {name: asked.get(name, ()) for name, held in self._held.items() if held == TEXT}

    def block(self, number: int, left_out: LeftOut) -> Rows | None:
        """All rows of a block; None if none has an answer."""
        records: list[Record] = []
        for point in self._points(number):
            try:
                records += self._asked(point)
            except (UsageError, NotAvailable) as error:
                left_out.add(error, 1)
        for record in records:
            left_out.columns |= {name for name in record.keys() - self._held if record[name] is not None}
        columns = {name: _column([r.get(name) for r in records], held) for name, held in self._held.items()}
        return Rows(len(records), columns) if records else None

    def _points(self, number: int) -> Iterator[Point]:
        """The points of a block, one by one."""
        block = self.grid.block(number)
        columns = {name: np.broadcast_to(value, block.shape).ravel() for name, value in block.values.items()}
        for place in range(block.points):
            yield {**block.words, **{name: int(column[place]) for name, column in columns.items()}}

    def _asked(self, point: Point) -> list[Record]:
        """The rows of one point: what was asked, and the scalars of the answer.

        Raises:
            UsageError, NotAvailable: as the command says.
        """
        given = {**self.spec.settings, **{name: value for name, value in point.items() if value is not None}}
        changes = tuple(changes_of(point, self.spec.settings).items())
        arguments = {
            name: value
            for name, value in given.items()
            if not is_change(name) and name not in ("changes", "gpu", "model")
        }
        if given.get("gpu"):
            arguments["gpu"] = _device(given["gpu"], changes)
        if given.get("model"):
            arguments["model"] = self._model(given["model"])
        records = records_of(self._kind, self._report(**arguments))
        asked = {name: _shown(value) for name, value in point.items() if value is not None}
        return [_row(scalars(record), asked) for record in records]

    def _found(self) -> tuple[tuple[str, str], ...]:
        """The columns, from a sample of points.

        Raises:
            UsageError, NotAvailable: none of the sample has an answer.
        """
        count = self.grid.count
        sample = sorted({i * (count - 1) // (SAMPLED - 1) for i in range(SAMPLED)})
        more = sorted({i * (count - 1) // (SEARCHED - 1) for i in range(SEARCHED)} - {*sample})
        records: list[Record] = []
        first: UsageError | NotAvailable | None = None
        for number in [*sample, *more]:
            if records and number not in sample:
                break
            points = list(self._points(number))
            for point in points if number in more else points[:: max(len(points) - 1, 1)]:
                try:
                    records += self._asked(point)
                except (UsageError, NotAvailable) as error:
                    first = first or error
        if not records and first is not None:
            raise first
        asked = [name for name, some in self.grid.words.items() if any(word is not None for word in some)]
        asked += [axis.name for axis in self.grid.axes]
        names = dict.fromkeys([*asked, *(name for record in _longest(records) for name in record)])
        counts = dict.fromkeys((axis.name for axis in self.grid.axes), COUNT)
        return tuple(
            (name, counts.get(name) or _holds(name, [record.get(name) for record in records]))
            for name in names
        )


@lru_cache(maxsize=64)
def _device(name: str, changes: tuple[tuple[str, str], ...]) -> Device:
    return hardware.load(name, dict(changes))


def scalars(record: Mapping[str, Any], prefix: str = "") -> Record:
    """The numbers, texts and answers of a record, nested keys joined with a dot; lists are left to JSON.

    >>> scalars({"schema": 1, "shape": {"m": 8}, "notes": ["x"], "fits": True})
    {'shape.m': 8, 'fits': True}
    """
    found: Record = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            found |= scalars(value, f"{prefix}{name}.")
        elif not isinstance(value, list | tuple) and name != "schema":
            found[prefix + name] = value
    return found


def _row(answer: Record, asked: Record) -> Record:
    """The answer, and what was asked; as a number where the answer has it as one: of --zero 1,2."""
    numbers = {name for name, value in asked.items() if isinstance(value, str)}
    return answer | {
        name: answer[name] if name in numbers and isinstance(answer.get(name), int | float) else value
        for name, value in asked.items()
    }


def _shown(value: Any) -> Any:
    """What was asked as a cell: 128x128x64."""
    return "x".join(map(str, value)) if isinstance(value, tuple) else value


def _longest(records: Sequence[Record]) -> list[Record]:
    """The record with most keys first: its order is every row's."""
    return sorted(records, key=len, reverse=True)


def _holds(name: str, values: Sequence[Any]) -> str:
    """What a column holds."""
    known = [value for value in values if value is not None]
    if not known:
        return NUMBER if name.endswith(_UNITS) else TEXT
    if all(isinstance(value, bool) for value in known):
        return ANSWER
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in known)
    return NUMBER if numbers else TEXT


def _column(values: Sequence[Any], held: str) -> Column:
    """Values as a column of their kind."""
    if held == ANSWER:
        codes = [YES_OR_NO.index(value) if isinstance(value, bool) else 0 for value in values]
        return Coded(np.array(codes, np.int8), YES_OR_NO)
    if held == COUNT:
        return np.array(values, np.int64)
    if held == NUMBER:
        return np.array([v if isinstance(v, int | float) else np.nan for v in values], np.float64)
    cells = [None if value is None else str(value) for value in values]
    places = {text: place for place, text in enumerate(dict.fromkeys(cells))}
    return Coded(np.array([places[cell] for cell in cells]), tuple(places))
