"""What a claim comes to: its right value, its verdict, and the claims that an error starts from.

A computation is evaluated twice: with the right values of the claims that it uses, which gives the right
value, and with their printed values, which says whether the text's own arithmetic is right.

    contradicts          it is recorded against another claim of its text, and the two do disagree
    mixed                it fits one of the unlike things named, or their mixture, and not the right value
    holds                the right value is within the printed rounding
    holds as arithmetic  the arithmetic on printed inputs is, but one of those inputs does not hold, or is a
                         measurement far from those that are published
    differs              neither
    measured             nothing is computed; published measurements stand beside it
    not computable       nothing is computed, and nothing is published
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from memwall.claims.claim import SOUND, Claim, ClaimsFile, Input
from memwall.claims.comparison import Ends, at, factor, fits, overlap, published, unfit
from memwall.claims.expression import Expression, Fact, Lookup
from memwall.claims.library import Library
from memwall.claims.order import circle, in_order
from memwall.claims.quantity import Quantity, readable
from memwall.errors import FileError, UsageError

MEASURED_WITHIN = 0.1
"""Measurements of one thing differ by so much between drivers, clocks and data."""

DEEPEST = 60
"""How many claims may repeat one another in a chain."""


class Judged(NamedTuple):
    """A claim with what it comes to."""

    claim: Claim
    verdict: str
    value: Ends | None
    """The right value; of a measured claim the nearest published one."""
    factor: float | None
    """Printed / right."""
    arithmetic: Ends | None
    """The text's own arithmetic on its printed inputs."""
    depends_on: tuple[str, ...]
    wrong_inputs: tuple[str, ...]
    """Of those, the ones that do not hold."""
    roots: tuple[str, ...]
    """Where its error starts: itself, or the claims behind its wrong inputs."""
    route_agrees: bool | None
    """Whether the second route gives the right value; None without one."""
    agrees_with_published: bool | None

    @property
    def as_recorded(self) -> bool:
        """Whether nothing has changed since the verdict was recorded."""
        return self.verdict == self.claim.recorded and self.route_agrees is not False

    @property
    def stands(self) -> bool:
        """Whether nothing speaks against the printed number."""
        return self.verdict in SOUND and self.agrees_with_published is not False


