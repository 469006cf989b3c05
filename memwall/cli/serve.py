"""memwall serve."""

from __future__ import annotations

from typing import Any

import click

from memwall.cli.devices import on_each, show
from memwall.cli.layouts import layout_options
from memwall.cli.models import load_model, model_option
from memwall.cli.options import Count, Format, defaults_of, gpu_option, output_options, set_option
from memwall.cli.output import Output
from memwall.cli.serving import serving_options
from memwall.errors import Refusal
from memwall.hardware import Device
from memwall.reports.case import DEFAULT_GPU
from memwall.reports.serve import ServeReport, serve

EPILOG = """\b
Examples:
  memwall serve --model llama3-70b --gpu h100 --tp 8 --dtype fp8 --concurrency 64 --isl 1024 --osl 1024
  memwall serve --model llama3-70b --gpu h100 --tp 8 --concurrency 64 --isl 1024 --osl 512 --engine sglang
  memwall serve --model deepseek-v3 --gpu h200,b200 --tp 8 --ep 8 --concurrency 128 --isl 8192 --osl 1024

\b
Exit code 1: it does not fit; of several GPUs, on none.
"""


@click.command("serve", epilog=EPILOG)
@model_option
@gpu_option
@click.option("--concurrency", "users", type=Count(64), default=1, help="requests in flight; default 1")
@click.option("--isl", type=Count(2048), required=True, help="tokens of a prompt")
@click.option("--osl", type=Count(512), required=True, help="tokens of an answer")
@serving_options
@click.option("--dtype", type=Format(), help="format of the linear layers; default the checkpoint's")
@click.option("--weight-dtype", type=Format(), help="storage format of the linear layers")
@click.option("--kv-dtype", type=Format(), help="storage format of the cache; default 16 bits")
@layout_options
@set_option
@output_options
def command(gpu: str | None, model: str, changes: dict[str, str], **options: Any) -> int:
    """Serving at a constant number of users: TTFT, TPOT, throughput."""
    from memwall.render import serve as view

    output = Output(**{key: options.pop(key) for key in Output._fields})
    loaded = load_model(model)
    defaults = defaults_of(GPU=(gpu, DEFAULT_GPU))

    def make(device: Device) -> ServeReport:
        return serve(loaded, gpu=device, defaults=defaults, **options)

    rows: list[ServeReport | Refusal] = on_each(gpu, changes, make)
    code = show(output, rows, view)
    return code or int(not any(isinstance(row, ServeReport) and row.fits for row in rows))
