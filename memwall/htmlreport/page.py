"""The page: words, numbers, roofline, table, memory and sources, and the forms behind its sliders."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from itertools import starmap
from math import exp2
from typing import Any

import memwall
from memwall.bound import REGIMES
from memwall.errors import NotAvailable, Refusal
from memwall.estimate.engine import engine_named
from memwall.htmlreport.forms import LONGEST, MOST_BATCH, Forms, forms_of
from memwall.htmlreport.question import Asked, Made, OnGpu, Question
from memwall.htmlreport.remarks import listed, longest
from memwall.htmlreport.roofs import roofs
from memwall.htmlreport.script import for_script, script_of
from memwall.htmlreport.sources import sources
from memwall.htmlreport.trace import Tape
from memwall.plot.svg import style as svg_style
from memwall.render import step as step_view
from memwall.render import text as plain
from memwall.render.step_record import warning
from memwall.reports.step import StepReport, step
from memwall.reports.step_setting import phase_of

PLACES = 8
"""Of a slider for each doubling."""
PHASES = ("decode", "prefill")
SCRIPTS = ("forms.js", "words.js", "table.js", "roof.js", "page.js")


def page(question: Question, gpus: Sequence[Asked]) -> Made:
    """The page of a model on some GPUs.

    Raises:
        UsageError: a shape or a layout that cannot be.
        NotAvailable: no GPU has an answer, or the model has no such phase.
    """
    if question.phase:
        phase_of(question.model, question.phase, None, None)
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
    opening = _opening(question, parts)
    warnings = [said for part in parts if (said := warning(part.reports[opening]))]
    return Made(_document(question, parts, refusals, tape), refusals, warnings)


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
    most_tokens = max(LONGEST, question.context, question.model.context or 0)
    return max(MOST_BATCH, question.batch), most_tokens


def _opening(question: Question, parts: Sequence[OnGpu]) -> str:
    """The phase that the page opens with."""
    return question.phase or next(iter(parts[0].forms))


def _document(question: Question, parts: Sequence[OnGpu], refusals: Sequence[Refusal], tape: Tape) -> str:
    layout = parts[0].first.spread.layout
    of = " of a microbatch, all stages" if layout.pp > 1 else " of a GPU" if layout.gpus > 1 else ""
    kernels = {
        "": "Kernels",
        " of a GPU": "Kernels of one GPU, and exchanges between them",
    }.get(of, "Kernels of a microbatch through all stages, a GPU of each, and exchanges between them")
    setting, opening = _setting(parts), _opening(question, parts)
    return _resource("page.html").format(
        title=escape(f"{question.model.title}: what a pass must cost"),
        tab=escape(f"{question.model.title}: {setting}"),
        setting=escape(setting),
        css=_resource("page.css") + svg_style().replace("@media ", "@media screen and "),  # paper is light
        body=_kind(parts),
        gpus=_picks("gpu", [(part.device.name, part.device.name) for part in parts]),
        phases=_picks("phase", [(phase, phase) for phase in parts[0].forms]),
        slides="".join(
            starmap(_slide, zip(("batch", "context"), _places(question), _most(question), strict=True))
        ),
        refusals="".join(f"<p class=warn>{escape(f'{each.gpu}: {each.error}')}</p>" for each in refusals),
        opening=opening,
        unscripted="".join(_unscripted(question, part, opening) for part in parts),
        of=of,
        kernels=kernels,
        roofs="".join(map(roofs, parts)),
        heads="".join(_HEAD.format(sort=sort, text=text, kind=kind) for sort, text, kind in _COLUMNS),
        notes="".join(map(_notes, parts)),
        version=memwall.__version__,
        data=_data(question, parts, tape),
        js="".join(map(_resource, SCRIPTS)),
    )


def _setting(parts: Sequence[OnGpu]) -> str:
    """What tells this page from another of its model: formats, GPUs, layout, whose kernels, what-ifs."""
    layout, formats = parts[0].first.spread.layout, dict.fromkeys(part.formats for part in parts)
    names = [
        part.device.name if len(formats) == 1 else f"{part.device.name} in {part.formats}" for part in parts
    ]
    shared = [*formats] if len(formats) == 1 else []
    several = [f"{layout.gpus} GPUs: {layout.text}"] if layout.gpus > 1 else []
    words = parts[0].asked.words
    whose = [f"{name} {words[name]}" for name in ("engine", "library", "calibration") if words.get(name)]
    what_ifs = dict.fromkeys(each for part in parts for each in part.asked.what_ifs)
    return "; ".join(
        [*shared, f"on {', '.join(names)}", *several, *whose, *(f"what-if {each}" for each in what_ifs)]
    )


def _unscripted(question: Question, part: OnGpu, phase: str) -> str:
    """The answer as first asked, for a browser that runs no scripts."""
    answer = plain.render(step_view.page(part.reports[phase]))
    length = "--context" if phase == "decode" else "--seq"
    command = (
        f"memwall step --model {shlex.quote(question.typed)} --gpu {shlex.quote(part.asked.typed)} "
        f"--phase {phase} --batch {question.batch} {length} {question.context}{part.asked.flags}"
    )
    return f"<pre tabindex=0>{escape(f'$ {command}')}\n{escape(answer)}</pre>"


def _kind(parts: Sequence[OnGpu]) -> str:
    """Which parts the page has, as classes of its body."""
    first = parts[0].first
    layout = first.spread.layout
    kinds = {
        "several": layout.gpus > 1,
        "staged": layout.pp > 1,
        "estimated": first.estimate is not None,
        "beside": len(parts) > 1,
    }
    return " ".join(name for name, has in kinds.items() if has)


def _data(question: Question, parts: Sequence[OnGpu], tape: Tape) -> str:
    """What the script computes from: the question, and each GPU's forms."""
    phases = list(parts[0].forms)
    layout = parts[0].first.spread.layout
    report = {
        "model": shlex.quote(question.typed),
        "asked": {
            "gpu": parts[0].device.name,
            "phase": _opening(question, parts),
            "batch": question.batch,
            "context": question.context,
        },
        "most": _most(question),
        "places": dict(zip(("batch", "context"), _places(question), strict=True)),
        "longest": {phase: longest(question.model, phase) for phase in phases},
        "phases": phases,
        "regimes": REGIMES,
        "count": layout.gpus,
        "stages": layout.pp,
        "replicas": layout.dp,
        "layout": layout.text,
        "gpus": [
            {
                "name": part.device.name,
                "title": part.device.title,
                "typed": shlex.quote(part.asked.typed),
                "flags": part.asked.flags,
                "formats": part.formats,
                "engine": engine.title if (engine := engine_named(part.asked.words.get("engine"))) else "",
                "what_ifs": ", ".join(part.asked.what_ifs),
            }
            for part in parts
        ],
    }
    forms = script_of(tape, {part.device.name: part.forms for part in parts})
    return for_script(report, forms)


