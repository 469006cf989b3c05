"""Rows of a table that are collectives: op, bytes, gpus; or message_bytes, num_gpus, as data sets write."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from memwall import nodes
from memwall.collectives import OPS, collective
from memwall.errors import MemwallError, NotAvailable, UsageError
from memwall.estimate.choice import PHYSICS
from memwall.estimate.predict import Prediction
from memwall.hardware import load
from memwall.units import parse_count

Cells = Mapping[str, str]
NAMES = (*OPS, "alltoall", "allreduce", "allgather")
ERROR_P50, ERROR_P90 = 0.092, 0.3
"""Of the 1400 measured collectives of configs/measurements."""


def is_collective(cells: Cells) -> bool:
    """Whether a row is a collective."""
    return _op(cells) in NAMES


class CollectiveRows:
    """Predictions of such rows, on one node each; every GPU is read once."""

    def __init__(self, gpu: str | None) -> None:
        self.gpu = gpu or ""
        self._group = cache(lambda name, gpus: nodes.group(self._device(name), gpus))
        self._device = cache(load)

    def predict(self, cells: Cells) -> Prediction | MemwallError:
        """The prediction of a row, or why there is none."""
        try:
            return self._predict(cells)
        except MemwallError as error:
            return error

    def _predict(self, cells: Cells) -> Prediction:
        size = parse_count(_cell(cells, "bytes", "message_bytes"), "bytes")
        what = collective(_op(cells), size, parse_count(_cell(cells, "gpus", "num_gpus"), "gpus"))
        group = self._group(cells.get("gpu") or self.gpu, what.gpus)
        bound_s, known_s = group.bound_s(what), group.estimate_s(what)
        if known_s is None:
            raise NotAvailable(f"nothing measured is known of {group.link.title}", "Ask memwall collective")
        wire = what.wire_bytes(group.link.switched)
        return Prediction(0, wire, wire, "link-bound", bound_s, known_s, PHYSICS, ERROR_P50, ERROR_P90)


def _op(cells: Cells) -> str:
    return (cells.get("op") or cells.get("collective") or "").strip().lower().replace("-", "_")


def _cell(cells: Cells, *names: str) -> str:
    text = next((cells[name] for name in names if cells.get(name)), "")
    if not text:
        raise UsageError(f"a collective needs {names[0]}", f"Add a column {names[0]}")
    return text.strip().removesuffix(".0")
