"""Decoders after Llama: RMS or layer norms, rotary positions, one attention and one MLP a layer."""

from __future__ import annotations

from memwall.models.huggingface.config import Config
from memwall.models.huggingface.families import family
from memwall.models.huggingface.parts import biased, decoder, gated, grouped, plain
from memwall.models.huggingface.patterns import windows
from memwall.models.model import Layers, Model
from memwall.models.weights import vector


@family("llama", "yi", "mistral", "ministral", "granite", "smollm3", "helium", "baichuan")
@family("internlm2", "internlm3", "exaone", "iquestcoder", "aquila", "code_llama", "ernie4_5", "xverse")
def llama(c: Config) -> Model:
    """The plain form; biases and windows where the file says so."""
    bias = biased(c) if c.has("attention_bias") else biased(c, "use_bias" if c.has("use_bias") else "bias")
    mlp = gated(c, bias=c.flag("mlp_bias") or c.flag("use_bias"))
    window = windows(c)
    return decoder(c, lambda i: Layers(1, grouped(c, window=window[i], **bias), (mlp,)))


@family("cwm")
def cwm(c: Config) -> Model:
    """Every fourth layer sees all, the first among them."""
    window = windows(c, pattern=4, full_first=True)
    mlp = gated(c, bias=c.flag("mlp_bias"))
    return decoder(c, lambda i: Layers(1, grouped(c, window=window[i]), (mlp,)))


@family("internlm")
def internlm(c: Config) -> Model:
    """Biases on all four projections unless `bias` is false."""
    bias = c.flag("bias", True)
    attention = grouped(c, qkv_bias=bias, output_bias=bias)
    return decoder(c, lambda i: Layers(1, attention, (gated(c),)))


@family("qwen2")
def qwen2(c: Config) -> Model:
    """Biases on Q, K and V alone."""
    window = windows(c)
    return decoder(c, lambda i: Layers(1, grouped(c, window=window[i], qkv_bias=True), (gated(c),)))


@family("qwen3", "hunyuan_v1_dense")
def qwen3(c: Config) -> Model:
    """A norm over each head of Q and K."""
    window, bias = windows(c), biased(c)
    qk_norm = "head" if c.flag("use_qk_norm", True) else ""
    return decoder(c, lambda i: Layers(1, grouped(c, window=window[i], qk_norm=qk_norm, **bias), (gated(c),)))


@family("qwen")
def qwen(c: Config) -> Model:
    """The first Qwen: biases on Q, K and V; intermediate_size counts gate and up together."""
    each = c.whole("intermediate_size") // 2
    return decoder(c, lambda i: Layers(1, grouped(c, qkv_bias=True), (gated(c, each),)))


@family("seed_oss")
def seed_oss(c: Config) -> Model:
    """Its own key for the output's bias."""
    attention = grouped(c, qkv_bias=c.flag("attention_bias"), output_bias=c.flag("attention_out_bias"))
    return decoder(c, lambda i: Layers(1, attention, (gated(c, bias=c.flag("mlp_bias")),)))


@family("phi3", "phi4_multimodal_text")
def phi3(c: Config) -> Model:
    """Fused projections of the usual sizes."""
    window = windows(c)
    return decoder(c, lambda i: Layers(1, grouped(c, window=window[i]), (gated(c),)))


@family("glm", "chatglm")
def glm(c: Config) -> Model:
    """Biases on Q, K and V."""
    attention = grouped(c, **biased(c, "add_qkv_bias" if c.has("add_qkv_bias") else "attention_bias", False))
    return decoder(c, lambda i: Layers(1, attention, (gated(c),)))


@family("glm4", "glm4v_text")
def glm4(c: Config) -> Model:
    """Norms before and after each part."""
    attention = grouped(c, **biased(c, output=False))
    return decoder(c, lambda i: Layers(1, attention, (gated(c),), norms=4))


@family("olmo")
def olmo(c: Config) -> Model:
    """Norms without weights."""
    attention = grouped(c, **biased(c))
    return decoder(c, lambda i: Layers(1, attention, (gated(c),), norms=0), final_norm=False)


@family("olmo2", "olmo3", "flex_olmo_dense")
def olmo2(c: Config) -> Model:
    """One norm over all heads of Q together, one over K's; OLMo 3: every fourth layer sees all."""
    window, bias = windows(c, pattern=4), biased(c)
    return decoder(c, lambda i: Layers(1, grouped(c, window=window[i], qk_norm="full", **bias), (gated(c),)))


@family("cohere", "cohere2")
def cohere(c: Config) -> Model:
    """Attention and MLP side by side after one norm; use_qk_norm: a norm of its own for each head."""
    window, bias = windows(c, pattern=4), biased(c)
    qk_norm = "heads" if c.flag("use_qk_norm") else ""
    return decoder(
        c,
        lambda i: Layers(1, grouped(c, window=window[i], qk_norm=qk_norm, **bias), (gated(c),), norms=1),
        tied=c.flag("tie_word_embeddings", True),
    )


