"""Options that take several values at once: ranges of counts, and formats."""

from __future__ import annotations

import click

from memwall.cli.options import Format, split_names
from memwall.errors import UsageError, shown


def counts_of(text: str, flag: str, least: int, most: int, example: str) -> list[int]:
    """The values of a range, rising, as many as a picture can show.

    Raises:
        UsageError: no range, or too few or too many of them.
    """
    from memwall.sweeps.ranges import parse_axis

    try:
        axis = parse_axis(text, flag, flag)
    except UsageError as error:
        general = error.hint.startswith("Write it like")  # of counts, not of this flag's
        raise UsageError(error.message, f"Try {flag} {example}" if general else error.hint) from None
    if not least <= len(axis) <= most:
        raise UsageError(
            f"{flag}: this picture has room for {least} to {most} values, not {len(axis):,}",
            f"Try {flag} {example}",
        )
    say_from_zero(text, flag)
    return sorted(axis.slice(0, len(axis)).tolist())


def say_from_zero(text: str, flag: str) -> None:
    """Where a range of every whole number from 0 begins, which may not be what was meant."""
    from memwall.sweeps.ranges import from_zero

    for word in from_zero(text):
        click.echo(f"note: {flag} {shown(word)} begins with 1: there is no size 0", err=True)


def formats_of(text: str | None, flag: str) -> list[str]:
    """The formats in a,b,c by their own names; none if nothing is given.

    Raises:
        UsageError: there is nothing between the commas, or an unknown name.
    """
    found = [Format().convert(name, None, None) for name in split_names(text or "")]
    if text is not None and not found:
        raise UsageError(f"{flag} names no format", f"For example: {flag} bf16,fp8")
    return list(dict.fromkeys(found))
