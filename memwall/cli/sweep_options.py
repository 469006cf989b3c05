"""The options of a sweep: those of the command that is swept, each taking ranges or lists, and its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from memwall.cli.options import Count
from memwall.cli.output import Output
from memwall.errors import UsageError
from memwall.sweeps.kinds import KINDS

LISTED = 200
"""Rows that a page has at most; more go to a file."""
FORMATS = ("text", "json", "csv", "markdown", "jsonl", "parquet")
NEVER = frozenset((*Output._fields, "bound_only", "levels"))
"""Options that say nothing of a point."""
NAMED_APART = ("gpu", "changes")
"""Options that take lists already."""


class Many(click.ParamType[str]):
    """A range or a list of what an option of the swept command takes; kept as typed."""

    def __init__(self, single: click.Parameter) -> None:
        self.single = single
        self.name = "range" if isinstance(single.type, Count) else "list"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text."""
        return str(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """As the swept command completes the last one."""
        before, comma, last = incomplete.rpartition(",")
        items = self.single.type.shell_complete(ctx, self.single, last)
        return [CompletionItem(before + comma + item.value, type=item.type) for item in items]


def of_command(name: str) -> click.Command:
    """The command that is swept."""
    command: click.Command = import_module(f"memwall.cli.{name.replace('-', '_')}").command
    return command


def swept(name: str) -> Iterator[click.Parameter]:
    """A command's own parameters, as a sweep takes them."""
    for param in of_command(name).params:
        if param.name in NEVER:
            continue
        if param.name in NAMED_APART or getattr(param, "is_flag", False):
            yield param
        elif isinstance(param, click.Argument):
            yield click.Argument([str(param.name)], type=Many(param), metavar=param.metavar)
        elif isinstance(param, click.Option):
            yield _option(param)


def _option(param: click.Option) -> click.Option:
    many = Many(param)
    return click.Option(
        [str(param.name), *param.opts],
        type=many,
        required=param.required,
        help=param.help,
        metavar=many.name.upper(),
    )


def own(estimate: bool) -> Sequence[click.Option]:
    """The options of every sweep; --estimate where it is not part of the answer anyway."""
    expected = click.Option(["--estimate"], is_flag=True, help="the expected time too: estimate_time_s")
    return [
        *([expected] if estimate else []),
        click.Option(["--both"], metavar="FLAG", help="flags asked both ways, off and on: causal, eager ..."),
        click.Option(
            ["--where"], metavar="CONDITION", multiple=True, help="only rows that meet it; if several, all"
        ),
        click.Option(
            ["--best"], metavar="COLUMN", help="only the best row: largest rate, smallest time or bytes"
        ),
        click.Option(["--top"], type=click.IntRange(1, LISTED), help="with --best: so many rows"),
        click.Option(["--shard"], metavar="I/N", help="one of N equal shares, for batch systems"),
        click.Option(
            ["--dask"], metavar="ADDRESS", help="on a cluster: tcp://HOST:8786 or local; -o is a folder"
        ),
        click.Option(["--resume"], is_flag=True, help="go on from a run that was stopped or killed"),
        click.Option(["--yes"], is_flag=True, help="do not ask about hours of time or a full disk"),
        click.Option(
            ["-o", "--output"], metavar="FILE", help="write there; .csv, .jsonl and .parquet stream"
        ),
        click.Option(
            ["--format", "form"], type=click.Choice(FORMATS), help="default: text, or by the file's ending"
        ),
        click.Option(["--json", "as_json"], is_flag=True, help="short for --format json"),
    ]


def refused(name: str, commands: Sequence[str]) -> UsageError:
    """A command that a sweep means nothing for, or no command at all."""
    from memwall.errors import nearest, shown

    every = ["step", *KINDS]
    near = nearest(name, every, 1)
    if name in commands:
        what = f"{name} cannot be swept: what it says is not one answer to one question"
    else:
        what = f"a sweep is of an operator (--op), or of a command's report, not of '{shown(name)}'"
    hint = f"Did you mean {near[0]}? " if near and name not in commands else ""
    return UsageError(what, f"{hint}One of: {', '.join(every)}")
