"""Running a sweep as its flags say: to a file, a page, a pipe or a cluster."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from memwall.cli.output import Output, elsewhere, emit, to_stdout
from memwall.cli.progress import Progress
from memwall.cli.sweep_options import LISTED
from memwall.cli.sweep_spec import shard_of
from memwall.errors import UsageError, shown
from memwall.units import KILO, LARGEST_COUNT

if TYPE_CHECKING:
    from memwall.sweeps.left_out import LeftOut
    from memwall.sweeps.planned import Planned, Spec
    from memwall.sweeps.rows import Rows

IN_ONE_DOCUMENT = 100_000
"""Rows that a JSON document has at most."""
LONG_S = 3600.0
"""A sweep that takes longer than this is asked about."""


def run(spec: Spec, options: Mapping[str, Any]) -> int:
    """Run a sweep; the exit code.

    Raises:
        UsageError, NotAvailable: as the swept command says, or there is no room, time or format.
    """
    from memwall.sweeps.left_out import LeftOut
    from memwall.sweeps.plan import plan

    output = options["output"]
    target = Output(options["form"], options["as_json"], output, "auto")
    streamed = None if options["dask"] else _streamed(target)
    _check(options, streamed, target)
    sweep, blocks = shard_of(plan(spec), options["shard"])
    left_out = LeftOut()
    if not options["yes"]:
        _agree(sweep, blocks, options["best"], "parquet" if options["dask"] else streamed, target)
    if options["dask"]:
        _on_cluster(sweep, blocks, options["dask"], output)
        return 0
    if options["best"]:
        _best(sweep, blocks, options, target, left_out)
    elif streamed and target.to_file:
        left_out = _to_file(sweep, blocks, streamed, str(output), options)
    elif streamed:
        _to_stdout(sweep, blocks, streamed, left_out)
    else:
        _to_page(sweep, blocks, target, left_out)
    for line in left_out.lines:
        click.echo(line, err=True)
    return 0


def _streamed(target: Output) -> str | None:
    """The format of rows that need not be in memory together; None for pages and documents."""
    from memwall.sweeps.files import SUFFIXES

    suffix = os.path.splitext(target.output or "")[1].lower()
    form = target.format if target.as_json or target.form else SUFFIXES.get(suffix, target.format)
    if form == "parquet" and not target.to_file:
        raise UsageError("Parquet goes to a file", "Name it: -o out.parquet")
    if target.to_file and form == "text":
        ending = f"'{shown(suffix)}' is no format" if suffix else "which format is it"
        raise UsageError(
            f"-o {shown(target.output, 120)}: {ending}",
            "Endings: .csv, .jsonl, .parquet, and for few rows .json, .md; or say --format csv",
        )
    return form if form in SUFFIXES.values() else None


def _check(options: Mapping[str, Any], streamed: str | None, target: Output) -> None:
    if options["top"] and not options["best"]:
        raise UsageError("--top says how many of the best rows: by which column", "Add --best COLUMN")
    if options["dask"] and options["best"]:
        raise UsageError("--best is of one machine", "Leave out --dask, or ask the parts afterwards")
    if options["resume"] and not (streamed and target.to_file and not options["best"]):
        raise UsageError("--resume goes on with a file of rows", "Name it: -o out.csv")


def _to_file(sweep: Planned, blocks: range, form: str, path: str, options: Mapping[str, Any]) -> LeftOut:
    """Rows to a file under their own progress.

    Raises:
        UsageError: it cannot be written, or takes hours and nobody agreed.
    """
    from memwall.sweeps.files import arrow
    from memwall.sweeps.stream import File, Stopped, points_of

    if form == "parquet":
        arrow()
    if os.path.isdir(path):
        raise UsageError(
            f"-o {shown(path, 120)} is a folder", f"Name a file in it: -o {shown(path, 100)}/out.{form}"
        )
    progress = Progress(points_of(sweep, blocks))
    if os.path.exists(path) and not os.path.isfile(path):
        return _to_pipe(sweep, blocks, form, path, progress)
    file = File(sweep, blocks, path, form)
    try:
        done = file.run(progress, options["resume"])
    except Stopped as stopped:
        progress.close()
        click.echo(f"stopped after {stopped.points:,} points: {stopped.path} can be read", err=True)
        click.echo(f"go on with: {_again(options)}", err=True)
        raise
    except OSError as error:
        progress.close()
        advice = elsewhere(path, error)
        if file.resumable:
            advice = f"Make room, and go on with: {_again(options)}"
        raise UsageError(f"-o {shown(path, 120)}: cannot be written: {error.strerror}", advice) from None
    progress.close()
    progress.say(f"{done.rows:,} rows of {done.points:,} points: {path}")
    return done.left_out


def _again(options: Mapping[str, Any]) -> str:
    """The command that goes on."""
    line = " ".join(shlex.quote(arg) for arg in ["memwall", *sys.argv[1:]])
    return line if options["resume"] else f"{line} --resume"


def _to_pipe(sweep: Planned, blocks: range, form: str, path: str, progress: Progress) -> LeftOut:
    """Rows to what is there and no file, as they come.

    Raises:
        UsageError: it cannot be written, or the format needs a file.
    """
    from memwall.sweeps.stream import straight

    if form == "parquet":
        raise UsageError(f"-o {shown(path, 120)} is no file, and Parquet needs one", "Try --format csv")
    try:
        return straight(sweep, blocks, path, form, progress).left_out
    except OSError as error:
        raise UsageError(
            f"-o {shown(path, 120)}: cannot be written: {error.strerror}", elsewhere(path, error)
        ) from None
    finally:
        progress.close()


def _on_cluster(sweep: Planned, blocks: range, address: str, folder: str | None) -> None:
    """Parts of Parquet in a folder, by Dask's workers.

    Raises:
        UsageError: no folder, or one that cannot take them.
    """
    from memwall.sweeps.cluster import run
    from memwall.sweeps.stream import points_of

    if folder in (None, "-") or os.path.isfile(str(folder)):
        raise UsageError("--dask writes parts of Parquet to a folder", "Name it: -o out.parquet/")
    progress = Progress(points_of(sweep, blocks))
    try:
        done, lines = run(sweep, blocks, address, os.path.realpath(str(folder)), progress)
    except OSError as error:
        raise UsageError(
            f"-o {shown(folder, 120)}: cannot be written: {error.strerror}", "Name a folder with room"
        ) from None
    except KeyboardInterrupt:
        click.echo(f"stopped: the parts in {folder} are whole; the same command goes on", err=True)
        raise
    finally:
        progress.close()
    progress.say(f"{done.rows:,} rows of {done.points:,} points: {folder}")
    for line in lines:
        click.echo(line, err=True)


def _agree(sweep: Planned, blocks: range, best: str | None, form: str | None, target: Output) -> None:
    """See that a sweep is of a size that was meant.

    Raises:
        UsageError: it takes hours, or more than the disk has.
    """
    from memwall.sweeps.size import expected
    from memwall.units import format_bytes

    path = os.path.realpath(str(target.output)) if form and target.to_file and not best else None
    size = expected(sweep, blocks, None if best else form, path)
    if size.time_s <= LONG_S and (path is None or size.needed_bytes <= size.free_bytes):
        return
    took = _long(size.time_s)
    room = f" and {format_bytes(size.needed_bytes)}" if size.needed_bytes else ""
    room += f" of {format_bytes(size.free_bytes)} free" if path else ""
    raise UsageError(
        f"{_many(size.points)} points take about {took}{room}",
        "Narrow a range, cut it with --shard I/N, or say --yes",
    )


def _many(count: int) -> str:
    return f"{count:,}" if count < LARGEST_COUNT * KILO else f"{float(count):.3g}"


def _long(time_s: float) -> str:
    """About how many hours or years."""
    hours = time_s / LONG_S
    for count, unit in ((hours / 24 / 365, "year"), (hours, "hour")):
        if count >= 1:
            many = f"{count:,.0f}" if count < LARGEST_COUNT else f"{count:.0e}"
            return f"{many} {unit}{'' if many == '1' else 's'}"
    return "less than an hour"


def _to_stdout(sweep: Planned, blocks: range, form: str, left_out: LeftOut) -> None:
    from memwall.sweeps.files import csv_lines, json_lines
    from memwall.sweeps.stream import each_block

    if form == "csv":
        click.echo(",".join(sweep.columns))
    text = csv_lines if form == "csv" else json_lines
    for rows in each_block(sweep, blocks, left_out, lambda _: None):
        to_stdout(text(rows))


def _to_page(sweep: Planned, blocks: range, target: Output, left_out: LeftOut) -> None:
    """Few rows as a table or a document.

    Raises:
        UsageError: they are too many.
    """
    from memwall.sweeps.stream import each_block, points_of

    most = IN_ONE_DOCUMENT if target.format == "json" else LISTED
    progress = Progress(points_of(sweep, blocks))
    kept: list[Rows] = []
    for rows in each_block(sweep, blocks, left_out, progress):
        kept.append(rows)
        if sum(each.length for each in kept) > most:
            progress.close()
            raise UsageError(
                f"more than {most:,} rows are too many for {'a document' if most > LISTED else 'a page'}",
                "Write them to a file: -o out.csv, or ask for --best COLUMN",
            )
    progress.close()
    _show(sweep, blocks, kept, target)


def _nothing(blocks: range) -> str:
    """Why there is no row."""
    return "no row meets the condition" if blocks else "this share has no points: there are fewer than shares"


def _best(
    sweep: Planned, blocks: range, options: Mapping[str, Any], target: Output, left_out: LeftOut
) -> None:
    from memwall.sweeps.best import Best
    from memwall.sweeps.stream import each_block, points_of

    best = Best(options["best"], options["top"] or 1)
    best.check(sweep)
    progress = Progress(points_of(sweep, blocks))
    for rows in each_block(sweep, blocks, left_out, progress):
        best.add(rows)
    progress.close()
    _show(sweep, blocks, [best.rows] if best.rows else [], target)


def _show(sweep: Planned, blocks: range, kept: list[Rows], target: Output) -> None:
    from memwall.render import sweep as view

    records = [record for rows in kept for record in rows.records()]
    page = partial(view.page, records, sweep.spec.what, sweep.asked, sweep.shown, _nothing(blocks))
    emit(target, lambda: records, page, several=True)
