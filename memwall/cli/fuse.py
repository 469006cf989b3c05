"""memwall fuse."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from memwall.cli.devices import answer
from memwall.cli.options import Count, Format, dtype_option, gpu_option, output_options, set_option

EPILOG = """\b
Examples:
  memwall fuse linear,gelu,layernorm --tokens 16384 --hidden 1024
  memwall fuse residual-norm --tokens 4096 --hidden 8192
  memwall fuse qkv --tokens 8 --hidden 8192 --kv-width 1024 --gpu h100,a100
  memwall fuse mlp --tokens 4096 --hidden 4096 --width 14336 --json

\b
The second: add and norm move 5 x 67.1 MB, as one kernel 4 x, since the sum stays on chip between them
and is still written for the next layer: 1.25 times less.
"""


@click.command("fuse", epilog=EPILOG)
@click.argument("steps", metavar="STEPS")
@click.option("--tokens", type=Count(), required=True, help="rows")
@click.option("--hidden", type=Count(), required=True, help="columns of the input")
@click.option("--width", type=Count(), help="columns that a linear writes; mlp: the hidden layer's")
@click.option("--kv-width", type=Count(), help="qkv: columns of K and of V; default: hidden")
@dtype_option
@click.option("--weight-dtype", type=Format(), help="storage format of the weights")
@gpu_option
@set_option
@output_options
def command(steps: str, gpu: str | None, changes: dict[str, str], **options: Any) -> int:
    """What fusion saves: bytes unfused, in each legal fusion, and all as one kernel.

    STEPS is a chain such as linear,gelu,layernorm (linear:14336 gives a width; also add, rmsnorm, softmax),
    or residual-norm, qkv or mlp.
    """
    from memwall.render import fuse as view
    from memwall.reports.fuse import fuse

    return answer(partial(fuse, steps), view, gpu, changes, options)
