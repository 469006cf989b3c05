"""The constants of a mechanism on a device: which there are, which fit best, and how far off they have been.

Calibrations are YAML files of hardware/calibrations/: one for a device by its name (h200), one for a
generation of devices (hopper), and `general` for all others. Of those that serve a kernel, the one closest in
library, device and number format is taken:

    calibrated: h100      fitted on rows of this very GPU
    architecture default  fitted on other GPUs of its generation, or of a close relative
    physics               the mechanisms with constants between all generations
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from memwall import yamlfile
from memwall.catalog import read_file, shipped_names, shipped_text
from memwall.errors import FileError
from memwall.estimate.families import FAMILIES
from memwall.estimate.library import HOST_TIMED, Library, parse
from memwall.hardware import Device
from memwall.units import to_si

FOLDER = "hardware/calibrations"
GENERAL = "general"
BANDS = "bands"

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
_PREFIXES = {"us": "s", "ns": "s", "pj": "j"}


class Fit(NamedTuple):
    """One set of constants and what it rests on."""

    family: str
    format: str
    library: Library
    gpus: tuple[str, ...]
    rows: int
    error_p50: float | None
    """Of rows held out of the fit, relative."""
    error_p90: float | None
    fitted: tuple[str, ...]
    """The constants that were fitted; the others are choices or carried over."""
    constants: Any
    """The family's."""
    calibration: str


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
    fit = _closest(family, number, device, library, own)
    same = fit.format in (number, "any")
    if same and device.name in fit.gpus:
        basis, errors = f"{CALIBRATED}: {device.name}", (fit.error_p50, fit.error_p90)
    else:
        basis = PHYSICS if fit.calibration == GENERAL else ARCHITECTURE
        errors = bands().get((family, basis), (fit.error_p50, fit.error_p90))
    other = _flash_of(fit.library.kernel, device) != _flash_of(library.kernel, device)
    if fit.library.known and other:  # another library's constants
        errors = _wider(errors, bands().get((family, LIBRARY_UNKNOWN)))
    return Choice(fit, basis, *errors)


def _closest(family: str, number: str, device: Device, library: Library, own: Sequence[Fit]) -> Fit:
    generation = generation_of(device)
    for name in ("", device.name, generation, GENERAL):  # the next is read when the one before does not serve
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


@cache
def shipped(name: str) -> tuple[Fit, ...]:
    """The fits of a shipped calibration; none if there is no such file."""
    if name not in shipped_names(FOLDER):
        return ()
    path = f"{FOLDER}/{name}.yaml"
    return tuple(_fits(yamlfile.parse(shipped_text(path), path), path))


def shipped_calibrations() -> list[str]:
    """The shipped calibrations by name."""
    return sorted(name for name in shipped_names(FOLDER) if name != BANDS)


@cache
def bands() -> Mapping[tuple[str, str], tuple[float, float]]:
    """The measured error of a family's estimates by basis: median and 90th percentile, relative."""
    if BANDS not in shipped_names(FOLDER):
        return {}
    path = f"{FOLDER}/{BANDS}.yaml"
    data = yamlfile.parse(shipped_text(path), path)
    return {(each["family"], each["basis"]): (each["p50"], each["p90"]) for each in data["bands"]}


def load(path: str) -> tuple[Fit, ...]:
    """The fits of a user's calibration.

    Raises:
        FileError: not such a file.
    """
    entry = read_file(path)
    return tuple(_fits(yamlfile.parse(entry.text, path), path))


def _fits(data: Mapping[str, Any], where: str) -> Iterator[Fit]:
    fits = data.get("fits")
    if not isinstance(fits, list) or not fits:
        raise FileError(
            f"{where}:1: no 'fits' in this file", "Make one: memwall calibrate MEASURED.csv --gpu X"
        )
    for number, each in enumerate(fits, 1):
        try:
            yield _fit({"gpus": data.get("gpus"), **each}, str(data.get("name", where)))
        except (KeyError, TypeError, ValueError) as error:
            raise FileError(
                f"{where}:1: fit {number} is not complete: {error}",
                "Its keys: family, format, library, gpus, rows, constants",
            ) from None


def _fit(each: Mapping[str, Any], calibration: str) -> Fit:
    family = FAMILIES[each["family"]]
    values = {field_of(key): in_si(key, value) for key, value in each["constants"].items()}
    return Fit(
        each["family"],
        each.get("format", "any"),
        parse(each.get("library")),
        tuple(each.get("gpus") or ()),
        int(each.get("rows", 0)),
        each.get("error_p50"),
        each.get("error_p90"),
        tuple(field_of(key) for key in each.get("fitted") or ()),
        family.constants(**values),
        calibration,
    )


def field_of(key: str) -> str:
    """A constant's name inside, in SI: launch_us is launch_s.

    >>> field_of("launch_us"), field_of("energy_per_flop_pj"), field_of("tail")
    ('launch_s', 'energy_per_flop_j', 'tail')
    """
    head, _, unit = key.rpartition("_")
    return f"{head}_{_PREFIXES[unit]}" if unit in _PREFIXES else key


def key_of(field: str) -> str:
    """The key of a constant in a file, `field_of` the other way round.

    >>> key_of("launch_s"), key_of("tail")
    ('launch_us', 'tail')
    """
    head, _, unit = field.rpartition("_")
    ending = {"s": "us", "j": "pj"}.get(unit)
    return f"{head}_{ending}" if ending else field


def out_of_si(field: str, value: float) -> float:
    """A constant's value in a file."""
    key = key_of(field)
    return value if key == field else value / to_si(key, 1)


def in_si(key: str, value: float) -> float:
    """A constant's value inside."""
    return to_si(key, value) if key.rpartition("_")[2] in _PREFIXES else float(value)
