"""What the records and pages of all bounds share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from memwall.bound import REGIMES, Bound, Term
from memwall.errors import Refusal
from memwall.estimate.estimate import Estimate
from memwall.hardware import Device
from memwall.models.model import Model
from memwall.render.data import Record
from memwall.render.page import Lines, Section, star
from memwall.reports.evidence import weak
from memwall.reports.steps import Step
from memwall.units import (
    format_bytes,
    format_bytes_per_s,
    format_flops,
    format_flops_per_s,
    format_seconds,
    scaled,
    significant,
)

LIMITS = tuple(REGIMES)
"""The terms in the order in which records list them."""


def bound_record(bound: Bound) -> Record:
    """The keys that every bound has."""
    work = bound.work
    times = {term.limit: term.time_s for term in bound.terms}
    return {
        "flops": work.flops,
        "flops_by_engine": work.flops_by_engine,
        "read_bytes": work.read_bytes,
        "written_bytes": work.written_bytes,
        "traffic_bytes": work.traffic_bytes,
        "arithmetic_intensity": bound.arithmetic_intensity,
        "ridge_point": bound.ridge_point,
        "regime": bound.regime,
        "attainable_flops_per_s": bound.attainable_flops_per_s,
        "bound_time_s": bound.time_s,
        "limited_by": bound.limited_by,
        "terms_s": {limit: times[limit] for limit in LIMITS if limit in times},
    }


def estimate_record(estimate: Estimate | None) -> Record:
    """The keys of an estimate; null where there is none."""
    return {
        "estimate_time_s": estimate.time_s if estimate else None,
        "basis": estimate.basis if estimate else None,
        "error_p50": estimate.error_p50 if estimate else None,
        "error_p90": estimate.error_p90 if estimate else None,
    }


def evidence_record(device: Device, bounds: Sequence[Bound], model: Model | None = None) -> Record:
    """What the numbers rest on, where that is weak: of the device, and of the model."""
    doubts = [*weak(bounds), *([model.doubt] if model and model.doubt else [])]
    return {
        "assumed": list(device.assumed),
        "weak_sources": [{"key": each.key, "kind": each.kind, "source": each.source} for each in doubts],
    }


class OnDevice(Protocol):
    """A report on one device."""

    @property
    def device(self) -> Device:
        """The device."""


Report = TypeVar("Report", bound=OnDevice)


def refusal_record(refusal: Refusal) -> Record:
    """A device that has no answer, beside others that have."""
    gpu, error = refusal
    return {"gpu": gpu, "error": {"code": error.code, "message": error.message, "hint": error.hint}}


def compared_notes(
    rows: Sequence[Report | Refusal], notes_of: Callable[[Report], Iterable[str]]
) -> list[str]:
    """What is said of each of several devices, after its name; of a refusal, why."""
    notes = []
    for row in rows:
        if isinstance(row, Refusal):
            notes.append(f"{row.gpu}: {row.error}")
        else:
            notes += [f"{row.device.name}: {note}" for note in notes_of(row)]
    return notes


def mark(bounds: Sequence[Bound]) -> str:
    """The mark of a number that rests on these bounds."""
    return star(bool(weak(bounds)))


def notes_section(notes: Sequence[str]) -> list[Section]:
    """The notes, if there are any."""
    return [Section("Notes", Lines(notes))] if notes else []


def steps_section(steps: Sequence[Step], of: str = "") -> list[Section]:
    """The next steps, numbered, if there are any; `of` says for what."""
    if not steps:
        return []
    lines = [f"{number}. {step.action}: {step.text}" for number, step in enumerate(steps, 1)]
    heading = f"Next steps ({of})" if of else "Next steps"
    return [Section(heading, Lines(lines))]


def step_record(step: Step) -> Record:
    """A step under its documented keys."""
    return {
        "action": step.action,
        "text": step.text,
        "bound_time_s": step.bound_time_s,
        "at": dict([step.at]) if step.at else None,
    }


def intensity_text(bound: Bound) -> str:
    """0.9998 FLOP/B; a dash without bytes."""
    intensity = bound.arithmetic_intensity
    return "-" if intensity is None else f"{significant(intensity)} FLOP/B"


def ridge_text(bound: Bound) -> str:
    """295.1 FLOP/B; a dash where no engine's peak is involved."""
    return "-" if bound.ridge_point is None else f"{significant(bound.ridge_point)} FLOP/B"


def term_texts(term: Term) -> tuple[str, str, str, str]:
    """A term's name, amount, rate and time."""
    if term.limit == "hbm":
        amount, rate = format_bytes(term.amount), format_bytes_per_s(term.rate)
    elif term.limit == "special":  # exponentials on their own unit, and emulated beside the lanes' work
        amount, rate = scaled(term.amount, "op"), f"{scaled(term.rate, 'op/s')} with the lanes"
    else:
        amount, rate = format_flops(term.amount), format_flops_per_s(term.rate)
    return term.limit, amount, rate, format_seconds(term.time_s)
