"""memwall predict."""

from __future__ import annotations

import os
import sys

import click

from memwall.cli.estimates import CALIBRATION
from memwall.cli.options import GPU
from memwall.cli.output import Output, write
from memwall.errors import FileError, shown

EPILOG = """\b
Examples:
  memwall predict cases.csv --gpu h200 -o predicted.csv
  memwall predict cases.jsonl -o predicted.jsonl

A table may come from a pipe: memwall predict -
Columns, as each operator needs them:
  id gpu op dtype kv_dtype weight_dtype out_dtype impl kernel warm
  m n k experts | rows cols vocab | batch heads kv_heads seq_q seq_kv head_dim head_dim_v causal window
Added: flops read_bytes written_bytes arithmetic_intensity dram_read_bytes dram_written_bytes
l2_bytes (modelled, L2 cold) regime bound_us estimate_us basis error_p50 error_p90 error.
A column that the table has of such a name stays, as given_NAME.
A row that cannot be predicted says why in error; exit code 1 then.
"""

LINES = (".jsonl", ".ndjson")
MARK = "\ufeff"
"""The byte order mark that some editors write."""


@click.command("predict", epilog=EPILOG)
@click.argument("cases", metavar="CASES.csv")
@click.option("--gpu", type=GPU, help="the GPU of rows that name none")
@click.option("-o", "--output", metavar="FILE", help="write there; .jsonl is JSON Lines; default: stdout")
@click.option("--format", "form", type=click.Choice(["csv", "jsonl"]), help="default: as FILE, else as CASES")
@CALIBRATION
def command(
    cases: str, gpu: str | None, output: str | None, form: str | None, calibration: str | None
) -> int:
    """A table of kernels in, each with its bound and its estimate out."""
    from memwall.render import cases as view
    from memwall.reports.predict import predict_cases, read_csv, read_json_lines

    text = _text(cases).removeprefix(MARK)
    lines = cases.lower().endswith(LINES) or text.lstrip().startswith("{")
    table = (read_json_lines if lines else read_csv)(text, shown(cases, 120))
    report = predict_cases(table, gpu, calibration)
    as_lines = (output or "").lower().endswith(LINES) or (
        lines and not (output or "").lower().endswith(".csv")
    )
    as_lines = form == "jsonl" if form else as_lines
    write(Output(None, False, output, "never"), (view.to_json_lines if as_lines else view.to_csv)(report))
    if not report.predictions:
        click.echo(f"{shown(cases, 120)}: no rows under its header", err=True)
    if report.failed:
        click.echo(f"{report.failed} of {len(report.predictions)} rows have an error", err=True)
    return 1 if report.failed else 0


def _text(path: str) -> str:
    if path == "-":
        return sys.stdin.read()
    named = shown(path, 120)
    if not os.path.exists(path):
        raise FileError(f"{named}: no such file", "A table with a header such as op,m,n,k; - reads stdin")
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(
            f"{named}: cannot be read: {shown(error, 80)}", "A CSV or JSON Lines file in UTF-8"
        ) from None
