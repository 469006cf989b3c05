"""Decoders before Llama: layer norms, plain MLPs, learned or relative positions, biases almost everywhere."""

from __future__ import annotations

from memwall.models.attentions import GroupedAttention
from memwall.models.huggingface.config import Config
from memwall.models.huggingface.families import family
from memwall.models.huggingface.parts import biased, body, decoder, grouped, layer_count, plain, table
from memwall.models.model import Layers, Model
from memwall.models.weights import Weight, bias, vector


def uniform(
    c: Config, attention: GroupedAttention, mlp_bias: bool = True, norms: int = 2, **traits: object
) -> Model:
    """Equal layers with a plain MLP and layer norms."""
    traits.setdefault("norm_bias", True)
    layer = Layers(layer_count(c), attention, (plain(c, bias=mlp_bias),), norms=norms)
    return body(c, (layer,), **traits)


@family("gpt2", "gpt_sw3")
def gpt2(c: Config) -> Model:
    """Learned positions, tied head, biases everywhere."""
    positions = table("wpe", c.whole("max_position_embeddings"), c.whole("hidden_size"))
    attention = grouped(c, qkv_bias=True, output_bias=True)
    return uniform(c, attention, tied=c.flag("tie_word_embeddings", True), extras=(positions,))


@family("gpt_bigcode")
def gpt_bigcode(c: Config) -> Model:
    """GPT-2 with one head of K and V unless multi_query is false."""
    positions = table("wpe", c.whole("max_position_embeddings"), c.whole("hidden_size"))
    heads = c.whole("num_attention_heads")
    kv_heads = 1 if c.flag("multi_query", True) else heads
    c.get("num_key_value_heads")  # what multi_query says
    attention = grouped(c, kv_heads=kv_heads, qkv_bias=True, output_bias=True)
    return uniform(c, attention, tied=c.flag("tie_word_embeddings", True), extras=(positions,))


@family("gpt_neo")
def gpt_neo(c: Config) -> Model:
    """Learned positions, no biases on Q, K and V, every other layer with a window."""
    positions = table("wpe", c.whole("max_position_embeddings"), c.whole("hidden_size"))
    types = c.get("attention_types")
    kinds = c.get("attention_layers") or _repeated(types)
    window = c.whole("window_size", 256)
    mlp = plain(c, bias=True)

    def layer(i: int) -> Layers:
        local = bool(kinds) and kinds[i % len(kinds)] == "local"
        return Layers(1, grouped(c, window=window if local else None, output_bias=True), (mlp,))

    tied = c.flag("tie_word_embeddings", True)
    return decoder(c, layer, tied=tied, norm_bias=True, extras=(positions,))


def _repeated(types: list[list[object]] | None) -> list[str]:
    """[[["global", "local"], 12]] as 24 words."""
    return [str(kind) for kinds, count in types or [] for kind in list(kinds) * int(str(count))]  # type: ignore[call-overload]


@family("gptj", "codegen")
def gptj(c: Config) -> Model:
    """Attention and MLP side by side after one norm; no biases in attention; a biased head."""
    return uniform(c, grouped(c), norms=1, head_bias=True)


@family("gpt_neox")
def gpt_neox(c: Config) -> Model:
    """Rotary positions, two norms, biases by attention_bias; the MLP always has them."""
    bias_ = c.flag("attention_bias", True)
    return uniform(c, grouped(c, qkv_bias=bias_, output_bias=bias_))


@family("opt")
def opt(c: Config) -> Model:
    """Learned positions, two of them unused; a narrower embedding has a projection in and one out."""
    hidden, row = c.whole("hidden_size"), c.whole("word_embed_proj_dim", c.whole("hidden_size"))
    positions = table("embed_positions", c.whole("max_position_embeddings") + 2, hidden)
    projections = (Weight("project_in", (hidden, row)), Weight("project_out", (row, hidden)))
    biases = c.flag("enable_bias", True)
    before = c.flag("do_layer_norm_before", True) and not c.flag("_remove_final_layer_norm")
    weighted = c.flag("layer_norm_elementwise_affine", True)
    return uniform(
        c,
        grouped(c, qkv_bias=biases, output_bias=biases),
        mlp_bias=biases,
        norms=2 if weighted else 0,
        final_norm=before and weighted,
        embedding_size=row if row != hidden else None,
        tied=c.flag("tie_word_embeddings", True),
        extras=(positions, *(projections if row != hidden else ())),
    )


