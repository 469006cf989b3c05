"""A number with its dimension, and the units in which people print numbers.

Bytes, seconds, FLOPs, watts, metres and dollars are dimensions; bits are eighths of bytes; cycles, tokens,
requests and GPUs are counts. `KB` is the decimal kilobyte: say `KiB` where a text means 1024.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

from memwall.errors import UsageError, nearest, shown
from memwall.units import GIBI, GIGA, KIBI, KILO, MEBI, MEGA, TERA, significant

Dimension = tuple[tuple[str, int], ...]
"""Powers of the base dimensions, sorted: bytes a second are (("B", 1), ("s", -1))."""

LARGEST_POWER = 64


class UnitError(UsageError):
    """A unit that is not known, or that does not fit."""


class Quantity(NamedTuple):
    """A number in SI units: bytes, seconds, FLOPs, watts, metres, dollars and their quotients."""

    value: float
    dimension: Dimension = ()

    def __add__(self, other: object) -> Quantity:
        """The sum of two quantities of one dimension."""
        same = _alike(self, other, "add")
        return Quantity(self.value + same.value, self.dimension)

    def __sub__(self, other: Quantity) -> Quantity:
        """The difference of two quantities of one dimension."""
        same = _alike(self, other, "subtract")
        return Quantity(self.value - same.value, self.dimension)

    def __mul__(self, other: object) -> Quantity:
        """The product."""
        factor = _quantity(other)
        return Quantity(self.value * factor.value, _merged(self.dimension, factor.dimension, 1))

    def __truediv__(self, other: Quantity) -> Quantity:
        """The quotient.

        Raises:
            UsageError: a division by zero.
        """
        if other.value == 0:
            raise UsageError("a division by zero", "Check the divisor")
        return Quantity(self.value / other.value, _merged(self.dimension, other.dimension, -1))

    def __pow__(self, other: Quantity) -> Quantity:
        """A small power; a quantity with a dimension only a whole one.

        Raises:
            UsageError: too large a power, or one that is no number.
        """
        power = other.value
        if other.dimension or abs(power) > LARGEST_POWER:
            raise UsageError(f"a power is a plain number up to {LARGEST_POWER}", "For example: x**2")
        if self.dimension and power != int(power):
            raise UnitError("a quantity with a unit takes a whole power", "For example: (3*GB)**2")
        if self.value <= 0 and (power < 0 or power != int(power)):
            raise UsageError("that power of zero or less is no number", "Check the base")
        dimension = tuple((base, each * int(power)) for base, each in self.dimension if power)
        return Quantity(self.value**power, dimension)

    def __neg__(self) -> Quantity:
        """The negative."""
        return Quantity(-self.value, self.dimension)

    def like(self, unit: str) -> bool:
        """Whether it is of a unit's kind."""
        return parse_unit(unit).dimension == self.dimension

    def to(self, unit: str) -> float:
        """The number in a unit.

        Raises:
            UnitError: the unit is not known, or is of another dimension.
        """
        known = parse_unit(unit)
        if known.dimension != self.dimension:
            raise UnitError(
                f"the unit does not fit: {shown(unit) or 'a plain number'} is {named(known.dimension)}, "
                f"and what is computed is {named(self.dimension)}",
                "Correct the unit, or the computation",
            )
        return self.value / known.value


def _quantity(other: object) -> Quantity:
    if not isinstance(other, Quantity):
        raise TypeError(other)
    return other


def _alike(left: Quantity, right: object, verb: str) -> Quantity:
    other = _quantity(right)
    if left.dimension != other.dimension:
        raise UnitError(
            f"cannot {verb} {named(left.dimension)} and {named(other.dimension)}",
            "Both sides need one unit: 80*GB - 12*GB",
        )
    return other


def _merged(left: Dimension, right: Dimension, sign: int) -> Dimension:
    powers = dict(left)
    for base, power in right:
        powers[base] = powers.get(base, 0) + sign * power
    return tuple(sorted((base, power) for base, power in powers.items() if power))


def named(dimension: Dimension) -> str:
    """A dimension in words: 'B/s', or 'a plain number'."""
    over = [base if power == 1 else f"{base}^{power}" for base, power in dimension if power > 0]
    under = [base if power == -1 else f"{base}^{-power}" for base, power in dimension if power < 0]
    if not over and not under:
        return "a plain number"
    return "/".join(["*".join(over) or "1", *under])


_DECIMAL = {"": 1, "k": KILO, "K": KILO, "M": MEGA, "G": GIGA, "T": TERA, "P": KILO * TERA, "E": MEGA * TERA}
_BINARY = {"Ki": KIBI, "Mi": MEBI, "Gi": GIBI, "Ti": KIBI * GIBI}
_SMALL = {"m": KILO, "u": MEGA, "µ": MEGA, "μ": MEGA, "n": GIGA, "p": TERA}
_LARGE_WORDS = {"kilo": KILO, "mega": MEGA, "giga": GIGA, "tera": TERA, "peta": KILO * TERA}

_BYTE, _FLOP, _SECOND = Quantity(1, (("B", 1),)), Quantity(1, (("FLOP", 1),)), Quantity(1, (("s", 1),))
_RATE, _BIT, _ONE = _FLOP / _SECOND, Quantity(0.125, (("B", 1),)), Quantity(1)

