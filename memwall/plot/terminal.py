"""A picture in a terminal: curves in braille, dots as letters with a key, bars in blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

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
    lines = _bars(picture, columns) if isinstance(picture, Bars) else _figure(picture, columns, rows)
    text = "\n".join([picture.title, f"  {picture.subtitle}", "", *(line.rstrip() for line in lines)])
    text = "\n".join([text, *(f"  {note}" for note in picture.notes)]) + "\n"
    return _in_ascii(text) if plain else text


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
    key = list(_key(figure, letters))
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
    """Roofs have their labels at their right ends, where they do not hide each other."""
    taken: set[int] = set()
    for curve in figure.curves:
        (x0, y0), (_, y1) = curve.points[0], curve.points[1]
        if not curve.label:
            continue
        flat = y0 == y1
        cell = _cell((figure.x.high, y1) if flat else (x0, y0), figure, letters)
        if cell is None:
            continue
        row = max(cell[1] - 1, 0)
        start = len(letters[0]) - len(curve.label) - 1 if flat else min(cell[0] + 2, len(letters[0]) - 40)
        if not flat:
            row = max(cell[1] - 4, 0)
            start = cell[0]
        if row in taken or start < 0:
            continue
        taken.add(row)
        letters[row][start : start + len(curve.label)] = curve.label


def _key(figure: Figure, letters: list[list[str]]) -> Iterator[str]:
    """Dots as letters, equal labels one letter; a measured one is a small circle."""
    names: dict[str, str] = {}
    ends: list[str] = []
    for number, curve in enumerate((each for each in figure.curves if each.name), 1):
        end = _cell(curve.points[-1], figure, letters)
        if end:
            letters[end[1]][end[0]] = str(number % 10)
            ends.append(f"  {number % 10}  {curve.name}")
    for dot in sorted(figure.dots, key=lambda each: ("diamond", "ring", "disc").index(each.shape)):
        cell = _cell(dot.at, figure, letters)
        if cell is None:
            continue
        letter = {"diamond": "◇", "ring": "○"}.get(dot.shape)
        if letter is None:
            letter = names.setdefault(_said(dot), _LETTERS[len(names) % len(_LETTERS)])
        letters[cell[1]][cell[0]] = letter
    if names or ends:
        yield ""
    yield from ends
    yield from (f"  {letter}  {text}" for text, letter in names.items())
    if any(dot.shape == "diamond" for dot in figure.dots):
        yield "  ◇  ridge point"
    if any(dot.shape == "ring" for dot in figure.dots):
        yield "  ○  measured"


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
        yield f"  {bar.name}: {bar.limit_text}{', does not fit' if over else ''}"
        yield f"  {line}"
        named = [f"{_FILLS[i % len(_FILLS)]} {part.name} {part.text}" for i, part in enumerate(bar.parts)]
        yield f"  {'   '.join(named)}"
        yield ""


_ASCII = str.maketrans("┤│└─┄◇○█▓▒░┃·", "||+---<o#=:.|.".replace("---", "--", 1)[:13])


def _in_ascii(text: str) -> str:
    """Braille as points, frames as dashes."""
    return "".join("." if 0x2800 <= ord(letter) <= 0x28FF else letter for letter in text).translate(_ASCII)
