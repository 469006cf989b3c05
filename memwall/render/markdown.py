"""A page as Markdown."""

from __future__ import annotations

import re

from memwall.render.page import LaidOut, Lines, Page, Table

_STEP = re.compile(r"\d+\. ")


def render(page: Page) -> str:
    """The page with `##` headings, pipe tables and lists; what is laid out by hand stays as it is."""
    parts = []
    for heading, body in page:
        block = [f"## {_escaped(heading)}", ""] if heading else []
        if isinstance(body, Table):
            block += _table(body)
        elif isinstance(body, LaidOut):
            block += ["```text", *body.lines, "```"]
        else:
            block += _list(body)
        parts.append("\n".join(block))
    return "\n\n".join(parts) + "\n"


def _list(body: Lines) -> list[str]:
    """Steps that are all numbered as a numbered list, else list items."""
    if all(_STEP.match(line) for line in body.lines):
        return [_escaped(line) for line in body.lines]
    return [f"- {_sentence(line)}" for line in body.lines]


def _sentence(line: str) -> str:
    """The line, with a backslash before what begins it if that is Markdown's own: `* recalled`."""
    lead = re.match(r"(\d*)([*+#>-]+(?= |$)|(?<=\d)[.)](?= ))", line)
    return _escaped(f"{lead[1]}\\{line[lead.start(2) :]}" if lead else line)


def _table(table: Table) -> list[str]:
    header = [*table.header, *[""] * (table.columns - len(table.header))]
    rule = ["---:" if i in table.right else "---" for i in range(table.columns)]
    rows = [[*row, *[""] * (table.columns - len(row))] for row in table.rows]
    return [_row(header), _row(rule), *(_row(row) for row in rows)]


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(_escaped(cell) for cell in cells) + " |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
