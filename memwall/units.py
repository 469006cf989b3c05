"""The only place with powers of ten and two: conversion, parsing and printing of quantities.

Inside memwall every quantity is in SI base units and says so in its name (`_bytes`, `_s`,
`_flops`, `_flops_per_s`, `_bytes_per_s`). Files speak the datasheet's units in their keys; the
factor is looked up here once on the way in, and the printed form is made here on the way out.
"""

from __future__ import annotations

import math
from operator import index

from memwall.errors import UsageError, shown

MICRO = 1e-6
KILO, MEGA, GIGA, TERA = 10**3, 10**6, 10**9, 10**12
KIBI, MEBI, GIBI, TEBI = 2**10, 2**20, 2**30, 2**40

_DECIMAL = (("P", 10**15), ("T", TERA), ("G", GIGA), ("M", MEGA), ("k", KILO))
_BINARY = (("Pi", 2**50), ("Ti", TEBI), ("Gi", GIBI), ("Mi", MEBI), ("Ki", KIBI))
_SECONDS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))

# A key's ending names its unit; the factor takes the number to SI. The longest ending wins.
KEY_FACTORS = {
    "tflops": TERA,
    "gb_per_s": GIGA,
    "gbit_per_s": GIGA,
    "gb": GIGA,
    "gib": GIBI,
    "mib": MEBI,
    "kib": KIBI,
    "mhz": MEGA,
    "bytes": 1,
    "bits": 1,
    "w": 1,
    "us": 1e-6,
    "ns": 1e-9,
    "pj": 1e-12,
}

LARGEST_COUNT = 10**15
LARGEST_AMOUNT = 10**30
"""FLOPs and bytes of any kernel."""
SMALLEST_CONSTANT, LARGEST_CONSTANT = 1e-9, 1e15
"""What a file may hold: so that no quotient overflows."""
LARGEST_EXPONENT = 200


def to_si(key: str, number: float) -> float:
    """A file's number in SI units, by the unit that ends its key: `clock_mhz: 1830` -> 1.83e9.

    Raises:
        KeyError: the key ends in no unit known here.
    """
    ending = max((e for e in KEY_FACTORS if key == e or key.endswith("_" + e)), key=len, default=None)
    if ending is None:
        raise KeyError(key)
    return scaled_up(number, KEY_FACTORS[ending])


def scaled_up(number: float, factor: float) -> float:
    """Number x factor without the last digit's noise: 66.9 x 1e12 is 66900000000000, not ...0.01."""
    exact = number * factor
    return float(round(exact)) if abs(exact - round(exact)) < abs(exact) * 1e-12 else exact


def whole(value: object, name: str, hint: str, least: int = 1) -> int:
    """A count that a program hands over, as an exact int; numpy's integers are welcome.

    Raises:
        UsageError: not a whole number, below `least`, or beyond 1e15.
    """
    try:
        number = index(value) if not isinstance(value, bool) else least - 1  # type: ignore[arg-type]
    except TypeError:
        number = least - 1
    if not least <= number <= LARGEST_COUNT:
        limits = f"a whole number from {least} to {_short(LARGEST_COUNT)}"
        raise UsageError(f"{name} must be {limits}, not {shown(repr(value))}", hint)
    return number


def parse_count(text: str, name: str, least: int = 1, example: int | None = None) -> int:
    """A whole number as people write it: `4096`, `4_096`, `2^12`, `1e6`; `example` is one that it may be.

    Raises:
        UsageError: not a whole number, below `least`, or beyond 1e15.
    """
    number = _number(text)
    if number is None or number != math.floor(number) or not least <= number <= LARGEST_COUNT:
        raise UsageError(
            f"{name} must be a whole number from {least} to {_short(LARGEST_COUNT)}, not '{shown(text)}'",
            f"Try {name} {example}" if example else f"Write it like {name} 4096, 4e3 or 2^12",
        )
    return int(number)


