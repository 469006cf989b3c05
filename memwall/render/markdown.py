"""A page as Markdown."""

from __future__ import annotations

from memwall.render.page import Lines, Page, Table


def render(page: Page) -> str:
    """The page with `##` headings, pipe tables and list items."""
    parts = []
    for heading, body in page:
        block = [f"## {heading}", ""] if heading else []
        block += _table(body) if isinstance(body, Table) else _lines(body)
        parts.append("\n".join(block))
    return "\n\n".join(parts) + "\n"


def _lines(body: Lines) -> list[str]:
    return [f"- {_escaped(line)}" for line in body.lines]


def _table(table: Table) -> list[str]:
    header = [*table.header, *[""] * (table.columns - len(table.header))]
    rule = ["---:" if i in table.right else "---" for i in range(table.columns)]
    rows = [[*row, *[""] * (table.columns - len(row))] for row in table.rows]
    return [_row(header), _row(rule), *(_row(row) for row in rows)]


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(_escaped(cell) for cell in cells) + " |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
