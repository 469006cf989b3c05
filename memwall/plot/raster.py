"""A picture as PNG or PDF, drawn from its SVG by a library that is an extra."""

from __future__ import annotations

from memwall.errors import NotAvailable

SCALE = 2.0
"""Pixels of a PNG for each of the layout: sharp on today's screens."""


def drawn(svg: str, form: str) -> bytes:
    """The SVG as PNG or PDF, in its light colours.

    Raises:
        NotAvailable: the library is not installed.
    """
    try:
        import cairosvg
    except (ImportError, OSError):  # the library, or the Cairo that it looks for
        raise NotAvailable(
            f"{form.upper()} needs cairosvg, which is not installed",
            "pip install 'memwall[plot]', or write .svg",
        ) from None
    draw = cairosvg.svg2png if form == "png" else cairosvg.svg2pdf
    data: bytes = draw(bytestring=svg.encode(), scale=SCALE if form == "png" else 1.0)
    return data
