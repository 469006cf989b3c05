"""How far a long run is, on a terminal alone: done, rate and time left, from half a second on."""

from __future__ import annotations

import sys
from time import monotonic

import click

from memwall.units import scaled

FIRST_AFTER_S = 0.5
EVERY_S = 0.2


class Progress:
    """Told how many points are done; says so on one line of stderr."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._began = self._said = self._timed = monotonic()
        self._first: int | None = None
        self._shown = False
        self._quiet = not (sys.stderr and sys.stderr.isatty())

    def __call__(self, done: int) -> None:
        """So many points are done, those of an earlier run among them."""
        now = monotonic()
        if self._first is None:  # what an earlier run did says nothing of this one's rate
            self._first, self._timed = done, now
            return
        if self._quiet or now - self._began < FIRST_AFTER_S or now - self._said < EVERY_S:
            return
        self._said, self._shown = now, True
        rate = (done - self._first) / max(now - self._timed, FIRST_AFTER_S / 10) or 1.0
        left = clock((self._total - done) / rate)
        share = f"{100 * done / max(self._total, 1):.0f} %"
        line = f"{share}  {scaled(done, 'points')}, {scaled(rate, 'points/s')}, {left} left"
        click.echo(f"\r{line:<78}", nl=False, err=True)

    def say(self, line: str) -> None:
        """A line for whoever watches; nothing in a pipe."""
        if not self._quiet:
            click.echo(line, err=True)

    def close(self) -> None:
        """Clear the line."""
        if self._shown:
            click.echo(f"\r{'':<78}\r", nl=False, err=True)
        self._shown = False


def clock(time_s: float) -> str:
    """Hours, minutes and seconds as they are read: 1:02:03.

    >>> clock(3723.4), clock(9)
    ('1:02:03', '0:09')
    """
    minutes, seconds = divmod(max(round(time_s), 0), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
