"""A model: groups of equal layers, each an attention and an MLP, between an embedding and a head.

Architectures are data: a layer names the kind of its attention and of its MLP and their
dimensions, so a new model is a new file of configs/models/, not a branch in the code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from memwall import yamlfile
from memwall.catalog import MODELS, Entry
from memwall.constant import Constant, kind_and_text
from memwall.errors import FileError, NotAvailable


class GroupedAttention(NamedTuple):
    """Attention with heads of K and V shared by groups of query heads (MHA, GQA, MQA)."""

    heads: int
    kv_heads: int
    head_dim: int
    window: int | None = None
    """Keys that a query sees; None for all."""
    qkv_bias: bool = False
    output_bias: bool = False
    qk_norm: bool = False
    """A norm over each head of Q and K, with head_dim weights."""
    sinks: bool = False
    """One learned score a head that no key answers (gpt-oss)."""

    @property
    def head_dim_v(self) -> int:
        """Elements of a value head."""
        return self.head_dim

    @property
    def cached_elements(self) -> int:
        """Elements that one token adds to the cache of one layer: K and V."""
        return 2 * self.kv_heads * self.head_dim


class LatentAttention(NamedTuple):
    """Multi-head latent attention: one compressed vector a token serves every head as K and V."""

    heads: int
    q_lora_rank: int | None
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    window: int | None = None

    @property
    def kv_heads(self) -> int:
        """Un-absorbed, as in prefill, every head has its own K and V."""
        return self.heads

    @property
    def head_dim(self) -> int:
        """Elements of a query and key head, un-absorbed."""
        return self.qk_nope_head_dim + self.qk_rope_head_dim

    @property
    def head_dim_v(self) -> int:
        """Elements of a value head, un-absorbed."""
        return self.v_head_dim

    @property
    def cached_elements(self) -> int:
        """Elements that one token adds to the cache of one layer: the latent and the rotary part."""
        return self.kv_lora_rank + self.qk_rope_head_dim


class GatedMlp(NamedTuple):
    """gate and up, an activation, down: three matrices."""

    width: int


class Experts(NamedTuple):
    """A router over gated MLPs, with or without a shared one."""

    experts: int
    experts_per_token: int
    width: int
    shared_width: int = 0
    router_bias: bool = False
    bias: bool = False
    """Biases on gate, up and down of each expert (gpt-oss)."""


Attention = GroupedAttention | LatentAttention
Mlp = GatedMlp | Experts

_ATTENTIONS = {"grouped": GroupedAttention, "latent": LatentAttention}
_MLPS = {"gated": GatedMlp, "experts": Experts}


class Layers(NamedTuple):
    """So many equal layers."""

    repeats: int
    attention: Attention
    mlp: Mlp


class Model(NamedTuple):
    """A decoder-only language model."""

    name: str
    title: str
    hidden_size: int
    vocab_size: int
    tied_embeddings: bool
    norms_per_layer: int
    layers: tuple[Layers, ...]
    parameters_published: int | None = None
    sources: tuple[Constant, ...] = ()
    """Where its dimensions come from."""

    @property
    def doubt(self) -> Constant | None:
        """Its dimensions' source, where that is merely recalled or assumed."""
        return next((source for source in self.sources if source.weak), None)

    @property
    def layer_count(self) -> int:
        """All layers."""
        return sum(group.repeats for group in self.layers)


def load(name: str) -> Model:
    """The model of that name, alias or file.

    Raises:
        UnknownName, FileError: as they say.
        NotAvailable: a Hugging Face config.json, which is not read yet.
    """
    if name.endswith(".json"):
        raise NotAvailable(
            f"{name}: Hugging Face config files are not read yet",
            "Write its dimensions as YAML: memwall model show llama3-70b --yaml > my-model.yaml",
        )
    return from_entry(MODELS.find(name))


def from_entry(entry: Entry) -> Model:
    """The model of a file; a user's own is checked first, against the schema and its own total."""
    if not entry.user:
        return _model(entry)
    from memwall.schema.base import validate
    from memwall.schema.model import ModelFile

    validate(ModelFile, entry.text, entry.where)
    model = _model(entry)
    _check_parameters(model, entry)
    return model


def _check_parameters(model: Model, entry: Entry) -> None:
    """The stated total, where there is one, must be that of the dimensions."""
    from memwall.models.parameters import count  # which counts these types

    total, stated = count(model).total, model.parameters_published
    if stated not in (None, total):
        line = yamlfile.line_of(entry.text, ("parameters",))
        raise FileError(
            f"{entry.where}:{line}: parameters is {stated}, but the dimensions make {total}",
            "Correct the one that is wrong, or leave parameters out",
        )


def _model(entry: Entry) -> Model:
    data = yamlfile.parse(entry.text, entry.where)
    return Model(
        name=data["name"],
        title=data["title"],
        hidden_size=data["hidden_size"],
        vocab_size=data["vocab_size"],
        tied_embeddings=data["tied_embeddings"],
        norms_per_layer=data.get("norms_per_layer", 2),
        layers=tuple(_layers(group) for group in data["layers"]),
        parameters_published=data.get("parameters"),
        sources=_sources(data),
    )


def _sources(data: Mapping[str, Any]) -> tuple[Constant, ...]:
    key = f"model {data['name']}"
    return tuple(Constant(key, 0, *kind_and_text(entry)) for entry in data["source"])


def _layers(group: Mapping[str, Any]) -> Layers:
    attention, mlp = dict(group["attention"]), dict(group["mlp"])
    return Layers(
        group["count"],
        _ATTENTIONS[attention.pop("kind")](**attention),
        _MLPS[mlp.pop("kind")](**mlp),
    )
