"""memwall cost."""

from __future__ import annotations

from typing import Any

import click

from memwall.cli.amounts import Number, prices_of
from memwall.cli.devices import on_each, show
from memwall.cli.layouts import layout_options
from memwall.cli.models import load_model, model_option
from memwall.cli.options import (
    Count,
    Format,
    defaults_of,
    gpu_option,
    named_gpus,
    output_options,
    set_option,
)
from memwall.cli.output import Output
from memwall.errors import Refusal
from memwall.hardware import Device
from memwall.reports.case import DEFAULT_GPU
from memwall.reports.cost import CostReport, cost

EPILOG = """\b
Examples:
  memwall cost --model llama3-70b --gpu h100 --tp 8 --price 2.50 --batch 32 --context 4096
  memwall cost --model llama3-70b --gpu h100,h200 --tp 8 --price 2.50,3.20 --batch 64 --context 4096
  memwall cost --model llama3-8b --price 2.50 --batch 64 --context 4096 --output-tokens 512 --rate 20

\b
Prices are yours, in any currency: one for all GPUs, or one for each in their order.
Exit code 1: it does not fit; of several GPUs, on none.
"""


@click.command("cost", epilog=EPILOG)
@model_option
@gpu_option
@click.option("--price", required=True, help="of a GPU-hour; several GPUs: one each, a,b,c")
@click.option("--batch", type=Count(32), default=1, help="sequences on all GPUs; default 1")
@click.option("--context", type=Count(4096), required=True, help="tokens of a sequence while it is decoded")
@click.option("--prompt", type=Count(2048), help="tokens of the prompt; default: the context")
@click.option("--output-tokens", type=Count(512), help="tokens that a request is answered with")
@click.option("--rate", "requests_per_s", type=Number("20"), help="requests a second")
@click.option(
    "--utilisation", type=Number("0.6", most=1), default=1, help="part of the hours that they serve"
)
@click.option("--watts", type=Number("700"), help="of each GPU with its part of the node; default: its own")
@click.option("--dtype", type=Format(), help="format of the linear layers; default the checkpoint's")
@click.option("--weight-dtype", type=Format(), help="storage format of the linear layers")
@click.option("--kv-dtype", type=Format(), help="storage format of the cache; default 16 bits")
@layout_options
@set_option
@output_options
def command(gpu: str | None, model: str, price: str, changes: dict[str, str], **options: Any) -> int:
    """Tokens in money and energy, at the prices you name; what one choice saves over another."""
    from memwall.render import cost as view

    output = Output(**{key: options.pop(key) for key in Output._fields})
    loaded = load_model(model)
    defaults = defaults_of(GPU=(gpu, DEFAULT_GPU))
    prices = iter(prices_of(price, len(named_gpus(gpu))))

    def make(device: Device) -> CostReport:
        return cost(loaded, gpu=device, price=next(prices), defaults=defaults, **options)

    rows: list[CostReport | Refusal] = on_each(gpu, changes, make)
    code = show(output, rows, view)
    return code or int(not any(isinstance(row, CostReport) and row.fits for row in rows))