@family("exaone4")
def exaone4(c: Config) -> Model:
    """Norms after each part, and over each head of Q and K."""
    window = windows(c)
    return decoder(c, lambda i: Layers(1, grouped(c, window=window[i], qk_norm="head"), (gated(c),)))


@family("hyperclovax")
def hyperclovax(c: Config) -> Model:
    """Granite's, with norms after each part too if use_post_norm."""
    norms, bias = 4 if c.flag("use_post_norm") else 2, biased(c)
    mlp = gated(c, bias=c.flag("mlp_bias"))
    return decoder(c, lambda i: Layers(1, grouped(c, **bias), (mlp,), norms=norms))


@family("orion")
def orion(c: Config) -> Model:
    """Layer norms with biases, although their key says rms_norm_eps."""
    return decoder(c, lambda i: Layers(1, grouped(c, **biased(c)), (gated(c),)), norm_bias=True)


@family("stablelm", "stablelm_epoch")
def stablelm(c: Config) -> Model:
    """Layer norms; biases on Q, K and V by use_qkv_bias; parallel parts share a norm."""
    qk_norm = "heads" if c.flag("qk_layernorm") else ""
    attention = grouped(c, qkv_bias=c.flag("use_qkv_bias"), qk_norm=qk_norm)
    norms = 1 if c.flag("use_parallel_residual") else 2
    return decoder(c, lambda i: Layers(1, attention, (gated(c),), norms=norms), norm_bias=True)


@family("starcoder2")
def starcoder2(c: Config) -> Model:
    """Layer norms, a plain MLP, biases everywhere by use_bias."""
    window, bias = windows(c), biased(c, "use_bias")
    mlp = plain(c, bias=c.flag("use_bias"))
    return decoder(c, lambda i: Layers(1, grouped(c, window=window[i], **bias), (mlp,)), norm_bias=True)


@family("arcee")
def arcee(c: Config) -> Model:
    """A plain MLP with squared ReLU."""
    attention, mlp = grouped(c, **biased(c)), plain(c, bias=c.flag("mlp_bias"))
    return decoder(c, lambda i: Layers(1, attention, (mlp,)))


@family("apertus")
def apertus(c: Config) -> Model:
    """A plain MLP whose activation has two learned numbers, and norms over each head of Q and K."""
    attention = grouped(c, qk_norm="head", **biased(c))
    mlp, activation = plain(c, bias=c.flag("mlp_bias")), (vector("act_fn.alpha", 2),)
    return decoder(c, lambda i: Layers(1, attention, (mlp,), extras=activation))


@family("nemotron", "jais2")
def nemotron(c: Config) -> Model:
    """Layer norms with biases and a plain MLP."""
    attention, mlp = grouped(c, **biased(c)), plain(c, bias=c.flag("mlp_bias"))
    return decoder(c, lambda i: Layers(1, attention, (mlp,)), norm_bias=True)


@family("bitnet")
def bitnet(c: Config) -> Model:
    """A norm inside the attention and one inside the MLP."""
    inner = (
        vector("attn_sub_norm", c.whole("hidden_size")),
        vector("ffn_sub_norm", c.whole("intermediate_size")),
    )
    return decoder(c, lambda i: Layers(1, grouped(c, **biased(c)), (gated(c),), extras=inner))


@family("diffllama")
def diffllama(c: Config) -> Model:
    """Differential attention: four learned vectors of a head's size a layer."""
    attention = grouped(c, **biased(c))
    extras = (vector("lambdas", 4 * attention.head_dim),)
    return decoder(c, lambda i: Layers(1, attention, (gated(c),), extras=extras))


@family("nemotron_nas", "deci")
def nemotron_nas(c: Config) -> Model:
    """Layers found by search: block_configs says for each what it has and how wide it is."""
    hidden, heads = c.whole("hidden_size"), c.whole("num_attention_heads")
    blocks = c.per_layer("block_configs", c.whole("num_hidden_layers")) or []

    def layer(i: int) -> Layers:
        attention, mlp = blocks[i]["attention"], blocks[i]["ffn"]
        if attention.get("replace_with_linear") or mlp.get("replace_with_linear"):
            raise c.wrong(
                "block_configs", f"layer {i} has a linear layer in place of a part, which is not counted"
            )
        mixer = None
        if not attention.get("no_op"):
            kv_heads = heads // attention["n_heads_in_group"]
            mixer = grouped(c, kv_heads=kv_heads, window=attention.get("window_length"), **biased(c))
        mlps = () if mlp.get("no_op") else (gated(c, _searched_width(mlp["ffn_mult"], hidden)),)
        return Layers(1, mixer, mlps, norms=(mixer is not None) + len(mlps))

    c.get("intermediate_size"), c.get("num_key_value_heads"), c.get("mlp_bias")  # null here: a layer's own
    return decoder(c, layer)


def _searched_width(multiple: float, hidden: int) -> int:
    """2/3 of so many times hidden_size, up to a multiple of 256: as the model's own code rounds it."""
    width = int(2 * multiple * hidden / 3)
    return -(-width // 256) * 256
