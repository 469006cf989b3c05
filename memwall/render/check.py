"""Judged claims as records, as a page, and as the list of errata that an author wants."""

from __future__ import annotations

import math
from collections.abc import Sequence

from memwall.claims.claim import Claim
from memwall.claims.coverage import Coverage
from memwall.claims.docket import Docket, counts
from memwall.claims.explain import derivation, ends_in_unit, in_unit
from memwall.claims.quantity import Quantity, readable
from memwall.claims.verdict import Judged
from memwall.render.data import Record
from memwall.render.page import LaidOut, Lines, Page, Section, Table
from memwall.units import significant


def record(judged: Judged, column: bool = False) -> Record:
    """A claim under its documented keys; `value` and `value_high` are in `unit`."""
    claim = judged.claim
    ends = [end.to(claim.unit) for end in judged.value] if judged.value else [None, None]
    made: Record = {
        "id": claim.id,
        "where": claim.where,
        "label": claim.label,
        "printed": claim.printed.text,
        "unit": claim.unit,
        "value": ends[0],
        "value_high": ends[1] if ends[0] != ends[1] else None,
        "factor": judged.factor,
        "verdict": judged.verdict,
        "recorded": claim.recorded,
        "as_recorded": judged.as_recorded,
        "reason": claim.reason or None,
        "depends_on": list(judged.depends_on),
        "wrong_inputs": list(judged.wrong_inputs),
        "starts_at": list(judged.roots),
        "source": claim.source or None,
        "text": claim.text,
        "file": claim.place.file,
        "line": claim.place.line,
    }
    return {**made, "column": claim.place.column} if column else made


def page(docket: Docket, explain: bool, every: bool) -> Page:
    """What was judged, what changed, and what does not hold; with `explain` each claim's derivation."""
    sections = [Section(_heading(docket), Table(_summary(docket)))]
    changed = [each for each in docket.changed if not each.claim.in_document]
    if changed:
        rows = [(*_row(each)[:4], each.claim.recorded, each.verdict) for each in changed]
        heads = ("where", "claim", "printed", "right", "recorded", "now")
        sections.append(Section("Changed since recorded", Table(rows, heads)))
    if explain:
        return [*sections, *(_explained(docket, each) for each in docket.judged)]
    listed = docket.judged if every else docket.fallen
    if listed:
        header = ("where", "claim", "printed", "right", "factor", "verdict", "starts at")
        heading = "Claims" if every else "Does not hold"
        sections.append(Section(heading, Table([_row(each) for each in listed], header, frozenset({4}))))
    return [*sections, *_notes(docket)]


def errata(docket: Docket) -> Page:
    """What an author has to correct, the weightiest first, and what else each touches."""
    touched = docket.followers
    sections = []
    for file in docket.files:
        mine = [each for each in docket.fallen if each.claim.text == file.text]
        first = [each for each in mine if each.claim.key in each.roots]
        first.sort(key=lambda each: -weight(each, len(touched.get(each.claim.key, ()))))
        own = [each for each in docket.judged if each.claim.text == file.text]
        rows = [_erratum(docket, each, touched.get(each.claim.key, [])) for each in first]
        lines = [_sentence(own), _ROUNDING]
        sections.append(Section(f"Errata: {file.title}", Lines(lines)))
        if rows:
            header = ("where", "what", "printed", "right", "factor", "why", "touches")
            sections.append(Section("", Table(rows, header, frozenset({4}))))
    return sections


_ROUNDING = "Factor: printed / right. First what is furthest off and touches most"


def weight(judged: Judged, followers: int) -> float:
    """How much an erratum matters: |log2 of its factor|, from 0.1 to 5, times one and those that follow.

    A contradiction or a mixture without a single right value weighs as a factor of two.
    """
    factor = judged.factor
    off = abs(math.log2(factor)) if factor and factor > 0 else 1.0
    return min(max(off, 0.1), 5.0) * (1 + followers)


def coverage_page(found: Coverage) -> Page:
    """The numbers of a text without a claim."""
    facts = [
        ("numbers", str(found.total)),
        ("covered", str(found.covered)),
        *((f"aside: {reason}", str(count)) for reason, count in found.aside.items()),
        ("without a claim", str(len(found.uncovered))),
    ]
    sections = [Section(found.text, Table(facts))]
    if found.uncovered:
        rows = [
            (
                f"{each.line}:{each.column}",
                each.where,
                f"{each.number.text} {each.number.unit}".strip(),
                each.context,
            )
            for each in found.uncovered
        ]
        sections.append(Section("Without a claim", Table(rows, ("line", "where", "number", "around it"))))
    return sections


