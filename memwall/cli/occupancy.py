"""memwall occupancy."""

from __future__ import annotations

from typing import Any

import click

from memwall.cli.chip_options import Bytes
from memwall.cli.devices import on_each, show
from memwall.cli.options import Count, defaults_of, gpu_option, output_options, set_option
from memwall.cli.output import Output
from memwall.hardware import Device
from memwall.reports.case import DEFAULT_GPU
from memwall.reports.occupancy import OccupancyReport, occupancy

EPILOG = """\b
Examples:
  memwall occupancy --gpu h100 --registers 64 --threads 256 --smem 64KiB
  memwall occupancy --gpu v100,a100,h100,rtx-5090 --registers 128 --threads 128
  memwall occupancy --registers 300 --threads 128 --json

\b
The first: 65 KiB a block with the 1 KiB that is reserved, 3 blocks in 228 KiB, 24 of 64 warps: 37.5 %.
"""


@click.command("occupancy", epilog=EPILOG)
@gpu_option
@click.option("--threads", type=Count(), required=True, help="threads a block, up to 1024")
@click.option("--registers", type=Count(), help="registers a thread; default 32; beyond 255 they are spilled")
@click.option("--smem", type=Bytes(), help="shared memory a block, such as 64KiB; a bare number is bytes")
@set_option
@output_options
def command(
    gpu: str | None,
    changes: dict[str, str],
    threads: int,
    registers: int | None,
    smem: int | None,
    **options: Any,
) -> int:
    """Blocks and warps an SM by CUDA's rules, which resource limits, what spills."""
    from memwall.render import occupancy as view

    asked = None if registers is None else str(registers)
    defaults = defaults_of(GPU=(gpu, DEFAULT_GPU), registers=(asked, "32"))

    def make(device: Device) -> OccupancyReport:
        return occupancy(threads, registers or 32, smem or 0, gpu=device, defaults=defaults)

    return show(Output(**options), on_each(gpu, changes, make), view)
