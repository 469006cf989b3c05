"""A model's attention, as one program for each kind of layer."""

from __future__ import annotations

from typing import NamedTuple

from memwall.dtypes import Precision
from memwall.models.attentions import Attention, LatentAttention
from memwall.models.model import Model
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
        """One new token a sequence, which sees all before it, masked or not."""
        return self.seq_q == 1

    @property
    def cached(self) -> bool:
        """Whether tokens came before the new ones."""
        return self.seq_q < self.seq_kv


def attention_layers(model: Model) -> tuple[AttentionLayers, ...]:
    """The model's layers by kind of attention, full ones before windowed ones."""
    kinds: dict[Attention, int] = {}
    for group in model.layers:
        if group.attention is not None:
            kinds[group.attention] = kinds.get(group.attention, 0) + group.repeats
    layers = [AttentionLayers(repeats, kind) for kind, repeats in kinds.items()]
    return tuple(sorted(layers, key=lambda layer: layer.attention.window is not None))


def forms(kind: Attention, tokens: Tokens) -> tuple[bool, ...]:
    """The ways to compute it: un-absorbed (False), and for a latent cache also absorbed (True).

    Absorbed, queries meet the latent itself, few bytes and many FLOPs; un-absorbed, every head has K and V
    of its own. With tokens in the cache an engine may do either; a prefill from nothing is un-absorbed.
    """
    return (True, False) if isinstance(kind, LatentAttention) and tokens.cached else (False,)


def attention_program(
    kind: Attention, tokens: Tokens, precision: Precision, causal: bool, impl: str, absorbed: bool = False
) -> Program:
    """One layer's attention over those tokens, in one of its `forms`."""
    if absorbed and isinstance(kind, LatentAttention):
        return mla(
            kind.heads,
            tokens.seq_kv,
            tokens.seq_q,
            head_dim=kind.cached_elements,
            head_dim_v=kind.kv_lora_rank,
            batch=tokens.batch,
            precision=precision,
            causal=causal,
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
