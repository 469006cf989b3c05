"""A sweep from Python: its rows in memory, as columns that pandas and polars take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from memwall import hardware
from memwall.dtypes import find as find_dtype
from memwall.errors import UsageError, shown
from memwall.ops import registry
from memwall.reports.arguments import text_of
from memwall.reports.case import DEFAULT_DTYPE, DEFAULT_GPU
from memwall.reports.notebook import Report
from memwall.sweeps.best import Best
from memwall.sweeps.kinds import KINDS
from memwall.sweeps.left_out import LeftOut
from memwall.sweeps.plan import plan
from memwall.sweeps.planned import Spec
from memwall.sweeps.points import Array
from memwall.sweeps.ranges import parse_axis, spread
from memwall.sweeps.rows import Coded, Rows, Word, joined
from memwall.sweeps.where import together
from memwall.sweeps.words import OF_PASSES
from memwall.units import parse_count

WORDS = ("gpu", "dtype", "weight_dtype", "kv_dtype", "out_dtype", "model", "impl", "phase", "library")
NAMES = ("gpu", "dtype", "weight_dtype", "kv_dtype", "out_dtype")
LAYOUT = ("tp", "pp", "ep", "dp")
SETTINGS = ("causal", "eager", "merged", "sequence_parallel", "changes", "estimate", "calibration")


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Table(Report):
    """The rows of a sweep."""

    rows: Rows
    left_out: LeftOut

    def __len__(self) -> int:
        return self.rows.length

    @property
    def columns(self) -> dict[str, Array]:
        """Each column as an array: `pandas.DataFrame(table.columns)`, `polars.DataFrame(table.columns)`."""
        return {name: _array(column, self.rows.length) for name, column in self.rows.columns.items()}

    def to_rows(self) -> list[dict[str, Any]]:
        """Each row under its columns' names."""
        return self.rows.records()

    def best(self, column: str, count: int = 1) -> list[dict[str, Any]]:
        """The best rows: largest rates, smallest times and bytes.

        Raises:
            UsageError: there is no such number.
        """
        found = Best(column, count)
        found.add(self.rows)
        return found.rows.records() if found.rows else []


def sweep(what: str, *, where: str | Sequence[str] | None = None, **given: Any) -> Table:
    """Every combination of ranges and names, as `memwall sweep` has them.

    Args:
        what: an operator's name, or a command's with a report: `step`, `capacity`, `serve` ...
        where: a condition on the rows: 'regime == "compute-bound"'; of several all.
        given: the command's flags. Numbers as an int, a list or a range such as "1:8192:log2"; gpu, dtype
            and other names as one or several (a list, or "h100,h200"); settings such as causal, or both:
            [False, True]; `changes` as what-ifs on the GPU, each one value or several.

    Raises:
        UsageError: as the command says.
        NotAvailable: there is no answer at any point.

    >>> table = sweep("gemm", m="64:512:log2", n=4096, k=4096, gpu="h100")
    >>> table.columns["regime"].tolist()
    ['memory-bound', 'memory-bound', 'memory-bound', 'compute-bound']
    """
    _check(what, given)
    planned = plan(_spec(what, _condition(where), given))
    left_out = LeftOut()
    found = [planned.rows(number, left_out) for number in range(planned.grid.count)]
    if left_out.error and left_out.points == planned.grid.points:
        raise left_out.error
    parts = [rows for rows in found if rows is not None]
    return Table(joined(parts), left_out)


def _check(what: object, given: Mapping[str, Any]) -> None:
    """See that there is something to sweep, and a value of each name.

    Raises:
        UsageError: there is not.
    """
    if not isinstance(what, str):
        raise UsageError(
            f"a sweep is of an operator or a command, not of {shown(repr(what))}", "For example: 'gemm'"
        )
    for name, value in given.items():
        if value is None or (isinstance(value, list | tuple) and not value):
            raise UsageError(f"{name} has no value: {shown(repr(value))}", "Leave it out for the default")


def _spec(what: str, where: str | None, given: Mapping[str, Any]) -> Spec:
    report = what in KINDS and (what not in registry.ops() or "model" in given)
    of_ops = what != "step" and not report
    words: dict[str, tuple[Any, ...]] = {}
    if of_ops or not report or KINDS[what].gpu:
        words["gpu"] = (DEFAULT_GPU,)
    if of_ops:
        words["dtype"] = (DEFAULT_DTYPE,)
    ranges: dict[str, str] = {}
    settings: dict[str, Any] = {}
    for name, typed in given.items():
        value: Any = list(typed) if isinstance(typed, Iterator) else typed
        if name == "changes":
            settings[name] = {key: str(each) for key, each in value.items() if len(_several(each)) == 1}
            words |= {key: tuple(_several(each)) for key, each in value.items() if len(_several(each)) > 1}
        elif len(flags := _flags(name, value)) == 1:
            settings[name] = flags[0]
        elif flags:
            words[name] = flags
        elif name in SETTINGS:
            settings[name] = value
        elif name in WORDS or (report and not _counts(value)) or (what == "step" and name not in OF_PASSES):
            each = _written(what if report else "", name, value)
            words[name] = tuple(dict.fromkeys(_named(name, word) for word in each))
        else:
            ranges[name] = ",".join(map(str, _several(value)))
    return Spec(registry.find(what).name if of_ops else what, words, ranges, settings, where, report=report)


def _condition(where: str | Sequence[str] | None) -> str | None:
    return together([] if where is None else [where] if isinstance(where, str) else where)


def _written(what: str, name: str, value: Any) -> Sequence[Any]:
    """The values, ranges of layouts written out."""
    if what in KINDS and name in KINDS[what].whole:
        return [value]
    if not isinstance(value, str):
        return _several(value)
    texts = spread(value, name)
    return [parse_count(text, name) for text in texts] if name in LAYOUT else texts


def _counts(value: Any) -> bool:
    """Whether it is whole numbers, or ranges of them."""
    try:
        parse_axis(",".join(map(str, _several(value))), "", "")
    except UsageError:
        return False
    return True


def _flags(name: str, value: Any) -> tuple[bool, ...]:
    """A flag's answers, each once; none if it is no flag, or one that only adds a column."""
    answers = tuple(dict.fromkeys(_several(value)) if isinstance(value, list | tuple | bool) else ())
    if name == "estimate" or not all(isinstance(each, bool) for each in answers):
        return ()
    if answers and name in (*WORDS, *LAYOUT):
        raise UsageError(f"{name} is no flag: {shown(repr(value))}", f"See memwall sweep --help for --{name}")
    return answers


def _several(value: Any) -> Sequence[Any]:
    if isinstance(value, str):
        return [each.strip() for each in value.split(",")]
    return list(value) if isinstance(value, Sequence | np.ndarray | range) else [value]


def _named(name: str, value: Any) -> Any:
    """The canonical name, so that a misspelt one is refused before anything is computed."""
    if name in NAMES:
        value = text_of(name, value)
    if name == "gpu":
        device = hardware.load(value)
        return value if device.own else device.name
    return find_dtype(value).name if name.endswith("dtype") else value


def _array(column: Word | Coded | Array, length: int) -> Array:
    if isinstance(column, Word):
        return np.full(length, column.text or "")
    if isinstance(column, Coded) and column.answers and column.codes.all():
        return column.where(True)
    return np.array(column.texts)[column.codes] if isinstance(column, Coded) else column
