"""Folding what is wider than the window, so that no number parts from its unit.

A table keeps its numbers whole: its widest columns of words are folded, and if that is not enough its
columns are dealt out over several tables, each with the columns that name its rows.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby

from memwall.render.page import Table
from memwall.render.text import GAP

_NARROWEST = 20
"""Longer words, such as addresses, may break; shorter ones do not."""

_TIE = "\u00a0"
_NUMBER_AND_UNIT = re.compile(r"(?<![^\s(])(\d(?:[\d.,]*\d)?) (?=[A-Za-z%*^])")
_MARK = re.compile(r" (?=[*^]+(?:\s|$))")
_MARKER = re.compile(r"\d+\. ")


def sentence(line: str, width: int) -> list[str]:
    """A line of a list; what is folded hangs under the words after `1. ` or `* `, or is indented."""
    marker = _MARKER.match(line)
    return _folded(GAP + line, width, GAP + (" " * len(marker[0]) if marker else GAP))


def laid_out(lines: Sequence[str], width: int) -> Iterator[str]:
    """Documentation: formulas keep their indentation, commands stay whole, wide paragraphs flow anew."""
    for indented, group in groupby(lines, key=lambda line: line[:1] in ("", " ")):
        block = list(group)
        if indented:
            for line in block:
                indent = len(line) - len(line.lstrip())
                yield from _folded(GAP + line, width, GAP + " " * indent + 2 * GAP) or [""]
        elif block[0].startswith("memwall ") or max(map(len, block)) + len(GAP) <= width:
            yield from (GAP + line for line in block)
        else:
            text = "".join(line + ("\n" if line.endswith((".", ":")) else " ") for line in block)
            for paragraph in text.splitlines():
                yield from _folded(GAP + paragraph, width, GAP)


def heading(text: str, width: int) -> list[str]:
    """A heading, folded with an indent."""
    return _folded(text, width, GAP)


def tables(table: Table, width: int) -> Iterator[Table]:
    """The table as it fits: itself, itself with folded words, or several."""
    if _needs(table.widths) <= width:
        yield table
        return
    first = 1 if table.header else 0  # under a header the first column has names
    words = [index for index in range(first, table.columns) if index not in table.right]
    widths = _narrowed(table, words, width)
    if _needs(widths) <= width or not table.header or table.columns < table.names + 2:
        yield _with_folded_cells(table, widths, words)
        return
    for columns in _dealt(widths, width, table.names):
        yield from tables(_only(table, columns), width)


def _needs(widths: Sequence[int]) -> int:
    return sum(len(GAP) + width for width in widths)


def _narrowed(table: Table, words: Sequence[int], width: int) -> list[int]:
    """Column widths with the widest columns of words cut back, the last first, as far as words allow."""
    widths, least = table.widths, [_longest_word(column) for column in zip(*table.all_rows, strict=True)]
    while _needs(widths) > width:
        loose = [index for index in words if widths[index] > least[index]]
        if not loose:
            break
        widths[max(loose, key=lambda index: (widths[index], index))] -= 1
    return widths


def _longest_word(cells: Sequence[str]) -> int:
    return min(_NARROWEST, max(len(word) for cell in cells for word in _tied(cell).split(" ")))


def _with_folded_cells(table: Table, widths: Sequence[int], words: Sequence[int]) -> Table:
    """Each row as the lines that its folded cells need."""
    lines: list[list[str]] = []
    for row in table.rows:
        full = [*row, *[""] * (table.columns - len(row))]
        cells = [_folded(c, widths[i]) if i in words else [c] for i, c in enumerate(full)]
        height = max(map(len, cells))
        lines += [[cell[line] if line < len(cell) else "" for cell in cells] for line in range(height)]
    return Table(lines, table.header, table.right)


def _dealt(widths: Sequence[int], width: int, names: int) -> list[list[int]]:
    """The columns in as few groups as fit, about equally wide, so that no column stands almost alone."""
    fewest = len(list(_filled(widths, width, names)))
    ways = (list(_filled(widths, narrower, names)) for narrower in range(1, width + 1))
    return next(groups for groups in ways if len(groups) == fewest)


def _filled(widths: Sequence[int], width: int, names: int) -> Iterator[list[int]]:
    """Groups of columns filled in turn, each begun by the rows' names; at least one more in each."""
    group = list(range(names))
    for index in range(names, len(widths)):
        if len(group) > names and _needs([widths[i] for i in (*group, index)]) > width:
            yield group
            group = list(range(names))
        group.append(index)
    yield group


def _only(table: Table, columns: Sequence[int]) -> Table:
    rows = [[row[i] if i < len(row) else "" for i in columns] for row in table.rows]
    right = frozenset(place for place, index in enumerate(columns) if index in table.right)
    return Table(rows, [table.header[i] for i in columns], right, table.names)


def _folded(text: str, width: int, hanging: str = "") -> list[str]:
    wrapped = textwrap.wrap(
        _tied(text), max(width, _NARROWEST // 4), subsequent_indent=hanging, break_on_hyphens=False
    )
    return [line.replace(_TIE, " ") for line in wrapped]


def _tied(text: str) -> str:
    return _MARK.sub(_TIE, _NUMBER_AND_UNIT.sub(rf"\1{_TIE}", text))
