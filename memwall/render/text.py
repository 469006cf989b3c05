"""A page as plain text, for pipes and files."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.render.page import Page, Table

GAP = "  "


def render(page: Page) -> str:
    """The page as plain text, aligned by spaces."""
    parts = []
    for heading, body in page:
        block = [heading] if heading else []
        if isinstance(body, Table):
            block += ["".join(cells).rstrip() for cells in aligned(body)]
        else:
            block += [f"{GAP}{line}".rstrip() for line in body.lines]
        parts.append("\n".join(block))
    return "\n\n".join(parts) + "\n"


def aligned(table: Table) -> list[list[str]]:
    """Every line of a table as its cells, each with the gap before it; a rule follows the header."""
    widths = table.widths
    lines = [_line(row, widths, table.right) for row in table.all_rows]
    if table.header:
        lines.insert(1, [GAP + "-" * width for width in widths])
    return lines


def _line(row: Sequence[str], widths: Sequence[int], right: frozenset[int]) -> list[str]:
    return [
        GAP + (cell.rjust(width) if index in right else cell.ljust(width))
        for index, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
