"""Records: what a run left behind, one JSON document with a trial a line; whole after every trial."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from memwall.catalog import HARDWARE, is_path, shipped_text
from memwall.errors import FileError, UnknownName, UsageError, shown
from memwall.verify.outcome import Outcome, outcome_of
from memwall.verify.sound import problems

SCHEMA = 1


class Record(NamedTuple):
    """A run: the machine and what came of each trial."""

    gpu: str
    """The device's canonical name."""
    machine: Mapping[str, Any]
    outcomes: Sequence[Outcome]
    notes: Sequence[str] = ()


def text_of(record: Record) -> str:
    """The record as JSON, a trial a line, so that two runs can be compared line by line."""
    head = {"schema": SCHEMA, "gpu": record.gpu, "machine": record.machine, "notes": list(record.notes)}
    opening = json.dumps(head, indent=1, allow_nan=False)[:-2]
    lines = ",\n".join("  " + json.dumps(outcome.record, allow_nan=False) for outcome in record.outcomes)
    return f'{opening},\n "outcomes": [\n{lines}\n ]\n}}\n'


def write(path: str, record: Record) -> None:
    """The record in one step: a reader, or an interrupt, finds the old file or the new one.

    Raises:
        UsageError: it cannot be written there.
    """
    partial = f"{path}.{os.getpid()}.partial"
    try:
        with open(partial, "w", encoding="utf-8") as file:
            file.write(text_of(record))
        os.replace(partial, path)
    except OSError as error:
        raise UsageError(
            f"--record {shown(path, 120)}: cannot be written: {error.strerror}",
            "Name a file in a folder that exists: --record my-gpu.json",
        ) from None


def find(name: str) -> Record:
    """A record from a file, or the one that is shipped for a GPU.

    Raises:
        FileError: missing, unreadable, or no record.
    """
    if is_path(name) or os.path.splitext(name)[1]:
        return read(name)
    try:
        where = f"configs/measurements/{HARDWARE.find(name).name}/verify.json"
        return parse(shipped_text(where), where)
    except (UnknownName, OSError):
        hint = "Name a file, or a GPU that one is shipped for: --replay h200"
        raise FileError(f"no record of '{shown(name)}' is shipped", hint) from None


def read(path: str) -> Record:
    """A record from its file.

    Raises:
        FileError: missing, unreadable, or no record.
    """
    try:
        with open(path, encoding="utf-8-sig") as file:
            return parse(file.read(), path)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise FileError(f"{shown(path, 120)}: {reason}", "Write one: memwall verify --record FILE") from None


def parse(text: str, where: str) -> Record:
    """A record from its text; `where` names it in errors.

    Raises:
        FileError: it is no record.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        raise FileError(
            f"{shown(where, 120)}:{line}: not JSON", "Write one: memwall verify --record FILE"
        ) from None
    try:
        outcomes = [outcome_of(each) for each in data["outcomes"]]
        record = Record(str(data["gpu"]), dict(data["machine"]), outcomes, list(data.get("notes") or ()))
        fault = next(_faults(data["schema"], record), None)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        problem = f"no '{error.args[0]}'" if isinstance(error, KeyError) else "its keys are not a record's"
        raise FileError(
            f"{shown(where, 120)}:1: {problem}", "Write one: memwall verify --record FILE"
        ) from None
    if fault:
        raise FileError(
            f"{shown(where, 120)}: {shown(fault, 300)}", "Mend it, or write one: memwall verify --record FILE"
        )
    return record


def _faults(schema: object, record: Record) -> Iterator[str]:
    """What in a record cannot be so."""
    if schema != SCHEMA:
        yield f"schema {schema!r}, and this memwall reads {SCHEMA}"
    for number, outcome in enumerate(record.outcomes, 1):
        yield from (f"outcome {number}: {problem}" for problem in problems(outcome))
