"""Mixtures of experts with grouped attention."""

from __future__ import annotations

from memwall.models.huggingface.config import Config
from memwall.models.huggingface.families import family
from memwall.models.huggingface.families.llama import llama
from memwall.models.huggingface.parts import (
    biased,
    decoder,
    experts,
    gated,
    grouped,
    layer_count,
    shared_experts,
)
from memwall.models.huggingface.patterns import sparse, windows
from memwall.models.mlps import Mlp
from memwall.models.model import Layers, Model


@family("mixtral", "granitemoe")
def mixtral(c: Config) -> Model:
    """Every layer has experts of intermediate_size, as wide as the dense MLP would be."""
    window, bias = windows(c), biased(c)
    mlp = experts(c, c.whole("intermediate_size"))
    return decoder(c, lambda i: Layers(1, grouped(c, window=window[i], **bias), (mlp,)))


@family("minicpm")
def minicpm(c: Config) -> Model:
    """Llama's plain form, or Mixtral's where it has experts."""
    return mixtral(c) if c.has("num_experts") else llama(c)


@family("grok_1", "grok1")
def grok(c: Config) -> Model:
    """Three matrices an expert, a norm before and after each part."""
    mlp = experts(c, c.whole("intermediate_size"))
    return decoder(c, lambda i: Layers(1, grouped(c), (mlp,), norms=4))


@family("phimoe")
def phimoe(c: Config) -> Model:
    """Layer norms with biases; the head's bias by lm_head_bias."""
    window, bias = windows(c), biased(c)
    mlp = experts(c, c.whole("intermediate_size"))
    return decoder(
        c,
        lambda i: Layers(1, grouped(c, window=window[i], **bias), (mlp,)),
        norm_bias=True,
        head_bias=c.flag("lm_head_bias"),
    )


@family("dbrx")
def dbrx(c: Config) -> Model:
    """Its attention and its experts each have a config of their own; norms without biases."""
    attention, ffn = c.inner("attn_config"), c.inner("ffn_config")
    mlp = experts(ffn, ffn.whole("intermediate_size"))
    mixer = grouped(c, kv_heads=attention.whole("kv_n_heads", 1))
    c.get("num_key_value_heads")  # the same again
    return decoder(c, lambda i: Layers(1, mixer, (mlp,)))


@family("granitemoeshared")
def granitemoeshared(c: Config) -> Model:
    """Granite's experts beside a shared MLP, where it has a width."""
    mlp = experts(c, c.whole("intermediate_size"), c.whole("shared_intermediate_size", 0, least=0))
    return decoder(c, lambda i: Layers(1, grouped(c, **biased(c)), (mlp,)))


@family("qwen2_moe")
def qwen2_moe(c: Config) -> Model:
    """A gated shared expert of its own width; some layers may be dense."""
    has_experts, window = sparse(c), windows(c)
    shared = c.whole("shared_expert_intermediate_size")
    mixture = experts(c, c.whole("moe_intermediate_size"), shared, shared_gate=True)
    bias = c.flag("qkv_bias", True)

    def layer(i: int) -> Layers:
        mlp: Mlp = mixture if has_experts[i] else gated(c)
        return Layers(1, grouped(c, window=window[i], qkv_bias=bias), (mlp,))

    return decoder(c, layer)


@family("qwen3_moe", "qwen3_vl_moe_text")
def qwen3_moe(c: Config) -> Model:
    """Norms over each head of Q and K; intermediate_size only where a layer is dense."""
    has_experts, window, bias = sparse(c), windows(c), biased(c)
    mixture = experts(c, c.whole("moe_intermediate_size"))

    def layer(i: int) -> Layers:
        mlp: Mlp = mixture if has_experts[i] else gated(c)
        return Layers(1, grouped(c, window=window[i], qk_norm="head", **bias), (mlp,))

    return decoder(c, layer)