def parse_number(text: str, name: str, largest: float = LARGEST_COUNT) -> int | float:
    """A finite number of at least zero; whole ones come back as exact ints.

    Raises:
        UsageError: not a number, negative, NaN, infinite, or beyond `largest`.
    """
    number = _number(text)
    if number is None or not 0 <= number <= largest:
        raise UsageError(
            f"{name} must be a number from 0 to {_short(largest)}, not '{shown(text)}'",
            f"Write it like {name} 4.2e12 or 2^30",
        )
    return int(number) if number == math.floor(number) else number


def parse_share(text: str, name: str) -> float:
    """A share of a whole, above 0 and at most 1.

    Raises:
        UsageError: not such a number; of a percentage the hint has the share.
    """
    share, percent = _number(text), _number(text.strip().removesuffix("%"))
    if share is not None and 0 < share <= 1:
        return float(share)
    likely = percent if percent is not None and 1 < percent <= 100 else 90
    raise UsageError(
        f"{name} must be above 0 and at most 1, not '{shown(text)}'", f"Try {name} {likely / 100:g}"
    )


SIZES = {
    "": GIBI,
    "b": 1,
    **{f"{prefix}{ending}".lower(): factor for prefix, factor in _BINARY for ending in ("", "B")},
    **{f"{prefix}B".lower(): factor for prefix, factor in _DECIMAL},
}
"""Bytes in a unit as people type it; GB is decimal, GiB binary, and a bare number is GiB."""


def parse_bytes(text: str, name: str) -> int:
    """A count of bytes: `67108864`, `2^26`, `64MiB`, `64 MB`; a bare number is bytes.

    Raises:
        UsageError: not a whole number of bytes, or none.

    >>> parse_bytes("64MiB", "--bytes"), parse_bytes("2^26", "--bytes"), parse_bytes("64kB", "--bytes")
    (67108864, 67108864, 64000)
    """
    plain = text.strip()
    if plain[-1:].lower() == "b" or plain[-1:].lower() == "i":
        return parse_size(plain, name, 1, "64MiB, 64MB or 67108864")
    try:
        return parse_count(plain, name)
    except UsageError as error:
        raise UsageError(error.message, f"Write it like {name} 64MiB, 64MB or 67108864") from None


def parse_seconds(text: str, name: str, example: str = "30ms") -> float:
    """A time in seconds: `30ms`, `1.5 s`, `500us`; the unit must be there.

    Raises:
        UsageError: not a time above zero.

    >>> parse_seconds("30ms", "--tpot"), parse_seconds("1.5 s", "--ttft")
    (0.03, 1.5)
    """
    word = text.strip()
    unit = next((unit for unit, _ in reversed(_SECONDS) if word.endswith(unit)), "")
    number = _number(word.removesuffix(unit)) if unit else None
    if number is None or not 0 < number <= LARGEST_COUNT:
        bare = _number(word)
        if bare is not None and 0 < bare <= LARGEST_COUNT:
            raise UsageError(f"{name} {shown(word)} has no unit", f"Try {name} {word}ms or {name} {word}s")
        raise UsageError(f"{name} must be a time with its unit, not '{shown(text)}'", f"Try {name} {example}")
    return round(number * dict(_SECONDS)[unit], 15)


def parse_size(text: str, name: str, least: int = 0, example: str = "44.42GiB, 80GB or 5 (GiB)") -> int:
    """An amount of memory in bytes: `44.42GiB`, `80 GB`, `512MiB`, and `5` for 5 GiB.

    Raises:
        UsageError: not a size, below `least`, or beyond 1e15 bytes.

    >>> parse_size("80GB", "--memory"), parse_size("80GiB", "--memory"), parse_size("0.5", "--reserve")
    (80000000000, 85899345920, 536870912)
    """
    plain = text.strip()
    number = plain.rstrip("BKMGTPbkmgtpi ")
    factor = SIZES.get(plain[len(number) :].strip().lower())
    amount = _number(number)
    size = None if factor is None or amount is None else round(amount * factor)
    if size is None or not least <= size <= LARGEST_COUNT:
        above = "of at least 0" if not least else "above 0"
        raise UsageError(
            f"{name} must be a size {above}, not '{shown(text)}'",
            f"Write it like {name} {example}",
        )
    return size


