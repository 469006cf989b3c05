"""What all file schemas share: strictness, sources, and errors that name file, line and key."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from memwall import yamlfile
from memwall.constant import KINDS
from memwall.errors import FileError, nearest, shown
from memwall.units import LARGEST_CONSTANT, LARGEST_COUNT, SMALLEST_CONSTANT

Positive = Annotated[float, Field(ge=SMALLEST_CONSTANT, le=LARGEST_CONSTANT)]
Whole = Annotated[int, Field(gt=0, le=LARGEST_COUNT)]
Text = Annotated[str, Field(min_length=1)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9]+([.-][a-z0-9]+)*$", max_length=60)]


class Strict(BaseModel):
    """A mapping in which no key is unknown and no text passes for a number ('3.35e3' is text in YAML)."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Source(Strict):
    """Where numbers come from: exactly one kind, and the keys it covers (none: all the others).

    seen: read in the document named. recalled: from memory of the document named, not checked.
    derived: arithmetic on other keys. measured: read off the hardware. assumed: a what-if.
    """

    seen: Text | None = None
    recalled: Text | None = None
    derived: Text | None = None
    measured: Text | None = None
    assumed: Text | None = None
    keys: list[str] | None = Field(default=None, alias="for", min_length=1)

    @model_validator(mode="after")
    def _one_kind(self) -> Source:
        if sum(getattr(self, kind) is not None for kind in KINDS) != 1:
            raise ValueError(f"a source has exactly one of {', '.join(KINDS)}")
        return self


class Sourced(Strict):
    """A group of numbers with its sources."""

    source: list[Source] = Field(min_length=1)

    @model_validator(mode="after")
    def _covered(self) -> Sourced:
        known = set(type(self).model_fields) | {
            k for v in self.__dict__.values() if isinstance(v, dict) for k in v
        }
        for source in self.source:
            unknown = [key for key in source.keys or () if key not in known]
            if unknown:
                raise ValueError(f"source: 'for' names {', '.join(unknown)}, which this group does not have")
        if not any(source.keys is None for source in self.source):
            named = {key for source in self.source for key in source.keys or ()}
            bare = [
                key
                for key, value in self
                if key != "source" and value is not None
                if key not in named and not (isinstance(value, dict) and value.keys() <= named)
            ]
            if bare:
                raise ValueError(f"no source covers {', '.join(bare)}")
        return self


Model = TypeVar("Model", bound=BaseModel)


def validate(model: type[Model], text: str, where: str) -> Model:
    """A file's text, checked against its schema.

    Raises:
        FileError: with file, line, key and what is allowed there.
    """
    data = yamlfile.parse(text, where)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise _advice(model, first(error), data, text, where) from None


def first(errors: ValidationError) -> Any:
    """The error to tell: an unknown key before the missing one that it misspells."""
    return min(errors.errors(), key=lambda error: error["type"] != "extra_forbidden")


def said(error: Any) -> str:
    """A pydantic error in plain words, to stand after a key: 'must be a number, not 'fast''."""
    kind, context = error["type"], error.get("ctx", {})
    for suffix, what in _TYPES.items():
        if kind in (f"{suffix}_type", f"{suffix}_parsing"):
            return f"must be {what}, not {_value(error['input'])}"
    if kind == "union_tag_invalid":
        return f"kind '{shown(context['tag'])}' is not known; the kinds: {context['expected_tags']}".replace(
            "'", ""
        )
    if kind == "union_tag_not_found":
        return "the key 'kind' is missing"
    if kind in ("too_short", "string_too_short"):
        return "must not be empty"
    if kind == "string_pattern_mismatch":
        return f"must be lower-case words joined by '-' or '.', such as my-gpu, not {_value(error['input'])}"
    if kind == "greater_than_equal" and error["input"] <= 0 < context["ge"] < 1:
        return f"must be greater than 0, not {_value(error['input'])}"
    if kind == "greater_than_equal":
        return f"must be at least {context['ge']:g}, not {_value(error['input'])}"
    if kind == "less_than_equal":
        return f"must be at most {context['le']:.0e}".replace("e+", "e")
    problem = error["msg"].removeprefix("Value error, ")
    return str(problem.replace("Input should be", "must be").replace("String should", "must"))


