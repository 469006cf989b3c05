"""How a verdict came about, with the numbers in it."""

from __future__ import annotations

from collections.abc import Iterator

from memwall.claims import operations
from memwall.claims.claim import Claim
from memwall.claims.expression import Expression, Lookup
from memwall.claims.quantity import Quantity, parse_unit, readable
from memwall.claims.verdict import Court, Judged
from memwall.errors import MemwallError
from memwall.units import significant

DIGITS = 4
MANY = 100_000
"""From here on the commas of a whole number read better than digits without."""
TIMES = ("x", "X", "×")  # noqa: RUF001 - as texts print it


def in_unit(value: Quantity, unit: str) -> str:
    """A value in the unit in which it was printed: 138.4 MB."""
    close = "" if unit in TIMES else " "
    return f"{_number(value, unit)}{close}{unit}".strip()


def ends_in_unit(ends: tuple[Quantity, Quantity], unit: str) -> str:
    """A value, or a range's two ends, in the printed unit."""
    low, high = ends
    same = low.value == high.value
    return in_unit(low, unit) if same else f"{_number(low, unit)} to {in_unit(high, unit)}"


def _number(value: Quantity, unit: str) -> str:
    number = value.value / parse_unit(unit).value
    return f"{number:,.0f}" if abs(number) >= MANY else significant(number, DIGITS)


def derivation(court: Court, judged: Judged) -> list[str]:
    """The lines that lead from the inputs to the verdict."""
    claim = judged.claim
    lines = [_line("printed", f"{claim.printed.text}{_tolerance(claim)}")]
    for name, expression in _named("right", claim.compute):
        lines += _worked(name, court, claim, expression, court.rightly(claim))
    for name, expression in _named(
        "text", claim.as_printed or (claim.compute if judged.wrong_inputs else ())
    ):
        lines += _worked(name, court, claim, expression, court.as_printed(claim))
    for part in claim.mixes:
        if part.compute:
            first, *facts = _worked("one part", court, claim, part.compute, court.rightly(claim))
            lines += [f"{first}: {part.what}", *facts]
    lines += [_line("against", _against(court, claim, name)) for name in claim.contradicts]
    lines += [
        _line("published", f"{part.printed.text}: {part.what} [{part.source}]")
        for part in claim.published
        if part.printed
    ]
    lines += _second_route(court, judged)
    lines += _outcome(court, judged)
    return lines


def _line(name: str, text: str) -> str:
    return f"{name:<10} {text}"


def _fact(text: str) -> str:
    return _line("", f"  {text}")


def _named(name: str, expressions: tuple[Expression, ...]) -> Iterator[tuple[str, Expression]]:
    """One computation under its name, two as the low and the high end."""
    ends = ("",) if len(expressions) == 1 else (" low", " high")
    return ((f"{name}{end}", each) for end, each in zip(ends, expressions, strict=False))


def _worked(name: str, court: Court, claim: Claim, expression: Expression, lookup: Lookup) -> list[str]:
    """One computation: as written, with its numbers, its result, and where the numbers come from."""
    value = court.evaluate(claim, expression, lookup)
    written = expression.substituted(lookup)
    result = in_unit(value, claim.unit) if value.like(claim.unit) else readable(value)
    text = result if expression.single else f"{written} = {result}"
    return [_line(name, text), *_facts(court, claim, expression, lookup)]


def _facts(court: Court, claim: Claim, expression: Expression, lookup: Lookup) -> list[str]:
    lines = []
    for name in expression.names:
        fact = lookup(name)
        lines.append(_fact(f"{name} = {readable(fact.quantity)}  [{fact.note}]"))
    for report in expression.reports:
        value, source = operations.value(*report), _source(report)
        lines.append(_fact(f"{operations.command(*report)} = {readable(value)}{source}"))
    return lines


def _source(report: tuple[str, operations.Arguments, tuple[operations.Step, ...]]) -> str:
    try:
        found = operations.source(*report)
    except MemwallError:
        found = ""
    return f"  [{found}]" if found else ""


def _against(court: Court, claim: Claim, name: str) -> str:
    other = court.library.claim(claim, name)
    return f"{other.printed.text}: {other.label} ({other.where})"


def _second_route(court: Court, judged: Judged) -> list[str]:
    route = judged.claim.second_route
    if route is None:
        return []
    lookup = court.rightly(judged.claim)
    lines = _worked("2nd route", court, judged.claim, route.compute, lookup)
    agrees = "agrees" if judged.route_agrees else "DISAGREES"
    lines[0] += f": {route.how}; {agrees} within {significant(100 * route.within)} %"
    return lines


def _tolerance(claim: Claim) -> str:
    if claim.printed.bound:
        return ""
    low, high = claim.printed.interval(claim.within)
    return f"  (stands for {significant(low, 6)} to {significant(high, 6)} {claim.unit}".rstrip() + ")"


def _outcome(court: Court, judged: Judged) -> Iterator[str]:
    claim = judged.claim
    factor = "" if judged.factor is None else f"; printed / right = {significant(judged.factor)}"
    yield _line("verdict", f"{judged.verdict}{factor if not judged.stands else ''}")
    if judged.wrong_inputs:
        yield _line("wrong in", f"{', '.join(judged.wrong_inputs)}")
    starts = [root for root in judged.roots if root != claim.key]
    if starts:
        yield _line("starts at", f"{', '.join(court.library.described(root) for root in starts)}")
    if claim.reason:
        yield _line("because", f"{claim.reason}")
    if claim.source:
        yield _line("source", f"{claim.source}")
    if not judged.as_recorded:
        yield _line("recorded", f"{claim.recorded}: changed")
