"""Reading a model: from configs/models/, from the user's YAML, or from a Hugging Face config.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memwall import yamlfile
from memwall.catalog import MODELS, Entry
from memwall.constant import Constant, kind_and_text
from memwall.errors import FileError
from memwall.models.attentions import Attention, GroupedAttention, LatentAttention
from memwall.models.mlps import Experts, GatedMlp, Mlp, PlainMlp
from memwall.models.model import Layers, Model
from memwall.models.recurrences import (
    GatedDelta,
    GatedLinearRecurrence,
    LightningAttention,
    Mamba,
    Mamba2,
    Recurrence,
    ShortConvolution,
)

ATTENTIONS: Mapping[str, type[Attention]] = {"grouped": GroupedAttention, "latent": LatentAttention}
MLPS: Mapping[str, type[Mlp]] = {"gated": GatedMlp, "plain": PlainMlp, "experts": Experts}
RECURRENCES: Mapping[str, type[Recurrence]] = {
    "gated-delta": GatedDelta,
    "mamba": Mamba,
    "mamba2": Mamba2,
    "lightning": LightningAttention,
    "short-convolution": ShortConvolution,
    "gated-linear": GatedLinearRecurrence,
}
"""The kinds of parts by the names that files give them."""
IMPORTED = "huggingface"
"""The key that holds a config.json's keys instead of parts."""


def load(name: str) -> Model:
    """The model of that name, alias, YAML file, config.json or folder with one.

    Raises:
        UnknownName, FileError: as they say.
        NotAvailable: a config.json whose architecture has no formula here.
    """
    from memwall.models.huggingface import folder  # looks at the name alone

    config = folder.config_path(name)
    if config:
        from memwall.models.huggingface.model import read

        return read(config)
    return from_entry(MODELS.find(name))


def from_entry(entry: Entry) -> Model:
    """The model of a YAML file; a user's own is checked first, against the schema and its own total."""
    if not entry.user:
        return _model(entry)
    from memwall.models.schema import ImportedFile, ModelFile
    from memwall.schema.base import validate

    imported = IMPORTED in yamlfile.parse(entry.text, entry.where)
    validate(ImportedFile if imported else ModelFile, entry.text, entry.where)
    model = _model(entry)
    _check_parameters(model, entry)
    return model


def kind_of(part: Attention | Mlp | Recurrence) -> str:
    """The name that files give a part's kind."""
    kinds: dict[str, type] = {**ATTENTIONS, **MLPS, **RECURRENCES}
    return next(name for name, kind in kinds.items() if type(part) is kind)


def _check_parameters(model: Model, entry: Entry) -> None:
    """The stated total, where there is one, must be that of the dimensions."""
    from memwall.models.parameters import count

    total, stated = count(model).total, model.parameters_published
    if stated not in (None, total):
        line = yamlfile.line_of(entry.text, ("parameters",))
        raise FileError(
            f"{entry.where}:{line}: parameters is {stated}, but the dimensions make {total}",
            "Correct the one that is wrong, or leave parameters out",
        )


def _model(entry: Entry) -> Model:
    data = yamlfile.parse(entry.text, entry.where)
    if IMPORTED in data:
        from memwall.models.huggingface.model import from_keys

        return from_keys(data[IMPORTED], entry.where, entry.text)._replace(
            name=data["name"],
            title=data["title"],
            parameters_published=data.get("parameters"),
            sources=_sources(data),
        )
    norms = data.get("norms_per_layer", 2)
    return Model(
        name=data["name"],
        title=data["title"],
        hidden_size=data["hidden_size"],
        vocab_size=data["vocab_size"],
        tied_embeddings=data["tied_embeddings"],
        layers=tuple(_layers(group, norms) for group in data["layers"]),
        norm_bias=data.get("norm_bias", False),
        context=data.get("context"),
        parameters_published=data.get("parameters"),
        sources=_sources(data),
    )


def _sources(data: Mapping[str, Any]) -> tuple[Constant, ...]:
    key = f"model {data['name']}"
    return tuple(Constant(key, 0, *kind_and_text(entry)) for entry in data["source"])


def _layers(group: Mapping[str, Any], norms: int) -> Layers:
    mlps = group.get("mlp") or []
    return Layers(
        group["count"],
        _part(group.get("attention"), ATTENTIONS),
        tuple(_part(mlp, MLPS) for mlp in (mlps if isinstance(mlps, list) else [mlps])),
        _part(group.get("recurrence"), RECURRENCES),
        norms=group.get("norms", norms),
    )


def _part(data: Mapping[str, Any] | None, kinds: Mapping[str, type]) -> Any:
    """One part, from its kind and dimensions."""
    if data is None:
        return None
    return kinds[data["kind"]](**{key: value for key, value in data.items() if key != "kind"})
