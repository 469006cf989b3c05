"""memwall access."""

from __future__ import annotations

from typing import Any

import click

from memwall.access import PATTERNS
from memwall.cli.devices import on_each, show
from memwall.cli.options import Count, defaults_of, gpu_option, output_options, set_option
from memwall.cli.output import Output
from memwall.hardware import Device
from memwall.reports.access import AccessReport, access
from memwall.reports.case import DEFAULT_GPU

EPILOG = """\b
Examples:
  memwall access --pattern strided --stride 4 --element 4 --gpu h100
  memwall access --pattern coalesced --element 16
  memwall access --pattern random --gpu a100,h200 --json

\b
The first: 32 threads x 16 bytes apart touch 16 sectors in 4 lines for 128 useful bytes: 25 % of 3.352 TB/s.
"""


@click.command("access", epilog=EPILOG)
@click.option("--pattern", type=click.Choice(PATTERNS), required=True, help="which elements 32 threads load")
@click.option("--stride", type=Count(), help="elements between neighbouring threads, for strided")
@click.option("--element", type=Count(), help="bytes that a thread loads: 1, 2, 4, 8 or 16; default 4")
@click.option("--offset", type=click.IntRange(0), default=0, help="elements from a line's start; default 0")
@gpu_option
@set_option
@output_options
def command(
    gpu: str | None,
    changes: dict[str, str],
    pattern: str,
    stride: int | None,
    element: int | None,
    offset: int,
    **options: Any,
) -> int:
    """Sectors and lines of a warp's request to memory, and the bandwidth that is left."""
    from memwall.render.access import AccessView

    defaults = defaults_of(
        GPU=(gpu, DEFAULT_GPU), element=(None if element is None else str(element), "4 bytes")
    )

    def make(device: Device) -> AccessReport:
        return access(pattern, element or 4, stride, offset, gpu=device, defaults=defaults)

    return show(Output(**options), on_each(gpu, changes, make), AccessView())
