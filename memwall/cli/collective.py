"""memwall collective."""

from __future__ import annotations

from typing import Any

import click

from memwall.cli.amounts import Bytes
from memwall.cli.devices import on_each, show
from memwall.cli.options import Count, defaults_of, gpu_option, output_options, set_option
from memwall.cli.output import Output
from memwall.hardware import Device
from memwall.reports.case import DEFAULT_GPU
from memwall.reports.collective import CollectiveReport, collective_time

EPILOG = """\b
Examples:
  memwall collective all_reduce --bytes 64MiB --gpus 8 --gpu h100
  memwall collective all-gather --bytes 2^30 --gpus 4 --gpu a100,h100,b200,l40s
  memwall collective all_reduce --bytes 2^24 --gpus 16 --nodes 2 --gpu h100
  memwall collective all_reduce --bytes 16384 --gpus 8 --set links.nvlink.gb_per_s_per_direction=225

\b
all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, send_recv; bytes as nccl-tests counts them.
"""


@click.command("collective", epilog=EPILOG)
@click.argument("op")
@click.option(
    "--bytes", "size_bytes", type=Bytes(), required=True, help="64MiB; of all_gather the whole output"
)
@click.option("--gpus", type=Count(8), default=8, help="GPUs that take part; default 8")
@click.option("--nodes", type=Count(2), default=1, help="nodes that they stand on; default 1")
@click.option("--node", help="a node of the catalogue, or its file; default: the GPU's own")
@gpu_option
@set_option
@output_options
def command(gpu: str | None, changes: dict[str, str], **options: Any) -> int:
    """What a collective takes: its bound, and the time of a good library."""
    from memwall.render import collective as view

    output = Output(**{key: options.pop(key) for key in Output._fields})
    defaults = defaults_of(GPU=(gpu, DEFAULT_GPU))

    def make(device: Device) -> CollectiveReport:
        return collective_time(gpu=device, defaults=defaults, **options)

    return show(output, on_each(gpu, changes, make), view)
