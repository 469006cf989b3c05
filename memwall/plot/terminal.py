"""A picture in a terminal: curves in braille, dots as letters with a key, bars in blocks."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from memwall.plot.figure import Bars, Curve, Dot, Figure, Picture, Point

COLUMNS, ROWS = 100, 28
_BRAILLE, _EMPTY = 0x2800, "⠀"
_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The dot of a braille letter at a row and a column."""
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_FILLS = "█▓▒░"


def render(picture: Picture, columns: int = COLUMNS, rows: int = ROWS, plain: bool = False) -> str:
    """The picture as lines of text.

    Args:
        picture: what to draw.
        columns: of the terminal.
        rows: of the drawing; the key stands below it.
        plain: ASCII alone, for terminals that spell nothing else.
    """
    body = _bars(picture, columns) if isinstance(picture, Bars) else _figure(picture, columns, rows)
    subtitle = getattr(picture, "plain_subtitle", "") or picture.subtitle
    lines = [*_wrapped(picture.title, columns, ""), *_wrapped(subtitle, columns), ""]
    lines += [line.rstrip() for line in body]
    lines += [line for note in picture.notes for line in _wrapped(note, columns)]
    text = "\n".join(lines) + "\n"
    return _in_ascii(text) if plain else text


def _wrapped(text: str, columns: int, indent: str = "  ", mark: str = "") -> list[str]:
    """A text in lines of the terminal's width, those after the first as far in as its first word."""
    after = indent + " " * len(mark)
    return textwrap.wrap(text, columns, initial_indent=indent + mark, subsequent_indent=after) or [""]


def _figure(figure: Figure, columns: int, rows: int) -> Iterator[str]:
    margin = max(len(text) for _, text in figure.y.ticks) + 2
    width = max(columns - margin - 2, 20)
    cells = [[0] * width for _ in range(rows)]
    for curve in figure.curves:
        _trace(curve, figure, cells)
    for cloud in figure.clouds:
        for point in cloud.points:
            _trace(Curve((point, point), cloud.color), figure, cells)
    letters = [[chr(_BRAILLE + bits) if bits else " " for bits in row] for row in cells]
    _label(figure, letters)
    key = list(_key(figure, letters, columns))
    ticks = {round((1 - figure.y.share(value)) * (rows - 1)): text for value, text in figure.y.ticks}
    yield f"  {figure.y.title}"
    for number, row in enumerate(letters):
        edge = "┤" if number in ticks else "│"
        yield f"{ticks.get(number, ''):>{margin - 1}} {edge}{''.join(row)}"
    yield f"{'':>{margin}}└{'─' * width}"
    yield f"{'':>{margin + 1}}{_x_ticks(figure, width)}"
    yield f"{figure.x.title:>{margin + 1 + width}}"
    yield from key