def _number(text: str) -> int | float | None:
    """The finite number that a text means, if it means one."""
    try:
        return _read(text.strip())
    except (ValueError, OverflowError):
        return None


def _short(number: float) -> str:
    return f"{number:.0e}".replace("e+", "e")


def _read(text: str) -> int | float:
    if len(text) > 60:  # longer than any quantity; int() on it would be slow or refused
        raise ValueError(text)
    base, caret, exponent = text.partition("^")
    if caret:
        if not (base.strip().isdigit() and exponent.strip().isdigit()):  # -2^2 and 2^-3 count nothing
            raise ValueError(text)
        if int(exponent) > LARGEST_EXPONENT:
            raise ValueError(text)
        return int(int(base) ** int(exponent))
    try:
        return int(text)
    except ValueError:
        number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def scaled(value: float, unit: str, digits: int = 4) -> str:
    """A quantity with a decimal prefix, such as 134.2 MB."""
    for prefix, factor in _DECIMAL:
        if abs(value) >= factor * (1 - 5 * 10.0 ** (-digits - 1)):
            return f"{significant(value / factor, digits)} {prefix}{unit}"
    return f"{significant(value, digits)} {unit}"


def scaled_binary(value: float, unit: str = "B", digits: int = 4) -> str:
    """A quantity with a binary prefix, such as 50 MiB."""
    for prefix, factor in _BINARY:
        if abs(value) >= factor:
            return f"{significant(value / factor, digits)} {prefix}{unit}"
    return f"{significant(value, digits)} {unit}"


def format_bytes(value: float) -> str:
    """Bytes with a decimal prefix, as memory traffic is quoted: 699.3 GB."""
    return scaled(value, "B")


def format_memory(value: float) -> str:
    """An amount of memory both ways, since 80 GB means either: 85.9 GB (80 GiB)."""
    decimal, binary = scaled(value, "B"), scaled_binary(value)
    return decimal if decimal == binary else f"{decimal} ({binary})"


def format_flops(value: float) -> str:
    """A count of floating-point operations: 137.4 GFLOP."""
    return scaled(value, "FLOP")


def format_flops_per_s(value: float) -> str:
    """A rate of floating-point operations: 989.4 TFLOP/s."""
    return scaled(value, "FLOP/s")


def format_bytes_per_s(value: float) -> str:
    """A bandwidth: 3.352 TB/s."""
    return scaled(value, "B/s")


def format_seconds(value: float, digits: int = 4) -> str:
    """A time from nanoseconds to seconds: 40.05 us."""
    for unit, factor in _SECONDS:
        if abs(value) >= factor * (1 - 5 * 10.0 ** (-digits - 1)):
            return f"{significant(value / factor, digits)} {unit}"
    return f"{significant(value / 1e-9, digits)} ns"


def format_parameters(value: float) -> str:
    """A model's size as people say it: 70.55B (billions), 124.4M."""
    for letter, factor in (("B", GIGA), ("M", MEGA)):
        if value >= factor:
            return f"{significant(value / factor)}{letter}"
    return str(value)


def significant(value: float, digits: int = 4) -> str:
    """A number to so many significant digits, without exponent where it is readable so."""
    if value == 0:
        return "0"
    if not math.isfinite(value):
        return str(value)
    magnitude = math.floor(math.log10(abs(value)))
    if magnitude >= 9 or magnitude < -4:
        return f"{value:.{digits - 1}e}"
    decimals = max(digits - 1 - magnitude, 0)
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
