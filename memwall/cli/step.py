"""memwall step."""

from __future__ import annotations

from typing import Any

import click

from memwall.cli.devices import on_each, show, warn
from memwall.cli.engines import engine_option
from memwall.cli.estimates import estimate_options, on_one
from memwall.cli.layouts import layout_options, offload_options
from memwall.cli.models import load_model, model_option, source_option
from memwall.cli.options import (
    IMPL,
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
from memwall.reports.step import StepReport, step
from memwall.reports.step_setting import PHASES

EPILOG = """\b
Examples:
  memwall step --model llama3-70b --gpu b200 --batch 8 --context 4096
  memwall step --model llama3-8b --gpu h100 --phase prefill --seq 8192
  memwall step --model config.json --gpu h100 --context 4096 --dtype fp8
  memwall step --model mixtral-8x7b --context 4096 --weight-dtype int4-g128
  memwall step --model llama3-70b --gpu h100 --tp 8 --batch 32 --context 4096
  memwall step --model deepseek-v3 --gpu h200 --tp 8 --ep 8 --context 4096
  memwall step --model llama3-8b --phase decode --context 8192 --eager
  memwall step --model llama3-8b --gpu h100 --context 1024 --engine vllm
  memwall step --model qwen3-32b --context 8192 --gpu h200,b200 --json
"""


@click.command("step", epilog=EPILOG)
@model_option
@gpu_option
@click.option("--phase", type=click.Choice(PHASES), help="by default as --seq or --context says")
@click.option("--batch", type=Count(8), default=1, show_default=True, help="sequences, on all GPUs together")
@click.option("--context", type=Count(4096), help="decode: tokens in the cache, the new one counted")
@click.option("--seq", type=Count(8192), help="prefill: tokens of the prompt")
@source_option
@click.option(
    "--dtype", type=Format(), help="compute and storage format of the linear layers; default the checkpoint's"
)
@click.option(
    "--weight-dtype", type=Format(), help="storage format of the linear layers; default the checkpoint's"
)
@click.option("--kv-dtype", type=Format(), help="storage format of the cache; default 16 bits")
@click.option(
    "--impl",
    type=IMPL,
    default="flash",
    show_default=True,
    help="attention: flash (fa1, fa2, fa3: as flash) or standard",
)
@click.option("--eager", is_flag=True, help="each elementwise step and each projection a kernel of its own")
@click.option("--merged", is_flag=True, help="with --eager: QKV one product, gate and up one, all the same")
@layout_options
@offload_options
@estimate_options
@engine_option
@set_option
@output_options
def command(gpu: str | None, model: str, changes: dict[str, str], **options: Any) -> int:
    """One prefill or step of decoding of a model, kernel by kernel."""
    from memwall.render import step as view
    from memwall.render.step_record import warning

    output = Output(**{key: options.pop(key) for key in Output._fields})
    loaded = load_model(model)
    defaults = defaults_of(GPU=(gpu, DEFAULT_GPU))

    def on(device: Device) -> StepReport:
        return step(loaded, gpu=device, defaults=defaults, **on_one(options, device, gpu))

    rows = on_each(gpu, changes, on)
    warn(rows, warning)
    return show(output, rows, view)
