"""Measured rows: those that the project ships, and folders and files of a user's own.

A measured table is one that `memwall predict` reads, with a column of times: time_us or latency_us. Rows
marked `suspect` are left out. A table without a column `gpu` is of the GPU that its folder or file is named
after.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from memwall.errors import FileError, MemwallError, shown
from memwall.estimate.datafiles import shipped_tables
from memwall.estimate.rows import Row, try_row
from memwall.estimate.samples import Measured
from memwall.estimate.tables import read as read_table
from memwall.hardware import load as load_device
from memwall.units import to_si

FOLDER = "configs/measurements"
TIMES = ("time_us", "latency_us")


class Reading(NamedTuple):
    """What came of reading measured tables."""

    measured: list[Measured]
    left_out: Mapping[str, int]
    """Why rows were left out, and how many."""


def read_shipped() -> Reading:
    """The rows that memwall ships."""
    return _reading(shipped_tables(FOLDER))


def read(path: str, gpu: str | None = None) -> Reading:
    """The measured rows of a file, or of every table in a folder and below.

    Raises:
        FileError: nothing there can be read.
    """
    paths = [path] if os.path.isfile(path) else sorted(_tables(path))
    if not paths:
        raise FileError(
            f"{shown(path, 120)}: no measured table (.csv) there", "Name a file or a folder of them"
        )
    return _reading(((each, _text(each)) for each in paths), gpu)


def parse(name: str, text: str, gpu: str | None = None) -> Reading:
    """The measured rows of one table's text, whose name tells the GPU where nothing else does."""
    return _reading([(name, text)], gpu)


def _tables(folder: str) -> Iterator[str]:
    for root, _, names in os.walk(folder):
        yield from (os.path.join(root, name) for name in names if name.endswith(".csv"))


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{shown(path, 120)}: cannot be read: {error}", "Is it a CSV file?") from None


def _reading(tables: Iterable[tuple[str, str]], gpu: str | None = None) -> Reading:
    measured: list[Measured] = []
    left_out: dict[str, int] = {}
    for name, text in tables:
        named = shown(name, 120)
        if not any(column in text.partition("\n")[0].lower() for column in TIMES):
            continue  # another kind of table: whole steps, collectives
        columns, lines = read_table(text, named)
        time = next((column for column in TIMES if column in columns), None)
        if time is None or not {"op", "phase", "m"} & set(columns):
            continue
        default = gpu or (None if "gpu" in columns else _named_by(name))
        for number, cells, fault in lines:
            if fault:
                left_out[str(fault)] = 1
                continue
            if cells.get("suspect") in ("True", "1"):
                continue
            row = try_row(cells, default)
            if isinstance(row, Row):
                measured.append(Measured(row, _time_s(cells[time], f"{named}:{number}")))
            else:
                left_out[str(row)] = left_out.get(str(row), 0) + 1
    return Reading(measured, left_out)


def _time_s(cell: str | None, where: str) -> float:
    """A measured time [s]: above zero, or nothing can be fitted to it."""
    try:
        given = float(cell or "nan")
    except ValueError:
        given = math.nan
    if not 0 < given < math.inf:
        raise FileError(
            f"{where}: a time of '{shown(cell or '')}' us cannot be",
            "Mend the row, or mark it: a column suspect, 1",
        )
    return to_si("time_us", given)


def _named_by(path: str) -> str | None:
    """The GPU that a table's file or folder is called after."""
    stem = os.path.splitext(os.path.basename(path))[0]
    for name in (stem, os.path.basename(os.path.dirname(path))):
        try:
            return load_device(name).name if name else None
        except MemwallError:
            continue
    return None
