"""memwall capacity."""

from __future__ import annotations

from typing import Any

import click

from memwall.cli.devices import on_each, show
from memwall.cli.models import load_model, model_option, source_option
from memwall.cli.options import (
    Count,
    Format,
    Fraction,
    Size,
    defaults_of,
    gpu_option,
    output_options,
    set_option,
)
from memwall.cli.output import Output
from memwall.errors import Refusal
from memwall.hardware import Device
from memwall.memory.sequences import POLICIES
from memwall.reports.capacity import CapacityReport, capacity
from memwall.reports.case import DEFAULT_GPU

EPILOG = """\b
Examples:
  memwall capacity --model llama3-70b --tp 8 --dtype fp8 --context 4096
  memwall capacity --model llama3-8b --gpu rtx-3090 --memory-fraction 0.9
  memwall capacity --model deepseek-v3 --gpu h200 --tp 8 --kv-dtype fp8
  memwall capacity --model gpt-oss-120b --kv-memory 5.38GiB --context 4096
  memwall capacity --model qwen2.5-32b --memory 44.42GiB --tp 2 --reserve 1.56

\b
A size is 44.42GiB, 80GB or 512MiB; a bare number is GiB.
Exit code 1: it does not fit; of several GPUs, on none.
"""


@click.command("capacity", epilog=EPILOG)
@model_option
@gpu_option
@click.option(
    "--context",
    type=Count(4096),
    help="tokens of each sequence; default: the model's, or as many as fit",
)
@click.option("--batch", type=Count(8), help="sequences at once; default 1")
@click.option("--tp", type=Count(8), default=1, help="GPUs that share the model (tensor parallel)")
@click.option("--dtype", type=Format(), help="format that the linear layers compute and are stored in")
@click.option(
    "--weight-dtype", type=Format(), help="format they are stored in; default: the checkpoint's own"
)
@click.option("--kv-dtype", type=Format(), help="the cache's format; default bf16")
@click.option("--block", type=Count(16), default=16, help="tokens a block of the cache; default 16")
@click.option("--policy", type=click.Choice(list(POLICIES)), default="exact", help="layout of the cache")
@click.option("--memory", type=Size(), help="total memory of the GPU, instead of its own")
@click.option("--memory-fraction", type=Fraction(), help="of the total that may be used; default 1")
@click.option("--kv-memory", type=Size(), help="memory of the cache alone")
@click.option("--reserve", type=Size(0), help="kept free; default: the activation estimate")
@click.option("--weights", type=Size(), help="weights of each GPU, where an engine has reported them")
@click.option(
    "--chunk",
    type=Count(8192),
    default=8192,
    help="new tokens a pass, for --reserve; default 8192",
)
@source_option
@set_option
@output_options
def command(gpu: str | None, model: str, changes: dict[str, str], **options: Any) -> int:
    """What fits: weights, cache and reserve; most tokens, sequences and context."""
    from memwall.render import capacity as view

    output = Output(**{key: options.pop(key) for key in Output._fields})
    loaded = load_model(model)
    defaults = defaults_of(GPU=(gpu, DEFAULT_GPU))

    def make(device: Device) -> CapacityReport:
        return capacity(loaded, gpu=device, defaults=defaults, **options)

    rows: list[CapacityReport | Refusal] = on_each(gpu, changes, make)
    code = show(output, rows, view)
    return code or int(not any(isinstance(row, CapacityReport) and row.fits for row in rows))
