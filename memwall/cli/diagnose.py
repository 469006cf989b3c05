"""memwall diagnose."""

from __future__ import annotations

from typing import Any

import click

from memwall.cli.devices import show
from memwall.cli.options import (
    GPU,
    IMPL,
    OP,
    Format,
    causal_option,
    dtype_option,
    output_options,
    set_option,
    shape_options,
)
from memwall.cli.output import Output

EPILOG = """\b
Examples:
  memwall diagnose report.csv
  memwall diagnose report.csv --kernel nvjet_sm90_tst_256 --op gemm --m 4096 --n 4096 --k 4096 --dtype bf16
  memwall diagnose table.csv --gpu mi300x --json

\b
Exports that are read:
  ncu --set full -o report ./app; ncu -i report.ncu-rep --csv --page raw > report.csv     (or details)
  rocprof-compute analyze -p workloads/app/MI300X --save-dfs tables      (its Speed-of-Light table)

\b
A transpose through an unpadded tile on an H200: 22 % of the memory bandwidth, and 94 % of the passes over
shared memory are conflicts. So padding comes first.
"""


@click.command("diagnose", epilog=EPILOG)
@click.argument("path", metavar="REPORT.csv")
@click.option("--gpu", type=GPU, help="the GPU; default: the one that the export names")
@click.option("--kernel", metavar="TEXT", help="only kernels with this in their name")
@click.option("--op", type=OP, help="what the kernels compute together, to compare bytes")
@shape_options()
@dtype_option
@click.option("--weight-dtype", type=Format(), help="storage format of the weights")
@click.option("--kv-dtype", type=Format(), help="storage format of K and V")
@click.option("--out-dtype", type=Format(), help="storage format of the result")
@click.option("--impl", type=IMPL, help="an implementation of the operator")
@causal_option
@set_option
@output_options
def command(path: str, changes: dict[str, str], **options: Any) -> int:
    """Read a profiler's CSV: each kernel on the roofline, healthy ranges, next steps."""
    from memwall.diagnose.report import diagnose
    from memwall.render import diagnose as view

    output = Output(**{key: options.pop(key) for key in Output._fields})
    return show(output, [diagnose(path, changes=changes, **options)], view, view.rows)
