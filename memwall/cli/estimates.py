"""The options of every command that prints an estimate beside its bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from memwall import hardware
from memwall.cli.options import named_gpus
from memwall.hardware import Device

F = TypeVar("F", bound=Callable[..., Any])


CALIBRATION = click.option(
    "--calibration", metavar="FILE", help="constants of your own, for the GPUs it names (memwall calibrate)"
)


def _known(_: click.Context, __: click.Parameter, name: str | None) -> str | None:
    """A misspelt library is refused also where no estimate is asked for."""
    if name is not None:
        from memwall.estimate.library import library_named

        library_named(name)
    return name


LIBRARY = click.option(
    "--library",
    metavar="NAME",
    callback=_known,
    help="whose kernel is estimated, e.g. cublas, fa3, trtllm, vllm",
)


def on_one(options: dict[str, Any], device: Device, gpus: str | None) -> dict[str, Any]:
    """The options for one of several GPUs: a calibration of some of them is not for the others.

    One of none of them stays, for the report to refuse.
    """
    path = options.get("calibration")
    if not path or options.get("bound_only"):
        return options
    from memwall.estimate.constants import load
    from memwall.estimate.own import names_of

    names = names_of(load(path))
    asked = {hardware.load(name).name for name in named_gpus(gpus)}
    return options | {"calibration": None} if asked & set(names) and device.name not in names else options


def estimate_options(command: F) -> F:
    """--library, --calibration and --bound-only."""
    for option in (
        click.option("--bound-only", is_flag=True, help="leave out the estimate"),
        CALIBRATION,
        LIBRARY,
    ):
        command = option(command)
    return command
