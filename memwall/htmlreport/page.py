"""The page: words, numbers, roofline, table, memory and sources, and the forms behind its sliders."""

from __future__ import annotations

import json
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
from memwall.htmlreport.forms import LONGEST, MOST_BATCH, Forms, forms_of, script_of
from memwall.models.model import Model
from memwall.plot import roofline
from memwall.plot.layout import framed
from memwall.plot.svg import style as svg_style
from memwall.plot.svg import svg
from memwall.render.step_record import all_notes
from memwall.reports.step import StepReport, step
from memwall.units import significant

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
    words: Mapping[str, str | None]
    """dtype, weight_dtype and kv_dtype."""


class OnGpu(NamedTuple):
    """One GPU's part of the page."""

    device: Device
    forms: Mapping[str, Forms]
    reports: Mapping[str, StepReport]
    """Of each phase, at the point that was asked."""


def page(question: Question, devices: Sequence[Device]) -> tuple[str, list[Refusal]]:
    """The page of a model on some GPUs, and those that have no answer.

    Raises:
        UsageError: a shape that cannot be.
        NotAvailable: no GPU has an answer.
    """
    parts: list[OnGpu] = []
    refusals: list[Refusal] = []
    for device in devices:
        try:
            parts.append(_on_gpu(question, device))
        except NotAvailable as error:
            refusals.append(Refusal(device.name, error))
    if not parts:
        raise refusals[0].error
    return _document(question, parts, refusals), refusals


def _on_gpu(question: Question, device: Device) -> OnGpu:
    model, words = question.model, question.words
    forms: dict[str, Forms] = {}
    reports: dict[str, StepReport] = {}
    for phase in PHASES:
        if phase == "decode" and not model.decodes:
            continue
        asked: dict[str, Any] = {**words, "context" if phase == "decode" else "seq": question.context}
        asked |= {"phase": phase, "batch": question.batch, "bound_only": True}
        reports[phase] = step(model, gpu=device, **asked)
        forms[phase] = forms_of(device, model, phase, words, _most(question))
    return OnGpu(device, forms, reports)


def _most(question: Question) -> tuple[int, int]:
    longest = max(LONGEST, question.context, question.model.context or 0)
    return max(MOST_BATCH, question.batch), longest


def _document(question: Question, parts: Sequence[OnGpu], refusals: Sequence[Refusal]) -> str:
    return _resource("page.html").format(
        title=escape(f"{question.model.title}: what a pass must cost"),
        css=_resource("page.css") + svg_style(),
        gpus=_picks("gpu", [(part.device.name, part.device.name) for part in parts]),
        phases=_picks("phase", [(phase, phase) for phase in parts[0].forms]),
        slides="".join(starmap(_slide, zip(("batch", "context"), _most(question), strict=True))),
        refusals="".join(f"<p class=warn>{escape(f'{each.gpu}: {each.error}')}</p>" for each in refusals),
        roofs="".join(map(_roof, parts)),
        heads="".join(_HEAD.format(sort=sort, text=text, kind=kind) for sort, text, kind in _COLUMNS),
        notes="".join(map(_notes, parts)),
        version=memwall.__version__,
        data=_data(question, parts),
        js=_resource("page.js"),
    )


def _data(question: Question, parts: Sequence[OnGpu]) -> str:
    """What the script computes from: the question, and each GPU's forms."""
    phases = list(parts[0].forms)
    flags = "".join(f" --{name.replace('_', '-')} {value}" for name, value in question.words.items() if value)
    report = {
        "model": question.model.name,
        "flags": flags,
        "asked": {
            "gpu": parts[0].device.name,
            "phase": question.phase if question.phase in phases else phases[0],
            "batch": question.batch,
            "context": question.context,
        },
        "most": _most(question),
        "phases": phases,
        "regimes": REGIMES,
        "gpus": [{"name": part.device.name, "title": part.device.title} for part in parts],
    }
    forms = ",\n".join(f"{json.dumps(part.device.name)}:{{{_forms(part.forms)}}}" for part in parts)
    text = f"const REPORT={json.dumps(report)};\nconst FORMS={{{forms}}};"
    return text.replace("</", "<\\/")


def _forms(forms: Mapping[str, Forms]) -> str:
    return ",\n".join(
        f"{phase}:{{weight_bytes:{each.weight_bytes},capacity_bytes:{json.dumps(each.capacity_bytes)},"
        f"regions:{script_of(each)}}}"
        for phase, each in forms.items()
    )


def _roof(part: OnGpu) -> str:
    """The roofs of a GPU at two widths; the script adds the kernels."""
    figure = roofline.figure([part.device], [], least=LEAST_INTENSITY)._replace(subtitle="", notes=())
    drawn = []
    for (width, height), name in ((WIDE, "wide"), (NARROW, "narrow")):
        scene, frame = framed(figure, width, height)
        area = frame.area._asdict() | {
            "x": [figure.x.low, figure.x.high],
            "y": [figure.y.low, figure.y.high],
        }
        data = escape(json.dumps(area))
        drawn.append(
            f'<figure class={name} style="margin:0" data-gpu="{part.device.name}" data-frame="{data}">'
            f"{svg(scene, standalone=False)}</figure>"
        )
    return "".join(drawn)


def _notes(part: OnGpu) -> str:
    """What the numbers rest on: remarks, constants with their sources."""
    notes = dict.fromkeys(note for report in part.reports.values() for note in all_notes(report))
    leaves = {
        leaf.key: leaf for report in part.reports.values() for bound in report.bounds for leaf in bound.leaves
    }
    rows = "".join(
        f"<tr><td>{escape(leaf.key)}<td>{significant(leaf.value, 6)}<td>{leaf.kind}<td>{escape(leaf.source)}"
        for leaf in leaves.values()
    )
    listed = "".join(f"<li>{escape(note)}" for note in notes)
    return (
        f'<section data-of="{part.device.name}"><ul>{listed}</ul><div class=wide-table><table class=sources>'
        f"<caption class=faint>Constants of {escape(part.device.title)}, in SI units</caption>"
        "<thead><tr><th>constant<th>value<th>known by<th>source</thead>"
        f"<tbody>{rows}</tbody></table></div></section>"
    )


def _picks(name: str, choices: Iterable[tuple[str, str]]) -> str:
    return "".join(
        f'<label class=pick><input type=radio name={name} value="{value}">{escape(text)}</label>'
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
    ("kind", "kind", "word"),
    ("repeats", "times", ""),
    ("flops", "FLOPs", ""),
    ("bytes", "traffic", ""),
    ("intensity", "FLOP/B", ""),
    ("limit", "limited by", "word"),
    ("each", "bound, each", ""),
    ("time", "bound, all", ""),
)
_HEAD = '<th class="{kind}" scope=col data-sort={sort} aria-sort=none><button type=button>{text}</button>'
