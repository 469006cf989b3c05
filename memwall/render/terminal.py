"""A page on a terminal: the plain text, coloured by rich, and folded where it is wider than the window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memwall.render import fit, text
from memwall.render.page import LaidOut, Page, Table

if TYPE_CHECKING:
    from rich.console import Console


def render(page: Page, *, force: bool = False) -> None:
    """Print the page: headings and headers in bold, first columns in cyan.

    Args:
        page: what to print.
        force: colour although it is not a terminal, or is told to have none.
    """
    from rich.console import Console

    console = (
        Console(highlight=False, force_terminal=True, color_system="standard", no_color=False)
        if force
        else Console(highlight=False)
    )
    for number, (heading, body) in enumerate(page):
        if number:
            _line(console, "")
        for line in fit.heading(heading, console.width):
            _line(console, (line, "bold"))
        if isinstance(body, Table):
            _tables(console, body)
        elif isinstance(body, LaidOut):
            for line in fit.laid_out(body.lines, console.width):
                _line(console, line)
        else:
            for line in body.lines:
                for part in fit.sentence(line, console.width):
                    _line(console, part)


def _tables(console: Console, table: Table) -> None:
    for number, part in enumerate(fit.tables(table, console.width)):
        if number:
            _line(console, "")
        for index, cells in enumerate(text.aligned(part)):
            if part.header and index == 0:
                _line(console, ("".join(cells), "bold"))
            elif part.header and index == 1:
                _line(console, "".join(cells))
            else:
                _line(console, (cells[0], "cyan"), "".join(cells[1:]))


def _line(console: Console, *parts: str | tuple[str, str]) -> None:
    """One line, whole: what is too wide even so is left to the terminal."""
    from rich.text import Text

    line = Text.assemble(*parts)
    line.rstrip()
    console.print(line, no_wrap=True, overflow="ignore", crop=False)