@family("olmoe")
def olmoe(c: Config) -> Model:
    """One norm over all heads of Q, one over K's; experts of intermediate_size."""
    mlp = experts(c, c.whole("intermediate_size"))
    return decoder(c, lambda i: Layers(1, grouped(c, qk_norm="full", **biased(c)), (mlp,)))


@family("flex_olmo")
def flex_olmo(c: Config) -> Model:
    """OLMo 2 with experts."""
    return olmoe(c)


@family("gpt_oss")
def gpt_oss(c: Config) -> Model:
    """Biases everywhere, a sink a head, every other layer with a window."""
    window = windows(c, pattern=2)
    mlp = experts(c, c.whole("intermediate_size"), router_bias=True, bias=True)
    bias = {"qkv_bias": c.flag("attention_bias", True), "output_bias": c.flag("attention_bias", True)}
    return decoder(c, lambda i: Layers(1, grouped(c, window=window[i], sinks=True, **bias), (mlp,)))


@family("llama4_text", "llama4")
def llama4(c: Config) -> Model:
    """Chunks bound what rotary layers see; a shared expert that no key names; dense layers wider.

    intermediate_size is an expert's width, intermediate_size_mlp the dense layers'.
    """
    width, chunk = c.whole("intermediate_size"), c.whole("attention_chunk_size", 8192, least=0)
    mixture, bias = experts(c, width, width), biased(c)
    dense = gated(c, c.whole("intermediate_size_mlp", 16384))
    step, chosen = c.whole("interleave_moe_layer_step", 1, least=0), c.get("moe_layers")
    chunked = _rotary_layers(c)
    c.get("use_qk_norm")  # a norm without weights

    def layer(i: int) -> Layers:
        has_experts = i in chosen if chosen else bool(step) and (i + 1) % step == 0
        mlp: Mlp = mixture if has_experts else dense
        return Layers(1, grouped(c, window=chunk if chunked[i] and chunk else None, **bias), (mlp,))

    return decoder(c, layer)


def _rotary_layers(c: Config) -> list[bool]:
    """Layers with rotary positions, which see a chunk: three of four unless the file says which."""
    count = layer_count(c)
    types = c.per_layer("layer_types", count)
    if types:
        return [kind == "chunked_attention" for kind in types]
    rotary = c.get("no_rope_layers")  # 1 where a layer has them, in spite of its name
    if rotary:
        return [bool(each) for each in c.per_layer("no_rope_layers", count) or []]
    interval = c.whole("no_rope_layer_interval", 4)
    return [(i + 1) % interval != 0 for i in range(count)]


@family(
    "glm4_moe", "glm4v_moe_text", "dots1", "solar_open", "exaone_moe", "hy_v3", "sarvam_moe", "bailing_moe"
)
def glm4_moe(c: Config) -> Model:
    """DeepSeek's experts behind grouped attention, dense layers first, shared experts of the same width."""
    return _with_shared(c, qk_norm=_norm_of_heads(c))


@family("deepseek", "minimax_m2")
def deepseek(c: Config) -> Model:
    """The first DeepSeek mixture, without norms over Q and K; MiniMax-M2's are over all heads together."""
    return _with_shared(c, qk_norm="full" if c.flag("use_qk_norm") else "")


def _norm_of_heads(c: Config) -> str:
    always = ("dots1", "exaone_moe", "hy_v3")
    return "head" if c.flag("use_qk_norm") or c.get("model_type") in always else ""


def _with_shared(c: Config, qk_norm: str) -> Model:
    has_experts, window = sparse(c), windows(c)
    width = c.whole("moe_intermediate_size", None) or c.whole("intermediate_size")
    key = "n_shared_experts" if c.has("n_shared_experts") else "num_shared_experts"
    mixture = experts(c, width, shared_experts(c, width, key))
    bias = biased(c, output=False)

    def layer(i: int) -> Layers:
        mlp: Mlp = mixture if has_experts[i] else gated(c)
        return Layers(1, grouped(c, window=window[i], qk_norm=qk_norm, **bias), (mlp,))

    return decoder(c, layer)


