"""A page on a terminal, through rich."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memwall.render.page import Lines, Page, Table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable


def render(page: Page, *, force: bool = False) -> None:
    """Print the page with headings in bold and tables that fit the window."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console(highlight=False, force_terminal=force or None)
    for number, (heading, body) in enumerate(page):
        if number:
            console.print()
        if heading:
            console.print(Text(heading, style="bold"))
        if isinstance(body, Table):
            console.print(Padding(_table(body), (0, 0, 0, 1)))
        else:
            _lines(console, body)


def _lines(console: Console, body: Lines) -> None:
    from rich.padding import Padding
    from rich.text import Text

    for line in body.lines:
        console.print(Padding(Text(line), (0, 0, 0, 2)))


def _table(table: Table) -> RichTable:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(
        box=box.SIMPLE_HEAD if table.header else None, show_header=bool(table.header), pad_edge=False
    )
    for index in range(table.columns):
        name = table.header[index] if table.header else ""
        style = "cyan" if index == 0 else None
        drawn.add_column(
            name, justify="right" if index in table.right else "left", style=style, overflow="fold"
        )
    for row in table.rows:
        drawn.add_row(*(Text(cell) for cell in row))
    return drawn
