"""Parameter counts, to the last one, from a model's dimensions."""

from __future__ import annotations

from typing import NamedTuple

from memwall.models.model import (
    Attention,
    Experts,
    GatedMlp,
    GroupedAttention,
    LatentAttention,
    Layers,
    Mlp,
    Model,
)


class Parameters(NamedTuple):
    """How many parameters a model has."""

    total: int
    active: int
    """Those that one token's pass multiplies with: the chosen experts, and not the input embedding,
    of which a token reads one row. A tied table counts once, as the head."""
    embedding: int
    """The input embedding table."""


def count(model: Model) -> Parameters:
    """The parameters of a model.

    total = embedding + head (unless tied) + final norm + layers, each attention + MLP + norms.
    """
    table = model.vocab_size * model.hidden_size
    head = 0 if model.tied_embeddings else table
    layers = sum(group.repeats * _layer(model, group, active=False) for group in model.layers)
    running = sum(group.repeats * _layer(model, group, active=True) for group in model.layers)
    return Parameters(
        total=table + head + model.hidden_size + layers,
        active=table + model.hidden_size + running,
        embedding=table,
    )


def _layer(model: Model, layers: Layers, active: bool) -> int:
    norms = model.norms_per_layer * model.hidden_size
    return (
        norms
        + attention_parameters(layers.attention, model.hidden_size)
        + _mlp(layers.mlp, model.hidden_size, active)
    )


def attention_parameters(attention: Attention, hidden: int) -> int:
    """Projections of Q, K, V and O, with their biases and norms."""
    if isinstance(attention, LatentAttention):
        return _latent(attention, hidden)
    return _grouped(attention, hidden)


def _grouped(a: GroupedAttention, hidden: int) -> int:
    query, key_value = a.heads * a.head_dim, 2 * a.kv_heads * a.head_dim
    biases = (query + key_value) * a.qkv_bias + hidden * a.output_bias
    extras = 2 * a.head_dim * a.qk_norm + a.heads * a.sinks
    return hidden * (query + key_value) + query * hidden + biases + extras


def _latent(a: LatentAttention, hidden: int) -> int:
    query_width = a.heads * a.head_dim
    query = hidden * query_width
    if a.q_lora_rank:  # down, norm, up
        query = hidden * a.q_lora_rank + a.q_lora_rank + a.q_lora_rank * query_width
    down = hidden * a.cached_elements + a.kv_lora_rank  # with the latent's norm
    up = a.kv_lora_rank * a.heads * (a.qk_nope_head_dim + a.v_head_dim)
    return query + down + up + a.heads * a.v_head_dim * hidden


def _mlp(mlp: Mlp, hidden: int, active: bool) -> int:
    if isinstance(mlp, GatedMlp):
        return 3 * hidden * mlp.width
    return _experts(mlp, hidden, active)


def _experts(e: Experts, hidden: int, active: bool) -> int:
    expert = 3 * hidden * e.width + (2 * e.width + hidden) * e.bias
    router = e.experts * hidden + e.experts * e.router_bias
    running = e.experts_per_token if active else e.experts
    return router + running * expert + 3 * hidden * e.shared_width
