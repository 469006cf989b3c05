"""memwall hierarchy."""

from __future__ import annotations

from typing import Any

import click

from memwall.cli.devices import on_each, show
from memwall.cli.options import defaults_of, gpu_option, output_options, set_option
from memwall.cli.output import Output
from memwall.hardware import Device
from memwall.reports.case import DEFAULT_GPU
from memwall.reports.hierarchy import HierarchyReport, hierarchy

EPILOG = """\b
Examples:
  memwall hierarchy --gpu h100
  memwall hierarchy --gpu a100,h200,mi300x --json

\b
Shared memory of an H100: 132 SMs x 32 banks x 4 B x 1980 MHz = 33.45 TB/s; an H200, the same die, measured
33.1. What each level means for a kernel: memwall roofline --op gemm --m 4096 --n 4096 --k 4096 --levels
"""


@click.command("hierarchy", epilog=EPILOG)
@gpu_option
@set_option
@output_options
def command(gpu: str | None, changes: dict[str, str], **options: Any) -> int:
    """The memory hierarchy: size, bandwidth, latency and scope of each level, with sources."""
    from memwall.render import hierarchy as view

    defaults = defaults_of(GPU=(gpu, DEFAULT_GPU))

    def make(device: Device) -> HierarchyReport:
        return hierarchy(device, defaults=defaults)

    return show(Output(**options), on_each(gpu, changes, make), view, view.rows)
