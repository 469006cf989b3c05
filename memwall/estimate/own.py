"""A user's calibration: it serves the GPUs that it names, and no other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memwall.errors import UsageError, shown
from memwall.estimate.constants import Fit, load
from memwall.hardware import Device

UNMEASURED = {"fa1": "no measured FA1 kernel stands behind an estimate, and it moves more than the others"}
"""Implementations that have no estimate, and why: the formulas are of kernels that keep O on the chip."""


def unmeasured(impl: str | None, own: Sequence[Fit] = ()) -> str | None:
    """Why an implementation has no estimate; None: it has one, a user's own calibration's at least."""
    if any(fit.library.kernel == impl for fit in own):
        return None
    return UNMEASURED.get(impl or "")


def own_fits(path: str | None, *devices: Device) -> tuple[Fit, ...]:
    """The fits of a user's calibration, if one is given, for some devices.

    Raises:
        FileError: not such a file.
        UsageError: it names none of the devices.
    """
    fits = load(path) if path else ()
    check_named(path, fits, devices)
    return fits


def names_of(fits: Iterable[Fit]) -> list[str]:
    """The GPUs that fits were measured on."""
    return sorted({gpu for fit in fits for gpu in fit.gpus})


def check_named(path: str | None, fits: Sequence[Fit], devices: Iterable[Device]) -> None:
    """Constants measured on one GPU say nothing about another.

    Raises:
        UsageError: the calibration names none of the devices.
    """
    asked, names = sorted({device.name for device in devices}), names_of(fits)
    if path and asked and not set(asked) & set(names):
        known = ", ".join(names) or "no GPU"
        raise UsageError(
            f"--calibration {shown(path, 120)} is of {known}, not of {', '.join(asked)}",
            "Leave it out: the shipped constants serve other GPUs; or measure one: memwall calibrate",
        )
