"""That a model does not fit, said before anything else."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.render.page import Lines, Section
from memwall.reports.cost import CostReport
from memwall.reports.serve import ServeReport
from memwall.units import format_bytes

IF_IT_DID = "the numbers below are as if it did"


def verdict(missing_bytes: int, instead: str, numbers: str = IF_IT_DID) -> list[Section]:
    """The section that such a page begins with, saying what its numbers are then; none if it fits."""
    if not missing_bytes:
        return []
    return [Section(sentence(missing_bytes, instead), Lines([numbers]))]


def none_fits(rows: Sequence[object]) -> list[Section]:
    """What a comparison begins with if none of its rows fits."""
    reports = [row for row in rows if isinstance(row, CostReport | ServeReport)]
    if any(report.fits for report in reports):
        return []
    return [Section("Does not fit on any of these GPUs", Lines([IF_IT_DID]))]


def sentence(missing_bytes: int, instead: str) -> str:
    """By how much it does not fit, and what would do."""
    would = f"it would with {instead}" if instead else "no layout of these GPUs holds it"
    return f"Does not fit, {format_bytes(missing_bytes)} too much on a GPU: {would}"
