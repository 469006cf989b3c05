"""Gemma: norms before and after each part, local and global layers, and from 3n on a table a layer."""

from __future__ import annotations

from memwall.models.attentions import GroupedAttention
from memwall.models.huggingface.config import Config
from memwall.models.huggingface.families import family
from memwall.models.huggingface.parts import (
    biased,
    decoder,
    experts,
    gated,
    grouped,
    head_dim,
    layer_count,
    table,
)
from memwall.models.huggingface.patterns import windows
from memwall.models.mlps import Mlp
from memwall.models.model import Layers, Model
from memwall.models.weights import Weight, vector


@family("gemma")
def gemma(c: Config) -> Model:
    """Tied, with a stated head size."""
    attention = grouped(c, **biased(c))
    return decoder(c, lambda i: Layers(1, attention, (gated(c),)), tied=c.flag("tie_word_embeddings", True))


@family("gemma2", "vaultgemma")
def gemma2(c: Config) -> Model:
    """Four norms, every other layer with a window; VaultGemma has two norms."""
    window, bias = windows(c, pattern=2), biased(c)
    norms = 2 if c.get("model_type") == "vaultgemma" else 4
    (
        c.get("sliding_window_size"),
        c.get("query_pre_attn_scalar"),
    )  # the window again; a scale, not a head's size
    return decoder(
        c,
        lambda i: Layers(1, grouped(c, window=window[i], **bias), (gated(c),), norms=norms),
        tied=c.flag("tie_word_embeddings", True),
    )


@family("gemma3_text")
def gemma3(c: Config) -> Model:
    """Four norms and one over each head of Q and K; every sixth layer sees all."""
    window, bias = windows(c, pattern=6), biased(c)
    c.get("query_pre_attn_scalar")
    return decoder(
        c,
        lambda i: Layers(1, grouped(c, window=window[i], qk_norm="head", **bias), (gated(c),), norms=4),
        tied=c.flag("tie_word_embeddings", True),
    )


@family("gemma3n_text")
def gemma3n(c: Config) -> Model:
    """Alternating updates of four streams, a low-rank bypass, a looked-up row a layer, shared caches."""
    hidden, streams = c.whole("hidden_size"), c.whole("altup_num_inputs", 4)
    window, count = windows(c, pattern=5), layer_count(c)
    widths = c.get("intermediate_size")
    shared_from = count - c.whole("num_kv_shared_layers", 0, least=0)
    rank, per_layer = c.whole("laurel_rank", 64), c.whole("hidden_size_per_layer_input", 256)
    extras = (
        Weight("altup.modality_router", (streams, hidden)),
        Weight("altup.prediction_coefs", (streams * streams, streams)),
        Weight("altup.correction_coefs", (streams, streams)),
        vector("altup.router_norm", hidden),
        vector("altup.correct_output_scale", hidden),
        Weight("laurel.linear_left", (rank, hidden)),
        Weight("laurel.linear_right", (hidden, rank)),
        vector("laurel.post_laurel_norm", hidden),
        *_per_layer_input(hidden, per_layer),
    )

    def layer(i: int) -> Layers:
        attention = grouped(c, window=window[i], qk_norm="head", **biased(c))
        attention = attention._replace(shares_cache=i >= shared_from)
        width = widths[i] if isinstance(widths, list) else c.whole("intermediate_size")
        return Layers(1, attention, (gated(c, width),), norms=4, extras=extras)

    outer = (
        *_per_layer_tables(c, hidden, per_layer, count),
        Weight("altup_projections", (hidden, hidden), copies=streams - 1),
        Weight("altup_unembed_projections", (hidden, hidden), copies=streams - 1),
    )
    return decoder(c, layer, tied=c.flag("tie_word_embeddings", True), extras=outer)


def _per_layer_input(hidden: int, width: int) -> tuple[Weight, ...]:
    """A layer's gate on its looked-up row, the way back, and a norm."""
    return (
        Weight("per_layer_input_gate", (width, hidden)),
        Weight("per_layer_projection", (hidden, width)),
        vector("post_per_layer_input_norm", hidden),
    )


def _per_layer_tables(c: Config, hidden: int, width: int, count: int) -> tuple[Weight, ...]:
    """A row for each layer and token, looked up; and one projected from the token's embedding."""
    vocabulary = c.whole("vocab_size_per_layer_input", c.whole("vocab_size"))
    return (
        table("embed_tokens_per_layer", vocabulary, count * width),
        Weight("per_layer_model_projection", (count * width, hidden)),
        vector("per_layer_projection_norm", width),
    )


@family("gemma4_text", "gemma4_unified_text")
def gemma4(c: Config) -> Model:
    """Global layers have heads of their own size and number, and may take V from K; the last share caches."""
    hidden, count, window = c.whole("hidden_size"), layer_count(c), windows(c, pattern=6)
    shared_from = count - c.whole("num_kv_shared_layers", 0, least=0)
    per_layer = c.whole("hidden_size_per_layer_input", 0, least=0)
    c.get("vocab_size_per_layer_input")
    local, everywhere = _gemma4_heads(c)

    def layer(i: int) -> Layers:
        attention = everywhere if window[i] is None else local._replace(window=window[i])
        attention = attention._replace(shares_cache=i >= shared_from)
        wide = 2 if c.flag("use_double_wide_mlp") and i >= shared_from else 1
        mlps, norms = _gemma4_mlps(c, wide)
        row = _per_layer_input(hidden, per_layer) if per_layer else ()
        return Layers(1, attention, mlps, norms=norms, extras=(*row, *_router_scales(c)))

    outer = _per_layer_tables(c, hidden, per_layer, count) if per_layer else ()
    return decoder(c, layer, tied=c.flag("tie_word_embeddings", True), extras=outer)


def _gemma4_heads(c: Config) -> tuple[GroupedAttention, GroupedAttention]:
    """Local heads, and global ones."""
    local = grouped(c, head_dim=head_dim(c, c.whole("num_attention_heads")), qk_norm="head", **biased(c))
    from_keys = c.flag("attention_k_eq_v")
    kv_heads = c.whole("num_global_key_value_heads", None)
    written: dict[str, int] = next(
        iter((c.get("per_layer_config") or {}).values()), {}
    )  # the same, as newer files have it
    return local, local._replace(
        head_dim=c.whole("global_head_dim", written.get("head_dim", local.head_dim)),
        kv_heads=(kv_heads if from_keys else None) or written.get("num_key_value_heads", local.kv_heads),
        keys_are_values=from_keys,
    )


def _gemma4_mlps(c: Config, wide: int) -> tuple[tuple[Mlp, ...], int]:
    """A dense MLP, and beside it experts with norms of their own."""
    dense = gated(c, wide * c.whole("intermediate_size"))
    if not c.flag("enable_moe_block"):
        return (dense,), 4
    width = c.whole("moe_intermediate_size", None) or c.whole("expert_intermediate_size")
    return (dense, experts(c, width)), 7


def _router_scales(c: Config) -> tuple[Weight, ...]:
    """A scale a channel before the router, and one an expert after it."""
    if not c.flag("enable_moe_block"):
        return ()
    return vector("router.scale", c.whole("hidden_size")), vector(
        "router.per_expert_scale", c.whole("num_experts")
    )