class Court:
    """Judges the claims of one or several texts, each once."""

    def __init__(self, files: Sequence[ClaimsFile], load: Callable[[str], ClaimsFile]) -> None:
        self.library = Library(files, load)
        self._judged: dict[str, Judged] = {}
        self._right: dict[str, Ends | None] = {}
        self._open: list[tuple[str, Claim]] = []

    def judge(self, claim: Claim) -> Judged:
        """The claim's verdict.

        Raises:
            FileError: a fault in the claim or in one that it rests on, with file and line.
        """
        if claim.key not in self._judged:
            for each in in_order(claim, self._judged, self._own_inputs):
                self._enter("verdict", each)
                self._judged[each.key] = self._decide(each)
                self._open.pop()
        return self._judged[claim.key]

    def right(self, claim: Claim) -> Ends | None:
        """The right value, from the right values of what it uses; None where nothing is computed."""
        if claim.key not in self._right:
            for each in in_order(claim, self._right, lambda one: self._claims_in(one, one.compute)):
                self._enter("value", each)
                self._right[each.key] = self._ends(each, each.compute, self.rightly(each))
                self._open.pop()
        return self._right[claim.key]

    def rightly(self, claim: Claim) -> Lookup:
        """What names stand for when the right value is computed."""
        return lambda name: self._fact(claim, name, printed=False)

    def as_printed(self, claim: Claim) -> Lookup:
        """What names stand for in the text's own arithmetic."""
        return lambda name: self._fact(claim, name, printed=True)

    def evaluate(self, claim: Claim, expression: Expression, lookup: Lookup) -> Quantity:
        """A computation's value; faults name the claim's line."""
        return at(claim, lambda: expression.evaluate(lookup), expression.line)

    def part(self, claim: Claim, expression: Expression) -> Quantity:
        """One of the unlike things that a claim mixes; it may be of another kind than the claim."""
        return self.evaluate(claim, expression, self.rightly(claim))

    def _enter(self, what: str, claim: Claim) -> None:
        """Begin to work out a claim's value or verdict.

        Raises:
            FileError: it is being worked out already: the claims form a circle.
        """
        step = (what, claim)
        if step in self._open:
            steps = [*self._open[self._open.index(step) :], step]
            raise circle(claim, [each.id for kind, each in steps if kind == what])
        if len(self._open) >= DEEPEST:
            raise FileError(
                f"{claim.place}: more than {DEEPEST} claims repeat one another",
                "Let repeats: name the claim that printed the number first",
            )
        self._open.append(step)

    def _own_inputs(self, claim: Claim) -> list[Claim]:
        """The claims that the text's own arithmetic uses."""
        return self._claims_in(claim, claim.as_printed or claim.compute)

    def _decide(self, claim: Claim) -> Judged:
        own = claim.as_printed or claim.compute
        used = self._claims_in(claim, (*claim.compute, *claim.as_printed))
        wrong = [each for each in self._own_inputs(claim) if not self.judge(each).stands]
        doubted = [each for each in wrong if self.right(each) is None]
        right = self.right(claim)
        arithmetic = self._ends(claim, own, self.as_printed(claim))
        verdict = self._verdict(claim, right, arithmetic, bool(wrong), bool(doubted))
        value, ratio = right or arithmetic, factor(claim, right or arithmetic)
        agrees = None
        if verdict == "measured":
            value, ratio = published(claim)
            agrees = ratio is not None and abs(ratio - 1) <= MEASURED_WITHIN
        inputs = wrong if verdict == "holds as arithmetic" else []
        if claim.repeats:
            used.append(self.library.claim(claim, claim.repeats))
        if verdict == "contradicts":
            used += [self.library.claim(claim, name) for name in claim.contradicts]
        return Judged(
            claim,
            verdict,
            value,
            ratio,
            arithmetic,
            tuple(dict.fromkeys(_name_for(claim, each) for each in used)),
            tuple(_name_for(claim, each) for each in inputs),
            self._roots(claim, inputs) if verdict not in SOUND or agrees is False else (),
            self._route(claim, right),
            agrees,
        )

    def _verdict(
        self, claim: Claim, right: Ends | None, arithmetic: Ends | None, tainted: bool, doubted: bool
    ) -> str:
        """The verdict; `tainted` by inputs that do not hold, `doubted` by such without a right value."""
        holds = right is not None and fits(claim, right)
        if claim.contradicts and self._disagrees(claim, arithmetic):
            return "contradicts"
        if claim.mixes and not holds and self._mixed(claim, arithmetic):
            return "mixed"
        if holds:
            return "holds as arithmetic" if doubted else "holds"
        if arithmetic is None:
            return "measured" if claim.published else "not computable"
        if not self._follows(claim, arithmetic):
            return "differs"
        if tainted:
            return "holds as arithmetic"
        return "holds" if right is None else "differs"

    def _disagrees(self, claim: Claim, arithmetic: Ends | None) -> bool:
        """Whether what the claim is recorded against, or follows from it, says something else."""
        if claim.as_printed and arithmetic is not None:
            return not self._follows(claim, arithmetic)
        others = [self.library.claim(claim, name) for name in claim.contradicts]
        return any(not overlap(claim, other) for other in others)

    def _mixed(self, claim: Claim, arithmetic: Ends | None) -> bool:
        if arithmetic is not None and fits(claim, arithmetic):
            return True
        parts = [self.part(claim, part.compute) for part in claim.mixes if part.compute]
        return any(part.like(claim.unit) and fits(claim, (part, part)) for part in parts)

    def _follows(self, claim: Claim, arithmetic: Ends) -> bool:
        """Whether the text's arithmetic gives what it prints, within its inputs' roundings and its own."""
        if fits(claim, arithmetic):
            return True
        own = claim.as_printed or claim.compute
        if len(own) > 1:
            return False
        middle = arithmetic[0].to(claim.unit)
        spread = sum(self._swing(claim, own[0], name) for name in own[0].names) / 2
        least, most = claim.printed.interval(claim.within)
        return bool(middle - spread <= most and middle + spread >= least)

    def _swing(self, claim: Claim, expression: Expression, name: str) -> float:
        """How far a computation moves when one printed input moves through its rounding."""
        found, end = self.library.find(claim, name)
        if isinstance(found, Input):
            return 0.0
        printed = found.printed.at_high if end == "high" else found.printed.at_low
        usual = self.as_printed(claim)

        def moved(number: float) -> float:
            fact = Fact(printed.in_si(number))
            value = self.evaluate(claim, expression, lambda each: fact if each == name else usual(each))
            return value.to(claim.unit)

        low, high = (moved(number) for number in printed.interval(found.within))
        return abs(high - low)

    def _roots(self, claim: Claim, wrong: Sequence[Claim]) -> tuple[str, ...]:
        """Where an error starts: behind the wrong inputs, where the number was printed first, or here."""
        first = [self.library.claim(claim, claim.repeats)] if claim.repeats else []
        behind = [root for each in (*first, *wrong) for root in self.judge(each).roots]
        return tuple(dict.fromkeys(behind)) or (claim.key,)

    def _route(self, claim: Claim, right: Ends | None) -> bool | None:
        route = claim.second_route
        if route is None:
            return None
        found = self.evaluate(claim, route.compute, self.rightly(claim))
        low, high = right or claim.printed.ends
        if found.dimension != low.dimension:
            raise unfit(claim, found)
        return bool(low.value * (1 - route.within) <= found.value <= high.value * (1 + route.within))

    def _ends(self, claim: Claim, computed: tuple[Expression, ...], lookup: Lookup) -> Ends | None:
        """A computation's value, checked to be of the printed kind."""
        if not computed:
            return None
        ends = [self.evaluate(claim, each, lookup) for each in computed]
        for end, each in zip(ends, computed, strict=True):
            at(claim, lambda end=end: end.to(claim.unit), each.line)  # type: ignore[misc]
        return ends[0], ends[-1]

    def _claims_in(self, claim: Claim, expressions: Iterable[Expression]) -> list[Claim]:
        """The claims that computations of a claim use."""
        found = (self.library.find(claim, name)[0] for each in expressions for name in each.names)
        return list(dict.fromkeys(each for each in found if isinstance(each, Claim)))

    def _fact(self, claim: Claim, name: str, printed: bool) -> Fact:
        found, end = self.library.find(claim, name)
        if isinstance(found, Input):
            return Fact(found.quantity, found.source)
        right = self.right(found)
        ends = found.printed.ends if printed or right is None else right
        note = f"{found.where}: printed {found.printed.text}"
        if right is not None and not printed:
            note += f", right {readable(right[0])}"
        if end:
            return Fact(ends[end == "high"], note)
        if ends[0].value != ends[1].value:
            raise UsageError(f"'{name}' is a range", f"Say {name}.low or {name}.high")
        return Fact(ends[0], note)


def followers(judged: Iterable[Judged]) -> dict[str, list[Judged]]:
    """For each claim at which an error starts, those that follow from it."""
    found: dict[str, list[Judged]] = {}
    for each in judged:
        for root in each.roots:
            if root != each.claim.key:
                found.setdefault(root, []).append(each)
    return found


def _name_for(claim: Claim, other: Claim) -> str:
    return other.id if other.text == claim.text else other.key
