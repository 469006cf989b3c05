"""How wide a text is, without a font at hand: the widths of DejaVu Sans, the widest of the common sans-serif
fonts, so that no other exceeds them by much.
"""

from __future__ import annotations

_HUNDREDTHS = {
    28: "'ijl",
    32: "IJ ,.·",
    34: "/:;\\|",
    40: "f-()[]t!",
    46: 'r"',
    50: "*_`",
    55: "szc?",
    60: "LFkvxy",
    64: "PTYaeo$0123456789ESbdghnpqu{}",
    70: "KABVXZCR",
    76: "UNH",
    79: "&DGOQ",
    84: "w#+<=>^~",
    87: "M",
    100: "%mW@—…",
}
"""Letters by the advance width of DejaVu Sans, in hundredths of an em, rounded up."""
_EM = {letter: width / 100 for width, letters in _HUNDREDTHS.items() for letter in letters}
_OTHER, _FULL = 0.72, 1.0
"""Ems of letters that are not listed, and of those as wide as they are high."""
_FULL_FROM = "\u2e80"
BOLD = 1.13
"""How much wider bold letters are, in lines of several words."""


def width_of(text: str, height: float, bold: bool = False) -> float:
    """Pixels that a text takes at a font height, by widths that no common sans-serif font exceeds by much."""
    ems = sum(_EM.get(letter, _FULL if letter >= _FULL_FROM else _OTHER) for letter in text)
    return ems * height * (BOLD if bold else 1)
