"""What a page's numbers rest on, as tables: constants of device, links and estimate."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any

from memwall import collectives
from memwall.constant import Constant, kind_and_text
from memwall.errors import NotAvailable
from memwall.estimate.constants import Fit
from memwall.hardware import Device
from memwall.hierarchy import l2_bandwidth, shared_bandwidth
from memwall.htmlreport.question import OnGpu
from memwall.links import Link
from memwall.memory.budget import total_memory
from memwall.plot.roofs import BESIDE
from memwall.reports.step import StepReport
from memwall.units import scaled, significant

Row = tuple[str, ...]
UNITS = {
    "tflops": "FLOP/s",
    "gb_per_s": "B/s",
    "gb_per_s_per_direction": "B/s",
    "gb_per_s_per_card": "B/s",
    "gb_per_s_per_link": "B/s",
    "gbit_per_s": "bit/s",
    "gb": "B",
    "bytes": "B",
    "mhz": "Hz",
}
"""SI units of a device's numbers, by the ending of their keys."""


def sources(part: OnGpu) -> str:
    """The tables for the passes of one device."""
    title = escape(part.device.title)
    text = _table(
        f"Constants of {title} behind bounds, roofs, memory and links",
        ("constant", "value", "known by", "source"),
        [*map(_constant, _constants(part)), *_of_collectives(part)],
    )
    fits = dict.fromkeys(fit for report in part.reports.values() for fit in _fits(report))
    if fits:
        text += _table(
            "Calibrations behind the estimate: which serves which kernels, and how far off it has been",
            ("kernels", "calibration", "fitted on", "error"),
            map(_fit, fits),
        )
    return text


def readable(constant: Constant) -> str:
    """A value with its unit, 3.352 TB/s; bare where it has none, 132.

    >>> readable(Constant("memory.bandwidth_gb_per_s", 3.352e12, "seen", ""))
    '3.352 TB/s'
    """
    for name in reversed(constant.key.split(".")):
        unit = next((unit for ending, unit in UNITS.items() if f"_{name}".endswith(f"_{ending}")), None)
        if unit:
            whole = constant.key.rpartition(".")[2].startswith("int")
            return scaled(constant.value, unit.replace("FLOP", "OP") if whole else unit)
    return significant(constant.value, 6)


def _constant(each: Constant) -> Row:
    return each.key, readable(each), each.kind, each.source


def _constants(part: OnGpu) -> list[Constant]:
    """Numbers of the device's file, each once: behind every term, every roof that is drawn, memory, links."""
    roots = [*_drawn(part.device), *_of_passes(part.reports.values())]
    return list({leaf.key: leaf for root in roots for leaf in root.leaves}.values())


def _drawn(device: Device) -> Iterator[Constant]:
    """Main memory and its size, and the roofs."""
    yield device.bandwidth
    for look_up in (total_memory, l2_bandwidth, shared_bandwidth):
        try:
            found = look_up(device)
        except NotAvailable:
            continue
        yield from [found] if found else []
    for dtype in BESIDE:
        try:
            yield device.peak(dtype).rate
        except NotAvailable:
            continue


def _of_passes(reports: Iterable[StepReport]) -> Iterator[Constant]:
    for report in reports:
        for bound in report.bounds:
            for term in bound.terms:
                yield from term.rests_on
        yield from (link.rate for link in _links(report))


def _links(report: StepReport) -> Iterator[Link]:
    for exchange in report.spread.exchanges:
        yield from filter(None, (exchange.group.link, exchange.group.network))


def _of_collectives(part: OnGpu) -> Iterator[Row]:
    """The numbers that an exchange's estimate has beside the link's rate, with who says so."""
    links = {link.kind: link for report in part.reports.values() for link in _links(report)}
    known = {kind: collectives.constants_of(link) for kind, link in links.items()}
    found = [each for each in known.values() if each is not None]
    for each in found:
        yield from _numbers(f"collectives.{each.own['name']}", each.own)
    if found:
        yield from _numbers("collectives.common", found[0].common)


def _numbers(name: str, data: Mapping[str, Any]) -> Iterator[Row]:
    """A row for each source, with the numbers that it is of; one that names none is of all others."""
    numbers = {key: said for key, value in data.items() if key != "match" and (said := _number(value))}
    named = {key for entry in data["source"] for key in entry.get("for", ())}
    for entry in data["source"]:
        mine = [key for key in numbers if key in entry.get("for", numbers.keys() - named)]
        kind, source = kind_and_text(entry)
        yield name, "; ".join(f"{key} {numbers[key]}" for key in mine), kind, source


def _number(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_number(each)}" for key, each in value.items() if _number(each))
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    return significant(value) if numeric else ""


def _fits(report: StepReport) -> Iterator[Fit]:
    estimate = report.kernels_estimate
    yield from (part.fit for part in (estimate.parts if estimate else ()))


def _fit(fit: Fit) -> Row:
    rows = f"{fit.rows} measured rows of {', '.join(fit.gpus)}" if fit.gpus else f"{fit.rows} measured rows"
    known = fit.error_p50 is not None and fit.error_p90 is not None
    error = f"half within {significant(100 * (fit.error_p50 or 0), 2)} %, nine in ten within "
    error += f"{significant(100 * (fit.error_p90 or 0), 2)} % of rows held out"
    number = "" if fit.format == "any" else f", {fit.format}"
    return f"{fit.family}{number}", fit.calibration, rows, error if known else "not known"


def _table(caption: str, heads: Iterable[str], rows: Iterable[Row]) -> str:
    head = "".join(f"<th scope=col>{each}" for each in heads)
    body = "".join(f"<tr>{''.join(f'<td>{_breakable(cell)}' for cell in row)}" for row in rows)
    return (
        f"<div class=wide-table><table class=sources><caption class=faint>{caption}</caption>"
        f"<thead><tr>{head}</thead><tbody>{body}</tbody></table></div>"
    )


def _breakable(text: str) -> str:
    """Names may be broken after a dot or an underscore, addresses after a slash; rates, FLOP/s, may not."""
    return re.sub(r"(?<=[a-z0-9][._])(?=[a-z])|(?<=[a-z0-9]/)(?=[a-z])", "<wbr>", escape(text))
