"""Where a run into a file stands, kept beside its rows; and that one run alone writes them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from memwall.errors import FileError, UsageError, shown


class Place(NamedTuple):
    """What is done."""

    sweep: str
    """Which sweep it is, in full."""
    block: int
    """The next one."""
    points: int
    rows: int
    end_bytes: int
    """Of the file as far as it holds whole blocks."""


class Note:
    """The file that says where to go on: out.partial.csv.resume."""

    def __init__(self, partial: str) -> None:
        self.path = partial + ".resume"

    def write(self, place: Place) -> None:
        """In one step, so that a crash leaves the one before."""
        fresh = self.path + ".new"
        with open(fresh, "w", encoding="utf-8") as file:
            json.dump(place._asdict(), file)
        os.replace(fresh, self.path)

    def read(self, whole: str) -> Place:
        """Where an earlier run stopped.

        Args:
            whole: the file that a run leaves when it is done.

        Raises:
            FileError: no run has, or it is damaged.
        """
        try:
            with open(self.path, encoding="utf-8") as file:
                return Place(**json.load(file))
        except FileNotFoundError:
            raise self._nothing(whole) from None
        except (ValueError, TypeError):
            raise FileError(
                f"{shown(self.path, 120)}:1: not what a sweep leaves", "Leave out --resume"
            ) from None

    def _nothing(self, whole: str) -> FileError:
        partial = self.path.removesuffix(".resume")
        if os.path.exists(partial):
            return FileError(
                f"{shown(partial, 120)}: its run was killed before it had noted where to go on",
                "Leave out --resume to begin anew; of .csv and .jsonl a note is kept every second",
            )
        if os.path.exists(whole):
            return FileError(
                f"{shown(whole, 120)} is whole: there is nothing to resume",
                "Leave out --resume to write it anew",
            )
        return FileError(f"{shown(self.path, 120)}: there is nothing to resume", "Leave out --resume")

    def drop(self) -> None:
        """There is nothing to go on from any more."""
        with suppress(FileNotFoundError):
            os.unlink(self.path)


@contextmanager
def alone(partial: str) -> Iterator[None]:
    """Keep other runs off a file while this one writes it; where the system has no such locks, nothing.

    Raises:
        UsageError: another run writes it.
        OSError: the folder cannot be written.
    """
    try:
        import fcntl
    except ImportError:  # pragma: no cover - Windows
        yield
        return
    path = partial + ".lock"
    with open(path, "a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _busy(partial) from None
        if not os.path.exists(path):  # the other run had just ended, and a third one may have begun
            raise _busy(partial)
        try:
            yield
        finally:
            with suppress(OSError):
                os.unlink(path)


def _busy(partial: str) -> UsageError:
    return UsageError(
        f"{shown(partial, 120)}: another sweep is writing it", "Wait for it, or name another file"
    )
