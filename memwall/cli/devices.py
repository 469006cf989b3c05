"""Running a report on one GPU or on several side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from memwall import hardware
from memwall.cli.options import named_gpus
from memwall.errors import NotAvailable
from memwall.hardware import Device

Report = TypeVar("Report")


def on_each(
    gpus: str | None, changes: Mapping[str, str], make: Callable[[Device], Report]
) -> list[Report | tuple[str, NotAvailable]]:
    """A report for each GPU; of several, one without an answer has its reason instead.

    Raises:
        NotAvailable: no GPU has an answer.
    """
    devices = [hardware.load(name, changes) for name in named_gpus(gpus)]
    rows: list[Report | tuple[str, NotAvailable]] = []
    for device in devices:
        try:
            rows.append(make(device))
        except NotAvailable as error:
            rows.append((device.name, error))
    reasons = [
        row[1]
        for row in rows
        if isinstance(row, tuple) and len(row) == 2 and isinstance(row[1], NotAvailable)
    ]
    if len(reasons) == len(rows):
        raise reasons[0]
    return rows
