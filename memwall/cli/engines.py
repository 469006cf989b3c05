"""The option that names a serving engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def _known(_: click.Context, __: click.Parameter, name: str | None) -> str | None:
    """A misspelt engine is refused also where no estimate is asked for."""
    if name is not None:
        from memwall.estimate.engine import engine_named

        engine_named(name)
    return name


def engine_option(command: F) -> F:
    """--engine."""
    option = click.option(
        "--engine",
        metavar="NAME",
        callback=_known,
        help="decode: whose step is estimated: llama.cpp, vllm, tensorrt-llm, gpt-fast; default none",
    )
    return option(command)
