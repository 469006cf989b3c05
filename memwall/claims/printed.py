"""A printed number or range, and the tolerance that its own rounding implies.

`3.35 TB/s` stands for 3.345 to 3.355: half a unit of the last digit printed. So does a whole number: `900` is
899.5 to 900.5. `~` says that closing zeros are not digits: `~4,500` is 4,450 to 4,550; two digits always
count. A range holds what lies between its ends, each end with its own tolerance.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_EVEN, Decimal
from typing import NamedTuple

from memwall.claims.quantity import Quantity, UnitError, parse_unit, units
from memwall.errors import UsageError, shown
from memwall.units import GIGA

NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
_ABOUT = r"~|≈|about\b|approximately\b|roughly\b"
_LEAST = r">=?|≥|over\b|at least\b|more than\b|\+"
_MOST = r"<=?|≤|up to\b|under\b|less than\b"
_LEAD = re.compile(
    rf"\s*(?:(?P<about>{_ABOUT})|(?P<least>{_LEAST})|(?P<most>{_MOST}))?\s*(?P<money>\$)?\s*(?P<sign>[-−])?"  # noqa: RUF001 - the minus sign that texts print
)
_ONE = re.compile(NUMBER)
_TO = re.compile(r"(?P<unit>[^\d]*?)\s*(?:-|–|—|\bto\b)\s*[~$]?\s*")  # noqa: RUF001 - the dashes that texts print
_FINEST = 7
"""How many places a number that is put right may be finer than it was printed, and one."""
_NOISE = 1 / GIGA
"""Floating point's own share of a tolerance."""


class Printed(NamedTuple):
    """A number or range as a text prints it."""

    text: str
    low: Decimal
    high: Decimal
    unit: str
    about: bool = False
    bound: str = ""
    """'<' or '>' where only a limit is printed."""
    digits: int | None = None
    """Significant digits, where a claim states them; None: as printed."""

    @property
    def ranged(self) -> bool:
        """Whether it has two ends."""
        return self.low != self.high

    @property
    def ends(self) -> tuple[Quantity, Quantity]:
        """Its ends in SI units."""
        return self.in_si(_plain(self.low)), self.in_si(_plain(self.high))

    @property
    def at_low(self) -> Printed:
        """Its lower end alone."""
        return self._replace(high=self.low)

    @property
    def at_high(self) -> Printed:
        """Its upper end alone."""
        return self._replace(low=self.high)

    def in_si(self, number: float) -> Quantity:
        """A number in the printed unit as a quantity."""
        one = parse_unit(self.unit)
        return Quantity(number * one.value, one.dimension)

    def place(self, number: Decimal) -> Decimal:
        """The unit of a number's last digit that counts: 0.01 of 3.35, 100 of ~4,500."""
        if self.digits:
            return Decimal(1).scaleb(number.adjusted() - self.digits + 1) if number else Decimal(1)
        _, digits, exponent = number.as_tuple()
        place = int(exponent)
        if self.about and place >= 0:
            zeros = len(digits) - len("".join(map(str, digits)).rstrip("0"))
            place += max(0, min(zeros, len(digits) - 2))
        return Decimal(1).scaleb(place)

    def fits(self, value: float, within: float | None = None) -> bool:
        """Whether a number in the printed unit is what is printed, within its rounding.

        Args:
            value: the number, in `unit`.
            within: a relative tolerance instead of the rounding's.
        """
        low, high = self.interval(within)
        noise = _NOISE * max(abs(low), abs(high))
        low, high = low - noise, high + noise
        if self.bound == "<":
            return value <= high
        if self.bound == ">":
            return value >= low
        return low <= value <= high

    def interval(self, within: float | None = None) -> tuple[float, float]:
        """What the printed number may stand for, in its unit."""
        halves = [_plain(self.place(end)) / 2 for end in (self.low, self.high)]
        if within is not None:
            halves = [abs(_plain(end)) * within for end in (self.low, self.high)]
        low, high = _plain(self.low), _plain(self.high)
        return low - halves[0], high + halves[1]

    def nearest(self, value: float) -> float:
        """The printed number, or of a range what lies nearest to a value."""
        return min(max(value, _plain(self.low)), _plain(self.high))

    def rewritten(self, value: float) -> str:
        """The first number's text with a value in its place, rounded as it was: 1,365 for 1365.3.

        A value that would be rounded to nothing, or further than `~` allows, keeps more of its digits: 0.04
        for 40 us in ms. Empty where that takes more than a reader can count.
        """
        place = self.place(self.low)
        for finer in range(_FINEST):
            if finer and place.scaleb(-finer) > abs(value):  # 0.007 is not to become 0.01
                continue
            text = rounded(self.text, self.low, place.scaleb(-finer), value)
            number = _decimal(text)
            if (number or not value) and self._replace(low=number, high=number).fits(value):
                return text.replace("-", "\u2212") if "\u2212" in self.text else text
        return ""


def parse(text: str, unit: str | None = None, digits: int | None = None) -> Printed:
    """A printed number, with a unit that may stand for the printed one.

    Args:
        text: as printed: "~4,500 TFLOPS", "80-100 TB/s", ">80%", "$62,400/year".
        unit: what the number is in, where the text does not say or means another; "" for a plain number.
        digits: how many significant digits it has, where that is not what it looks like.

    Raises:
        UsageError: there is no number, or its unit is not known.
    """
    lead = _LEAD.match(text)
    first = _ONE.match(text, lead.end()) if lead else None
    if not lead or not first:
        raise UsageError(
            f"'{shown(text)}' is not a number with a unit", "For example: 3.35 TB/s, 80-100 TB/s, ~4,500"
        )
    between = _TO.match(text, first.end())
    second = _ONE.match(text, between.end()) if between else None
    rest = text[(second or first).end() :].strip()
    open_ended = "+" in (rest[:1], rest[-1:]) and not second
    after = rest.strip("+ ") or (between["unit"].strip() if between and second else "")
    own = unit if unit is not None else _unit_of(after, bool(lead["money"]))
    try:
        parse_unit(own)
    except UnitError as error:
        raise UsageError(error.message, f"{error.hint} Or say it with unit:") from None
    low = _decimal(first[0]) * (-1 if lead["sign"] else 1)
    high = _decimal(second[0]) if second else low
    if high < low:
        raise UsageError(f"'{shown(text)}': the range runs backwards", "Write the smaller end first")
    least = lead["least"] or open_ended
    return Printed(
        text, low, high, own, bool(lead["about"]), ">" if least else "<" if lead["most"] else "", digits
    )


def _decimal(text: str) -> Decimal:
    return Decimal(text.replace(",", ""))


def _unit_of(after: str, money: bool) -> str:
    """The unit in what follows a number: the first word that is one; money has its sign in front."""
    if money:
        return "$" + after.split()[0] if after.startswith("/") else "$"
    words = after.split()
    if not words:
        return ""
    head = words[0].rstrip(",;:.)")
    return head if head.split("/")[0] in units() else after


def rounded(text: str, number: Decimal, place: Decimal, value: float) -> str:
    """A value written as a number was: to its last digit that counts, with its decimals and its commas."""
    fresh = (Decimal(repr(float(value))) / place).to_integral_value(ROUND_HALF_EVEN) * place
    decimals = max(0, -int(number.as_tuple().exponent), -int(place.as_tuple().exponent))
    return f"{fresh:,.{decimals}f}" if "," in text else f"{fresh:.{decimals}f}"


def _plain(number: Decimal) -> float:
    return int(number) if number == number.to_integral_value() else float(number)
