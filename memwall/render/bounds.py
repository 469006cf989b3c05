"""What the records and pages of all bounds share."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.bound import Bound, Term
from memwall.errors import NotAvailable
from memwall.hardware import Constant, Device
from memwall.render.data import Record
from memwall.render.page import Lines, Section
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


def bound_record(bound: Bound) -> Record:
    """The keys that every bound has."""
    work = bound.work
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
        "terms_s": {term.limit: term.time_s for term in bound.terms},
    }


def evidence_record(device: Device, bounds: Sequence[Bound]) -> Record:
    """What the numbers rest on, where that is weak."""
    return {
        "assumed": list(device.assumed),
        "weak_sources": [
            {"key": constant.key, "kind": constant.kind, "source": constant.source}
            for constant in weak(bounds)
        ],
    }


def error_record(name: str, error: NotAvailable) -> Record:
    """A device that has no answer, beside others that have."""
    return {"gpu": name, "error": {"code": error.code, "message": error.message, "hint": error.hint}}


def weak(bounds: Sequence[Bound]) -> list[Constant]:
    """The recalled and assumed constants behind some bounds, each once."""
    found = {constant.key: constant for bound in bounds for constant in bound.rests_on if constant.weak}
    return list(found.values())


def evidence_notes(device: Device, bounds: Sequence[Bound]) -> list[str]:
    """The remarks that a careful reader needs: what is announced, weak, scaled or left out."""
    notes = []
    if device.announced:
        notes.append(f"{device.title} is announced, not shipping: its figures are its maker's plans")
    for constant in weak(bounds):
        how = "recalled, not checked" if constant.kind == "recalled" else "assumed"
        notes.append(f"* rests on {constant.key}, {how}: {constant.source}")
    scaled_peaks = {
        c.key: c for b in bounds for c in b.rests_on if c.note and c.key.split(".")[0] in ("matrix", "vector")
    }
    notes += [f"{key} is taken {constant.note}" for key, constant in scaled_peaks.items()]
    unknown = sorted({engine for bound in bounds for engine in bound.unknown})
    if unknown:
        notes.append(
            f"the rate of {' and '.join(unknown)} work is not published: left out, and the bound still holds"
        )
    return notes


def mark(bounds: Sequence[Bound]) -> str:
    """The mark of a number that rests on a weak constant."""
    return " *" if weak(bounds) else ""


def notes_section(notes: Sequence[str]) -> list[Section]:
    """The notes, if there are any."""
    return [Section("Notes", Lines(notes))] if notes else []


def steps_section(regime: str, steps: Sequence[Step]) -> list[Section]:
    """The next steps, numbered, if there are any."""
    if not steps:
        return []
    lines = [f"{number}. {step.action}: {step.text}" for number, step in enumerate(steps, 1)]
    return [Section(f"Next steps ({regime})", Lines(lines))]


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
    amount, rate = {
        "hbm": (format_bytes, format_bytes_per_s),
        "special": (lambda v: scaled(v, "op"), lambda v: scaled(v, "op/s")),
    }.get(term.limit, (format_flops, format_flops_per_s))
    return term.limit, amount(term.amount), rate(term.rate), format_seconds(term.time_s)
