"""memwall plan."""

from __future__ import annotations

from typing import Any

import click

from memwall.cli.amounts import Seconds, prices_of
from memwall.cli.devices import on_each, show
from memwall.cli.models import load_model, model_option
from memwall.cli.options import Count, Format, defaults_of, gpu_option, named_gpus, output_options, set_option
from memwall.cli.output import Output
from memwall.errors import Refusal
from memwall.hardware import Device
from memwall.reports.case import DEFAULT_GPU
from memwall.reports.plan import PlanReport, plan

EPILOG = """\b
Examples:
  memwall plan --model llama3-70b --gpu h100 --gpus 8 --context 8192 --tpot 30ms --ttft 500ms
  memwall plan --model deepseek-v3 --gpu h200,b200 --gpus 8 --context 8192 --prompt 4096 --tpot 50ms
  memwall plan --model qwen3-32b --gpu l40s --gpus 4 --context 4096 --dtype fp8 --json

\b
Exit code 1: no layout fits and meets the targets.
"""


@click.command("plan", epilog=EPILOG)
@model_option
@gpu_option
@click.option("--gpus", type=Count(8), default=8, help="how many GPUs; default 8")
@click.option("--context", type=Count(8192), required=True, help="tokens of a sequence when it is longest")
@click.option("--prompt", type=Count(2048), help="tokens of the prompt; default: the whole context")
@click.option("--ttft", "ttft_s", type=Seconds("500ms"), help="time to first token to keep: 500ms")
@click.option("--tpot", "tpot_s", type=Seconds(), help="time between two tokens of a user to keep: 30ms")
@click.option(
    "--batch", type=Count(32), help="sequences on all GPUs; default: the best of 1, 2, 4 ... a replica"
)
@click.option("--price", help="of a GPU-hour, for the cost of tokens; several GPUs: one each, a,b,c")
@click.option("--dtype", type=Format(), help="format of the linear layers; default the checkpoint's")
@click.option("--weight-dtype", type=Format(), help="storage format of the linear layers")
@click.option("--kv-dtype", type=Format(), help="storage format of the cache; default 16 bits")
@set_option
@output_options
def command(gpu: str | None, model: str, price: str | None, changes: dict[str, str], **options: Any) -> int:
    """Layouts on several GPUs: those that meet the targets, ranked, and why each other fails."""
    from memwall.render import plan as view

    output = Output(**{key: options.pop(key) for key in Output._fields})
    loaded = load_model(model)
    defaults = defaults_of(GPU=(gpu, DEFAULT_GPU))
    count = len(named_gpus(gpu))
    prices = iter(prices_of(price, count) if price else [None] * count)

    def make(device: Device) -> PlanReport:
        return plan(loaded, gpu=device, price=next(prices), defaults=defaults, **options)

    rows: list[PlanReport | Refusal] = on_each(gpu, changes, make)
    code = show(output, rows, view)
    return code or int(not any(isinstance(row, PlanReport) and row.chosen for row in rows))
