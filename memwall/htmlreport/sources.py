"""What a page's numbers rest on, as tables: constants of device, links and estimate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from html import escape

from memwall.collectives import constants_of
from memwall.constant import Constant
from memwall.estimate.constants import Fit
from memwall.reports.step import StepReport
from memwall.units import significant


def sources(reports: Mapping[str, StepReport]) -> str:
    """The tables for the passes of one device."""
    title = escape(next(iter(reports.values())).device.title)
    constants = {each.key: each for report in reports.values() for each in _constants(report)}
    fits = dict.fromkeys(fit for report in reports.values() for fit in _fits(report))
    text = _table(
        f"Constants of {title}, in SI units",
        ("constant", "value", "known by", "source"),
        (
            (each.key, significant(each.value, 6) if each.value else "", each.kind, each.source)
            for each in constants.values()
        ),
    )
    if fits:
        text += _table(
            "Constants of the estimate: which calibration serves which kernels, and how far off it has been",
            ("kernels", "calibration", "fitted on", "error"),
            map(_fit, fits),
        )
    return text


def _constants(report: StepReport) -> Iterator[Constant]:
    for bound in report.bounds:
        yield from bound.leaves
    for exchange in report.spread.exchanges:
        for link in filter(None, (exchange.group.link, exchange.group.network)):
            yield from link.rate.leaves
            known = constants_of(link)
            yield from known.basis if known else ()


def _fits(report: StepReport) -> Iterator[Fit]:
    estimate = report.kernels_estimate
    yield from (part.fit for part in (estimate.parts if estimate else ()))


def _fit(fit: Fit) -> tuple[str, ...]:
    rows = f"{fit.rows} measured rows of {', '.join(fit.gpus)}" if fit.gpus else f"{fit.rows} measured rows"
    known = fit.error_p50 is not None and fit.error_p90 is not None
    error = f"half within {significant(100 * (fit.error_p50 or 0), 2)} %, nine in ten within "
    error += f"{significant(100 * (fit.error_p90 or 0), 2)} % of rows held out"
    number = "" if fit.format == "any" else f", {fit.format}"
    return f"{fit.family}{number}", fit.calibration, rows, error if known else "not known"


def _table(caption: str, heads: Iterable[str], rows: Iterable[tuple[str, ...]]) -> str:
    head = "".join(f"<th scope=col>{each}" for each in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}' for cell in row)}" for row in rows)
    return (
        f"<div class=wide-table><table class=sources><caption class=faint>{caption}</caption>"
        f"<thead><tr>{head}</thead><tbody>{body}</tbody></table></div>"
    )
