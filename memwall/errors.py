"""Every error a user can meet, and the exit code that each one means.

    MemwallError                what was wrong, in one line, and what to type next
    |- UsageError         2     a flag, a name or a value that cannot be meant
    |  `- UnknownName     2     a GPU, op, model or dtype that is not there; names the nearest ones
    |- FileError          3     an input file: missing, unreadable, malformed, a wrong key
    |- NotAvailable       4     the question is sound and there is no answer
    |  |- UnsupportedDtype      the hardware has no such engine: a fact
    |  `- NotPublished          nobody has published the constant: a gap that a source can fill
    `- CannotVerify       5     no GPU, no driver or no library to run real kernels with

Only the command line turns these into exit codes; nothing below it exits or prints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class MemwallError(Exception):
    """An error as advice: `message` says what was wrong, `hint` what to type next."""

    exit_code = 1
    code = "error"

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}. {self.hint}" if self.hint else self.message


class UsageError(MemwallError):
    """The command or the call cannot be meant as it stands."""

    exit_code = 2
    code = "usage"


class UnknownName(UsageError):
    """A name that no catalogue holds."""

    code = "unknown-name"

    def __init__(
        self,
        kind: str,
        name: str,
        known: Iterable[str],
        listing: str,
        called: Mapping[str, str] | None = None,
    ) -> None:
        """`called` has the one name of what several spellings among the known ones mean."""
        near = nearest(name, known)
        near = list(dict.fromkeys(called[each] for each in near)) if called else near
        hint = f"Did you mean {' or '.join(near)}? " if near else ""
        super().__init__(f"unknown {kind} '{shown(name)}'", f"{hint}The list: {listing}")


class FileError(MemwallError):
    """An input file is missing, unreadable or malformed; `message` begins with file:line."""

    exit_code = 3
    code = "bad-file"


class NotAvailable(MemwallError):
    """There is no answer: the hardware cannot, or the constant is not published."""

    exit_code = 4
    code = "not-available"


class UnsupportedDtype(NotAvailable):
    """The device has no engine for this number format."""

    code = "unsupported-dtype"


class NotPublished(NotAvailable):
    """The device's maker has not published this constant, and memwall does not invent one."""

    code = "not-published"


class CannotVerify(MemwallError):
    """The verifier cannot run here; the message names what is missing."""

    exit_code = 5
    code = "cannot-verify"


class Refusal(NamedTuple):
    """A device without an answer, beside others that have one."""

    gpu: str
    error: NotAvailable


def nearest(name: str, known: Iterable[str], limit: int = 3) -> list[str]:
    """The known names closest to a misspelt one, best first."""
    from difflib import get_close_matches  # imported here: only a mistake pays for it

    return get_close_matches(shown(name).lower(), list(known), n=limit, cutoff=0.6)


def shown(text: object, limit: int = 40) -> str:
    """A user's own text as an error may repeat it: one line, never long."""
    line = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
    return line if len(line) <= limit else f"{line[:limit]}... ({len(line)} characters)"
