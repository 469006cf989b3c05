"""memwall quant."""

from __future__ import annotations

from typing import Any

import click

from memwall.cli.devices import on_each, show
from memwall.cli.models import load_model, model_option, source_option
from memwall.cli.options import (
    Count,
    Format,
    defaults_of,
    gpu_option,
    output_options,
    set_option,
)
from memwall.cli.output import Output
from memwall.hardware import Device
from memwall.reports.case import DEFAULT_GPU
from memwall.reports.quant import QuantReport, quant

EPILOG = """\b
Examples:
  memwall quant --model llama3-70b --gpu h100
  memwall quant --model mixtral-8x7b --gpu l40s --batch 8 --context 8192
  memwall quant --model deepseek-v3 --gpu b200 --tp 8 --kv-dtype fp8 --json
"""


@click.command("quant", epilog=EPILOG)
@model_option
@gpu_option
@click.option("--context", type=Count(4096), help="tokens that each sequence's step sees; default 4096")
@click.option("--batch", type=Count(8), default=1, help="sequences; default 1")
@click.option("--tp", type=Count(8), default=1, help="GPUs that share the model (tensor parallel)")
@click.option("--kv-dtype", type=Format(), help="the cache's format; default bf16")
@source_option
@set_option
@output_options
def command(gpu: str | None, model: str, changes: dict[str, str], **options: Any) -> int:
    """Weights in each format: bytes with scales, fit, and the bound of a decode step."""
    from memwall.render import quant as view

    output = Output(**{key: options.pop(key) for key in Output._fields})
    loaded = load_model(model)
    defaults = defaults_of(GPU=(gpu, DEFAULT_GPU))

    def make(device: Device) -> QuantReport:
        return quant(loaded, gpu=device, defaults=defaults, **options)

    return show(output, on_each(gpu, changes, make), view)
