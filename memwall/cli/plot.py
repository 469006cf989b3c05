"""memwall plot roofline | traffic | decode | memory | accuracy | hierarchy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from memwall import hardware
from memwall.cli.lists import formats_of
from memwall.cli.options import GPU, gpu_option, named_gpus, set_option
from memwall.cli.pictures import picture_options, show
from memwall.cli.plot_models import plot_decode, plot_memory, plot_traffic
from memwall.errors import UsageError, shown
from memwall.reports.case import DEFAULT_DTYPE

EPILOG = """\b
Examples:
  memwall plot roofline --gpu h100 --op gemv --op gemm:m=4096,n=4096,k=4096 -o roofline.svg
  memwall plot traffic --model llama3-70b -o traffic.svg
  memwall plot decode --model llama3-8b --gpu h200 -o decode.svg
  memwall plot memory --model llama3-70b --gpu h100,b200 --tp 4 --batch 16 --context 8192

\b
Without -o the picture is drawn in the terminal. PNG and PDF: pip install 'memwall[plot]'.
"""

ROOFLINE_EPILOG = """\b
Examples:
  memwall plot roofline --gpu h100 --op gemv --op gemm:m=4096,n=4096,k=4096 -o roofline.svg
  memwall plot roofline --gpu a100,h100,b200 --op gemv --op attention:heads=32,head_dim=128,seq=4096
  memwall plot roofline --gpu h200 --measured h200 -o measured.svg
  memwall plot roofline --gpu b200 --dtype bf16,fp8,nvfp4 --op gemm:m=256,n=8192,k=8192,dtype=fp8
  memwall plot roofline --gpu a100,h200 --levels hbm,l2,smem --op gemv -o levels.svg
"""

HIERARCHY_EPILOG = """\b
Examples:
  memwall plot hierarchy --gpu h200 -o hierarchy.svg
  memwall plot hierarchy --gpu a100,h100,b200
"""

ACCURACY_EPILOG = """\b
Examples:
  memwall plot accuracy -o accuracy.svg
  memwall plot accuracy --bound -o bounds.svg
"""


@click.group("plot", epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Pictures: rooflines, traffic, decode, memory and more, as SVG or in the terminal."""


@command.command("roofline", epilog=ROOFLINE_EPILOG)
@gpu_option
@click.option(
    "--op", "ops", multiple=True, help="an operator, its dimensions after a colon: gemm:m=8,n=4096,k=4096"
)
@click.option("--dtype", help="formats whose roofs are drawn, a,b,c; the first is the operators'")
@click.option("--measured", metavar="FILE|GPU", help="runs beside predictions: a verify record or a table")
@click.option("--levels", help="memories whose slopes are drawn: hbm,l2,smem; default: of one GPU all")
@set_option
@picture_options
def plot_roofline(
    gpu: str | None,
    ops: Sequence[str],
    dtype: str | None,
    measured: str | None,
    levels: str | None,
    changes: Any,
    **target: Any,
) -> int:
    """The log-log roofline of GPUs, with operators on it."""
    from memwall.plot import roofline as view
    from memwall.plot.levels import levels_of
    from memwall.plot.measured import Runs, runs
    from memwall.plot.notes import changed, with_notes
    from memwall.plot.ops import reports_of

    devices = [hardware.load(name, changes) for name in named_gpus(gpu)]
    dtypes = formats_of(dtype, "--dtype")
    reports, refusals = reports_of(ops, devices, dtypes[0] if dtypes else DEFAULT_DTYPE)
    notes = [f"{refusal.gpu}: {refusal.error.message}" for refusal in refusals]
    hints = [f"{refusal.gpu}: {refusal.error}" for refusal in refusals]
    kept = runs(measured, devices, reports) if measured else Runs([], {})
    if measured and not kept.found:
        names = ", ".join(device.name for device in devices)
        hints.append(f"{shown(measured, 120)} has no run of these operators on {names}")
        notes.append(hints[-1])
    for warning in [*hints, *kept.warnings]:
        click.echo(f"warning: {warning}", err=True)
    if not ops:
        reports = list({id(run.report.case): run.report for run in kept.found}.values())
    chosen = levels_of(levels) if levels is not None else None
    picture = view.figure(devices, reports, kept.found, dtypes, levels=chosen)
    return show(changed(with_notes(picture, [*notes, *kept.notes]), changes), target)


@command.command("hierarchy", epilog=HIERARCHY_EPILOG)
@gpu_option
@set_option
@picture_options
def plot_hierarchy(gpu: str | None, changes: Any, **target: Any) -> int:
    """Size and bandwidth of every level of memory, of one GPU or several."""
    from memwall.plot import hierarchy as view
    from memwall.plot.notes import changed
    from memwall.reports.hierarchy import hierarchy

    reports = [hierarchy(hardware.load(name, changes)) for name in named_gpus(gpu)]
    return show(changed(view.figure(reports), changes), target)


@command.command("accuracy", epilog=ACCURACY_EPILOG)
@click.option("--data", metavar="DIR", help="measured tables of your own; default: those that memwall ships")
@click.option("--gpu", type=GPU, help="the GPU of tables that name none")
@click.option("--bound", is_flag=True, help="bounds instead of estimates: no point may be above the line")
@picture_options
def plot_accuracy(data: str | None, gpu: str | None, bound: bool, **target: Any) -> int:
    """Estimated against measured time, a point a row."""
    from memwall.plot import accuracy as view

    if gpu and not data:
        raise UsageError(
            "--gpu is of measured tables that name none, and those that memwall ships do",
            "Leave it out, or name a table of your own: --data MEASURED.csv",
        )
    found = view.agreement(data, gpu)
    if data:
        for warning in view.warnings(found, bound=bound):
            click.echo(f"warning: {warning}", err=True)
    return show(view.figure(found, bound=bound), target)


for each in (plot_traffic, plot_decode, plot_memory):
    command.add_command(each)
