"""Which constants serve a kernel on a device, what that rests on, and how far off such estimates have been.

Of those that serve a kernel, the one closest in library, device and number format is taken:

    calibrated: h100      fitted on rows of this very GPU
    architecture default  fitted on other GPUs of its generation, or of a close relative
    physics               the mechanisms with constants between all generations
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from memwall.estimate.constants import GENERAL, Fit, bands, shipped
from memwall.estimate.families import ROWWISE
from memwall.estimate.library import HOST_TIMED, Library
from memwall.estimate.scope import concerned
from memwall.hardware import Device

# Devices by the compute capability or architecture in their file; relatives without rows share a file.
GENERATIONS = {
    "6.0": "pascal",
    "6.1": "pascal",
    "7.0": "volta",
    "7.5": "volta",
    "8.0": "ampere",
    "8.6": "ampere-ga10x",
    "8.7": "ampere-ga10x",
    "8.9": "ada",
    "12.0": "ada",  # GeForce and workstation Blackwell: mma.sync kernels, GDDR, like Ada and unlike B200
    "12.1": "ada",
    "9.0": "hopper",
    "10.0": "blackwell",
    "10.3": "blackwell",
    "11.0": "blackwell",
    "CDNA": "cdna",
    "CDNA 2": "cdna",
    "CDNA 3": "cdna",
    "CDNA 4": "cdna",
    "Xe2": "xe2",
}

PHYSICS, ARCHITECTURE, CALIBRATED = "physics", "architecture default", "calibrated"
FLASH = {"ampere": "fa2", "ampere-ga10x": "fa2", "ada": "fa2", "hopper": "fa3"}
"""What engines call on a generation under the name of flash attention: FA3 is for Hopper alone."""
LIBRARY_UNKNOWN = "library unknown"
"""Not a basis that is shown: how much wider the error is where nobody says which implementation runs."""
EAGER = "eager"
"""Steps that only a framework running without a compiler has, whichever the generation."""


class Choice(NamedTuple):
    """The constants taken for a kernel, and what that rests on."""

    fit: Fit
    basis: str
    """physics, architecture default, or calibrated: GPU."""
    error_p50: float | None
    error_p90: float | None


def generation_of(device: Device) -> str:
    """The calibration that serves the device's generation."""
    capability = device.group("unit").get("compute_capability")
    return GENERATIONS.get(str(capability), GENERATIONS.get(device.architecture, GENERAL))


def choose(family: str, number: str, device: Device, library: Library, own: Sequence[Fit] = ()) -> Choice:
    """The constants closest to a kernel on a device.

    Args:
        family: the mechanism's name.
        number: the class of number formats.
        device: where it runs.
        library: which implementation, as far as it is known.
        own: a user's calibration, which comes first on the GPUs that it names.

    Raises:
        LookupError: no calibration has the mechanism.
    """
    own = [fit for fit in own if device.name in fit.gpus]
    library = _concerned(family, device.name, generation_of(device), library)
    fit = _closest(family, number, device, library, own)
    same = fit.format in (number, "any")
    if same and device.name in fit.gpus:
        basis, errors = f"{CALIBRATED}: {device.name}", (fit.error_p50, fit.error_p90)
    else:
        elsewhere = fit.calibration == GENERAL and generation_of(device) not in fit.generations
        basis = PHYSICS if elsewhere else ARCHITECTURE
        errors = bands().get((family, basis), (fit.error_p50, fit.error_p90))
    if _flash_of(fit.library.kernel, device) != _flash_of(library.kernel, device):
        # constants of another library, or of all but this one
        errors = _wider(errors, bands().get((family, LIBRARY_UNKNOWN)))
    return Choice(fit, basis, *errors)


def _closest(family: str, number: str, device: Device, library: Library, own: Sequence[Fit]) -> Fit:
    generation = generation_of(device)
    # The next is read when the one before does not serve.
    for name in ("", device.name, generation, GENERAL, EAGER):
        fits = shipped(name) if name else own
        alike = [fit for fit in fits if fit.family == family and _timed_alike(fit, library)]
        serving = [fit for fit in alike if fit.format in (number, "any")]
        best = max(serving, key=lambda fit: _closeness(fit, device, library), default=None)
        if best is not None and _serves(best, library, device):
            return best
    # Another number format's constants: those of the generation, else the general ones.
    others = (fit for name in (generation, GENERAL) for fit in shipped(name) if fit.family == family)
    found = next((fit for fit in others if _timed_alike(fit, library)), None)
    if found is None:
        raise LookupError(family)
    return found


@cache
def _concerned(family: str, device: str, generation: str, library: Library) -> Library:
    """The library, as far as this mechanism has to do with it."""
    names = (device, generation, GENERAL)
    own, *others = ([fit.library for fit in shipped(name) if fit.family == family] for name in names)
    return concerned(library, own, [*own, *(each for some in others for each in some)], family in ROWWISE)


def _timed_alike(fit: Fit, library: Library) -> bool:
    """Times from the host serve no kernel but those that are timed so."""
    return fit.library.kernel != HOST_TIMED or library.kernel == HOST_TIMED


def _serves(fit: Fit, library: Library, device: Device) -> bool:
    """A device's own file leaves a library that it has not measured to its generation's.

    So too where the generation has the very engine and the device another's calls of the same kernel.
    """
    if not library.known or fit.calibration != device.name or fit.library == library:
        return True
    place = (fit.family, fit.format, library)
    elsewhere = shipped(generation_of(device))
    exact = any((each.family, each.format, each.library) == place for each in elsewhere)
    return fit.library.kernel == library.kernel and not exact


def _closeness(fit: Fit, device: Device, library: Library) -> tuple[int, int, int]:
    """The library first: itself, its kernel or its engine, all of them, another; then the device."""
    mine = fit.library
    kernel, asked = (_flash_of(each.kernel, device) for each in (mine, library))
    if mine == library:
        match = 3
    elif kernel == asked and (kernel or mine.engine == library.engine):
        match = 2
    else:
        match = 0 if mine.known else 1
    return match, int(device.name in fit.gpus), fit.rows


def _flash_of(kernel: str | None, device: Device) -> str | None:
    """The flash-attention that a device runs where its version is not said."""
    return FLASH.get(generation_of(device), kernel) if kernel == "flash-attn" else kernel


_Errors = tuple[float | None, float | None]


def _wider(errors: _Errors, band: tuple[float, float] | None) -> _Errors:
    """The larger of two errors, each of its kind."""
    if band is None:
        return errors
    return max(errors[0] or 0, band[0]), max(errors[1] or 0, band[1])
