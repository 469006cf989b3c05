"""Where pictures go: a file in its format, or the terminal."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from memwall.cli.output import STDOUT, Output, check_no_folder, write, write_bytes
from memwall.errors import UsageError, shown
from memwall.plot.figure import Picture

F = TypeVar("F", bound=Callable[..., Any])

FORMATS = {".svg": "svg", ".png": "png", ".pdf": "pdf", ".txt": "text"}


def picture_options(command: F) -> F:
    """-o, --format and --size."""
    for option in (
        click.option(
            "--size",
            help="pixels, 390x520 for a phone, default 820x560; in the terminal columns x lines, 120x40, "
            "of the drawing, its key and notes below",
        ),
        click.option(
            "--format", "form", type=click.Choice([*FORMATS.values()]), help="default: by the ending"
        ),
        click.option("-o", "--output", metavar="FILE", help="write .svg, .png or .pdf; - is stdout"),
    ):
        command = option(command)
    return command


def show(picture: Picture, target: dict[str, Any]) -> int:
    """The picture in a file, or in the terminal."""
    path, form = target["output"], target["form"]
    suffix = os.path.splitext(path or "")[1].lower()
    form = form or FORMATS.get(suffix) or ("text" if path is None else "svg")
    if path is not None and path not in STDOUT:
        _check_name(path, suffix, target["form"])
    if FORMATS.get(suffix, form) != form:
        ending = next(ending for ending, name in FORMATS.items() if name == form)
        raise UsageError(
            f"-o {shown(path, 120)}: --format {form} under that ending would mislead",
            f"Leave out --format, or name it *{ending}",
        )
    output = Output(None, False, path, "never")
    if form == "text":
        write(output, _in_terminal(picture, target["size"]))
        return 0
    from memwall.plot.layout import layout
    from memwall.plot.svg import svg

    drawing = svg(layout(picture, *_size(target["size"] or DEFAULT, "pixels", *PIXELS)))
    if form == "svg":
        write(output, drawing)
        return 0
    from memwall.plot.raster import drawn

    write_bytes(output, drawn(drawing, form))
    return 0


def _check_name(path: str, suffix: str, form: str | None) -> None:
    """A file that a picture can be written to.

    Raises:
        UsageError: a folder, or an ending that names no format that memwall draws.
    """
    named = f"-o {shown(path, 120)}"
    check_no_folder(path, "plot.svg")
    if form or suffix in FORMATS:
        return
    endings = ", ".join(FORMATS)
    wrong = f"{named}: '{shown(suffix)}' is no format of pictures here, {endings} are"
    if not suffix:
        wrong = f"{named} has no ending, so which format is it"
    likely = os.path.splitext(path)[0] or "plot"
    raise UsageError(wrong, f"Try -o {shown(likely, 120)}.svg, or --format svg")


def _in_terminal(picture: Picture, size: str | None) -> str:
    from memwall.plot.terminal import COLUMNS, ROWS, render

    columns, rows = shutil.get_terminal_size((COLUMNS, 0)).columns, ROWS
    if size:
        columns, rows = _size(size, "columns and lines", *LETTERS)
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "")
    return render(picture, columns, rows, plain=not encoding.startswith("utf"))


def _size(
    text: str, unit: str, least: tuple[int, int], most: tuple[int, int], example: str
) -> tuple[int, int]:
    """Width and height.

    Raises:
        UsageError: not two numbers, or too small or large to be drawn.
    """
    words = [word.strip() for word in text.lower().split("x")]
    if len(words) != 2 or not all(word.isascii() and word.isdigit() for word in words):
        raise UsageError(f"--size takes WIDTHxHEIGHT in {unit}, not '{shown(text)}'", f"Try --size {example}")
    width, height = int(words[0]), int(words[1])
    if not (least[0] <= width <= most[0] and least[1] <= height <= most[1]):
        fits = f"{least[0]} to {most[0]} across and {least[1]} to {most[1]} down"
        pixels = "" if unit == "pixels" else "; pixels are a file's: -o plot.svg"
        raise UsageError(f"--size is in {unit}, {fits}, not '{shown(text)}'", f"Try --size {example}{pixels}")
    return width, height


DEFAULT = "820x560"
PIXELS = (280, 280), (8000, 8000), DEFAULT
LETTERS = (40, 10), (400, 200), "120x40"
