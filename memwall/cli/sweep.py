"""memwall sweep."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from memwall.cli.options import DIMS, GPU, IMPL, MODEL, OP, causal_option, joined, set_option
from memwall.cli.output import Output, emit
from memwall.cli.progress import Progress
from memwall.cli.sweep_spec import shard_of, spec_of
from memwall.errors import UsageError, shown
from memwall.reports.case import DEFAULT_GPU

if TYPE_CHECKING:
    from memwall.sweeps.plan import LeftOut, Sweep
    from memwall.sweeps.rows import Rows

EPILOG = """\b
Examples:
  memwall sweep --op gemm --m 1:8192:log2 --n 4096,8192 --k 4096 --gpu h100,h200 -o out.csv
  memwall sweep --op gemm --m 1:512 --n 8 --k 8 --where 'regime == "memory-bound"' --best bound_time_s
  memwall sweep --op attention --heads 64 --head-dim 128 --seq 1024:65536:log2 --format csv
  memwall sweep step --model llama3-70b --gpu b200 --batch 1:256:log2 --context 4096,32768
  memwall sweep step --model llama3-8b --batch 1:8 --context 512:8192:512 --where fits -o out.jsonl
  memwall sweep capacity --model llama3-70b --gpu h100 --tp 2,4,8 --context 8192:65536:log2
  memwall sweep --op gemm --m 1:4096 --n 4096 --k 4096 -o part-3.csv --shard 3/16

