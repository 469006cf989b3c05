"""A page as plain text, for pipes and files."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.render.page import Lines, Page, Table

GAP = "  "


def render(page: Page) -> str:
    """The page as plain text, aligned by spaces."""
    parts = []
    for heading, body in page:
        block = [heading] if heading else []
        block += _table(body) if isinstance(body, Table) else _lines(body)
        parts.append("\n".join(block))
    return "\n\n".join(parts) + "\n"


def _lines(body: Lines) -> list[str]:
    return [f"{GAP}{line}".rstrip() for line in body.lines]


def _table(table: Table) -> list[str]:
    widths = table.widths
    rows = [table.header, *table.rows] if table.header else list(table.rows)
    lines = [_row(row, widths, table.right) for row in rows]
    if table.header:
        lines.insert(1, (GAP + GAP.join("-" * width for width in widths)).rstrip())
    return lines


def _row(row: Sequence[str], widths: Sequence[int], right: frozenset[int]) -> str:
    cells = []
    for index, width in enumerate(widths):
        cell = row[index] if index < len(row) else ""
        cells.append(cell.rjust(width) if index in right else cell.ljust(width))
    return (GAP + GAP.join(cells)).rstrip()
