"""What fits, at many points: each asked by itself, since paging counts whole blocks and sequences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from memwall import hardware
from memwall.errors import UsageError
from memwall.models.load import load as load_model
from memwall.reports.capacity import CapacityReport, capacity
from memwall.sweeps.points import Array, Mixed, Values

RESULTS = (
    "usable_bytes",
    "weight_bytes",
    "reserve_bytes",
    "kv_budget_bytes",
    "kv_bytes_per_token",
    "kv_bytes_per_sequence",
    "max_tokens",
    "max_sequences",
    "longest_context",
    "shortfall_bytes",
    "fits",
)
"""Columns, under the names that `memwall capacity --json` gives them."""
BLOCK_POINTS = 256
"""Points a block: about as many are answered in a second."""


def answers(settings: Mapping[str, Any]) -> Callable[[Mapping[str, str | None]], Any]:
    """What answers for a model on a GPU in given formats.

    Args:
        settings: changes to the device.
    """

    def of(words: Mapping[str, str | None]) -> Callable[[Values], Mapping[str, Any]]:
        device = hardware.load(str(words["gpu"]), settings.get("changes"))
        model = load_model(str(words["model"]))
        formats: dict[str, Any] = {name: words.get(name) for name in ("dtype", "weight_dtype", "kv_dtype")}

        def answer(values: Values) -> Mapping[str, Any]:
            return _answer(values, lambda point: capacity(model, gpu=device, **formats, **point))

        return answer

    return of


def _answer(values: Values, ask: Callable[[dict[str, Any]], CapacityReport]) -> Mapping[str, Any]:
    """The columns of all points; those that are refused divide them."""
    arrays = np.broadcast_arrays(*(np.asarray(value) for value in values.values()))
    points = list(zip(*(array.ravel().astype(np.int64).tolist() for array in arrays), strict=True))
    reports: list[CapacityReport] = []
    refused: list[UsageError | None] = []
    for point in points:
        try:
            reports.append(ask(dict(zip(values, point, strict=True))))
            refused.append(None)
        except UsageError as error:
            refused.append(error)
    first = next(filter(None, refused), None)
    if first is not None:
        if not reports:
            raise first
        raise Mixed(np.array([error is None for error in refused]).reshape(arrays[0].shape))
    columns = {name: [_value(report, name) for report in reports] for name in RESULTS}
    return {name: _column(column).reshape(arrays[0].shape) for name, column in columns.items()}


def _value(report: CapacityReport, name: str) -> Any:
    if name == "kv_budget_bytes":
        return report.budget.left_bytes
    owner = report.budget if name in ("weight_bytes", "reserve_bytes") else report
    return getattr(owner, name)


def _column(values: list[Any]) -> Array:
    """Booleans as they are; numbers in float64, NaN where there is no limit."""
    if all(isinstance(value, bool) for value in values):
        return np.array(values)
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