@family("bloom")
def bloom(c: Config) -> Model:
    """Alibi positions, a norm after the embedding, tied head."""
    norm = vector("word_embeddings_layernorm", c.whole("hidden_size"))
    attention = grouped(c, qkv_bias=True, output_bias=True)
    return uniform(c, attention, tied=c.flag("tie_word_embeddings", True), extras=(norm, bias(norm)))


@family("mpt")
def mpt(c: Config) -> Model:
    """Alibi or learned positions, tied head; no_bias also drops the norms' biases."""
    attention_config = c.inner("attn_config")
    bias_ = not c.flag("no_bias", True)
    hidden, longest = c.whole("hidden_size"), c.whole("max_position_embeddings", 2048)
    learned = c.flag("learned_pos_emb", True) and not attention_config.flag("alibi", True)
    attention = grouped(
        c,
        kv_heads=attention_config.whole("kv_n_heads", None),
        qkv_bias=bias_,
        output_bias=bias_,
        qk_norm="full" if attention_config.flag("qk_ln") else "",
    )
    mlp = plain(c, int(c.whole("expansion_ratio", 4)) * hidden, bias_)
    return body(
        c,
        (Layers(layer_count(c), attention, (mlp,)),),
        norm_bias=bias_,
        tied=c.flag("tie_word_embeddings", True),
        extras=(table("wpe", longest, hidden),) if learned else (),
    )


@family("falcon", "refinedweb", "refinedwebmodel")
def falcon(c: Config) -> Model:
    """multi_query of the old decoder is one head of K and V, whatever num_kv_heads says."""
    heads, new = c.whole("num_attention_heads"), c.flag("new_decoder_architecture")
    stated = c.whole("num_key_value_heads", None)
    multi_query = c.flag("multi_query", True)
    kv_heads = (stated or heads) if new else 1 if multi_query else heads
    parallel, two_norms = c.flag("parallel_attn", True), c.whole("num_ln_in_parallel_attn", 2 if new else 1)
    bias_ = c.flag("bias")
    attention = grouped(c, kv_heads=kv_heads, qkv_bias=bias_, output_bias=bias_)
    norms = two_norms if parallel else 2
    return uniform(c, attention, bias_, norms, tied=c.flag("tie_word_embeddings", True))


@family("phi")
def phi(c: Config) -> Model:
    """Side by side after one norm, biases everywhere, the head's too; qk_layernorm: norms with biases."""
    qk_norm = "head" if c.flag("qk_layernorm") else ""
    attention = grouped(c, qkv_bias=True, output_bias=True, qk_norm=qk_norm, qk_norm_bias=bool(qk_norm))
    return uniform(c, attention, norms=1, head_bias=True)


@family("phi_msft", "mixformer_sequential")
def phi_msft(c: Config) -> Model:
    """Phi under its first names."""
    attention = grouped(c, qkv_bias=True, output_bias=True)
    return uniform(c, attention, norms=1, head_bias=True)


@family("persimmon")
def persimmon(c: Config) -> Model:
    """Biases everywhere; norms over each head of Q and K."""
    qk_norm = "head" if c.flag("qk_layernorm", True) else ""
    attention = grouped(c, qkv_bias=True, output_bias=True, qk_norm=qk_norm, qk_norm_bias=bool(qk_norm))
    return uniform(c, attention)


@family("xglm")
def xglm(c: Config) -> Model:
    """Sinusoidal positions, biases everywhere, tied head."""
    attention = grouped(c, heads=c.whole("attention_heads"), qkv_bias=True, output_bias=True)
    return uniform(c, attention, tied=c.flag("tie_word_embeddings", True))


@family("biogpt")
def biogpt(c: Config) -> Model:
    """Learned positions, two of them unused, biases everywhere, tied head."""
    positions = table("embed_positions", c.whole("max_position_embeddings") + 2, c.whole("hidden_size"))
    attention = grouped(c, qkv_bias=True, output_bias=True)
    return uniform(c, attention, tied=c.flag("tie_word_embeddings", True), extras=(positions,))


@family("nanochat")
def nanochat(c: Config) -> Model:
    """Norms without weights, a plain MLP without biases."""
    return uniform(c, grouped(c, **biased(c)), False, 0, final_norm=False, norm_bias=False)
