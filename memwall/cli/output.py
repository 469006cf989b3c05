"""Where results go: stdout or a file, in the format asked for."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Sequence
from io import DEFAULT_BUFFER_SIZE
from typing import NamedTuple, TypeVar

import click

from memwall.catalog import Catalog, Entry
from memwall.errors import UsageError, shown
from memwall.render.data import Record
from memwall.render.page import Page

Item = TypeVar("Item")

UTF_8_BYTES = 4
"""Of a character at most."""
STDOUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
FORMATS_BY_SUFFIX = {".json": "json", ".csv": "csv", ".md": "markdown"}


class Output(NamedTuple):
    """The output options of one run."""

    form: str | None
    as_json: bool
    output: str | None
    color: str

    @property
    def format(self) -> str:
        """text, json, csv or markdown: as asked, else by the file's ending."""
        if self.as_json and self.form not in (None, "json"):
            raise UsageError(
                f"--json and --format {self.form} contradict each other",
                f"Leave out --json, or --format {self.form}",
            )
        if self.as_json:
            return "json"
        suffix = os.path.splitext(self.output or "")[1].lower()
        return self.form or FORMATS_BY_SUFFIX.get(suffix, "text")

    @property
    def to_file(self) -> bool:
        """Whether the result goes to a file; `-o -` is stdout."""
        return self.output is not None and self.output not in STDOUT


def listed(catalog: Catalog, read: Callable[[Entry], Item]) -> list[Item]:
    """Everything in a catalogue; a broken file of the user's is left out with a warning."""
    items, errors = catalog.read_each(read)
    for error in errors:
        click.echo(f"warning: left out: {error}", err=True)
    return items


def emit(
    output: Output, records: Callable[[], Sequence[Record]], page: Callable[[], Page], several: bool = False
) -> None:
    """Write a finished result.

    Args:
        output: where to, and how.
        records: the result for programs; only made for JSON and CSV.
        page: the result for people; only made for text and Markdown.
        several: results of several devices, which JSON lists under `results`.
    """
    form = output.format
    if form in ("json", "csv"):
        from memwall.render import data

        made = records()
        text = data.to_json(made, several) if form == "json" else data.to_csv(made)
    elif form == "markdown":
        from memwall.render import markdown

        text = markdown.render(page())
    elif _coloured(output):
        from memwall.render import terminal

        terminal.render(page(), force=output.color == "always")
        return
    else:
        from memwall.render import text as plain

        text = plain.render(page())
    write(output, text)


def write(output: Output, text: str) -> None:
    """Text to stdout, or whole or not at all to a file.

    Raises:
        UsageError: the file cannot be written, or stdout is closed.
    """
    if not output.to_file:
        if sys.stdout is None:  # closed by the shell, >&-: click would lose the result without a word
            raise UsageError("stdout is closed", "Write to a file instead: -o FILE")
        to_stdout(text)
        return
    _to_file(output, text.encode("utf-8", "surrogatepass"))


def write_bytes(output: Output, data: bytes) -> None:
    """The same for what is no text, such as a PNG.

    Raises:
        UsageError: as `write` says.
    """
    if not output.to_file:
        to_stdout(data)
        return
    _to_file(output, data)


def to_stdout(text: str | bytes) -> None:
    """Text to stdout, in pieces that its buffer holds.

    Of a larger one Python 3.11 loses the end without an error where only a part could be written, as on a
    disk that is full.

    Raises:
        OSError: it cannot be written.
    """
    for start in range(0, len(text), PIECE):
        click.echo(text[start : start + PIECE], nl=False)


PIECE = DEFAULT_BUFFER_SIZE // UTF_8_BYTES


def _to_file(output: Output, data: bytes) -> None:
    if not str(output.output).strip():
        raise UsageError("-o names no file", "Name one; -o - is stdout")
    path = str(output.output)
    try:
        _replace(path if stands(path) else os.path.realpath(path), data)
    except OSError as error:
        raise UsageError(
            f"-o {shown(output.output, 120)}: cannot be written: {error.strerror}",
            elsewhere(path, error),
        ) from None


def write_yaml(output: Output, text: str) -> None:
    """A catalogue file as it stands; YAML is its only format.

    Raises:
        UsageError: another format was asked for, or the file cannot be written.
    """
    if output.as_json or output.form:
        raise UsageError(
            "--yaml prints the file itself, in no other format", "Leave out --yaml, or the other"
        )
    write(output, text)


def _replace(path: str, data: bytes) -> None:
    """The file's new content in one step; a pipe or a device such as /dev/null is written as it stands."""
    existing = os.path.exists(path)
    if existing and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    if stands(path):
        with open(path, "wb") as file:
            file.write(data)
        return
    partial = f"{path}.{os.getpid()}.partial"
    try:
        with open(partial, "wb") as file:
            file.write(data)
        os.replace(partial, path)
    except BaseException:
        if os.path.exists(partial):
            os.unlink(partial)
        raise


def stands(path: str) -> bool:
    """Whether what is there is a pipe or a device, which is written as it stands, and never replaced."""
    opened_already = os.path.abspath(path).startswith(("/dev/fd/", "/dev/stderr", "/proc/"))
    return opened_already or (os.path.exists(path) and not os.path.isfile(path))


def check_no_folder(path: str, example: str) -> None:
    """See that a file is named.

    Args:
        path: where the result goes.
        example: a file's name, for the hint.

    Raises:
        UsageError: a folder is.
    """
    if os.path.isdir(path):
        within = shown(os.path.join(path, example), 120)
        raise UsageError(f"-o {shown(path, 120)} is a folder", f"Name a file in it: -o {within}")


def elsewhere(path: str, error: OSError) -> str:
    """What to do about a file that cannot be written."""
    if os.path.isdir(path):
        return f"Name a file in it: -o {shown(os.path.join(path, 'NAME'), 120)}"
    if error.errno in FULL:
        return "Make room, or name a file where there is some"
    if os.path.exists(path):
        return "Choose another file, or make this one writable"
    return "Name a file in a folder that exists"


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def _coloured(output: Output) -> bool:
    """Rich on a terminal; plain when piped, in a file, with NO_COLOR or TERM=dumb, or when told so."""
    if output.to_file or output.color == "never":
        return False
    if output.color == "always":
        return True
    return (
        sys.stdout is not None
        and sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )
