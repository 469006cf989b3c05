"""Running a sweep as its flags say: to a file, a page, a pipe or a cluster."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from memwall.cli.output import STDOUT, Output, emit, stands, to_stdout
from memwall.cli.progress import Progress
from memwall.cli.sweep_file import to_file
from memwall.cli.sweep_options import LISTED
from memwall.cli.sweep_spec import shard_of
from memwall.errors import UsageError, shown
from memwall.units import LARGEST_AMOUNT, MEGA, format_bytes

if TYPE_CHECKING:
    from memwall.sweeps.left_out import LeftOut
    from memwall.sweeps.planned import Planned, Spec
    from memwall.sweeps.rows import Rows

IN_ONE_DOCUMENT = 100_000
"""Rows that a JSON document has at most."""
LONG_S = 3600.0
"""A sweep that takes longer than this is asked about."""
A_YEAR_H = 24 * 365
EMPTY_SHARE = "this share has no points: there are more shares than points"


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
    sweep = plan(spec)
    left_out = LeftOut()
    sweep, blocks = shard_of(sweep, options["shard"])
    if not options["yes"]:
        _agree(sweep, blocks, options["best"], "parquet" if options["dask"] else streamed, target)
    if options["dask"]:
        _on_cluster(sweep, blocks, options["dask"], output)
        return 0
    if options["best"]:
        _best(sweep, blocks, options, target, left_out)
    elif streamed and target.to_file:
        left_out = to_file(sweep, blocks, streamed, str(output), options)
    elif streamed:
        _to_stdout(sweep, blocks, streamed, left_out)
    else:
        _to_page(sweep, blocks, target, left_out)
    for line in left_out.lines:
        click.echo(line, err=True)
    if not blocks and streamed:
        click.echo(EMPTY_SHARE, err=True)
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


def _on_cluster(sweep: Planned, blocks: range, address: str, folder: str | None) -> None:
    """Parts of Parquet in a folder, by Dask's workers.

    Raises:
        UsageError: no folder, or one that cannot take them.
    """
    from memwall.sweeps.cluster import run
    from memwall.sweeps.size import points_of

    if folder in (None, *STDOUT) or os.path.isfile(str(folder)):
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

    to_disk = form and target.to_file and not best and not stands(str(target.output))
    path = os.path.realpath(str(target.output)) if to_disk else None
    if path and not os.path.isdir(os.path.dirname(path)):  # which is said when it is opened
        path = None
    size = expected(sweep, blocks, None if best else form, path)
    if size.time_s <= LONG_S and (path is None or size.needed_bytes <= size.free_bytes):
        return
    took = [_long(size.time_s / LONG_S)] if size.time_s else []
    room = [format_bytes(size.needed_bytes)] if size.needed_bytes else []
    free = f" of {format_bytes(size.free_bytes)} free" if path else ""
    points = f"{size.points:,}" if size.points < LARGEST_AMOUNT else f"{size.points:.1e}"
    raise UsageError(
        f"{points} points take about {' and '.join([*took, *room])}{free}",
        "Narrow a range, cut it with --shard I/N, or say --yes",
    )


def _long(hours: float) -> str:
    """About how long, in words."""
    number, unit = (hours, "hour") if hours < A_YEAR_H else (hours / A_YEAR_H, "year")
    if number > MEGA:
        return "a million years or more"
    return f"{number:,.0f} {unit}{'' if round(number) == 1 else 's'}"


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
    from memwall.sweeps.size import points_of
    from memwall.sweeps.stream import each_block

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
    _show(sweep, kept, target, blocks)


def _best(
    sweep: Planned, blocks: range, options: Mapping[str, Any], target: Output, left_out: LeftOut
) -> None:
    from memwall.sweeps.best import Best
    from memwall.sweeps.size import points_of
    from memwall.sweeps.stream import each_block

    best = Best(options["best"], options["top"] or 1)
    best.check(sweep)
    progress = Progress(points_of(sweep, blocks))
    for rows in each_block(sweep, blocks, left_out, progress):
        best.add(rows)
    progress.close()
    _show(sweep, [best.rows] if best.rows else [], target, blocks)


def _show(sweep: Planned, kept: list[Rows], target: Output, blocks: range) -> None:
    from memwall.render import sweep as view

    records = [record for rows in kept for record in rows.records()]
    none = "no row meets the condition" if blocks else EMPTY_SHARE
    page = partial(view.page, records, sweep.spec.what, sweep.asked, sweep.shown, none)
    emit(target, lambda: records, page, several=True)