_PREFIXED = {
    **dict.fromkeys(("B", "byte", "bytes"), _BYTE),
    **dict.fromkeys(("b", "bit", "bits"), _BIT),
    **dict.fromkeys(("FLOP", "FLOPs", "flop", "flops", "OP", "op"), _FLOP),
    **dict.fromkeys(("FLOPS", "OPS", "F"), _RATE),
    "bps": _BIT / _SECOND,
    "Hz": _ONE / _SECOND,
    "W": Quantity(1, (("W", 1),)),
    "m": Quantity(1, (("m", 1),)),
}
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_COUNTED_WORDS = (
    "x X × cycle cycles clock tok token tokens req request requests GPU GPUs GPU-equivalents user users "  # noqa: RUF001
    "head layer layers bank banks thread threads stack stacks pass pin SM"
)
_COUNTED = _COUNTED_WORDS.split()
"""What is counted: words after a printed number that leave it a plain number."""

_WHOLE = {
    "": _ONE,
    **dict.fromkeys(("k", "K"), Quantity(KILO)),
    "Ki": Quantity(KIBI),
    "%": Quantity(1 / 100),
    "percent": Quantity(1 / 100),
    **dict.fromkeys(("s", "sec", "second", "seconds"), _SECOND),
    "min": Quantity(_MINUTE, _SECOND.dimension),
    **dict.fromkeys(("h", "hr", "hour", "hours"), Quantity(_HOUR, _SECOND.dimension)),
    **dict.fromkeys(("day", "days"), Quantity(_DAY, _SECOND.dimension)),
    **dict.fromkeys(("year", "years", "yr"), Quantity(365 * _DAY, _SECOND.dimension)),
    **dict.fromkeys(("$", "USD"), Quantity(1, (("USD", 1),))),
    **dict.fromkeys(("GPU-hr", "GPU-hour"), Quantity(_HOUR, _SECOND.dimension)),
    "thousand": Quantity(KILO),
    "million": Quantity(MEGA),
    "billion": Quantity(GIGA),
    "trillion": Quantity(TERA),
    "mm2": Quantity(1 / MEGA, (("m", 2),)),
    "mm²": Quantity(1 / MEGA, (("m", 2),)),
}
_SCALED_DOWN = {"s": _SECOND, "sec": _SECOND, "W": _PREFIXED["W"], "m": _PREFIXED["m"]}


@cache
def units() -> dict[str, Quantity]:
    """Every simple unit by the spellings that texts use."""
    table = {**_WHOLE, **dict.fromkeys(_COUNTED, _ONE)}
    for name, quantity in _PREFIXED.items():
        prefixes = {**_DECIMAL, **(_BINARY if quantity.dimension[0][0] == "B" else {})}
        for prefix, factor in prefixes.items():
            table.setdefault(prefix + name, Quantity(factor * quantity.value, quantity.dimension))
    for name, quantity in _SCALED_DOWN.items():
        for prefix, divisor in _SMALL.items():
            table[prefix + name] = Quantity(quantity.value / divisor, quantity.dimension)
    for word, factor in _LARGE_WORDS.items():
        for spelt in (word, word.capitalize()):
            table[f"{spelt}FLOPs"] = table[f"{spelt}FLOPS"] = Quantity(factor, _RATE.dimension)
    return table


@cache
def symbols() -> dict[str, Quantity]:
    """The units that an expression can name: not the words for what is counted, and of one letter B and s."""
    return {
        name: unit
        for name, unit in units().items()
        if name not in _COUNTED and (len(name) > 1 or name in ("B", "s"))
    }


@cache
def parse_unit(text: str) -> Quantity:
    """The value of one of a unit: `TB/s`, `FLOP/byte`, `GB/s/stack`, `%`, or nothing.

    Raises:
        UnitError: a unit that is not known.
    """
    first, *rest = (part.strip() for part in text.replace(" per ", "/").split("/"))
    total = _simple(first)
    for part in rest:
        total = total / _simple(part)
    return total


def _simple(name: str) -> Quantity:
    known = units()
    if name in known:
        return known[name]
    near = nearest(name, known, limit=2) if name else []
    hint = f"Did you mean {' or '.join(near)}?" if near else "For example: TB/s, FLOP/byte, GiB, us, %"
    raise UnitError(f"the unit '{shown(name)}' is not known", hint)


_READABLE = (
    ((("B", 1),), "B"),
    ((("B", 1), ("s", -1)), "B/s"),
    ((("FLOP", 1),), "FLOP"),
    ((("FLOP", 1), ("s", -1)), "FLOP/s"),
)


def readable(quantity: Quantity, digits: int = 5) -> str:
    """A quantity for people: 3.352 TB/s, 41.75 ms, 295.1 FLOP/B."""
    from memwall.units import format_seconds, scaled

    value, dimension = quantity
    for known, unit in _READABLE:
        if dimension == known:
            return scaled(value, unit, digits)
    if dimension == (("s", 1),):
        return format_seconds(value)
    if not dimension:
        whole = float(value).is_integer() and abs(value) < TERA
        return f"{int(value):,}" if whole else significant(value, digits)
    if dimension == (("s", -1),):
        return scaled(value, "Hz", digits)
    if dimension == (("m", 2),):
        return f"{significant(value * MEGA, digits)} mm2"
    return f"{significant(value, digits)} {named(dimension).replace('FLOP/B', 'FLOP/byte')}"


def finite(quantity: Quantity) -> Quantity:
    """The quantity, if it is a number.

    Raises:
        UsageError: infinite, or no number at all.
    """
    if not math.isfinite(quantity.value):
        raise UsageError("what is computed is not a finite number", "Check its inputs")
    return quantity