\b
Ranges: 1:100 every whole number, 0:4096:64 steps of 64, 1:8192:log2 doublings; several by comma.
Ctrl-C leaves out.partial.csv, which can be read, and --resume goes on from it.
"""

LISTED = 200
"""Rows that a page has at most; more go to a file."""
IN_ONE_DOCUMENT = 100_000
"""Rows that a JSON document has at most."""
LONG_S = 3600.0
"""A sweep that takes longer than this is asked about."""

FORMATS = ("text", "json", "csv", "markdown", "jsonl", "parquet")


def _ranges(command: Any) -> Any:
    text = "; a number, a range or a list"
    dims = {**DIMS, "context": "tokens in the cache, the new one counted", "tp": "capacity: GPUs that share"}
    for name in reversed(dims):
        option = click.option(
            f"--{name.replace('_', '-')}", name, metavar="RANGE", help=dims[name].partition(";")[0] + text
        )
        command = option(command)
    return command


@click.command("sweep", epilog=EPILOG)
@click.argument("what", required=False, metavar="[step|capacity]")
@click.option("--op", type=OP, help="the operator: memwall op list")
@click.option("--model", type=MODEL, help="step, capacity: a model, or several")
@click.option("--gpu", type=GPU, multiple=True, callback=joined, help=f"default {DEFAULT_GPU}")
@_ranges
@click.option("--dtype", help="one or several formats; default bf16")
@click.option("--weight-dtype", help="one or several storage formats of the weights")
@click.option("--kv-dtype", help="one or several storage formats of K and V")
@click.option("--impl", type=IMPL, help="of the operator, or of step's attention")
@click.option("--phase", type=click.Choice(["prefill", "decode"]), help="step: as --seq or --context says")
@click.option("--eager", is_flag=True, help="step: each elementwise step a kernel of its own")
@causal_option
@set_option
@click.option("--estimate", is_flag=True, help="an operator's expected time too: estimate_time_s")
@click.option("--where", metavar="CONDITION", help="only rows that meet it")
@click.option("--best", metavar="COLUMN", help="only the best row: largest rate, smallest time or bytes")
@click.option("--top", type=click.IntRange(1, LISTED), default=1, help="with --best: so many rows")
@click.option("--shard", metavar="I/N", help="one of N equal shares, for batch systems")
@click.option("--dask", metavar="ADDRESS", help="on a cluster: tcp://HOST:8786 or local; -o is a folder")
@click.option("--resume", is_flag=True, help="go on from a run that was stopped")
@click.option("--yes", is_flag=True, help="do not ask about hours of time or a full disk")
@click.option("-o", "--output", metavar="FILE", help="write there; .csv, .jsonl and .parquet stream")
@click.option("--format", "form", type=click.Choice(FORMATS), help="default: text, or by the file's ending")
@click.option("--json", "as_json", is_flag=True, help="short for --format json")
def command(what: str | None, output: str | None, form: str | None, as_json: bool, **options: Any) -> int:
    """Thousands of rooflines or steps at once, over ranges, to a table or a file."""
    from memwall.sweeps.plan import LeftOut, plan

    sweep = plan(spec_of(what, options))
    left_out = LeftOut()
    target = Output(form, as_json, output, "auto")
    streamed = None if options["dask"] else _streamed(target)
    blocks = shard_of(sweep, options["shard"])
    _check(options, streamed, target)
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
        raise UsageError(f"-o {shown(target.output, 120)}: which format is it", "Try -o out.csv or .parquet")
    return form if form in SUFFIXES.values() else None


def _check(options: Mapping[str, Any], streamed: str | None, target: Output) -> None:
    if options["dask"] and options["best"]:
        raise UsageError("--best is of one machine", "Leave out --dask, or ask the parts afterwards")
    if options["resume"] and not (streamed and target.to_file and not options["best"]):
        raise UsageError("--resume goes on with a file of rows", "Name it: -o out.csv")


def _to_file(sweep: Sweep, blocks: range, form: str, path: str, options: Mapping[str, Any]) -> LeftOut:
    """Rows to a file under their own progress.

    Raises:
        UsageError: it cannot be written, or takes hours and nobody agreed.
    """
    from memwall.sweeps.files import arrow
    from memwall.sweeps.stream import File, Stopped

    if form == "parquet":
        arrow()
    if os.path.isdir(path):
        raise UsageError(
            f"-o {shown(path, 120)} is a folder", f"Name a file in it: -o {shown(path, 100)}/out.{form}"
        )
    file = File(sweep, blocks, path, form)
    progress = Progress(_points(sweep, blocks))
    try:
        done = file.run(progress, options["resume"])
    except Stopped as stopped:
        progress.close()
        line = " ".join(shlex.quote(arg) for arg in ["memwall", *sys.argv[1:]])
        again = line if options["resume"] else f"{line} --resume"
        click.echo(f"stopped after {stopped.points:,} points: {stopped.path} can be read", err=True)
        click.echo(f"go on with: {again}", err=True)
        raise
    except OSError as error:
        progress.close()
        raise UsageError(
            f"-o {shown(path, 120)}: cannot be written: {error.strerror}", "Name a file where there is room"
        ) from None
    progress.close()
    progress.say(f"{done.rows:,} rows of {done.points:,} points: {path}")
    return done.left_out


def _on_cluster(sweep: Sweep, blocks: range, address: str, folder: str | None) -> None:
    """Parts of Parquet in a folder, by Dask's workers.

    Raises:
        UsageError: no folder, or one that cannot take them.
    """
    from memwall.sweeps.cluster import run

    if folder in (None, "-") or os.path.isfile(str(folder)):
        raise UsageError("--dask writes parts of Parquet to a folder", "Name it: -o out.parquet/")
    progress = Progress(_points(sweep, blocks))
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


def _agree(sweep: Sweep, blocks: range, best: str | None, form: str | None, target: Output) -> None:
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
    hours = size.time_s / LONG_S
    took = f"{hours:,.0f} hours" if hours < 24 * 365 else f"{hours / 24 / 365:,.0f} years"
    room = f" and {format_bytes(size.needed_bytes)}" if size.needed_bytes else ""
    room += f" of {format_bytes(size.free_bytes)} free" if path else ""
    raise UsageError(
        f"{size.points:,} points take about {took}{room}",
        "Narrow a range, cut it with --shard I/N, or say --yes",
    )


def _points(sweep: Sweep, blocks: range) -> int:
    return sweep.grid.points * len(blocks) // max(sweep.grid.count, 1)


def _to_stdout(sweep: Sweep, blocks: range, form: str, left_out: LeftOut) -> None:
    from memwall.sweeps.files import csv_lines, json_lines
    from memwall.sweeps.stream import each_block

    if form == "csv":
        click.echo(",".join(sweep.columns))
    text = csv_lines if form == "csv" else json_lines
    for rows in each_block(sweep, blocks, left_out, lambda _: None):
        click.echo(text(rows), nl=False)


def _to_page(sweep: Sweep, blocks: range, target: Output, left_out: LeftOut) -> None:
    """Few rows as a table or a document.

    Raises:
        UsageError: they are too many.
    """
    from memwall.sweeps.stream import each_block

    most = IN_ONE_DOCUMENT if target.format == "json" else LISTED
    progress = Progress(_points(sweep, blocks))
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
    _show(kept, target)


def _best(sweep: Sweep, blocks: range, options: Mapping[str, Any], target: Output, left_out: LeftOut) -> None:
    from memwall.sweeps.best import Best
    from memwall.sweeps.stream import each_block

    best = Best(options["best"], options["top"])
    progress = Progress(_points(sweep, blocks))
    for rows in each_block(sweep, blocks, left_out, progress):
        best.add(rows)
    progress.close()
    _show([best.rows] if best.rows else [], target)


def _show(kept: list[Rows], target: Output) -> None:
    from memwall.render import sweep as view

    records = [record for rows in kept for record in rows.records()]
    emit(target, lambda: records, lambda: view.page(records), several=True)