def keys_at(model: type[BaseModel], path: tuple[str | int, ...]) -> list[str]:
    """The keys that a schema allows at a path, for 'did you mean'.

    A path of pydantic's own has the tag of a union's member, too: layers, 0, attention, grouped.
    """
    here: list[type[BaseModel]] = [model]
    for step in path:
        fields = (
            [m.model_fields[step] for m in here if step in m.model_fields] if isinstance(step, str) else []
        )
        tagged = [
            m
            for m in here
            if "kind" in m.model_fields and step in get_args(m.model_fields["kind"].annotation)
        ]
        here = (
            [inner for field in fields for inner in _models_in(field.annotation)]
            if fields
            else tagged or here
        )
    return sorted({field.alias or name for m in here for name, field in m.model_fields.items()})


_TYPES = {
    "float": "a number",
    "int": "a whole number",
    "string": "text in quotes",
    "bool": "true or false",
    "list": "a list: [a, b]",
    "dict": "a group of 'key: value' lines",
    "model": "a group of 'key: value' lines",
    "model_attributes": "a group of 'key: value' lines",
}
"""Pydantic's error types by what would have been right."""


def _advice(model: type[BaseModel], error: Any, data: Any, text: str, where: str) -> FileError:
    example = f"A whole file to compare with: {getattr(model, 'EXAMPLE', yamlfile.EXAMPLE)}"
    place = getattr(error.get("ctx", {}).get("error"), "path", None)  # of a check of the whole file
    path = place or _steps_in_file(error["loc"], data, whole=error["type"] == "missing")
    where = f"{where}:{yamlfile.line_of(text, path)}"
    key = shown(".".join(str(step) for step in path), 80)
    if error["type"] == "extra_forbidden":
        known = keys_at(model, error["loc"][:-1])
        near = nearest(str(path[-1]), known, limit=1)
        return FileError(
            f"{where}: unknown key '{key}'",
            f"Did you mean '{near[0]}'?" if near else shown(f"Allowed there: {', '.join(known)}", 200),
        )
    if error["type"] == "missing":
        return FileError(f"{where}: the key '{key}' is missing", example)
    return FileError(shown(f"{where}: {key + ': ' if key else ''}{said(error)}", 250), _hint(error, example))


def _hint(error: Any, example: str) -> str:
    written = error["input"]
    if error["type"] == "float_type" and isinstance(written, str):
        number = _plain(written)
        return (
            f"Write it without exponent or unit: {number}"
            if number
            else "Numbers only: the key names the unit"
        )
    return example


def _plain(text: str) -> str:
    """3350 for 3.35e3, which YAML reads as text; empty if it is no such number."""
    try:
        number = float(text)
    except ValueError:
        return ""
    plain = f"{number:.10g}"
    return plain if plain.replace(".", "", 1).isdigit() else ""


def _value(value: Any) -> str:
    if isinstance(value, dict | list):
        return "a group" if isinstance(value, dict) else "a list"
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "true", False: "false"}[value]
    return f"'{shown(value)}'"


def _steps_in_file(steps: tuple[str | int, ...], data: Any, whole: bool) -> tuple[str | int, ...]:
    """Pydantic's path without the steps that the file does not have: tags of unions, '[key]'.

    With `whole` the last one stays: it is what is missing.
    """
    path: list[str | int] = []
    here = data
    for number, step in enumerate(steps):
        last = whole and number == len(steps) - 1
        try:
            here = here[step]
        except (KeyError, IndexError, TypeError):
            if not last:
                continue
        path.append(step)
    return tuple(path)


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    """The models inside `Model | None`, `list[Model]` or `dict[str, Model]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for argument in get_args(annotation) for found in _models_in(argument)]
