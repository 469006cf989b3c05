"""A sweep's rows to a file, a pipe or a device, and what to type when it does not come to its end."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from memwall.cli.output import FULL, check_no_folder, elsewhere, stands
from memwall.cli.progress import Progress
from memwall.errors import NotAvailable, UsageError, shown

if TYPE_CHECKING:
    from memwall.sweeps.left_out import LeftOut
    from memwall.sweeps.planned import Planned


def to_file(sweep: Planned, blocks: range, form: str, path: str, options: Mapping[str, Any]) -> LeftOut:
    """Rows to a file under their own progress.

    Raises:
        UsageError: it cannot be written, or another run is writing it.
        NotAvailable: Parquet of a share without points, or without pyarrow.
    """
    from memwall.sweeps.files import arrow
    from memwall.sweeps.size import points_of
    from memwall.sweeps.stream import File, Stopped, straight

    if form == "parquet":
        arrow()
        if not blocks:
            raise NotAvailable(
                "this share has no points, and Parquet needs a row to know its columns",
                "Cut into fewer shares, or write .csv",
            )
    check_no_folder(path, f"out.{form}")
    as_it_stands = stands(path)
    if as_it_stands:
        _check_pipe(path, form, options["resume"])
    file = File(sweep, blocks, path, form)
    progress = Progress(points_of(sweep, blocks))
    try:
        if as_it_stands:
            done = straight(sweep, blocks, path, form, progress)
        else:
            done = file.run(progress, options["resume"])
    except Stopped as stopped:
        progress.close()
        click.echo(f"stopped after {stopped.points:,} points: {stopped.path} can be read", err=True)
        click.echo(f"go on with: {_again(options)}", err=True)
        raise
    except OSError as error:
        progress.close()
        hint = f"What is written is kept. Make room, and go on with: {_again(options)}"
        hint = hint if file.resumable else _instead(error, form, path)
        raise UsageError(f"-o {shown(path, 120)}: cannot be written: {error.strerror}", hint) from None
    progress.close()
    if done.already:
        click.echo(f"already complete: {done.rows:,} rows in {path}", err=True)
        return done.left_out
    progress.say(f"{done.rows:,} rows of {done.points:,} points: {path}")
    return done.left_out


def _check_pipe(path: str, form: str, resume: bool) -> None:
    """A pipe or a device takes lines, from the first on."""
    if form == "parquet":
        raise UsageError(f"Parquet goes to a file, and -o {shown(path, 120)} is none", "Try --format csv")
    if resume:
        raise UsageError(
            f"--resume goes on with a file of rows, and -o {shown(path, 120)} is none", "Leave out --resume"
        )


def _instead(error: OSError, form: str, path: str) -> str:
    """What to do about a file that could not be written."""
    if error.errno in FULL and form == "parquet":
        return "Make room and begin anew; .csv and .jsonl keep what is written, Parquet has its footer last"
    return elsewhere(path, error)


def _again(options: Mapping[str, Any]) -> str:
    """The same line, to go on."""
    line = " ".join(shlex.quote(arg) for arg in ["memwall", *sys.argv[1:]])
    return line if options["resume"] else f"{line} --resume"