@family("ernie4_5_moe")
def ernie4_5_moe(c: Config) -> Model:
    """Experts from moe_layer_start_index to moe_layer_end_index; shared ones as wide as routed ones."""
    width, every = c.whole("moe_intermediate_size"), c.whole("moe_layer_interval", 1)
    first, last = c.whole("moe_layer_start_index", 0, least=0), c.whole("moe_layer_end_index", -1, least=-1)
    last = layer_count(c) - 1 if last == -1 else last
    shared = shared_experts(c, width, "moe_num_shared_experts")
    mixture = experts(c, width, shared, router_bias=True)  # its correction bias is a parameter, not a buffer
    bias = biased(c, "use_bias")

    def layer(i: int) -> Layers:
        mlp: Mlp = mixture if (i + 1) % every == 0 and first <= i <= last else gated(c, bias=bias["qkv_bias"])
        return Layers(1, grouped(c, **bias), (mlp,))

    return decoder(c, layer)


@family("hunyuan_v1_moe", "hunyuan")
def hunyuan_moe(c: Config) -> Model:
    """Experts beside a shared MLP of the same width; norms over each head of Q and K.

    Its files repeat moe_topk, moe_intermediate_size and num_shared_expert for every layer.
    """
    for key in ("moe_topk", "moe_intermediate_size", "num_shared_expert"):
        c.settle(key)
    width = c.whole("moe_intermediate_size", None) or c.whole("intermediate_size")
    mlp = experts(c, width, c.whole("num_shared_expert", 1) * width)
    return decoder(c, lambda i: Layers(1, grouped(c, qk_norm="head", **biased(c)), (mlp,)))


@family("afmoe")
def afmoe(c: Config) -> Model:
    """A gate on the attention's result, norms before and after each part."""
    has_experts, window = sparse(c), windows(c, pattern=c.whole("global_attn_every_n_layers", 4))
    width = c.whole("moe_intermediate_size")
    mixture = experts(c, width, shared_experts(c, width, "num_shared_experts"), router_bias=True)

    def layer(i: int) -> Layers:
        attention = grouped(c, window=window[i], qk_norm="head", **biased(c))
        attention = attention._replace(gate=attention.heads * attention.head_dim)
        mlp: Mlp = mixture if has_experts[i] else gated(c)
        return Layers(1, attention, (mlp,), norms=4)

    return decoder(c, layer)


@family("mimo_v2_flash")
def mimo_v2(c: Config) -> Model:
    """Windowed layers have heads of their own number and size; V is narrower than K."""
    count = layer_count(c)
    types = c.per_layer("layer_types", count) or ["full_attention"] * count
    pattern = c.per_layer("hybrid_layer_pattern", count) or [kind == "sliding_attention" for kind in types]
    has_experts = sparse(c)
    width = c.whole("moe_intermediate_size")
    mixture = experts(c, width, shared_experts(c, width))
    full = grouped(
        c,
        v_head_dim=c.whole("v_head_dim", None),
        sinks=c.flag("add_full_attention_sink_bias"),
        **biased(c, output=False),
    )
    sliding = full._replace(
        heads=c.whole("swa_num_attention_heads", full.heads),
        kv_heads=c.whole("swa_num_key_value_heads", full.kv_heads),
        head_dim=c.whole("swa_head_dim", full.head_dim),
        v_head_dim=c.whole("swa_v_head_dim", full.head_dim_v),
        window=c.whole("sliding_window"),
        sinks=c.flag("add_swa_attention_sink_bias"),
    )
    c.get("attention_chunk_size"), c.get("sliding_window_size")  # say the window again

    def layer(i: int) -> Layers:
        mlp: Mlp = mixture if has_experts[i] else gated(c)
        return Layers(1, sliding if pattern[i] else full, (mlp,))

    return decoder(c, layer)
