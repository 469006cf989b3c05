"""Types of options: counts of bytes, times and numbers, each with an example that the option takes."""

from __future__ import annotations

from typing import Any

import click

from memwall.cli.options import Amount
from memwall.errors import UsageError, shown
from memwall.units import LARGEST_COUNT, parse_bytes, parse_number, parse_seconds


class Bytes(click.ParamType[int]):
    """A count of bytes: 67108864, 2^26, 64MiB, 64MB; a bare number is bytes."""

    name = "bytes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The bytes."""
        return value if isinstance(value, int) else parse_bytes(str(value), _flag(param))


class ByteAmount(Amount):
    """Bytes of any kernel, none too: 1.6e10, 16GB; a bare number is bytes."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | float:
        """The bytes."""
        sized = isinstance(value, str) and value.strip()[-1:] in ("B", "b")
        return parse_bytes(value, _flag(param)) if sized else super().convert(value, param, ctx)


class Seconds(click.ParamType[float]):
    """A time with its unit: 30ms."""

    name = "time"

    def __init__(self, example: str = "30ms") -> None:
        self.example = example

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The time in seconds."""
        return value if isinstance(value, float) else parse_seconds(value, _flag(param), self.example)


class Number(click.ParamType[float]):
    """A number, a fraction too, from `least` on or above it; the example answers a mistake."""

    name = "number"

    def __init__(self, example: str, least: float = 0, most: float = LARGEST_COUNT) -> None:
        """`least` itself is allowed unless it is 0."""
        self.example, self.least, self.most = example, least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        return float(number_of(str(value), _flag(param), self.example, self.least, self.most))


def number_of(
    text: str, flag: str, example: str, least: float = 0, most: float = LARGEST_COUNT
) -> int | float:
    """A number that a text means.

    Raises:
        UsageError: none, or one out of its bounds; names one that is not.
    """
    try:
        number = parse_number(text, flag)
    except UsageError:
        number = -1
    if number <= 0 or not least <= number <= most:
        low = "above 0" if not least else f"at least {least:g}"
        high = "" if most == LARGEST_COUNT else f" and at most {most:g}"
        raise UsageError(f"{flag} must be a number {low}{high}, not '{shown(text)}'", f"Try {flag} {example}")
    return number


def prices_of(text: str, gpus: int) -> list[float]:
    """One price for each GPU; a single one is for all.

    Raises:
        UsageError: not numbers above zero, or not as many as GPUs.
    """
    prices = [float(number_of(word.strip(), "--price", "2.50")) for word in text.split(",")]
    if len(prices) not in (1, gpus):
        each = ",".join(["2.50"] * gpus)
        raise UsageError(
            f"{len(prices)} prices for {gpus} GPU{'s' if gpus > 1 else ''}",
            "Try --price 2.50" + (f", or one for each: --price {each}" if gpus > 1 else ""),
        )
    return prices * gpus if len(prices) == 1 else prices


def _flag(param: click.Parameter | None) -> str:
    return param.opts[0] if param else "the value"
