"""What all file schemas share: strictness, sources, and errors that name file, line and key."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from memwall import yamlfile
from memwall.errors import FileError, nearest, shown

Positive = Annotated[float, Field(gt=0, le=1e15)]
Whole = Annotated[int, Field(gt=0, le=10**15, strict=True)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9]+([.-][a-z0-9]+)*$", max_length=60)]

KINDS = ("seen", "recalled", "derived", "measured", "assumed")


class Strict(BaseModel):
    """A mapping in which an unknown key is an error, never ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Source(Strict):
    """Where numbers come from: exactly one kind, and the keys it covers (none: all the others).

    seen: read in the document named. recalled: from memory of the document named, not checked.
    derived: arithmetic on other keys. measured: read off the hardware. assumed: a what-if.
    """

    seen: str | None = None
    recalled: str | None = None
    derived: str | None = None
    measured: str | None = None
    assumed: str | None = None
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
            bare = [key for key, value in self if key != "source" and value is not None and key not in named]
            bare = [
                key
                for key in bare
                if not (isinstance(self.__dict__[key], dict) and set(self.__dict__[key]) <= named)
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
        raise _advice(model, error.errors()[0], text, where) from None


def _advice(model: type[BaseModel], error: Any, text: str, where: str) -> FileError:
    path = tuple(error["loc"])
    line = yamlfile.line_of(text, path)
    key = ".".join(str(step) for step in path) or "the file"
    if error["type"] == "extra_forbidden":
        known = _keys_at(model, path[:-1])
        near = nearest(str(path[-1]), known, limit=1)
        allowed = f"Did you mean '{near[0]}'?" if near else f"Allowed there: {', '.join(sorted(known))}"
        return FileError(f"{where}:{line}: unknown key '{shown(key, 80)}'", allowed)
    if error["type"] == "missing":
        return FileError(
            f"{where}:{line}: the key '{key}' is missing", "See hardware/README.md or configs/README.md"
        )
    problem = error["msg"].removeprefix("Value error, ")
    return FileError(f"{where}:{line}: {key}: {problem}", f"It reads {shown(error['input'])!r}")


def _keys_at(model: type[BaseModel], path: tuple[str | int, ...]) -> list[str]:
    """The keys that a schema allows at a path, for 'did you mean'."""
    here: Any = model
    for step in path:
        if isinstance(step, str) and isinstance(here, type) and issubclass(here, BaseModel):
            field = here.model_fields.get(step)
            here = _inner(field.annotation) if field else None
    if isinstance(here, type) and issubclass(here, BaseModel):
        return [field.alias or name for name, field in here.model_fields.items()]
    return []


def _inner(annotation: Any) -> Any:
    """The model inside `Model | None`, `list[Model]` or `dict[str, Model]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        found = _inner(argument)
        if found is not None:
            return found
    return None
