"""memwall crossover."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from memwall.cli.devices import answer
from memwall.cli.options import (
    IMPL,
    OP,
    Count,
    Format,
    causal_option,
    dtype_option,
    gpu_option,
    output_options,
    set_option,
    shape_options,
)

EPILOG = """\b
Examples:
  memwall crossover --op gemv --gpu h100 --vary batch
  memwall crossover --op gemm --n 8192 --k 8192 --vary m --gpu a100,h100,h200,mi300x
  memwall crossover --op attention --heads 32 --head-dim 128 --vary seq --json

\b
The first: at batch 318 an H100 still waits for memory, from 319 on for its matrix unit: 296 FLOP/B there,
where the ridge is 295.1.
"""


@click.command("crossover", epilog=EPILOG)
@click.option("--op", type=OP, required=True, help="the operator: memwall op list")
@click.option("--vary", required=True, metavar="DIMENSION", help="what grows: batch, m, seq ...")
@click.option("--from", "least", type=Count(), help="its first value; default 1")
@click.option("--to", "most", type=Count(), help="its last value; default 2^40, or what the operator allows")
@gpu_option
@shape_options()
@dtype_option
@click.option("--weight-dtype", type=Format(), help="storage format of the weights")
@click.option("--kv-dtype", type=Format(), help="storage format of K and V")
@click.option("--out-dtype", type=Format(), help="storage format of the result")
@click.option("--impl", type=IMPL, help="an implementation of the operator")
@causal_option
@set_option
@output_options
def command(
    op: str, vary: str, least: int | None, gpu: str | None, changes: dict[str, str], **options: Any
) -> int:
    """Where the regime changes as a dimension grows, exactly, and on several GPUs."""
    from memwall.render import crossover as view
    from memwall.reports.crossover import crossover

    options["least"] = least or 1
    return answer(partial(crossover, op, vary), view, gpu, changes, options)
