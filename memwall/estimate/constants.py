"""The constants of mechanisms: sets of them, and the files that they stand in.

Calibrations are YAML files of hardware/calibrations/: one for a device by its name (h200), one for a
generation of devices (hopper), and `general` for all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from memwall import yamlfile
from memwall.catalog import read_file, shipped_names, shipped_text
from memwall.errors import FileError, shown
from memwall.estimate.families import FAMILIES, ROWWISE
from memwall.estimate.library import Library, parse
from memwall.estimate.ranges import OutOfRange, checked, checked_error
from memwall.units import to_si

FOLDER = "hardware/calibrations"
GENERAL = "general"
BANDS = "bands"

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
    generations: tuple[str, ...] = ()
    """Of the GPUs, where they are of several."""


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
    return tuple(_fits(yamlfile.parse(entry.text, path), path, entry.text))


def _fits(data: Mapping[str, Any], where: str, text: str = "") -> Iterator[Fit]:
    fits = data.get("fits")
    if not isinstance(fits, list) or not fits:
        raise FileError(
            f"{where}:1: no 'fits' in this file", "Make one: memwall calibrate MEASURED.csv --gpu X"
        )
    for number, each in enumerate(fits, 1):
        try:
            yield _fit({"gpus": data.get("gpus"), **each}, str(data.get("name", where)))
        except OutOfRange as error:
            inside = () if error.key in each else ("constants",)
            line = yamlfile.line_of(text, ("fits", number - 1, *inside, error.key)) if text else 1
            raise FileError(
                f"{where}:{line}: fit {number}, {shown(each['family'])}: {error}",
                "memwall calibrate makes such files",
            ) from None
        except (KeyError, TypeError, ValueError) as error:
            raise FileError(
                f"{where}:1: fit {number} is not complete: {error}",
                "Its keys: family, format, library, gpus, rows, constants",
            ) from None


def _fit(each: Mapping[str, Any], calibration: str) -> Fit:
    family = FAMILIES[each["family"]]
    given = {key: value for key, value in checked(each["constants"]).items() if not _superseded(each, key)}
    values = {field_of(key): in_si(key, value) for key, value in given.items()}
    return Fit(
        each["family"],
        each.get("format", "any"),
        parse(each.get("library")),
        tuple(each.get("gpus") or ()),
        int(each.get("rows", 0)),
        checked_error("error_p50", each.get("error_p50")),
        checked_error("error_p90", each.get("error_p90")),
        tuple(field_of(key) for key in each.get("fitted") or ()),
        family.constants(**values),
        calibration,
        tuple(each.get("generations") or ()),
    )


def _superseded(each: Mapping[str, Any], key: str) -> bool:
    """Whether a file of an earlier version has a constant that its mechanism no longer has."""
    return each["family"] in ROWWISE and key in ("warm_gain", "passes", "short_share")


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
