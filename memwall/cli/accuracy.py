"""memwall accuracy."""

from __future__ import annotations

from typing import Any

import click

from memwall.cli.estimates import CALIBRATION
from memwall.cli.options import GPU, output_options
from memwall.cli.output import Output, emit
from memwall.errors import UsageError, shown

EPILOG = """\b
Examples:
  memwall accuracy
  memwall accuracy --by op,dtype,gpu,basis
  memwall accuracy --data measured.csv --json

A measured table has the columns of memwall predict and time_us. Exit code 1: a row beats its bound.
"""


@click.command("accuracy", epilog=EPILOG)
@click.option("--data", metavar="DIR", help="measured tables of your own; default: those that memwall ships")
@click.option("--gpu", type=GPU, help="the GPU of tables that name none")
@click.option(
    "--by", default="op,dtype", show_default=True, help="of op, dtype, gpu, basis: one line for each"
)
@CALIBRATION
@output_options
def command(data: str | None, gpu: str | None, by: str, calibration: str | None, **options: Any) -> int:
    """How far the estimates are from measured times, and what that rests on."""
    from memwall.render import accuracy as view
    from memwall.reports.accuracy import KEYS, accuracy

    names = [name.strip() for name in by.split(",") if name.strip()]
    wrong = [name for name in names if name not in KEYS]
    if wrong or not names:
        raise UsageError(f"--by takes {', '.join(KEYS)}, not '{shown(by)}'", "For example: --by op,gpu")
    report = accuracy(data, names, gpu, calibration)
    emit(Output(**options), lambda: view.records(report), lambda: view.page(report), several=True)
    return 1 if report.beaten else 0
