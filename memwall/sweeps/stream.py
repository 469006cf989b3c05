"""Running a sweep: its blocks one after the other to a file, at flat memory, and on after a stop."""

from __future__ import annotations

import errno
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any, BinaryIO, NamedTuple

import memwall
from memwall.sweeps.complete import complete
from memwall.sweeps.files import Writer, opened, partial_name
from memwall.sweeps.left_out import LeftOut
from memwall.sweeps.lock import alone
from memwall.sweeps.place import Note, Place
from memwall.sweeps.planned import Planned
from memwall.sweeps.rows import Rows
from memwall.sweeps.size import points_of

KEPT_EVERY_S = 2.0
"""How often it is noted where to go on after a crash."""

Seen = Callable[[int], None]
"""Told how many points are done."""


class Stopped(KeyboardInterrupt):
    """The user stopped a run; what is there can be read, and gone on from."""

    def __init__(self, path: str, points: int) -> None:
        super().__init__()
        self.path = path
        self.points = points


class Done(NamedTuple):
    """What a run wrote."""

    points: int
    rows: int
    left_out: LeftOut
    already: bool = False
    """Whether the file was there and whole, and nothing was written."""


def each_block(sweep: Planned, blocks: range, left_out: LeftOut, seen: Seen) -> Iterator[Rows]:
    """The rows of blocks, one after the other; nothing of those where nothing is."""
    points = 0
    for number in blocks:
        rows = sweep.rows(number, left_out)
        points += sweep.grid.block(number).points
        if rows is not None and rows.length:
            yield rows
        seen(points)
    if left_out.error and left_out.points == points:
        raise left_out.error


@contextmanager
def _asked_to_stop() -> Iterator[list[int]]:
    """Ctrl-C, or a batch system's SIGTERM, becomes an entry in a list, so that no block is cut in two."""
    asked: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    signals = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(each, lambda number, _: asked.append(number)) for each in signals]
    try:
        yield asked
    finally:
        for each, handler in zip(signals, before, strict=True):
            signal.signal(each, handler)


def straight(sweep: Planned, blocks: range, path: str, form: str, seen: Seen) -> Done:
    """Write all rows into a pipe or a device.

    Raises:
        OSError: it takes no more.
    """
    left_out, count, points = LeftOut(), 0, 0

    def told(done: int) -> None:
        nonlocal points
        points = done
        seen(done)

    with open(path, "wb", buffering=0) as file:
        writer = opened(file, form, sweep.columns)
        for rows in each_block(sweep, blocks, left_out, told):
            writer.write(rows)
            count += rows.length
    return Done(points, count, left_out)


class File:
    """A sweep's run into one file."""

    def __init__(self, sweep: Planned, blocks: range, path: str, form: str) -> None:
        self._sweep, self._blocks, self._form = sweep, blocks, form
        self.path = os.path.realpath(path)
        self.partial = partial_name(self.path)
        self.resumable = False
        """Whether a failure left what can be gone on from."""
        self._note = Note(self.partial, form)
        name = [memwall.__version__, *sweep.spec, blocks.start, blocks.stop]
        self._place = Place(json.dumps(name, sort_keys=True), blocks.start, 0, 0, 0)

    def run(self, seen: Seen, resume: bool = False) -> Done:
        """Write all rows.

        Args:
            seen: told of progress.
            resume: go on from an earlier run that was stopped.

        Raises:
            Stopped: by the user, the rows so far readable.
            UsageError: another run is writing the same file.
            FileError: there is nothing to go on from, or of another sweep.
            OSError: the file cannot be written, or the disk is full.
        """
        if os.path.exists(self.path) and not os.access(self.path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        with alone(self.partial):
            return self._run(seen, resume)

    def _run(self, seen: Seen, resume: bool) -> Done:
        left_out = LeftOut()
        earlier: str | None = None
        if resume and not self._note.there and complete(self._sweep, self._blocks, self.path, self._form):
            points = points_of(self._sweep, self._blocks)
            return Done(points, points, left_out, already=True)
        if resume:
            self._place = self._note.read(self._place.sweep)
            earlier = self._note.earlier(self._place)
        else:
            self._note.forget()
        try:
            with self._file(earlier) as file, _asked_to_stop() as stop:
                writer = opened(file, self._form, self._sweep.columns, earlier)
                whole = self._write(file, writer, left_out, seen, stop)
                writer.flush()
                if whole or self._place.rows or self._form != "parquet":
                    writer.finish()
        except BaseException:
            self._drop(earlier)
            raise
        if not whole:
            self._note.keep(self._place)
        if earlier and earlier != self.partial:
            os.unlink(earlier)
        if not whole:
            raise Stopped(self.partial, self._place.points)
        os.replace(self.partial, self.path)
        self._note.forget()
        return Done(self._place.points, self._place.rows, left_out)

    def _write(self, file: BinaryIO, writer: Writer, left_out: LeftOut, seen: Seen, stop: list[int]) -> bool:
        """The rows of all blocks; False if the user stopped it before the last."""
        lines, noted, before = self._form != "parquet", monotonic(), self._place
        if lines:
            self._place = before._replace(end_bytes=writer.flush())
            self._note.keep(self._place)
        for number in range(before.block, self._blocks.stop):
            if stop:
                return False
            rows = self._sweep.rows(number, left_out)
            count = rows.length if rows is not None else 0
            if rows is not None and count:
                writer.write(rows)
            place, points = self._place, self._sweep.grid.block(number).points
            self._place = place._replace(
                block=number + 1,
                points=place.points + points,
                rows=place.rows + count,
                end_bytes=writer.flush() if lines else 0,
            )
            seen(self._place.points)
            if lines and monotonic() - noted > KEPT_EVERY_S:
                os.fsync(file.fileno())
                self._note.keep(self._place)
                noted = monotonic()
        if left_out.error and left_out.points == self._place.points - before.points and not before.rows:
            raise left_out.error
        return True

    def _file(self, earlier: str | None) -> Any:
        if self._form == "parquet":
            return open(self.partial, "wb")
        if earlier is None:
            return open(self.partial, "wb", buffering=0)
        file = open(self.partial, "r+b", buffering=0)  # noqa: SIM115 - the caller closes it
        file.truncate(self._place.end_bytes)
        file.seek(self._place.end_bytes)
        return file

    def _drop(self, earlier: str | None) -> None:
        """After a failure: back to the last whole block, for lines, or to the earlier run; else nothing."""
        with suppress(OSError):
            if self._form != "parquet" and (earlier or self._place.rows):
                os.truncate(self.partial, self._place.end_bytes)
                self._note.keep(self._place)
                self.resumable = True
            elif earlier:
                os.replace(earlier, self.partial)
                self.resumable = True
            else:
                self._note.forget()
                os.unlink(self.partial)
