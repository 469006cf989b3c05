"""A picture in pixels: what is drawn where, for any format that can draw."""

from __future__ import annotations

from typing import NamedTuple

from memwall.plot.figure import Point

INK, FAINT, GRID, PAPER = "ink", "faint", "grid", "paper"
"""Roles of colours; a number is a colour of the palette."""

Color = str | int


class Line(NamedTuple):
    """Straight lines from point to point."""

    points: tuple[Point, ...]
    color: Color
    width: float = 1.0
    dash: str = ""
    hover: str = ""


class Text(NamedTuple):
    """One line of text."""

    at: Point
    """Of its baseline."""
    text: str
    height: float
    color: Color = INK
    anchor: str = "start"
    """start, middle or end."""
    bold: bool = False
    angle: float = 0.0
    """Degrees clockwise."""
    halo: bool = False
    """On a ground of its own, so that lines behind it do not cross it."""


class Shape(NamedTuple):
    """A small form around a point."""

    at: Point
    kind: str
    """diamond, or one of FORMS."""
    radius: float
    color: Color
    hover: str = ""
    paint: str = "solid"
    """solid: filled, on a ground of its own; open: its outline alone; plain: without a ground."""


FORMS = ("disc", "square", "triangle", "wedge", "hexagon", "plus", "cross", "bow tie")
"""What tells GPUs and curves apart where colours cannot."""


class Box(NamedTuple):
    """A filled rectangle."""

    at: Point
    width: float
    height: float
    color: Color
    hover: str = ""


Mark = Line | Text | Shape | Box


class Scene(NamedTuple):
    """Marks from back to front."""

    width: float
    height: float
    title: str
    description: str
    marks: tuple[Mark, ...]
