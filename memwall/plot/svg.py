"""A scene as SVG: the same bytes on every machine, light and dark, no font or script but the reader's."""

from __future__ import annotations

from html import escape

from memwall.plot.figure import Point
from memwall.plot.scene import FAINT, GRID, INK, PAPER, Box, Color, Line, Mark, Scene, Shape, Text

LIGHT = {INK: "#1b1f24", FAINT: "#57606a", GRID: "#d8dee4", PAPER: "#ffffff"}
DARK = {INK: "#e6edf3", FAINT: "#9da7b3", GRID: "#30363d", PAPER: "#0d1117"}
PALETTE = ("#0b62c4", "#b5470b", "#1a7f37", "#8333c9", "#a40e6c", "#007a87", "#7a5c00", "#57606a")
"""On white each has a contrast of at least 4.5 to 1."""
DARK_PALETTE = ("#6cb6ff", "#f5934f", "#57c76f", "#c297ff", "#ff80c4", "#3fc3d1", "#d9b13b", "#9da7b3")

FONT = "system-ui, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"


def svg(scene: Scene, *, standalone: bool = True) -> str:
    """The scene as a document; embedded in a page it takes the page's colours."""
    width, height = _n(scene.width), _n(scene.height)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="{"img" if standalone else "group"}" font-family="{FONT}">'
    )
    lines = [head, f"<title>{escape(scene.title)}</title>", f"<desc>{escape(scene.description)}</desc>"]
    if standalone:
        lines.append(f"<style>{style()}</style>")
        lines.append(f'<rect width="{width}" height="{height}" {_painted(PAPER)}/>')
    lines += [_mark(mark) for mark in scene.marks]
    return "\n".join([*lines, "</svg>"]) + "\n"


def style() -> str:
    """The dark colours, by class; the light ones stand in the marks themselves."""
    rules = [f".f-{name}{{fill:{color}}}.s-{name}{{stroke:{color}}}" for name, color in DARK.items()]
    rules += [f".f-{i}{{fill:{color}}}.s-{i}{{stroke:{color}}}" for i, color in enumerate(DARK_PALETTE)]
    return "@media (prefers-color-scheme: dark){" + "".join(rules) + "}"


def _mark(mark: Mark) -> str:
    if isinstance(mark, Line):
        points = " ".join(f"{_n(x)},{_n(y)}" for x, y in mark.points)
        dash = f' stroke-dasharray="{mark.dash}"' if mark.dash else ""
        paint = f'fill="none" {_painted(stroke=mark.color)} stroke-width="{_n(mark.width)}"'
        body = f'<polyline points="{points}" {paint} stroke-linejoin="round"{dash}'
        return _with_hover(body, "polyline", mark.hover)
    if isinstance(mark, Text):
        return _text(mark)
    if isinstance(mark, Box):
        x, y = mark.at
        size = f'width="{_n(mark.width)}" height="{_n(mark.height)}"'
        return _with_hover(f'<rect x="{_n(x)}" y="{_n(y)}" {size} {_painted(mark.color)}', "rect", mark.hover)
    return _shape(mark)


def _shape(mark: Shape) -> str:
    (x, y), r = mark.at, mark.radius
    paint = _painted(mark.color)
    if mark.paint != "plain":
        colors = (PAPER, mark.color) if mark.paint == "open" else (mark.color, PAPER)
        width = 1.5 if mark.kind == "diamond" else 2.2 if mark.paint == "open" else 1.2
        paint = f'{_painted(*colors)} stroke-width="{_n(width)}"'
    if mark.kind == "disc":
        return _with_hover(f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(r)}" {paint}', "circle", mark.hover)
    points = " ".join(f"{_n(x + r * across)},{_n(y + r * down)}" for across, down in CORNERS[mark.kind])
    return _with_hover(f'<polygon points="{points}" {paint}', "polygon", mark.hover)


CORNERS: dict[str, tuple[Point, ...]] = {
    "diamond": ((0, -1), (1, 0), (0, 1), (-1, 0)),
    "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    "triangle": ((0, -1.15), (1.1, 0.85), (-1.1, 0.85)),
    "wedge": ((0, 1.15), (1.1, -0.85), (-1.1, -0.85)),
    "hexagon": ((-1.1, 0), (-0.55, -0.95), (0.55, -0.95), (1.1, 0), (0.55, 0.95), (-0.55, 0.95)),
    "plus": tuple(
        (across / 10, down / 10)
        for across, down in (
            *((-4, -11), (4, -11), (4, -4), (11, -4), (11, 4), (4, 4)),
            *((4, 11), (-4, 11), (-4, 4), (-11, 4), (-11, -4), (-4, -4)),
        )
    ),
    "cross": tuple(
        (across / 10, down / 10)
        for across, down in (
            *((-10, -6), (-6, -10), (0, -4), (6, -10), (10, -6), (4, 0)),
            *((10, 6), (6, 10), (0, 4), (-6, 10), (-10, 6), (-4, 0)),
        )
    ),
    "bow tie": ((-1.1, -0.9), (1.1, 0.9), (1.1, -0.9), (-1.1, 0.9)),
}
"""Of each form of radius 1."""


def _text(mark: Text) -> str:
    x, y = mark.at
    anchor = f' text-anchor="{mark.anchor}"' if mark.anchor != "start" else ""
    bold = ' font-weight="600"' if mark.bold else ""
    turn = f' transform="rotate({_n(mark.angle)} {_n(x)} {_n(y)})"' if mark.angle else ""
    place = f'x="{_n(x)}" y="{_n(y)}" font-size="{_n(mark.height)}"{anchor}{bold}{turn}'
    text = escape(mark.text, quote=False)
    front = f"<text {place} {_painted(mark.color)}>{text}</text>"
    if not mark.halo:
        return front
    ground = f'{_painted(PAPER, PAPER)} stroke-width="4" stroke-linejoin="round" aria-hidden="true"'
    return f"<text {place} {ground}>{text}</text>{front}"


def _with_hover(opening: str, tag: str, hover: str) -> str:
    return f"{opening}><title>{escape(hover)}</title></{tag}>" if hover else f"{opening}/>"


def _paint(color: Color) -> str:
    return LIGHT[color] if isinstance(color, str) else PALETTE[color % len(PALETTE)]


def _painted(fill: Color | None = None, stroke: Color | None = None) -> str:
    """Colours as attributes, and as classes for the dark ones."""
    classes, attributes = [], []
    for letter, name, color in (("f", "fill", fill), ("s", "stroke", stroke)):
        if color is not None:
            classes.append(f"{letter}-{_class(color)}")
            attributes.append(f'{name}="{_paint(color)}"')
    return f'class="{" ".join(classes)}" {" ".join(attributes)}'


def _class(color: Color) -> str:
    return color if isinstance(color, str) else str(color % len(PALETTE))


def _n(value: float) -> str:
    """A pixel to a tenth, without a trailing zero."""
    text = f"{value:.1f}"
    return "0" if text == "-0.0" else text.removesuffix(".0")
