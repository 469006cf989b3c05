"""The options of every command that prints an estimate beside its bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def estimate_options(command: F) -> F:
    """--library, --calibration and --bound-only."""
    for option in (
        click.option("--bound-only", is_flag=True, help="leave out the estimate"),
        click.option("--calibration", metavar="FILE", help="constants of your own: memwall calibrate"),
        click.option(
            "--library", metavar="NAME", help="whose kernel is estimated, e.g. cublas, fa3, trtllm, vllm"
        ),
    ):
        command = option(command)
    return command
