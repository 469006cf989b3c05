"""memwall plot roofline | traffic | decode | memory | accuracy | hierarchy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import click

from memwall import hardware
from memwall.cli.layouts import layout_options
from memwall.cli.models import load_model
from memwall.cli.options import (
    ATTENTION_DIMS,
    GPU,
    MODEL,
    Count,
    Format,
    causal_option,
    gpu_option,
    named_gpus,
    set_option,
    shape_options,
    split_names,
)
from memwall.cli.pictures import picture_options, show
from memwall.errors import Refusal, UsageError, shown
from memwall.hardware import Device
from memwall.reports.case import DEFAULT_DTYPE

Row = TypeVar("Row")

LENGTHS = "256:131072:log2"
BATCHES, CONTEXTS = "1:512:log2", "1024,8192,32768,131072"

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

TRAFFIC_EPILOG = """\b
Examples:
  memwall plot traffic --model llama3-70b -o traffic.svg
  memwall plot traffic --heads 32 --kv-heads 8 --head-dim 128 --lengths 512:65536:log2
"""

DECODE_EPILOG = """\b
Examples:
  memwall plot decode --model llama3-8b --gpu h200 -o decode.svg
  memwall plot decode --model deepseek-v3 --gpu b200 --tp 8 --ep 8 --batch 1:256:log2 --context 4096,32768
"""

MEMORY_EPILOG = """\b
Examples:
  memwall plot memory --model llama3-70b --gpu h100,h200,b200 --batch 8 --context 8192 -o memory.svg
  memwall plot memory --model llama3-70b --gpu h100 --tp 4 --batch 32
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
    from memwall.plot.measured import runs
    from memwall.plot.ops import reports_of

    devices = [hardware.load(name, changes) for name in named_gpus(gpu)]
    dtypes = [Format().convert(name, None, None) for name in split_names(dtype or "")]
    if dtype is not None and not dtypes:
        raise UsageError("--dtype names no format", "For example: --dtype bf16,fp8")
    reports, refusals = reports_of(ops, devices, dtypes[0] if dtypes else DEFAULT_DTYPE)
    _answered([*reports, *refusals])
    found = runs(measured, devices, reports) if measured else []
    if measured and not found:
        names = ", ".join(device.name for device in devices)
        click.echo(f"warning: {shown(measured, 120)} has no run of these operators on {names}", err=True)
    if not ops:
        reports = list({id(run.report.case): run.report for run in found}.values())
    chosen = levels_of(levels) if levels else None
    return show(view.figure(devices, reports, found, dtypes, levels=chosen), target)


@command.command("traffic", epilog=TRAFFIC_EPILOG)
@click.option("--model", type=MODEL, help="a model: memwall model list; or give --heads and --head-dim")
@gpu_option
@shape_options(tuple(name for name in ATTENTION_DIMS if not name.startswith("seq")))
@click.option("--lengths", metavar="RANGE", default=LENGTHS, show_default=True, help="sequence lengths")
@click.option("--dtype", type=Format(), default=DEFAULT_DTYPE, show_default=True, help="format")
@causal_option
@picture_options
def plot_traffic(
    model: str | None, gpu: str | None, lengths: str, dtype: str, causal: bool | None, **options: Any
) -> int:
    """Standard attention against flash over sequence length."""
    from memwall.plot import traffic as view
    from memwall.reports.attention import attention

    target = {name: options.pop(name) for name in ("output", "form", "size")}
    device = _one(gpu)
    loaded = load_model(model) if model else None
    values = _values(lengths, "--lengths")
    shape = {name: size for name, size in options.items() if size is not None}
    if not loaded and not shape:
        raise UsageError("whose attention: --model, or --heads and --head-dim", "Try --model llama3-70b")
    reports = [attention(loaded, gpu=device, dtype=dtype, causal=causal, seq=n, **shape) for n in values]
    named = " ".join(f"{name.replace('_', '-')} {size}" for name, size in shape.items())
    return show(view.figure(reports, values, loaded.title if loaded else named), target)


