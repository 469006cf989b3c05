"""The page: words, numbers, roofline, table, memory and sources, and the forms behind its sliders."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from itertools import starmap
from math import log2
from typing import Any, NamedTuple

import memwall
from memwall.bound import REGIMES
from memwall.errors import NotAvailable, Refusal
from memwall.hardware import Device
from memwall.htmlreport.forms import LONGEST, MOST_BATCH, Forms, forms_of
from memwall.htmlreport.script import script_of
from memwall.htmlreport.sources import sources
from memwall.htmlreport.trace import Tape
from memwall.models.model import Model
from memwall.plot import roofline
from memwall.plot.curves import text_areas
from memwall.plot.figure import Curve
from memwall.plot.labels import Area
from memwall.plot.layout import Frame, framed
from memwall.plot.scene import Text
from memwall.plot.svg import style as svg_style
from memwall.plot.svg import svg
from memwall.render.step_record import all_notes
from memwall.reports.step import StepReport, step

WIDE, NARROW = (900.0, 520.0), (380.0, 420.0)
"""Pixels of the roofline on a screen, and on a phone."""
LEAST_INTENSITY = 0.1
PLACES = 8
"""Of a slider for each doubling, as page.js has it."""
PHASES = ("decode", "prefill")


class Question(NamedTuple):
    """What the page is asked, and what its sliders start from."""

    model: Model
    batch: int
    context: int
    phase: str | None
    typed: str
    """The model as the user names it."""


class Asked(NamedTuple):
    """A GPU of the page."""

    device: Device
    typed: str
    """As the user names it."""
    words: Mapping[str, Any]
    """Formats, layout, library and calibration, as `memwall.step` takes them."""
    flags: str
    """The same as a command line has them."""


class OnGpu(NamedTuple):
    """One GPU's part of the page."""

    asked: Asked
    forms: Mapping[str, Forms]
    reports: Mapping[str, StepReport]
    """Of each phase, at the point that was asked."""

    @property
    def device(self) -> Device:
        """The GPU."""
        return self.asked.device


def page(question: Question, gpus: Sequence[Asked]) -> tuple[str, list[Refusal]]:
    """The page of a model on some GPUs, and those that have no answer.

    Raises:
        UsageError: a shape or a layout that cannot be.
        NotAvailable: no GPU has an answer.
    """
    parts: list[OnGpu] = []
    refusals: list[Refusal] = []
    tape = Tape()
    for asked in gpus:
        try:
            parts.append(_on_gpu(question, asked, tape))
        except NotAvailable as error:
            refusals.append(Refusal(asked.device.name, error))
    if not parts:
        raise refusals[0].error
    return _document(question, parts, refusals, tape), refusals


def _on_gpu(question: Question, asked: Asked, tape: Tape) -> OnGpu:
    model, words, device = question.model, asked.words, asked.device
    forms: dict[str, Forms] = {}
    reports: dict[str, StepReport] = {}
    for phase in PHASES:
        if phase == "decode" and not model.decodes:
            continue
        length = "context" if phase == "decode" else "seq"
        point: dict[str, Any] = {"phase": phase, "batch": question.batch, length: question.context}
        reports[phase] = step(model, gpu=device, **words, **point)
        forms[phase] = forms_of(device, model, phase, words, _most(question), tape)
    return OnGpu(asked, forms, reports)


def _most(question: Question) -> tuple[int, int]:
    longest = max(LONGEST, question.context, question.model.context or 0)
    return max(MOST_BATCH, question.batch), longest


