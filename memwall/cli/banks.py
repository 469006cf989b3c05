"""memwall banks."""

from __future__ import annotations

from typing import Any

import click

from memwall.access import ACCESSES
from memwall.cli.chip_options import Extents
from memwall.cli.devices import on_each, show
from memwall.cli.options import Count, defaults_of, gpu_option, output_options, set_option
from memwall.cli.output import Output
from memwall.hardware import Device
from memwall.reports.access import BanksReport, banks
from memwall.reports.case import DEFAULT_GPU

EPILOG = """\b
Examples:
  memwall banks --shape 32x32 --access column
  memwall banks --shape 32x32 --access column --pad 1
  memwall banks --shape 64x64 --access row --element 16 --gpu a100 --json

\b
The first: all 32 threads want bank 0, 32 passes, 1/32 of the bandwidth. With --pad 1 row i begins in bank
i: 1.
"""


@click.command("banks", epilog=EPILOG)
@click.option("--shape", type=Extents("32x32"), required=True, help="rows x columns of the tile")
@click.option(
    "--access", type=click.Choice(ACCESSES), required=True, help="what the 32 threads of a warp take together"
)
@click.option("--element", type=Count(), help="bytes an element: 1, 2, 4, 8 or 16; default 4")
@click.option("--pad", type=click.IntRange(0), default=0, help="elements added to each row; default 0")
@gpu_option
@set_option
@output_options
def command(
    gpu: str | None,
    changes: dict[str, str],
    shape: tuple[int, int],
    access: str,
    element: int | None,
    pad: int,
    **options: Any,
) -> int:
    """Bank conflicts in shared memory, and what padding does."""
    from memwall.render.access import BanksView

    defaults = defaults_of(
        GPU=(gpu, DEFAULT_GPU), element=(None if element is None else str(element), "4 bytes")
    )

    def make(device: Device) -> BanksReport:
        return banks(*shape, access, element or 4, pad, gpu=device, defaults=defaults)

    return show(Output(**options), on_each(gpu, changes, make), BanksView())
