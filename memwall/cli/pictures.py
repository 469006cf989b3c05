"""Where pictures go: a file in its format, or the terminal."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from memwall.cli.output import Output, write, write_bytes
from memwall.errors import UsageError, shown
from memwall.plot.figure import Picture

F = TypeVar("F", bound=Callable[..., Any])

FORMATS = {".svg": "svg", ".png": "png", ".pdf": "pdf", ".txt": "text"}


def picture_options(command: F) -> F:
    """-o, --format and --size."""
    for option in (
        click.option("--size", default="820x560", show_default=True, help="pixels, e.g. 390x520 for a phone"),
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
    if path not in (None, "-") and suffix not in FORMATS and not target["form"]:
        raise UsageError(f"-o {shown(path, 120)}: which format is it", "Try -o plot.svg, .png or .pdf")
    output = Output(None, False, path, "never")
    if form == "text":
        write(output, _in_terminal(picture))
        return 0
    from memwall.plot.layout import layout
    from memwall.plot.svg import svg

    drawing = svg(layout(picture, *_size(target["size"])))
    if form == "svg":
        write(output, drawing)
        return 0
    from memwall.plot.raster import drawn

    write_bytes(output, drawn(drawing, form))
    return 0


def _in_terminal(picture: Picture) -> str:
    from memwall.plot.terminal import COLUMNS, render

    columns = shutil.get_terminal_size((COLUMNS, 0)).columns
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "")
    return render(picture, columns, plain=not encoding.startswith("utf"))


def _size(text: str) -> tuple[float, float]:
    width, times, height = text.lower().partition("x")
    if not (times and width.strip().isdigit() and height.strip().isdigit()):
        raise UsageError(f"--size takes WIDTHxHEIGHT in pixels, not '{shown(text)}'", "Try --size 820x560")
    least, most = SMALLEST, LARGEST
    if not (least <= int(width) <= most and least <= int(height) <= most):
        raise UsageError(
            f"--size: a side has {least} to {most} pixels, not '{shown(text)}'", "Try --size 820x560"
        )
    return float(width), float(height)


SMALLEST, LARGEST = 280, 8000
