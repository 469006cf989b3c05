"""memwall attention."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from memwall.cli.devices import answer
from memwall.cli.estimates import estimate_options
from memwall.cli.models import load_model
from memwall.cli.options import (
    ATTENTION_DIMS,
    MODEL,
    Count,
    Format,
    causal_option,
    dtype_option,
    gpu_option,
    output_options,
    set_option,
    shape_options,
)
from memwall.errors import UsageError
from memwall.reports.attention import attention

EPILOG = """\b
Examples:
  memwall attention --model llama3-70b --seq 8192
  memwall attention --model llama3-70b --seq-q 1 --seq-kv 8192 --batch 16
  memwall attention --heads 1 --head-dim 128 --seq 4096 --non-causal
  memwall attention --model gemma2-27b --seq 16384 --gpu h100,b200 --json
  memwall attention --impl all --gpu h200 --heads 32 --head-dim 128 --seq 4096 --non-causal

\b
The last: FA2 reads 103 MB from memory, 100.7 of them compulsory; an H200 counts 104.6.
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
@click.option(
    "--impl",
    type=click.Choice(["all", "standard", "fa1", "fa2", "fa3"]),
    help="the generations side by side: bytes at each level, loops, exponentials, backward",
)
@click.option("--block-q", type=Count(), help="with --impl: queries a block; default each generation's own")
@click.option("--block-kv", type=Count(), help="with --impl: keys a block")
@causal_option
@set_option
@estimate_options
@output_options
def command(
    gpu: str | None,
    model: str | None,
    changes: dict[str, str],
    impl: str | None,
    block_q: int | None,
    block_kv: int | None,
    **options: Any,
) -> int:
    """Standard and flash attention side by side, per head, layer and pass."""
    loaded = load_model(model) if model else None
    if impl is not None:
        from memwall.render import generations as generations_view
        from memwall.reports.generations import generations

        options |= {"impl": impl, "block_q": block_q, "block_kv": block_kv}
        return answer(partial(generations, loaded), generations_view, gpu, changes, options)
    if block_q is not None or block_kv is not None:
        raise UsageError("--block-q and --block-kv belong to --impl", "Add --impl all")
    from memwall.render import attention as view

    return answer(partial(attention, loaded), view, gpu, changes, options)
