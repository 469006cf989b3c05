"""memwall step."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from memwall.cli.devices import on_each, show
from memwall.cli.layouts import layout_options, offload_options
from memwall.cli.models import load_model
from memwall.cli.options import (
    IMPL,
    MODEL,
    Count,
    Format,
    defaults_of,
    gpu_option,
    output_options,
    set_option,
)
from memwall.cli.output import Output
from memwall.errors import Refusal
from memwall.hardware import Device
from memwall.reports.case import DEFAULT_DTYPE, DEFAULT_GPU
from memwall.reports.step import StepReport, step
from memwall.reports.step_setting import PHASES

EPILOG = """\b
Examples:
  memwall step --model llama3-70b --gpu b200 --phase decode --batch 8 --context 4096
  memwall step --model llama3-8b --gpu h100 --phase prefill --seq 8192
  memwall step --model config.json --gpu h100 --phase decode --context 4096 --dtype fp8
  memwall step --model mixtral-8x7b --phase decode --context 4096 --weight-dtype int4-g128
  memwall step --model llama3-70b --gpu h100 --tp 8 --phase decode --batch 32 --context 4096
  memwall step --model deepseek-v3 --gpu h200 --tp 8 --ep 8 --phase decode --context 4096
  memwall step --model llama3-8b --phase decode --context 8192 --eager
  memwall step --model qwen3-32b --phase decode --batch 16 --context 8192 --gpu h200,b200 --json
"""


@click.command("step", epilog=EPILOG)
@click.option(
    "--model",
    type=MODEL,
    required=True,
    help="a model, its YAML file, its config.json or the folder with one: memwall model list",
)
@gpu_option
@click.option("--phase", type=click.Choice(PHASES), help="by default as --seq or --context says")
@click.option("--batch", type=Count(), default=1, show_default=True, help="sequences, on all GPUs together")
@click.option("--context", type=Count(), help="decode: tokens in the cache, the new one counted")
@click.option("--seq", type=Count(), help="prefill: tokens of the prompt")
@click.option("--dtype", type=Format(), help="compute and storage format of the linear layers; default bf16")
@click.option(
    "--weight-dtype", type=Format(), help="storage format of the linear layers; default the checkpoint's"
)
@click.option("--kv-dtype", type=Format(), help="storage format of the cache; default 16 bits")
@click.option("--impl", type=IMPL, default="flash", show_default=True, help="attention: flash or standard")
@click.option("--eager", is_flag=True, help="each elementwise step and each projection a kernel of its own")
@click.option("--merged", is_flag=True, help="with --eager: QKV one product, gate and up one, all the same")
@layout_options
@offload_options
@set_option
@output_options
def command(gpu: str | None, model: str, changes: dict[str, str], **options: Any) -> int:
    """One prefill or step of decoding of a model, kernel by kernel."""
    from memwall.render import step as view
    from memwall.render.step_record import warning

    output = Output(**{key: options.pop(key) for key in Output._fields})
    loaded = load_model(model)
    defaults = defaults_of(GPU=(gpu, DEFAULT_GPU), dtype=(options["dtype"], DEFAULT_DTYPE))
    make = partial(step, loaded, defaults=defaults, **options)

    def on(device: Device) -> StepReport:
        return make(gpu=device)

    rows = on_each(gpu, changes, on)
    for row in rows:
        too_large = None if isinstance(row, Refusal) else warning(row)
        if too_large:
            click.echo(f"warning: {too_large}", err=True)
    return show(output, rows, view)
