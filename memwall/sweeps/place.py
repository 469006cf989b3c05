"""Where a run stands, kept in a file beside its rows, so that another can go on from there."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import NamedTuple

from memwall.errors import FileError, UsageError, shown
from memwall.sweeps.files import parquet_rows


class Place(NamedTuple):
    """Where a run stands."""

    sweep: str
    """What is swept, by which version."""
    block: int
    """The next one."""
    points: int
    rows: int
    end_bytes: int
    """Where the rows so far end in a file of lines; what is beyond may be torn."""


class Note:
    """The file beside a partial one that says where to go on."""

    def __init__(self, partial: str, form: str) -> None:
        self._partial, self._form = partial, form
        self._path = partial + ".resume"
        self._before = partial + ".before"

    @property
    def there(self) -> bool:
        """Whether an earlier run left a note."""
        return os.path.exists(self._path)

    def keep(self, place: Place) -> None:
        """Note a place, in one step."""
        written = self._path + ".new"
        with open(written, "w", encoding="utf-8") as file:
            json.dump(place._asdict(), file)
        os.replace(written, self._path)

    def forget(self) -> None:
        """There is nothing to go on from any more."""
        for path in (self._path, self._path + ".new", self._before):
            with suppress(FileNotFoundError):
                os.unlink(path)

    def read(self, sweep: str) -> Place:
        """Where an earlier run of the same sweep stood.

        Raises:
            FileError: there was none, or what it left cannot be gone on from.
            UsageError: it was of another sweep.
        """
        try:
            with open(self._path, encoding="utf-8") as file:
                place = Place(**json.load(file))
        except FileNotFoundError:
            raise self._nothing() from None
        except (ValueError, TypeError):
            raise FileError(
                f"{shown(self._path, 120)}:1: not what a sweep leaves", "Leave out --resume"
            ) from None
        if place.sweep != sweep:
            raise UsageError(
                f"{shown(self._partial, 120)} is of another sweep",
                "Resume with the very same options, or leave out --resume to begin anew",
            )
        return place

    def earlier(self, place: Place) -> str | None:
        """The file that an earlier run left, under the name to read it by; None: it had no row.

        A file of lines is gone on with as it is; Parquet ends with its footer, and is copied.

        Raises:
            FileError: it has not what was noted.
        """
        if self._form != "parquet":
            if not os.path.exists(self._partial) or os.path.getsize(self._partial) < place.end_bytes:
                raise self._nothing()
            return self._partial
        if not place.rows:
            return None
        for path in (self._before, self._partial):  # the first if a run was killed that went on
            if parquet_rows(path) == place.rows:
                os.replace(path, self._before)
                return self._before
        raise self._nothing()

    def _nothing(self) -> FileError:
        if self._form == "parquet" and os.path.exists(self._partial):
            return FileError(
                f"{shown(self._partial, 120)} has no footer: Parquet of a run that was killed is lost",
                "Leave out --resume; .csv and .jsonl survive that, and --dask local -o FOLDER/ by parts",
            )
        stem, suffix = os.path.splitext(self._partial)
        whole = stem.removesuffix(".partial") + suffix
        if os.path.exists(whole):
            return FileError(
                f"{shown(whole, 120)} is there, of other options or with rows left out: nothing to resume",
                "Name another file, or leave out --resume to write it anew",
            )
        return FileError(
            f"{shown(self._path, 120)}: there is nothing to resume",
            "Leave out --resume, which writes the file anew",
        )
