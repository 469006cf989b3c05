"""memwall explain."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import Any

import click

from memwall.cli.devices import answer
from memwall.cli.options import (
    IMPL,
    OP,
    Format,
    causal_option,
    dtype_option,
    gpu_option,
    output_options,
    set_option,
    shape_options,
)
from memwall.errors import NotAvailable

EPILOG = """\b
Examples:
  memwall explain gemm --m 4096 --n 4096 --k 4096 --gpu h100
  memwall explain attention --heads 32 --head-dim 128 --seq 4096 --non-causal --latex
  memwall explain rmsnorm --rows 4096 --cols 8192 --gpu a100,h100 --json

\b
The first: F = 2 k m n = 2 x 4096^3 = 137.4 GFLOP; T_mat = F / P = 138.9 us, the largest term.
"""


@click.command("explain", epilog=EPILOG)
@click.argument("op", type=OP)
@gpu_option
@shape_options()
@dtype_option
@click.option("--weight-dtype", type=Format(), help="storage format of the weights")
@click.option("--kv-dtype", type=Format(), help="storage format of K and V")
@click.option("--out-dtype", type=Format(), help="storage format of the result")
@click.option("--impl", type=IMPL, help="an implementation of the operator: memwall op show OP")
@causal_option
@click.option("--latex", is_flag=True, help="formulas as LaTeX")
@set_option
@output_options
def command(op: str, gpu: str | None, changes: dict[str, str], **options: Any) -> int:
    """Every quantity of an operator: its formula, the numbers in it, the result, the source."""
    if find_spec("sympy") is None:
        raise NotAvailable(
            "memwall explain works on symbols and needs sympy", "Try pip install 'memwall[explain]'"
        )
    from memwall.explain.report import explain
    from memwall.render import explain as view

    return answer(partial(explain, op), view, gpu, changes, options, view.rows)
