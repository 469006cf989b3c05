"""Running a report on one GPU or on several side by side, and showing it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import click

from memwall import hardware
from memwall.cli.estimates import on_one
from memwall.cli.options import defaults_of, named_gpus
from memwall.cli.output import Output, emit
from memwall.errors import NotAvailable, Refusal
from memwall.hardware import Device
from memwall.render.data import Record
from memwall.render.page import Page
from memwall.reports.case import DEFAULT_DTYPE, DEFAULT_GPU

Report = TypeVar("Report")
Shown = TypeVar("Shown", contravariant=True)
Table = Callable[[Report], list[Record]]


class View(Protocol[Shown]):
    """The module of memwall.render that shows one kind of report."""

    def record(self, report: Shown, /) -> Record:
        """The report for programs."""

    def page(self, report: Shown, /) -> Page:
        """The report for people."""

    def compare_page(self, rows: Sequence[Shown | Refusal], /) -> Page:
        """Several side by side, refusals among them."""


def answer(
    report: Callable[..., Report],
    view: View[Report],
    gpus: str | None,
    changes: Mapping[str, str],
    options: dict[str, Any],
    table: Table[Report] | None = None,
) -> int:
    """A report's command: the report on each GPU, shown; the exit code.

    Args:
        report: takes gpu, dtype, defaults and the options of its own.
        view: what shows it.
        gpus: as typed.
        changes: what-ifs on each GPU.
        options: all others, those of the output and --dtype among them.
        table: as `show` says.

    Raises:
        NotAvailable: as `show` says.
    """
    output = Output(**{key: options.pop(key) for key in Output._fields})
    dtype = options.pop("dtype")
    defaults = defaults_of(GPU=(gpus, DEFAULT_GPU), dtype=(dtype, DEFAULT_DTYPE))

    def make(device: Device) -> Report:
        own = on_one(options, device, gpus)
        return report(gpu=device, dtype=dtype or DEFAULT_DTYPE, defaults=defaults, **own)

    return show(output, on_each(gpus, changes, make), view, table)


def on_each(
    gpus: str | None, changes: Mapping[str, str], make: Callable[[Device], Report]
) -> list[Report | Refusal]:
    """A report for each GPU; of several, one without an answer has its reason instead.

    Raises:
        NotAvailable: the only GPU has no answer.
    """
    devices = [hardware.load(name, changes) for name in named_gpus(gpus)]
    if len(devices) == 1:
        return [make(devices[0])]
    rows: list[Report | Refusal] = []
    for device in devices:
        try:
            rows.append(make(device))
        except NotAvailable as error:
            rows.append(Refusal(device.name, error))
    return rows


def answered(rows: Sequence[Report | Refusal]) -> list[Report]:
    """The reports; a GPU without one is named on stderr.

    Raises:
        NotAvailable: none has one.
    """
    refusals = [row for row in rows if isinstance(row, Refusal)]
    if refusals and len(refusals) == len(rows):
        raise refusals[0].error
    for refusal in refusals:
        click.echo(f"warning: {refusal.gpu}: {refusal.error}", err=True)
    return [row for row in rows if not isinstance(row, Refusal)]


def warn(rows: Sequence[Report | Refusal], warning: Callable[[Report], str | None]) -> None:
    """Say on stderr what of the reports their reader has to know first, such as that a model does not fit."""
    for row in rows:
        said = None if isinstance(row, Refusal) else warning(row)
        if said:
            click.echo(f"warning: {said}", err=True)


def show(
    output: Output,
    rows: list[Report | Refusal],
    view: View[Report],
    table: Table[Report] | None = None,
) -> int:
    """One report as itself, several side by side; the exit code.

    Args:
        output: where to, and how.
        rows: the reports.
        view: what shows them.
        table: a report's rows in CSV, where the answer is a list and one row would lose it.

    Raises:
        NotAvailable: no GPU has an answer, and people are told why of each.
    """
    from memwall.render.bounds import refusal_record

    def records() -> list[Record]:
        if table is not None and output.format == "csv":
            made = ([refusal_record(row)] if isinstance(row, Refusal) else table(row) for row in rows)
            return [record for each in made for record in each]
        return [refusal_record(row) if isinstance(row, Refusal) else view.record(row) for row in rows]

    def page() -> Page:
        first = rows[0]
        return view.compare_page(rows) if len(rows) > 1 or isinstance(first, Refusal) else view.page(first)

    refusals = [row for row in rows if isinstance(row, Refusal)]
    none = len(refusals) == len(rows)
    if none and output.format not in ("json", "csv"):
        reasons = "; ".join(f"{refusal.gpu}: {refusal.error}" for refusal in refusals)
        raise NotAvailable(f"no GPU has an answer: {reasons}")
    emit(output, records, page, several=len(rows) > 1)
    return NotAvailable.exit_code if none else 0
