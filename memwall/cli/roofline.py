"""memwall roofline."""

from __future__ import annotations

from typing import Any

import click

from memwall.cli.amounts import ByteAmount
from memwall.cli.devices import answer
from memwall.cli.estimates import estimate_options
from memwall.cli.options import (
    IMPL,
    OP,
    Amount,
    Format,
    causal_option,
    dtype_option,
    gpu_option,
    output_options,
    set_option,
    shape_options,
)
from memwall.reports.roofline import roofline

EPILOG = """\b
Examples:
  memwall roofline --gpu h100 --op gemv
  memwall roofline --gpu h100 --op gemm --m 4096 --n 4096 --k 4096 --dtype fp8
  memwall roofline --gpu v100,a100,h100,mi300x --op gemv --batch 32
  memwall roofline --gpu h100 --op gemv --weight-dtype int4-g128
  memwall roofline --gpu h100 --flops 4.2e12 --bytes 1.6e10
  memwall roofline --gpu h200 --op gemm --m 4096 --n 4096 --k 4096 --levels
  memwall roofline --gpu h100 --op gemv --set memory.bandwidth_gb_per_s=4000

An operator's dimensions: memwall op show OP
"""


@click.command("roofline", epilog=EPILOG)
@gpu_option
@click.option("--op", type=OP, help="the operator: memwall op list")
@shape_options()
@dtype_option
@click.option("--weight-dtype", type=Format(), help="storage format of the weights, e.g. fp8 or int4-g128")
@click.option("--kv-dtype", type=Format(), help="storage format of K and V")
@click.option("--out-dtype", type=Format(), help="storage format of the result")
@click.option(
    "--impl", type=IMPL, help="attention: flash or standard; silu_mul, residual norms: fused or eager"
)
@causal_option
@click.option("--flops", type=Amount(), help="FLOPs of any kernel, instead of --op")
@click.option("--bytes", type=ByteAmount(), help="bytes that it moves: 1.6e10, 16GB")
@click.option("--levels", is_flag=True, help="a roof for each level: main memory, L2, shared memory")
@set_option
@estimate_options
@output_options
def command(gpu: str | None, changes: dict[str, str], levels: bool, **options: Any) -> int:
    """What one kernel must cost: FLOPs, bytes, regime and bound time."""
    if levels:
        from memwall.render import levels as levels_view
        from memwall.reports.levels import level_roofline

        return answer(level_roofline, levels_view, gpu, changes, options)
    from memwall.render import roofline as view

    return answer(roofline, view, gpu, changes, options)
