"""A page as HTML for notebooks: headings, tables and lists, in the notebook's own style."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from memwall.render.page import LaidOut, Lines, Page, Table


def render(page: Page) -> str:
    """The page inside one element."""
    parts = []
    for heading, body in page:
        parts += [f"<h4>{escape(heading)}</h4>"] if heading else []
        if isinstance(body, Table):
            parts.append(_table(body))
        elif isinstance(body, LaidOut):
            parts.append(f"<pre>{escape(chr(10).join(body.lines))}</pre>")
        else:
            parts.append(_list(body))
    return f'<div class="memwall">{"".join(parts)}</div>'


def _list(body: Lines) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in body.lines)
    return f'<ul style="list-style:none;padding-left:0">{items}</ul>'


def _table(table: Table) -> str:
    header, *rows = table.all_rows if table.header else ([], *table.all_rows)
    head = f"<thead><tr>{_cells(header, table.right, 'th')}</tr></thead>" if header else ""
    body = "".join(f"<tr>{_cells(row, table.right, 'td')}</tr>" for row in rows)
    return f"<table>{head}<tbody>{body}</tbody></table>"


def _cells(row: Sequence[str], right: frozenset[int], tag: str) -> str:
    sides = ("right" if place in right else "left" for place in range(len(row)))
    return "".join(
        f'<{tag} style="padding:0 .5em;text-align:{side}">{escape(cell)}</{tag}>'
        for side, cell in zip(sides, row, strict=True)
    )
