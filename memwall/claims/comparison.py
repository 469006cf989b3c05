"""Whether numbers are one, within what their printing says."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from memwall.claims.claim import Claim
from memwall.claims.printed import Printed
from memwall.claims.quantity import Quantity, named
from memwall.errors import FileError, MemwallError
from memwall.units import GIGA

Ends = tuple[Quantity, Quantity]
"""A range's two ends; of one number twice itself."""

TOUCHING = 1 / GIGA
"""Of a number: what floating point leaves of a common end."""

Made = TypeVar("Made")


def fits(claim: Claim, ends: Ends) -> bool:
    """Whether a value, or a range's two ends, are what is printed.

    One value lies in a printed range or rounds to the printed number; each end of a computed range rounds to
    the printed range's own; a printed number lies within a computed range.

    Raises:
        FileError: the units differ.
    """
    low, high = in_unit_of(claim, ends)
    printed, within = claim.printed, claim.within
    if low == high or printed.bound:
        return printed.fits(low, within) and printed.fits(high, within)
    least, most = printed.interval(within)
    if not printed.ranged:
        return min(low, high) <= most and max(low, high) >= least
    return printed.at_low.fits(low, within) and printed.at_high.fits(high, within)


def factor(claim: Claim, ends: Ends | None) -> float | None:
    """Printed / right, of a range its nearest end, of two ends the worse; None without a right value."""
    if ends is None:
        return None
    low, high = in_unit_of(claim, ends)
    printed = claim.printed
    if printed.bound and fits(claim, ends):
        return 1.0
    if not low or not high:
        return None
    if low == high or not printed.ranged:
        nearest = min(max(printed.nearest(low), min(low, high)), max(low, high)) if low != high else low
        return printed.nearest(nearest) / nearest
    return _worse(float(printed.low) / low, float(printed.high) / high)


def published(claim: Claim) -> tuple[Ends | None, float | None]:
    """The published measurement nearest to what is printed, and printed / published."""
    best: tuple[Ends | None, float | None] = (None, None)
    for part in claim.published:
        if part.printed is None:
            continue
        ratio = _apart(claim, part.printed)
        if best[1] is None or _worse(ratio, best[1]) != ratio:
            best = (part.printed.ends, ratio)
    return best


def overlap(claim: Claim, other: Claim) -> bool:
    """Whether two printed numbers can be one: their roundings have more than an end in common.

    Raises:
        FileError: they are of different kinds.
    """
    (low, high), (other_low, other_high) = (
        (each.printed.in_si(end) for end in each.printed.interval(each.within)) for each in (claim, other)
    )
    if low.dimension != other_low.dimension:
        raise unfit(claim, other_low)
    noise = TOUCHING * abs(high.value)
    return low.value + noise < other_high.value and other_low.value + noise < high.value


def in_unit_of(claim: Claim, ends: Ends) -> tuple[float, float]:
    """Two values in the unit in which the claim is printed.

    Raises:
        FileError: they are of another kind.
    """
    low, high = ends
    return at(claim, lambda: low.to(claim.unit)), at(claim, lambda: high.to(claim.unit))


def at(claim: Claim, make: Callable[[], Made], line: int = 0) -> Made:
    """What `make` makes; its errors name the file, and the line given or the claim's."""
    try:
        return make()
    except FileError:
        raise
    except MemwallError as error:
        place = claim.place._replace(line=line or claim.place.line)
        raise FileError(f"{place}: {claim.id}: {error.message}", error.hint) from None


def unfit(claim: Claim, quantity: Quantity) -> FileError:
    """The error that two numbers of a claim are of different kinds."""
    return FileError(
        f"{claim.place}: {claim.id}: the unit does not fit: it is printed in "
        f"{claim.unit or 'a plain number'}, and the other number is {named(quantity.dimension)}",
        "Compare like with like",
    )


def _apart(claim: Claim, other: Printed) -> float:
    """Printed / published of the ends that lie nearest to each other; 1 where they meet."""
    (low, high), (least, most) = claim.printed.ends, other.ends
    if low.dimension != least.dimension:
        raise unfit(claim, least)
    if high.value < least.value:
        return high.value / least.value
    return low.value / most.value if low.value > most.value else 1.0


def _worse(one: float, two: float) -> float:
    """The ratio that is further from 1."""
    return max((one, two), key=lambda ratio: max(ratio, 1 / ratio) if ratio > 0 else 0)
