"""The schema of configs/models/*.yaml. configs/README.md says the same for people."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from memwall.schema.base import Name, Source, Strict, Whole


class Grouped(Strict):
    """MHA, GQA or MQA."""

    kind: Literal["grouped"]
    heads: Whole
    kv_heads: Whole
    head_dim: Whole
    window: Whole | None = None
    qkv_bias: bool = False
    output_bias: bool = False
    qk_norm: bool = False
    sinks: bool = False

    @model_validator(mode="after")
    def _groups(self) -> Grouped:
        if self.heads % self.kv_heads:
            raise ValueError(f"{self.kv_heads} KV heads do not divide {self.heads} heads")
        return self


class Latent(Strict):
    """MLA."""

    kind: Literal["latent"]
    heads: Whole
    q_lora_rank: Whole | None
    kv_lora_rank: Whole
    qk_nope_head_dim: Whole
    qk_rope_head_dim: Whole
    v_head_dim: Whole
    window: Whole | None = None


class Gated(Strict):
    """SwiGLU or GeGLU."""

    kind: Literal["gated"]
    width: Whole


class ExpertsMlp(Strict):
    """Mixture of experts."""

    kind: Literal["experts"]
    experts: Whole
    experts_per_token: Whole
    width: Whole
    shared_width: Annotated[int, Field(ge=0)] = 0
    router_bias: bool = False
    bias: bool = False

    @model_validator(mode="after")
    def _chosen(self) -> ExpertsMlp:
        if self.experts_per_token > self.experts:
            raise ValueError(f"a token cannot use {self.experts_per_token} of {self.experts} experts")
        return self


class LayerGroup(Strict):
    """Equal layers."""

    count: Whole
    attention: Grouped | Latent = Field(discriminator="kind")
    mlp: Gated | ExpertsMlp = Field(discriminator="kind")


class ModelFile(Strict):
    """One model."""

    EXAMPLE: ClassVar[str] = "memwall model show llama3-70b --yaml"

    name: Name
    title: str = Field(max_length=80)
    aliases: list[str] = Field(default_factory=list)
    hidden_size: Whole
    vocab_size: Whole
    tied_embeddings: bool
    norms_per_layer: Whole = 2
    parameters: Whole | None = None
    layers: list[LayerGroup] = Field(min_length=1)
    note: str | None = None
    source: list[Source] = Field(min_length=1)
