"""Linear attention and convolutions between layers of attention."""

from __future__ import annotations

from memwall.models.huggingface.config import Config
from memwall.models.huggingface.families import family
from memwall.models.huggingface.parts import (
    biased,
    decoder,
    experts,
    gated,
    grouped,
    latent,
    layer_count,
    shared_experts,
)
from memwall.models.huggingface.patterns import layer_types, sparse
from memwall.models.mlps import Mlp
from memwall.models.model import Layers, Model
from memwall.models.recurrences import (
    GatedDelta,
    GatedLinearRecurrence,
    LightningAttention,
    ShortConvolution,
)

_RECURRENT = ("linear_attention", "mamba", "recurrent", "conv")


def recurrent_layers(c: Config, interval: int | None = None) -> list[bool]:
    """Which layers keep a state: by layer_types, else all but every `interval`-th.

    Raises:
        FileError: a list of another length.
    """
    count = layer_count(c)
    types = layer_types(c) or layer_types(c, "layers_block_type")
    every = c.whole("full_attention_interval", interval)
    if types:
        return [kind in _RECURRENT for kind in types]
    return [bool(every) and (i + 1) % every != 0 for i in range(count)]


def gated_delta(c: Config) -> GatedDelta:
    """Gated DeltaNet under Qwen's keys."""
    return GatedDelta(
        c.whole("linear_num_key_heads"),
        c.whole("linear_num_value_heads"),
        c.whole("linear_key_head_dim"),
        c.whole("linear_value_head_dim"),
        c.whole("linear_conv_kernel_dim", 4),
    )


@family("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text")
def qwen3_next(c: Config) -> Model:
    """Three of four layers are Gated DeltaNet; attention's result has a gate; experts where it has them."""
    recurrent, has_experts = recurrent_layers(c, 4), sparse(c)
    attention = grouped(c, qk_norm="head", **biased(c))
    attention = attention._replace(gate=attention.heads * attention.head_dim)
    mixture = None
    if c.has("num_experts"):
        shared = c.whole("shared_expert_intermediate_size")
        mixture = experts(c, c.whole("moe_intermediate_size"), shared, shared_gate=True)
        c.get("intermediate_size")  # unused where every layer has experts

    def layer(i: int) -> Layers:
        mlp: Mlp = mixture if mixture and has_experts[i] else gated(c)
        if recurrent[i]:
            return Layers(1, None, (mlp,), gated_delta(c))
        return Layers(1, attention, (mlp,))

    return decoder(c, layer)


@family("olmo_hybrid")
def olmo_hybrid(c: Config) -> Model:
    """Gated DeltaNet between OLMo 2's attention, one norm over all heads of Q and one over K's."""
    recurrent = recurrent_layers(c, 4)
    attention = grouped(c, qk_norm="full", **biased(c))
    heads = c.whole("linear_num_key_heads", attention.heads)
    key_dim = c.whole("linear_key_head_dim", 3 * c.whole("hidden_size") // (4 * heads))
    delta = GatedDelta(
        heads,
        c.whole("linear_num_value_heads", heads),
        key_dim,
        c.whole("linear_value_head_dim", 2 * key_dim),
        c.whole("linear_conv_kernel_dim", 4),
    )
    return decoder(
        c,
        lambda i: Layers(1, None, (gated(c),), delta) if recurrent[i] else Layers(1, attention, (gated(c),)),
    )


@family("kimi_linear")
def kimi_linear(c: Config) -> Model:
    """Kimi Delta Attention, every fourth layer latent attention; DeepSeek's experts."""
    count, config = layer_count(c), c.inner("linear_attn_config")
    full = config.get("full_attn_layers")  # counted from 1
    recurrent = [i + 1 not in full for i in range(count)] if full else recurrent_layers(c, 4)
    heads = config.whole("num_heads", None) or c.whole("linear_num_heads")
    each = config.whole("head_dim", None) or c.whole("linear_head_dim")
    taps = config.whole("short_conv_kernel_size", None) or c.whole("linear_conv_kernel_dim", 4)
    config.get("kda_layers")  # the others
    delta = GatedDelta(heads, heads, each, each, taps, channel_gate_rank=each)
    attention, has_experts, width = latent(c), sparse(c), c.whole("moe_intermediate_size")
    mixture = experts(c, width, shared_experts(c, width, "num_shared_experts"))
    dense = gated(c)

    def layer(i: int) -> Layers:
        mlps = (mixture if has_experts[i] else dense,)
        return Layers(1, None, mlps, delta) if recurrent[i] else Layers(1, attention, mlps)

    return decoder(c, layer)


@family("minimax", "minimax_text_01", "minimax_m1")
def minimax(c: Config) -> Model:
    """Lightning attention, every eighth layer full attention; experts of intermediate_size."""
    count = layer_count(c)
    types = c.per_layer("attn_type_list", count)  # 0 where it is lightning attention
    recurrent = [kind == 0 for kind in types] if types else recurrent_layers(c, 8)
    attention, mlp = grouped(c), experts(c, c.whole("intermediate_size"))
    lightning = LightningAttention(attention.heads, attention.head_dim)
    return decoder(
        c, lambda i: Layers(1, None, (mlp,), lightning) if recurrent[i] else Layers(1, attention, (mlp,))
    )


@family("lfm2", "lfm2_moe")
def lfm2(c: Config) -> Model:
    """Short convolutions between layers of attention; dense layers first where there are experts."""
    count, full = layer_count(c), c.get("full_attn_idxs")
    recurrent = [i not in full for i in range(count)] if full else recurrent_layers(c)
    attention = grouped(c, qk_norm="head")
    taps = ShortConvolution(c.whole("hidden_size"), c.whole("conv_L_cache", 3), c.flag("conv_bias"))
    mixture = experts(c, c.whole("moe_intermediate_size")) if c.has("num_experts") else None
    has_experts, dense = sparse(c), gated(c, _lfm2_width(c))

    def layer(i: int) -> Layers:
        mlp: Mlp = mixture if mixture and has_experts[i] else dense
        return Layers(1, None, (mlp,), taps) if recurrent[i] else Layers(1, attention, (mlp,))

    return decoder(c, layer, tied=c.flag("tie_embedding", True) and c.flag("tie_word_embeddings", True))


def _lfm2_width(c: Config) -> int:
    """2/3 of intermediate_size, up to block_multiple_of, where block_auto_adjust_ff_dim asks for it."""
    width, block = c.whole("intermediate_size"), c.whole("block_multiple_of", 256)
    multiplier = c.get("block_ffn_dim_multiplier") or 1
    if not c.flag("block_auto_adjust_ff_dim"):
        return int(width)
    return int(-(-int(multiplier * (2 * width // 3)) // block) * block)


@family("recurrent_gemma")
def recurrent_gemma(c: Config) -> Model:
    """Two recurrences to one windowed attention; half of intermediate_size each for gate and up; biases."""
    kinds = c.get("block_types") or ["recurrent", "recurrent", "attention"]
    attention = grouped(c, window=c.whole("attention_window_size", 2048), **biased(c))._replace(
        output_bias=True
    )
    unit = GatedLinearRecurrence(
        c.whole("lru_width", c.whole("hidden_size")), attention.heads, c.whole("conv1d_width", 4)
    )
    mlp = gated(c, c.whole("intermediate_size") // 2, bias=True)

    def layer(i: int) -> Layers:
        is_recurrent = kinds[i % len(kinds)] == "recurrent"
        return Layers(1, None, (mlp,), unit) if is_recurrent else Layers(1, attention, (mlp,))

    return decoder(c, layer, tied=c.flag("tie_word_embeddings", True))
