"""memwall attention."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from memwall.cli.devices import answer
from memwall.cli.models import load_model
from memwall.cli.options import (
    ATTENTION_DIMS,
    MODEL,
    Format,
    causal_option,
    dtype_option,
    estimate_options,
    gpu_option,
    output_options,
    set_option,
    shape_options,
)
from memwall.reports.attention import attention

EPILOG = """\b
Examples:
  memwall attention --model llama3-70b --seq 8192
  memwall attention --model llama3-70b --seq-q 1 --seq-kv 8192 --batch 16
  memwall attention --heads 1 --head-dim 128 --seq 4096 --non-causal
  memwall attention --model gemma2-27b --seq 16384 --gpu h100,b200 --json
"""


@click.command("attention", epilog=EPILOG)
@click.option(
    "--model",
    type=MODEL,
    help="a model, its YAML file, its config.json or the folder with one: memwall model list",
)
@gpu_option
@shape_options(ATTENTION_DIMS)
@dtype_option
@click.option("--kv-dtype", type=Format(), help="storage format of K and V")
@causal_option
@set_option
@estimate_options
@output_options
def command(gpu: str | None, model: str | None, changes: dict[str, str], **options: Any) -> int:
    """Standard and flash attention side by side, per head, layer and pass."""
    from memwall.render import attention as view

    loaded = load_model(model) if model else None
    return answer(partial(attention, loaded), view, gpu, changes, options)
