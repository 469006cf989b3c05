"""The options that say how a model stands on several GPUs."""

from __future__ import annotations

from typing import Any

import click

from memwall.cli.options import Amount, Count, F, Size
from memwall.errors import UsageError
from memwall.units import parse_number, parse_seconds


class Seconds(click.ParamType[float]):
    """A time with its unit: 30ms."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The time in seconds."""
        flag = param.opts[0] if param else "the value"
        return value if isinstance(value, float) else parse_seconds(value, flag)


class Rate(click.ParamType[float]):
    """A number above zero, a fraction too."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        flag = param.opts[0] if param else "the value"
        number = value if isinstance(value, int | float) else parse_number(value, flag)
        if number <= 0:
            raise UsageError(f"{flag} must be above 0, not '{value}'", f"Try {flag} 0.5")
        return float(number)


def prices_of(text: str, gpus: int) -> list[float]:
    """One price for each GPU; a single one is for all.

    Raises:
        UsageError: not numbers above zero, or not as many as GPUs.
    """
    prices = [float(parse_number(word.strip(), "--price")) for word in text.split(",")]
    if len(prices) not in (1, gpus):
        raise UsageError(f"{len(prices)} prices for {gpus} GPUs", "Name one, or one for each")
    if min(prices) <= 0:
        raise UsageError(f"--price is what a GPU-hour costs, above 0, not '{text}'", "Try --price 2.50")
    return prices * gpus if len(prices) == 1 else prices


def layout_options(command: F) -> F:
    """How it stands on several GPUs and their host."""
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


def offload_options(command: F) -> F:
    """What of a pass is kept in the host's memory."""
    for option in (
        click.option("--offload-cache", type=Size(), help="of each GPU's cache, kept in the host's memory"),
        click.option("--offload-weights", type=Size(), help="of each GPU, kept in the host's memory: 40GiB"),
    ):
        command = option(command)
    return command