def coverage_record(found: Coverage) -> Record:
    """The same for programs."""
    return {
        "file": found.text,
        "numbers": found.total,
        "covered": found.covered,
        "aside": found.aside,
        "uncovered": [
            {
                "line": each.line,
                "column": each.column,
                "where": each.where or None,
                "number": each.number.text,
                "unit": each.number.unit,
                "context": each.context,
            }
            for each in found.uncovered
        ],
    }


def right_text(judged: Judged) -> str:
    """The right value for people; of a mixture its parts."""
    if judged.value is None:
        return "-"
    return ends_in_unit(judged.value, judged.claim.unit)


def _heading(docket: Docket) -> str:
    names = ", ".join(file.file for file in docket.files)
    return f"{_claims(docket.judged)} of {names}"


def _summary(docket: Docket) -> list[tuple[str, str]]:
    rows = [(verdict, str(count)) for verdict, count in counts(docket.judged).items() if count]
    off = [each for each in docket.judged if each.verdict == "measured" and not each.stands]
    if off:
        rows.append(("of the measured, far from what is published", str(len(off))))
    recorded = [each for each in docket.judged if not each.claim.in_document]
    return [*rows, *([("changed since recorded", str(len(docket.changed)))] if recorded else [])]


def _notes(docket: Docket) -> list[Section]:
    """What to type for a document's wrong numbers."""
    wrong = [each.claim.place.file for each in docket.fallen if each.claim.in_document]
    files = " ".join(dict.fromkeys(wrong))
    return [Section("Notes", Lines([f"memwall check {files} --fix puts them right"]))] if wrong else []


def _row(judged: Judged) -> tuple[str, ...]:
    claim = judged.claim
    factor = "" if judged.factor is None or judged.stands else significant(judged.factor, 3)
    starts = [root.partition(".")[2] for root in judged.roots if root != claim.key]
    others = list(claim.contradicts) if judged.verdict == "contradicts" else starts
    return (
        claim.where,
        claim.id,
        claim.printed.text,
        right_text(judged),
        factor,
        judged.verdict,
        ", ".join(others),
    )


def _explained(docket: Docket, judged: Judged) -> Section:
    claim = judged.claim
    heading = f"{claim.id}  {claim.where}: {claim.label}"
    return Section(heading, LaidOut([f"  {line}" for line in derivation(docket.court, judged)]))


def _sentence(judged: Sequence[Judged]) -> str:
    kinds = ", ".join(f"{count} {verdict}" for verdict, count in counts(judged).items() if count)
    return f"{_claims(judged)}: {kinds}"


def _claims(judged: Sequence[Judged]) -> str:
    return "1 claim" if len(judged) == 1 else f"{len(judged)} claims"


def _erratum(docket: Docket, judged: Judged, following: Sequence[Judged]) -> tuple[str, ...]:
    claim = judged.claim
    touches = "; ".join(f"{each.claim.where}: {each.claim.printed.text}" for each in following)
    return (
        claim.where,
        claim.label,
        claim.printed.text,
        _right_or_parts(docket, judged),
        "" if judged.factor is None else significant(judged.factor, 3),
        _why(claim),
        touches,
    )


def _right_or_parts(docket: Docket, judged: Judged) -> str:
    claim = judged.claim
    if judged.verdict == "mixed" and not claim.compute:
        parts = [(part, docket.court.part(claim, part.compute)) for part in claim.mixes if part.compute]
        return "; ".join(f"{part.what}: {_in(claim, value)}" for part, value in parts)
    if judged.verdict == "contradicts" and not claim.compute:
        others = [docket.court.library.claim(claim, name) for name in claim.contradicts]
        return "; ".join(f"against {other.printed.text} ({other.where})" for other in others)
    return right_text(judged)


def _in(claim: Claim, value: Quantity) -> str:
    return in_unit(value, claim.unit) if value.like(claim.unit) else readable(value)


def _why(claim: Claim) -> str:
    reason = claim.reason or "the arithmetic does not give it"
    return f"{reason} [{claim.source}]" if claim.source else reason