@command.command("decode", epilog=DECODE_EPILOG)
@click.option("--model", type=MODEL, required=True, help="a model: memwall model list")
@gpu_option
@click.option("--batch", metavar="RANGE", default=BATCHES, show_default=True, help="sequences at once")
@click.option("--context", metavar="RANGE", default=CONTEXTS, show_default=True, help="one curve each")
@click.option("--dtype", type=Format(), help="compute and storage format of the linear layers; default bf16")
@click.option("--weight-dtype", type=Format(), help="storage format of the linear layers")
@click.option("--kv-dtype", type=Format(), help="storage format of the cache")
@layout_options
@set_option
@picture_options
def plot_decode(
    model: str,
    gpu: str | None,
    batch: str,
    context: str,
    changes: Any,
    output: Any,
    form: Any,
    size: Any,
    **words: Any,
) -> int:
    """Time per token over batch, a curve for each context."""
    from memwall.plot import decode as view
    from memwall.reports.step import step

    device = _one(gpu, changes)
    loaded = load_model(model)
    batches, contexts = _values(batch, "--batch"), _values(context, "--context")
    reports = {
        each: [step(loaded, gpu=device, batch=b, context=each, bound_only=True, **words) for b in batches]
        for each in contexts
    }
    return show(view.figure(reports, batches), {"output": output, "form": form, "size": size})


@command.command("memory", epilog=MEMORY_EPILOG)
@click.option("--model", type=MODEL, required=True, help="a model: memwall model list")
@gpu_option
@click.option("--batch", type=Count(8), help="sequences at once; default 1")
@click.option(
    "--context", type=Count(4096), help="tokens of each sequence; default as memwall capacity has it"
)
@click.option("--tp", type=Count(8), default=1, show_default=True, help="GPUs that share the model")
@click.option("--dtype", type=Format(), help="compute and storage format of the linear layers; default bf16")
@click.option("--weight-dtype", type=Format(), help="storage format of the linear layers")
@click.option("--kv-dtype", type=Format(), help="storage format of the cache")
@set_option
@picture_options
def plot_memory(
    model: str, gpu: str | None, changes: Any, output: Any, form: Any, size: Any, **options: Any
) -> int:
    """What fills a GPU: weights, cache, reserve, against its memory."""
    from memwall.cli.devices import on_each
    from memwall.plot import memory as view
    from memwall.reports.capacity import CapacityReport, capacity

    loaded = load_model(model)

    def on(device: Device) -> CapacityReport:
        return capacity(loaded, gpu=device, **options)

    reports = _answered(on_each(gpu, changes, on))
    return show(view.figure(reports), {"output": output, "form": form, "size": size})


@command.command("hierarchy", epilog=HIERARCHY_EPILOG)
@gpu_option
@picture_options
def plot_hierarchy(gpu: str | None, **target: Any) -> int:
    """Size and bandwidth of every level of memory, of one GPU or several."""
    from memwall.plot import hierarchy as view
    from memwall.reports.hierarchy import hierarchy

    reports = [hierarchy(hardware.load(name)) for name in named_gpus(gpu)]
    return show(view.figure(reports), target)


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
    return show(view.figure(view.agreement(data, gpu), bound=bound), target)


def _answered(rows: Sequence[Row | Refusal]) -> list[Row]:
    """The reports; a GPU without one is named on stderr.

    Raises:
        NotAvailable: none has one.
    """
    refusals = [row for row in rows if isinstance(row, Refusal)]
    if refusals and len(refusals) == len(rows):
        raise refusals[0].error
    for refusal in refusals:
        click.echo(f"warning: {refusal.gpu}: {refusal.error}", err=True)
    return [row for row in rows if not isinstance(row, Refusal)]


def _one(gpu: str | None, changes: Any = None) -> Device:
    names = named_gpus(gpu)
    if len(names) > 1:
        raise UsageError("this picture is of one GPU", f"Name one: --gpu {names[0]}")
    return hardware.load(names[0], changes)


def _values(text: str, flag: str) -> list[int]:
    """The values of a range, rising and not too many for a picture."""
    from memwall.sweeps.ranges import parse_axis

    axis = parse_axis(text, flag, flag)
    if flag == "--context" and len(axis) > MOST_CURVES:
        raise UsageError(
            f"{flag}: {len(axis):,} curves are too many, {MOST_CURVES} can be told apart",
            f"Try {flag} 4096,32768",
        )
    if flag != "--context" and not 1 < len(axis) <= MOST_VALUES:
        raise UsageError(
            f"{flag}: a curve has 2 to {MOST_VALUES} points, not {len(axis):,}", f"Try {flag} 1:512:log2"
        )
    return sorted(axis.slice(0, len(axis)).tolist())


MOST_VALUES, MOST_CURVES = 512, 8
