"""The options that say how a model stands on several GPUs."""

from __future__ import annotations

from typing import Any

import click

from memwall.cli.options import Amount, Count, F
from memwall.units import parse_seconds


class Seconds(click.ParamType[float]):
    """A time with its unit: 30ms."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The time in seconds."""
        flag = param.opts[0] if param else "the value"
        return value if isinstance(value, float) else parse_seconds(value, flag)


def layout_options(command: F) -> F:
    """--tp, --pp, --ep, --dp, --sequence-parallel and --imbalance."""
    for option in (
        click.option("--imbalance", type=Amount(), default=1, help="busiest experts' GPU: tokens / mean"),
        click.option("--sequence-parallel", is_flag=True, help="norms and sums cut by tokens among tp GPUs"),
        click.option("--dp", type=Count(), default=1, help="replicas of all but the experts; default 1"),
        click.option("--ep", type=Count(), default=1, help="GPUs of the tp x dp that experts are spread on"),
        click.option("--pp", type=Count(), default=1, help="stages that the layers are cut in; default 1"),
        click.option("--tp", type=Count(), default=1, help="GPUs that each matrix is cut between; default 1"),
    ):
        command = option(command)
    return command