def _notes(part: OnGpu) -> str:
    """What the numbers rest on: remarks, and constants with their sources."""
    return f'<section data-of="{escape(part.device.name)}">{listed(part)}{sources(part)}</section>'


def _picks(name: str, choices: Iterable[tuple[str, str]]) -> str:
    return "".join(
        f'<label class=pick><input type=radio name={name} value="{escape(value)}">{escape(text)}</label>'
        for value, text in choices
    )


def _places(question: Question) -> list[list[int]]:
    """The counts that each slider stops at: a few in each doubling, none twice, and what was asked."""
    found = []
    for asked, most in zip((question.batch, question.context), _most(question), strict=True):
        values, place = {asked, most}, 0
        while (value := round(exp2(place / PLACES))) <= most:
            values.add(value)
            place += 1
        found.append(sorted(values))
    return found


def _slide(name: str, places: Sequence[int], most: int) -> str:
    """A slider over doublings, a few places each, beside the number itself."""
    return (
        f"<div class=slide><label for={name} id={name}-name>{name}</label>"
        f"<input type=range id={name} min=0 max={len(places) - 1} step=1>"
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
"""In the order in which table.js fills them."""
_HEAD = (
    '<th class="{kind}" scope=col data-sort={sort} aria-sort=none><button type=button>{text}'
    "<span class=arrow aria-hidden=true></span></button>"
)
