"""Runs on the GPU at hand, as verify and calibrate make them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from memwall import hardware
from memwall.errors import CannotVerify, UnknownName, UsageError, shown

if TYPE_CHECKING:
    from memwall.hardware import Device
    from memwall.verify.case import Trial
    from memwall.verify.host import Settings
    from memwall.verify.outcome import Outcome

Keep = Callable[["Device", Mapping[str, Any], Sequence["Outcome"]], None]


def timed(
    trials: Sequence[Trial], settings: Settings, gpu: str | None, keep: Keep | None = None
) -> tuple[Mapping[str, Any], Device, Sequence[Outcome]]:
    """Every trial timed on the GPU, each kept as soon as it is.

    Raises:
        CannotVerify: nothing can run here.
        UsageError: the GPU is not in the catalogue, and none was named.
    """
    from memwall.verify import host

    device = hardware.load(gpu) if gpu else None
    machine: Mapping[str, Any] = {}
    outcomes: list[Outcome] = []
    quiet = not (sys.stderr and sys.stderr.isatty())
    events = host.timed(trials, settings)
    with click.progressbar(events, len(trials) + 1, "running", hidden=quiet, file=sys.stderr) as bar:
        for event in bar:
            if isinstance(event, Mapping):
                machine = {**event, "seed": settings.seed, "budget_s": settings.budget_s}
                device = device or _found(machine)
                continue
            outcomes.append(event)
            if device and keep:
                keep(device, machine, outcomes)
    if device is None:
        raise CannotVerify("the worker named no GPU", "Name it: --gpu h100")
    return machine, device, outcomes


def _found(machine: Mapping[str, Any]) -> Device:
    """The catalogue's device of the name that the driver gives."""
    try:
        return hardware.load(machine["gpu_name"])
    except UnknownName as error:
        raise UsageError(
            f"this GPU, {machine['gpu_name']}, is not in the catalogue",
            "Name one to predict for, or a file of yours: --gpu my-gpu.yaml",
        ) from error


def check_folder(name: str, path: str | None) -> None:
    """See that a file can be written there.

    Raises:
        UsageError: there is no such folder, or it is closed to this user.
    """
    folder = os.path.dirname(os.path.realpath(path or "x"))
    if path and not os.access(folder, os.W_OK):
        raise UsageError(
            f"{name} {shown(path, 120)}: cannot be written", "Name a file in a folder that exists"
        )
