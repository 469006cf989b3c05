"""What a file of claims may hold."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from memwall.schema.base import Source, Strict, Text

Identifier = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=60)]
One = Text | float
Computation = One | Annotated[list[One], Field(min_length=2, max_length=2)]
Percent = Annotated[float, Field(gt=0, le=100)]


class PartData(Strict):
    """One of the unlike things that a number mixes."""

    what: Text
    compute: One


class PublishedData(Strict):
    """A published measurement."""

    what: Text
    value: Text
    source: Source


class SecondRouteData(Strict):
    """Another way to the right value."""

    compute: One
    how: Text
    within_percent: Percent = 1.0


class InputData(Strict):
    """A sourced number that is no claim of the text."""

    value: float
    unit: str = ""
    source: Source


class ClaimData(Strict):
    """One printed number."""

    id: Identifier
    where: Text
    label: Text
    printed: Text | int
    """Not a float: of 2.50 YAML keeps no second digit."""
    given: Text | None = None
    repeats: Text | None = None
    unit: str | None = None
    digits: Annotated[int, Field(ge=1, le=12)] | None = None
    within_percent: Percent | None = None
    compute: Computation | None = None
    as_printed: Computation | None = None
    contradicts: Text | list[Text] | None = None
    mixes: Annotated[list[PartData], Field(min_length=2)] | None = None
    published: Annotated[list[PublishedData], Field(min_length=1)] | None = None
    second_route: SecondRouteData | None = None
    verdict: Literal[
        "holds", "holds as arithmetic", "differs", "contradicts", "mixed", "measured", "not computable"
    ] = "holds"
    reason: Text | None = None
    source: Source | None = None


class AsideData(Strict):
    """Numbers that need no claim: those inside what matches a regular expression."""

    match: Text
    reason: Text


class RegionData(Strict):
    """A part of the text: its heading, and what the `where` of its claims begins with."""

    where: Text
    match: Text


class ClaimsData(Strict):
    """A whole file."""

    EXAMPLE: ClassVar[str] = 'memwall check --new "AI=1,365 FLOP/byte"'

    text: Identifier
    title: Text
    about: Text | None = None
    texts: dict[Identifier, Text] = Field(default_factory=dict)
    inputs: dict[Identifier, InputData] = Field(default_factory=dict)
    aside: list[AsideData] = Field(default_factory=list)
    regions: list[RegionData] = Field(default_factory=list)
    claims: Annotated[list[ClaimData], Field(min_length=1)]
