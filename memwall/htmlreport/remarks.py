"""Remarks on a pass, each with when it is true: the page shows those that hold for what its sliders say.

Some hold in one phase; those on a device's constants and engines where such an engine limits; the rest, on
lengths, replicas, activations and room, the page makes itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import NamedTuple

from memwall.bound import Bound
from memwall.htmlreport.question import OnGpu
from memwall.models.model import Model
from memwall.models.step.sides import encoder_positions
from memwall.render.layouts import layout_own_notes
from memwall.render.step_record import shared_notes
from memwall.reports.evidence import remarks
from memwall.reports.lengths import too_long
from memwall.reports.step import StepReport


class Remark(NamedTuple):
    """A remark of one phase."""

    text: str
    any_of: frozenset[str] | None = None
    """Limits of which one at least limits the pass or a kernel; None: whichever do."""
    all_of: frozenset[str] | None = None
    """Limits outside of which none does; None: whichever do."""


def listed(part: OnGpu) -> str:
    """The remarks of a GPU as a list."""
    phases: dict[Remark, list[str]] = {}
    for phase, report in part.reports.items():
        for remark in _of_phase(report):
            phases.setdefault(remark, []).append(phase)
    return f"<ul>{''.join(_item(*each) for each in phases.items())}</ul>"


def longest(model: Model, phase: str) -> list[tuple[int, str]]:
    """Lengths beyond which a sequence is longer than was made for it, or for its encoder."""
    positions = encoder_positions(model)
    reads = bool(model.encoder and model.decodes)
    if reads and phase == "prefill":
        found = [(positions or model.context, "its encoder")]
    else:
        encoder = [(model.context, "its encoder")] if reads and positions is None else []
        found = [*encoder, (model.context, "it")]
    return [(most, which) for most, which in found if most]


def _item(remark: Remark, phases: Iterable[str]) -> str:
    limits = (("any", remark.any_of), ("all", remark.all_of))
    when = "".join(f' data-{name}="{" ".join(sorted(of))}"' for name, of in limits if of is not None)
    text = escape(remark.text).replace(_CONTEXT, "<span data-context></span>")
    return f'<li data-phases="{" ".join(phases)}"{when}>{text}'


_CONTEXT = "\0"
"""Stands in a remark for the context that the page shows."""


def _of_phase(report: StepReport) -> Iterator[Remark]:
    generated = 0 if report.source and report.phase == "prefill" else report.tokens.seq_kv
    made_there = {
        *too_long(report.model, generated, report.source),
        *report.spread.layout.uneven(report.spread.batch),
    }
    for note in [*shared_notes(report), *layout_own_notes(report)]:
        if note not in made_there:
            yield Remark(_free(note, report))
    engine = report.engine
    if engine and report.estimate and engine.gpus and report.device.name not in engine.gpus:
        yield Remark(f"fitted on other GPUs: {', '.join(engine.gpus)}")
    yield from _of_device(report)


def _free(note: str, report: StepReport) -> str:
    """The note without what is the command line's, or the first question's."""
    note = note.replace("host: --engine", "host: memwall step --engine")
    if report.source and encoder_positions(report.model) is None:
        note = note.replace(f"source tokens {report.source}", f"source tokens {_CONTEXT}")
    return note


def _of_device(report: StepReport) -> Iterator[Remark]:
    """What the command line says of a device's numbers, by the limits under which it does."""
    device = report.device
    limits = dict.fromkeys(term.limit for bound in report.bounds for term in bound.terms)
    said = {limit: remarks(device, list(_limited(report.bounds, limit))) for limit in limits}
    for note in dict.fromkeys(note for notes in said.values() for note in notes):
        under = frozenset(limit for limit, notes in said.items() if note in notes)
        if len(under) == len(said):
            yield Remark(note)
        elif any(note.startswith(f"{key} is set by you") for key in device.assumed):
            yield Remark(note, all_of=under)
        else:
            yield Remark(note, any_of=under)


def _limited(bounds: Iterable[Bound], limit: str) -> Iterator[Bound]:
    """The bounds as if that term of them were the longest."""
    for bound in bounds:
        first = [term for term in bound.terms if term.limit == limit]
        if first:
            yield bound._replace(terms=(*first, *(term for term in bound.terms if term.limit != limit)))
