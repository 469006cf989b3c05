"""The options that say how a model stands on several GPUs."""

from __future__ import annotations

import click

from memwall.cli.amounts import Number
from memwall.cli.options import Count, F, Size


def layout_options(command: F) -> F:
    """How it stands on several GPUs and their host."""
    for option in (
        click.option("--imbalance", type=Number("1.2", 1), default=1, help="busiest GPU: tokens / mean"),
        click.option("--sequence-parallel", is_flag=True, help="norms and sums cut by tokens among tp GPUs"),
        click.option("--dp", type=Count(2), default=1, help="replicas of all but the experts; default 1"),
        click.option("--ep", type=Count(8), default=1, help="GPUs of the tp x dp that experts are spread on"),
        click.option("--pp", type=Count(2), default=1, help="stages that the layers are cut in; default 1"),
        click.option("--tp", type=Count(8), default=1, help="GPUs that share each matrix; default 1"),
    ):
        command = option(command)
    return command


def offload_options(command: F) -> F:
    """What of a pass is kept in the host's memory."""
    for option in (
        click.option("--offload-cache", type=Size(), help="of each GPU's cache, kept in the host's memory"),
        click.option("--offload-weights", type=Size(), help="of each GPU, kept in the host's memory: 40GiB"),
    ):
        command = option(command)
    return command
