"""A file of claims, read and checked: every fault is named by file and line before anything is computed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from memwall import yamlfile
from memwall.catalog import Entry
from memwall.claims.claim import Aside, Claim, ClaimsFile, Input, Part, Place, Region, SecondRoute
from memwall.claims.expression import Expression
from memwall.claims.expression import parse as parse_expression
from memwall.claims.files import read_text
from memwall.claims.functions import FUNCTIONS
from memwall.claims.operations import OPERATIONS
from memwall.claims.printed import parse as parse_printed
from memwall.claims.quantity import Quantity, parse_unit, symbols
from memwall.claims.schema import ClaimData, ClaimsData, One
from memwall.constant import kind_and_text
from memwall.errors import FileError, MemwallError, shown
from memwall.schema.base import Source, validate

Made = TypeVar("Made")
Path = tuple[str | int, ...]


def load(path: str) -> ClaimsFile:
    """The claims of a file.

    Raises:
        FileError: with file and line.
    """
    return from_entry(Entry(os.path.basename(path), read_text(path), path, user=True))


def from_entry(entry: Entry) -> ClaimsFile:
    """The claims of a file that has been read.

    Raises:
        FileError: with file and line.
    """
    reader = _Reader(entry)
    data = _validated(entry)
    claims = tuple(reader.claim(index, each, data.text) for index, each in enumerate(data.claims))
    _check_ids(claims, data, reader)
    folder = os.path.dirname(entry.where)
    return ClaimsFile(
        data.text,
        data.title,
        entry.where,
        claims,
        {name: reader.input(name, each) for name, each in data.inputs.items()},
        {name: os.path.join(folder, file) for name, file in data.texts.items()},
        tuple(
            Aside(reader.pattern(("aside", index), each.match), each.reason)
            for index, each in enumerate(data.aside)
        ),
        tuple(
            Region(each.where, reader.pattern(("regions", index), each.match))
            for index, each in enumerate(data.regions)
        ),
    )


class _Reader:
    """Makes the parts of one file, each fault at its own line."""

    def __init__(self, entry: Entry) -> None:
        self.where = entry.where
        self.text = entry.text
        self._lines: Mapping[Path, int] | None = None

    def place(self, *path: str | int) -> Place:
        if self._lines is None:
            self._lines = yamlfile.lines(self.text)
        return Place(self.where, self._lines.get(path, 1))

    def at(self, path: Path, make: Callable[[], Made]) -> Made:
        """What `make` makes; its errors name the line of `path`."""
        try:
            return make()
        except MemwallError as error:
            place = self.place(*path)
            key = ".".join(str(step) for step in path[2:] or path)
            raise FileError(f"{place}: {key}: {error.message}", error.hint) from None

    def claim(self, index: int, data: ClaimData, text: str) -> Claim:
        base: Path = ("claims", index)
        return Claim(
            id=data.id,
            where=data.where,
            label=data.label,
            printed=self.at(
                (*base, "printed"), lambda: parse_printed(str(data.printed), data.unit, data.digits)
            ),
            place=self.place(*base),
            compute=self._computation((*base, "compute"), data.compute),
            as_printed=self._computation((*base, "as_printed"), data.as_printed),
            within=None if data.within_percent is None else data.within_percent / 100,
            contradicts=tuple(
                [data.contradicts] if isinstance(data.contradicts, str) else data.contradicts or ()
            ),
            mixes=tuple(
                Part(part.what, self._expression((*base, "mixes", i), part.compute))
                for i, part in enumerate(data.mixes or ())
            ),
            published=tuple(
                Part(
                    part.what,
                    printed=self.at((*base, "published", i), lambda part=part: parse_printed(part.value)),  # type: ignore[misc]
                    source=_source(part.source),
                )
                for i, part in enumerate(data.published or ())
            ),
            second_route=self._second_route((*base, "second_route"), data),
            recorded=data.verdict,
            reason=data.reason or "",
            source=_source(data.source),
            repeats=data.repeats or "",
            given=data.given or "",
            text=text,
        )

    def input(self, name: str, data: Any) -> Input:
        path: Path = ("inputs", name)
        unit = self.at(path, lambda: parse_unit(data.unit))
        value = int(data.value) if float(data.value).is_integer() else data.value
        return Input(
            name, Quantity(value * unit.value, unit.dimension), _source(data.source), self.place(*path)
        )

    def pattern(self, path: Path, pattern: str) -> str:
        """A regular expression, checked."""
        try:
            re.compile(pattern)
        except re.error as error:
            raise FileError(
                f"{self.place(*path)}: match is not a regular expression: {error}",
                "Put a backslash before . ( [ + * ?",
            ) from None
        return pattern

    def _computation(self, path: Path, given: One | list[One] | None) -> tuple[Expression, ...]:
        texts = given if isinstance(given, list) else [] if given is None else [given]
        return tuple(self._expression(path, text) for text in texts)

    def _expression(self, path: Path, given: One) -> Expression:
        text = given if isinstance(given, str) else f"{given:.15g}"
        return self.at(path, lambda: parse_expression(text))._replace(line=self.place(*path).line)

    def _second_route(self, path: Path, data: ClaimData) -> SecondRoute | None:
        route = data.second_route
        if route is None:
            return None
        return SecondRoute(self._expression(path, route.compute), route.how, route.within_percent / 100)


def _validated(entry: Entry) -> ClaimsData:
    """The file against its schema; advice that is for files of GPUs gives way to a claim to copy."""
    try:
        return validate(ClaimsData, entry.text, entry.where)
    except FileError as error:
        if yamlfile.EXAMPLE in error.hint and "five levels" not in error.hint:
            message = error.message.replace("'name: my-gpu'", "'text: my-article'")
            raise FileError(message, 'A claim to copy: memwall check --new "AI=1,365 FLOP/byte"') from None
        if "GPU" not in error.hint:
            raise
        raise FileError(error.message, f"A claim to copy: {ClaimsData.EXAMPLE}") from None


def _source(source: Source | None) -> str:
    if source is None:
        return ""
    kind, text = kind_and_text(source.model_dump())
    return f"{kind}: {text}"


def _check_ids(claims: Iterable[Claim], data: ClaimsData, reader: _Reader) -> None:
    """Each name once, and none that means something else in an expression."""
    taken = {
        **{name: ("inputs", name) for name in data.inputs},
        **{name: ("texts", name) for name in data.texts},
    }
    for name, path in taken.items():
        _check_name(name, reader.place(*path))
    seen: dict[str, Place] = {name: reader.place(*path) for name, path in taken.items()}
    for claim in claims:
        _check_name(claim.id, claim.place)
        if claim.id in seen:
            raise FileError(
                f"{claim.place}: the name '{claim.id}' stands at line {seen[claim.id].line}, too",
                "Rename one",
            )
        if claim.recorded not in ("holds", "measured") and not claim.reason:
            raise FileError(
                f"{claim.place}: '{shown(claim.id)}' is recorded as '{claim.recorded}' without a reason",
                "Say why in one sentence: reason: ...",
            )
        seen[claim.id] = claim.place


def _check_name(name: str, place: Place) -> None:
    if name in symbols() or name in FUNCTIONS or name in OPERATIONS:
        raise FileError(f"{place}: the name '{name}' is a unit's, a function's or a report's", "Rename it")