def _document(question: Question, parts: Sequence[OnGpu], refusals: Sequence[Refusal], tape: Tape) -> str:
    return _resource("page.html").format(
        title=escape(f"{question.model.title}: what a pass must cost"),
        css=_resource("page.css") + svg_style().replace("@media ", "@media screen and "),  # paper is light
        body=_kind(parts[0]),
        gpus=_picks("gpu", [(part.device.name, part.device.name) for part in parts]),
        phases=_picks("phase", [(phase, phase) for phase in parts[0].forms]),
        slides="".join(starmap(_slide, zip(("batch", "context"), _most(question), strict=True))),
        refusals="".join(f"<p class=warn>{escape(f'{each.gpu}: {each.error}')}</p>" for each in refusals),
        roofs="".join(map(_roof, parts)),
        heads="".join(_HEAD.format(sort=sort, text=text, kind=kind) for sort, text, kind in _COLUMNS),
        notes="".join(map(_notes, parts)),
        version=memwall.__version__,
        data=_data(question, parts, tape),
        js=_resource("forms.js") + _resource("page.js"),
    )


def _kind(part: OnGpu) -> str:
    """Which parts the page has, as classes of its body."""
    first = next(iter(part.reports.values()))
    layout = first.spread.layout
    kinds = {"several": layout.gpus > 1, "staged": layout.pp > 1, "estimated": first.estimate is not None}
    return " ".join(name for name, has in kinds.items() if has)


def _data(question: Question, parts: Sequence[OnGpu], tape: Tape) -> str:
    """What the script computes from: the question, and each GPU's forms."""
    phases = list(parts[0].forms)
    layout = parts[0].reports[phases[0]].spread.layout
    report = {
        "model": shlex.quote(question.typed),
        "asked": {
            "gpu": parts[0].device.name,
            "phase": question.phase if question.phase in phases else phases[0],
            "batch": question.batch,
            "context": question.context,
        },
        "most": _most(question),
        "phases": phases,
        "regimes": REGIMES,
        "count": layout.gpus,
        "layout": layout.text,
        "gpus": [
            {
                "name": part.device.name,
                "title": part.device.title,
                "typed": shlex.quote(part.asked.typed),
                "flags": part.asked.flags,
            }
            for part in parts
        ],
    }
    forms = script_of(tape, {part.device.name: part.forms for part in parts})
    return f"const REPORT={json.dumps(report)};\n{forms}".replace("</", "<\\/")


def _roof(part: OnGpu) -> str:
    """The roofs of a GPU at two widths, on a phone those that the pass meets; the script adds the kernels."""
    report = next(iter(part.reports.values()))
    met = list(dict.fromkeys(dtype for line in report.lines for dtype in line.bound.work.matrix_flops))
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


def _notes(part: OnGpu) -> str:
    """What the numbers rest on: remarks, and constants with their sources."""
    notes = dict.fromkeys(note for report in part.reports.values() for note in all_notes(report))
    listed = "".join(f"<li>{escape(note)}" for note in notes)
    return f'<section data-of="{escape(part.device.name)}"><ul>{listed}</ul>{sources(part.reports)}</section>'


def _picks(name: str, choices: Iterable[tuple[str, str]]) -> str:
    return "".join(
        f'<label class=pick><input type=radio name={name} value="{escape(value)}">{escape(text)}</label>'
        for value, text in choices
    )


def _slide(name: str, most: int) -> str:
    """A slider over doublings, a few places each, beside the number itself."""
    places = round(log2(most) * PLACES)
    return (
        f"<div class=slide><label for={name} id={name}-name>{name}</label>"
        f"<input type=range id={name} min=0 max={places} step=1>"
        f"<input type=number id={name}-number min=1 max={most} step=1 aria-labelledby={name}-name></div>"
    )


def _resource(name: str) -> str:
    return files("memwall.htmlreport").joinpath(name).read_text(encoding="utf-8")


_COLUMNS = (
    ("name", "kernel", "word"),
    ("time", "bound, all", ""),
    ("estimate", "estimate, all", "estimated"),
    ("share", "share", ""),
    ("each", "bound, each", ""),
    ("repeats", "times", ""),
    ("limit", "limited by", "word"),
    ("bytes", "traffic, all", ""),
    ("flops", "FLOPs, all", ""),
    ("intensity", "FLOP/B", ""),
    ("kind", "kind", "word"),
)
"""In the order in which page.js fills them."""
_HEAD = '<th class="{kind}" scope=col data-sort={sort} aria-sort=none><button type=button>{text}</button>'