def _trace(curve: Curve, figure: Figure, cells: list[list[int]]) -> None:
    """A curve as braille dots, two across and four down a cell."""
    height, width = len(cells) * 4, len(cells[0]) * 2
    for start, end in zip(curve.points, curve.points[1:], strict=False):
        (x0, y0), (x1, y1) = (_fine(point, figure, width, height) for point in (start, end))
        steps = max(1, math.ceil(max(abs(x1 - x0), abs(y1 - y0))))
        for step in range(steps + 1):
            if curve.dashed and step % 6 > 2:
                continue
            x, y = round(x0 + (x1 - x0) * step / steps), round(y0 + (y1 - y0) * step / steps)
            if 0 <= x < width and 0 <= y < height:
                cells[y // 4][x // 2] |= _BITS[y % 4][x % 2]


def _fine(point: Point, figure: Figure, width: int, height: int) -> Point:
    return figure.x.share(point[0]) * (width - 1), (1 - figure.y.share(point[1])) * (height - 1)


def _cell(at: Point, figure: Figure, letters: Sequence[Sequence[str]]) -> tuple[int, int] | None:
    x = round(figure.x.share(at[0]) * (len(letters[0]) - 1))
    y = round((1 - figure.y.share(at[1])) * (len(letters) - 1))
    return (x, y) if 0 <= y < len(letters) and 0 <= x < len(letters[0]) else None


def _label(figure: Figure, letters: list[list[str]]) -> None:
    """Roofs have their labels at their right ends, slopes at their lower ones, hiding no dot."""
    width, rows = len(letters[0]), len(letters)
    taken = {cell for dot in figure.dots if (cell := _cell(dot.at, figure, letters))}
    for curve in (each for each in figure.curves if each.label):
        (x0, y0), (_, y1) = curve.points[0], curve.points[1]
        flat = y0 == y1
        cell = _cell((figure.x.high, y1) if flat else (x0, y0), figure, letters)
        if cell is None:
            continue
        column, row = cell
        last = width - len(curve.label) - 1
        nearest = last if flat else min(column, last)
        starts = range(nearest, max(nearest - _ALONG, -1), -1) if flat else range(nearest, nearest + 1)
        near = (row - 1, row + 1) if flat else (row - 4, row - 3, row - 5)
        places = ((start, each) for each in near if 0 <= each < rows for start in starts if start >= 0)
        for start, each in places:
            cells = {(start + i, each) for i in range(-1, len(curve.label) + 1)}
            if not cells & taken:
                taken |= cells
                letters[each][start : start + len(curve.label)] = curve.label
                break


_ALONG = 30
"""Columns that a roof's label may stand away from its end."""


class Marks(NamedTuple):
    """Letters that stand in a drawing, each in a place of its own."""

    letters: list[list[str]]
    taken: dict[tuple[int, int], str]
    hidden: dict[str, str]
    """Letters without a place, and the one that has theirs."""
    moved: list[str]
    """Letters that stand beside their place."""

    def set(self, cell: tuple[int, int], letter: str) -> None:
        """A letter in its place, or beside it where that is taken."""
        free = _free(cell, self.taken, len(self.letters[0]))
        if free is None:
            self.hidden[letter] = self.taken[cell]
            return
        if free != cell:
            self.moved.append(letter)
        self.taken[free] = letter
        self.letters[free[1]][free[0]] = letter


def _key(figure: Figure, letters: list[list[str]], columns: int) -> Iterator[str]:
    """Dots as letters, equal labels one letter; a measured one is a small circle.

    A letter whose place is taken stands beside it, and one without any room is named in the key.
    """
    marks = Marks(letters, {}, {}, [])
    names = dict(_mark_dots(figure, marks))
    ends = dict(_mark_ends(figure, marks))
    if names or ends:
        yield ""
    for text, letter in (*ends.items(), *names.items()):
        where = f", where {marks.hidden[letter]} is" if letter in marks.hidden else ""
        yield from _wrapped(f"{text}{where}", columns, mark=f"{letter}  ")
    for shape, said in (("diamond", "ridge point"), ("ring", "measured")):
        if any(dot.shape == shape for dot in figure.dots):
            yield f"  {_SIGNS[shape]}  {said}"
    if marks.moved:
        yield "  letters side by side are at one place"


def _mark_dots(figure: Figure, marks: Marks) -> Iterator[tuple[str, str]]:
    """Signs of ridges and runs, over them letters of predicted dots: what each says, and its letter."""
    seen = [(dot, cell) for dot in figure.dots if (cell := _cell(dot.at, figure, marks.letters))]
    for dot, (x, y) in seen:
        if dot.shape in _SIGNS:
            marks.letters[y][x] = _SIGNS[dot.shape]
    predicted = [(dot, cell) for dot, cell in seen if dot.shape not in _SIGNS]
    texts = list(dict.fromkeys(_said(dot) for dot, _ in predicted))
    letters = {text: _LETTERS[number % len(_LETTERS)] for number, text in enumerate(texts)}
    for dot, cell in predicted:
        marks.set(cell, letters[_said(dot)])
    yield from letters.items()


def _mark_ends(figure: Figure, marks: Marks) -> Iterator[tuple[str, str]]:
    """A number at the end of each curve that has a name; letters beyond ten."""
    named = [(name, curve) for curve in figure.curves if (name := curve.key or curve.name)]
    for (name, curve), number in zip(named, itertools.cycle(_NUMBERS), strict=False):
        end = _cell(curve.points[-1], figure, marks.letters)
        if end:
            marks.set(end, number)
            yield name, number


_NUMBERS = "1234567890abcdefghijklmnopqrstuvwxyz"
_SIGNS = {"diamond": "◇", "ring": "○"}
_ASIDE = (0, 1, -1, 2, -2, 3)
"""Columns from its place at which a letter may stand."""


def _free(cell: tuple[int, int], taken: Mapping[tuple[int, int], str], width: int) -> tuple[int, int] | None:
    """The cell, or the nearest in its row that has no letter yet; None if there is none near."""
    x, y = cell
    near = ((x + aside, y) for aside in _ASIDE if 0 <= x + aside < width)
    return next((each for each in near if each not in taken), None)


def _said(dot: Dot) -> str:
    return dot.hover or dot.label


def _x_ticks(figure: Figure, width: int) -> str:
    line = [" "] * width
    free = 0
    for value, text in figure.x.ticks:
        start = round(figure.x.share(value) * (width - 1)) - len(text) // 2
        start = min(max(start, 0), width - len(text))
        if start >= free:
            line[start : start + len(text)] = text
            free = start + len(text) + 1
    return "".join(line)


def _bars(picture: Bars, columns: int) -> Iterator[str]:
    width = max(columns - 4, 20)
    for bar in picture.bars:
        cells = []
        for number, part in enumerate(bar.parts):
            length = round(picture.x.share(part.value) * width)
            cells.append(_FILLS[number % len(_FILLS)] * max(length, 1 if part.value else 0))
        line = "".join(cells)
        limit = round(picture.x.share(bar.limit) * width)
        line = line[:limit].ljust(limit, "·") + "┃" + line[limit:]
        over = sum(part.value for part in bar.parts) > bar.limit
        yield from _wrapped(f"{bar.name}: {bar.limit_text}{', does not fit' if over else ''}", columns)
        yield f"  {line}"
        named = [f"{_FILLS[i % len(_FILLS)]} {part.name} {part.text}" for i, part in enumerate(bar.parts)]
        yield from _wrapped("   ".join(named), columns)
        yield ""


_ASCII = str.maketrans("┤│└─┄◇○█▓▒░┃·", "||+---<o#=:.|.".replace("---", "--", 1)[:13])


def _in_ascii(text: str) -> str:
    """Braille as points, frames as dashes."""
    return "".join("." if 0x2800 <= ord(letter) <= 0x28FF else letter for letter in text).translate(_ASCII)
