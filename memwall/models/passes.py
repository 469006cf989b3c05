"""A model's attention, as one program for each kind of layer."""

from __future__ import annotations

from typing import NamedTuple

from memwall.dtypes import Precision
from memwall.models.model import Attention, LatentAttention, Model
from memwall.ops.attention import attention, mla
from memwall.program import Program


class AttentionLayers(NamedTuple):
    """So many layers whose attention is the same."""

    repeats: int
    attention: Attention


class Tokens(NamedTuple):
    """What a pass is given: `seq_q` new tokens of each sequence, `seq_kv` with those before them."""

    batch: int
    seq_q: int
    seq_kv: int

    @property
    def decoding(self) -> bool:
        """One new token a sequence."""
        return self.seq_q == 1


def attention_layers(model: Model) -> tuple[AttentionLayers, ...]:
    """The model's layers by kind of attention, full ones before windowed ones."""
    kinds: dict[Attention, int] = {}
    for group in model.layers:
        kinds[group.attention] = kinds.get(group.attention, 0) + group.repeats
    layers = [AttentionLayers(repeats, kind) for kind, repeats in kinds.items()]
    return tuple(sorted(layers, key=lambda layer: layer.attention.window is not None))


def attention_program(
    kind: Attention, tokens: Tokens, precision: Precision, causal: bool, impl: str
) -> Program:
    """One layer's attention over those tokens.

    Latent attention decodes absorbed, on the latent itself, and prefills un-absorbed, with K and V of
    every head, as engines do.
    """
    if isinstance(kind, LatentAttention) and tokens.decoding:
        return mla(
            kind.heads,
            tokens.seq_kv,
            tokens.seq_q,
            head_dim=kind.cached_elements,
            head_dim_v=kind.kv_lora_rank,
            batch=tokens.batch,
            precision=precision,
            impl=impl,
        )
    return attention(
        kind.heads,
        kind.head_dim,
        tokens.seq_q,
        tokens.seq_kv,
        kind.kv_heads,
        kind.head_dim_v,
        tokens.batch,
        kind.window,
        precision=precision,
        causal=causal,
        impl=impl,
    )
