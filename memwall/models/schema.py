"""The schema of configs/models/*.yaml, made from the types that the files are read into.

configs/README.md says the same for people.
"""

from __future__ import annotations

from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import Field, create_model, model_validator

from memwall.models.load import ATTENTIONS, MLPS, RECURRENCES
from memwall.schema.base import Name, Source, Strict, Whole
from memwall.units import LARGEST_COUNT

Size = Annotated[int, Field(ge=0, le=LARGEST_COUNT)]


class Part(Strict):
    """A part of a layer, with the checks that some kinds need."""

    @model_validator(mode="after")
    def _consistent(self) -> Part:
        heads, kv_heads = getattr(self, "heads", None), getattr(self, "kv_heads", None)
        if heads and kv_heads and heads % kv_heads:
            raise ValueError(f"{kv_heads} KV heads do not divide {heads} heads")
        experts, chosen = getattr(self, "experts", None), getattr(self, "experts_per_token", 0)
        if experts and chosen > experts:
            raise ValueError(f"a token cannot use {chosen} of {experts} experts")
        return self


def _schema(kind: str, part: type) -> type[Part]:
    """A part's fields with their limits: counts above zero, or from zero where zero means without."""
    defaults: dict[str, Any] = getattr(part, "_field_defaults", {})
    fields: dict[str, Any] = {
        name: (_limited(hint, defaults.get(name)), defaults.get(name, ...))
        for name, hint in get_type_hints(part).items()
    }
    fields["kind"] = (Literal[kind], ...)
    return create_model(part.__name__, __base__=Part, **fields)


def _limited(hint: Any, default: Any) -> Any:
    if hint is int:
        return Size if default == 0 and default is not False else Whole
    if get_origin(hint) in (Union, UnionType) and int in get_args(hint):
        return Whole | None
    return hint


def _union(kinds: Any) -> Any:
    members = tuple(_schema(name, part) for name, part in kinds.items())
    return Annotated[Union[members], Field(discriminator="kind")]  # noqa: UP007 - made when run


_Attention: Any = _union(ATTENTIONS)
_Mlp: Any = _union(MLPS)
_Recurrence: Any = _union(RECURRENCES)


class _LayerGroup(Strict):
    """Equal layers."""

    count: Whole
    norms: Size | None = None


LayerGroup: Any = create_model(
    "LayerGroup",
    __base__=_LayerGroup,
    attention=(_Attention | None, None),
    recurrence=(_Recurrence | None, None),
    mlp=(_Mlp | list[_Mlp] | None, None),
)


class _Named(Strict):
    """What every model's file has."""

    EXAMPLE: ClassVar[str] = "memwall model show llama3-70b --yaml"

    name: Name
    title: str = Field(max_length=80)
    aliases: list[str] = Field(default_factory=list)
    parameters: Whole | None = None
    note: str | None = None
    source: list[Source] = Field(min_length=1)


class ImportedFile(_Named):
    """One model by the keys of its config.json, which its family checks as it reads them."""

    huggingface: dict[str, Any] = Field(min_length=1)


class ModelFile(_Named):
    """One model by its parts."""

    hidden_size: Whole
    vocab_size: Whole
    tied_embeddings: bool
    norms_per_layer: Size = 2
    norm_bias: bool = False
    context: Whole | None = None
    layers: list[LayerGroup] = Field(min_length=1)
