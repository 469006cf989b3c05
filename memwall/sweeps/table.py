"""A sweep from Python: its rows in memory, as columns that pandas and polars take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from memwall import hardware
from memwall.dtypes import find as find_dtype
from memwall.ops import registry
from memwall.reports import notebook
from memwall.reports.case import DEFAULT_DTYPE, DEFAULT_GPU
from memwall.sweeps.best import Best
from memwall.sweeps.plan import LeftOut, Spec, plan
from memwall.sweeps.points import Array
from memwall.sweeps.rows import Coded, Rows, Word, joined

WORDS = ("gpu", "dtype", "weight_dtype", "kv_dtype", "out_dtype", "model")
SETTINGS = ("causal", "impl", "phase", "eager", "changes", "estimate")


class Table(NamedTuple):
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

    def to_dict(self) -> dict[str, Any]:
        """The rows, and how many points have none."""
        return notebook.to_dict(self)

    def _repr_html_(self) -> str:
        return notebook.repr_html(self)

    def best(self, column: str, count: int = 1) -> list[dict[str, Any]]:
        """The best rows: largest rates, smallest times and bytes.

        Raises:
            UsageError: there is no such number.
        """
        found = Best(column, count)
        found.add(self.rows)
        return found.rows.records() if found.rows else []


def sweep(what: str, *, where: str | None = None, **given: Any) -> Table:
    """Every combination of ranges and names, as `memwall sweep` has them.

    Args:
        what: an operator's name, or `step` or `capacity` with a `model`.
        where: a condition on the rows: 'regime == "compute-bound"'.
        given: dimensions as an int, a list or a range such as "1:8192:log2"; gpu, dtype and other formats as
            a name or several (a list, or "h100,h200"); settings such as causal.

    Raises:
        UsageError: as the command says.
        NotAvailable: there is no answer at any point.

    >>> table = sweep("gemm", m="64:512:log2", n=4096, k=4096, gpu="h100")
    >>> table.columns["regime"].tolist()
    ['memory-bound', 'memory-bound', 'memory-bound', 'compute-bound']
    """
    of_model = what in ("step", "capacity")
    op = what if of_model else registry.find(what).name
    words: dict[str, tuple[str | None, ...]] = {"gpu": (DEFAULT_GPU,)}
    if not of_model:
        words["dtype"] = (DEFAULT_DTYPE,)
    ranges: dict[str, str] = {}
    settings: dict[str, Any] = {}
    for name, value in given.items():
        if name in WORDS:
            words[name] = tuple(_named(name, each) for each in _several(value))
        elif name in SETTINGS:
            settings[name] = value
        else:
            ranges[name] = ",".join(map(str, _several(value)))
    planned = plan(Spec(op, words, ranges, settings, where))
    left_out = LeftOut()
    found = [planned.rows(number, left_out) for number in range(planned.grid.count)]
    if left_out.error and left_out.points == planned.grid.points:
        raise left_out.error
    parts = [rows for rows in found if rows is not None]
    return Table(joined(parts), left_out)


def _several(value: Any) -> Sequence[Any]:
    if isinstance(value, str):
        return [each.strip() for each in value.split(",")]
    return list(value) if isinstance(value, Iterator | Sequence | np.ndarray | range) else [value]


def _named(name: str, value: str) -> str:
    """The canonical name, so that a misspelt one is refused before anything is computed."""
    if name == "gpu":
        device = hardware.load(value)
        return value if device.own else device.name
    return value if name == "model" else find_dtype(value).name


def _array(column: Word | Coded | Array, length: int) -> Array:
    if isinstance(column, Word):
        return np.full(length, column.text or "")
    return np.array(column.texts)[column.codes] if isinstance(column, Coded) else column
