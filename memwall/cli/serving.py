"""The options that say how a serving engine was started, and how its users ask."""

from __future__ import annotations

from typing import Any

import click

from memwall.cli.options import Count, F
from memwall.errors import UsageError, shown
from memwall.reports.serve import ROUNDS, SPREAD
from memwall.reports.serve_engines import DEFAULT_ENGINE, ENGINES, engine_of
from memwall.units import parse_count, parse_number


class Steps(click.ParamType[int]):
    """A whole number of steps, none too."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number."""
        flag = param.opts[0] if param else "the value"
        return value if isinstance(value, int) else parse_count(value, flag, least=0, example=1)


class Part(click.ParamType[float]):
    """A part of a whole, above 0 and up to 1."""

    name = "part"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The part."""
        flag = param.opts[0] if param else "the value"
        number = value if isinstance(value, int | float) else parse_number(value, flag)
        if not 0 < number <= 1:
            raise UsageError(f"{flag} must be above 0 and at most 1, not '{shown(value)}'", f"Try {flag} 0.8")
        return float(number)


def _engine(_: click.Context, __: click.Parameter, name: str) -> str:
    return engine_of(name).name


def serving_options(command: F) -> F:
    """What stands in an engine's command line, and in a benchmark's."""
    for option in (
        click.option("--stream", type=Count(), default=1, help="tokens of an answer sent at once; default 1"),
        click.option("--hold", type=Steps(), default=0, help="steps a prompt is held for others; default 0"),
        click.option("--poll", type=Count(), default=1, help="steps between looks for requests; default 1"),
        click.option("--ahead", type=Steps(), help="steps scheduled ahead; default the engine's"),
        click.option("--max-batch", type=Count(), help="requests run at once; default what memory holds"),
        click.option(
            "--engine",
            metavar="NAME",
            default=DEFAULT_ENGINE,
            callback=_engine,
            help=f"{', '.join(ENGINES)}; default vllm",
        ),
        click.option(
            "--spread",
            type=Part(),
            default=SPREAD,
            help="lengths vary from this part of them up; default 0.99",
        ),
        click.option("--rounds", type=Count(), default=ROUNDS, help="requests of each user; default 10"),
    ):
        command = option(command)
    return command
