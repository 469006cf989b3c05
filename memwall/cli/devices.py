"""Running a report on one GPU or on several side by side, and showing it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from memwall import hardware
from memwall.cli.options import named_gpus
from memwall.cli.output import Output, emit
from memwall.errors import NotAvailable, Refusal
from memwall.hardware import Device
from memwall.render.data import Record
from memwall.render.page import Page

Report = TypeVar("Report")
Shown = TypeVar("Shown", contravariant=True)


class View(Protocol[Shown]):
    """The module of memwall.render that shows one kind of report."""

    def record(self, report: Shown, /) -> Record:
        """The report for programs."""

    def page(self, report: Shown, /) -> Page:
        """The report for people."""

    def compare_page(self, rows: Any, /) -> Page:
        """Several side by side, refusals among them."""


def on_each(
    gpus: str | None, changes: Mapping[str, str], make: Callable[[Device], Report]
) -> list[Report | Refusal]:
    """A report for each GPU; of several, one without an answer has its reason instead.

    Raises:
        NotAvailable: no GPU has an answer.
    """
    devices = [hardware.load(name, changes) for name in named_gpus(gpus)]
    rows: list[Report | Refusal] = []
    for device in devices:
        try:
            rows.append(make(device))
        except NotAvailable as error:
            rows.append(Refusal(device.name, error))
    reasons = [row.error for row in rows if isinstance(row, Refusal)]
    if len(reasons) == len(rows):
        raise reasons[0]
    return rows


def show(output: Output, rows: list[Report | Refusal], view: View[Report]) -> None:
    """One report as itself, several side by side."""
    from memwall.render.bounds import error_record

    def records() -> list[Record]:
        return [error_record(*row) if isinstance(row, Refusal) else view.record(row) for row in rows]

    def page() -> Page:
        first = rows[0]
        return view.compare_page(rows) if len(rows) > 1 or isinstance(first, Refusal) else view.page(first)

    emit(output, records, page, several=len(rows) > 1)
