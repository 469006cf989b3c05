"""A claim: what a text prints, how the right value is computed, and the verdict that was recorded."""

from __future__ import annotations

from typing import NamedTuple

from memwall.claims.expression import Expression
from memwall.claims.printed import Printed
from memwall.claims.quantity import Quantity

VERDICTS = (
    "holds",
    "holds as arithmetic",
    "differs",
    "contradicts",
    "mixed",
    "measured",
    "not computable",
)
"""In the order of the documentation."""

SOUND = ("holds", "measured", "not computable")
"""Verdicts that say nothing against a number; `measured` may, by the published ones."""


class Place(NamedTuple):
    """Where something stands in a file."""

    file: str
    line: int
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Input(NamedTuple):
    """A number that computations use and that is no claim, with its source."""

    name: str
    quantity: Quantity
    source: str
    place: Place


class Part(NamedTuple):
    """One of the unlike things that a printed number mixes, or a published measurement."""

    what: str
    compute: Expression | None = None
    printed: Printed | None = None
    source: str = ""


class SecondRoute(NamedTuple):
    """Another way to the right value."""

    compute: Expression
    how: str
    within: float
    """How far the two may be apart, as a share."""


class Claim(NamedTuple):
    """One printed number."""

    id: str
    where: str
    label: str
    printed: Printed
    place: Place
    compute: tuple[Expression, ...] = ()
    """The right value; two for the ends of a range."""
    as_printed: tuple[Expression, ...] = ()
    """How the text itself gets there, where that is not `compute`."""
    within: float | None = None
    contradicts: tuple[str, ...] = ()
    mixes: tuple[Part, ...] = ()
    published: tuple[Part, ...] = ()
    second_route: SecondRoute | None = None
    recorded: str = "holds"
    reason: str = ""
    source: str = ""
    repeats: str = ""
    """The claim that printed the number first: an error is reported there."""
    given: str = ""
    """What the text prints and the computation takes as given: N=4096, d=128."""
    text: str = ""
    """The text's name."""

    @property
    def in_document(self) -> bool:
        """Whether it is a number of a document, whose directive records nothing: it is to hold."""
        return self.text == self.place.file

    @property
    def unit(self) -> str:
        """The unit that the printed number is in."""
        return self.printed.unit

    @property
    def key(self) -> str:
        """Its name among the claims of all texts."""
        return f"{self.text}.{self.id}"


class Aside(NamedTuple):
    """Numbers of a text that no claim needs to cover."""

    pattern: str
    reason: str


class Region(NamedTuple):
    """A part of a text, from where its heading matches to the next region."""

    where: str
    """What the `where` of its claims begins with."""
    pattern: str


class ClaimsFile(NamedTuple):
    """The claims of one text."""

    text: str
    title: str
    file: str
    claims: tuple[Claim, ...]
    inputs: dict[str, Input]
    others: dict[str, str]
    """Other texts that these claims refer to: name to file."""
    aside: tuple[Aside, ...]
    regions: tuple[Region, ...] = ()
    """The text's parts, for coverage; none: a claim covers its number anywhere."""
