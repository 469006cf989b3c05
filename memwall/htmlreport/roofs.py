"""The roofs of a GPU, drawn at two widths; the script adds the kernels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape

from memwall.htmlreport.question import OnGpu
from memwall.plot import roofline
from memwall.plot.curves import text_areas
from memwall.plot.figure import Curve
from memwall.plot.labels import Area
from memwall.plot.layout import Frame, framed
from memwall.plot.scene import Text
from memwall.plot.svg import svg

WIDE, NARROW = (900.0, 520.0), (380.0, 420.0)
"""Pixels of the roofline on a screen, and on a phone."""
LEAST_INTENSITY = 0.1


def roofs(part: OnGpu) -> str:
    """On a phone only those that the pass meets."""
    met = list(dict.fromkeys(dtype for line in part.first.lines for dtype in line.bound.work.matrix_flops))
    return _figure(part, WIDE, "wide", []) + _figure(part, NARROW, "narrow", met)


def _figure(part: OnGpu, size: tuple[float, float], name: str, dtypes: Sequence[str]) -> str:
    """One drawing, with where data and texts stand in it."""
    figure = roofline.figure([part.device], [], (), dtypes, LEAST_INTENSITY)
    scene, frame = framed(figure._replace(subtitle="", notes=()), *size)
    taken = [area for mark in scene.marks if isinstance(mark, Text) for area in text_areas(mark)]
    taken += [_flat(frame, curve) for curve in figure.curves if curve.points[0][1] == curve.points[-1][1]]
    area = frame.area._asdict() | {
        "x": [figure.x.low, figure.x.high],
        "y": [figure.y.low, figure.y.high],
        "taken": [[round(edge, 1) for edge in each] for each in taken if each.inside(frame.area)],
    }
    data, gpu = escape(json.dumps(area)), escape(part.device.name)
    notes = "".join(f"<p class=faint>{escape(note)}</p>" for note in figure.notes)
    return (
        f'<figure class={name} style="margin:0" data-gpu="{gpu}" data-frame="{data}">'
        f"{svg(scene, standalone=False)}{notes}</figure>"
    )


def _flat(frame: Frame, roof: Curve) -> Area:
    """What a roof takes."""
    (left, y), (right, _) = map(frame.at, (roof.points[0], roof.points[-1]))
    return Area(left, y - 1, right, y + 1)
