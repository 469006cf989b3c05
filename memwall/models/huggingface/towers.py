"""Encoders of images in front of a language model: what their layers are made of, by vision model_type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memwall.models.attentions import GroupedAttention
from memwall.models.huggingface.config import Config
from memwall.models.huggingface.parts import layer_count, table
from memwall.models.mlps import GatedMlp, PlainMlp
from memwall.models.model import Layers, Tower
from memwall.models.weights import Weight, bias, vector

Build = Callable[[Config, int], Tower]
_BUILD: dict[str, Build] = {}


def tower_type(*names: str) -> Callable[[Build], Build]:
    """Registers what builds the towers of these vision model types."""

    def register(build: Build) -> Build:
        _BUILD.update(dict.fromkeys(names, build))
        return build

    return register


def find(model_type: str) -> Build | None:
    """What builds a tower of that type, given its config and the language model's hidden size."""
    return _BUILD.get(model_type)


def normed(name: str, size: int, copies: int = 1) -> tuple[Weight, ...]:
    """A layer norm with its bias."""
    norm = vector(name, size, copies=copies)
    return norm, bias(norm)


def linear(name: str, outputs: int, inputs: int, biased: bool = True, copies: int = 1) -> tuple[Weight, ...]:
    """A linear layer, with its bias."""
    weight = Weight(name, (outputs, inputs), copies=copies)
    return (weight, bias(weight)) if biased else (weight,)


def _side(value: Any) -> int:
    """An image's or a patch's side; some files give both."""
    return int(value[0] if isinstance(value, list) else value)


def patches(c: Config) -> int:
    """Patches of an image."""
    return int((_side(c.get("image_size")) // _side(c.get("patch_size"))) ** 2)


def patch_inputs(c: Config, frames: int = 1) -> int:
    """Values of one patch."""
    channels = c.whole("num_channels", None) or c.whole("in_channels", None) or c.whole("in_chans", 3)
    return int(channels * frames * _side(c.get("patch_size")) ** 2)


def _layers(c: Config, attention: GroupedAttention | None = None, **traits: Any) -> Layers:
    """Attention and a plain MLP with biases everywhere, as CLIP has them."""
    heads = c.whole("num_attention_heads")
    each = attention or GroupedAttention(
        heads, heads, c.whole("hidden_size") // heads, qkv_bias=True, output_bias=True
    )
    mlp = PlainMlp(c.whole("intermediate_size"), bias=True)
    return Layers(layer_count(c), each, (traits.pop("mlp", mlp),), **traits)


@tower_type("siglip_vision_model", "idefics3_vision", "smolvlm_vision")
def siglip(c: Config, hidden: int) -> Tower:
    """Patches, positions, layers, a norm; no head."""
    size = c.whole("hidden_size")
    weights = linear("patch_embedding", size, patch_inputs(c)), (table("positions", patches(c), size),)
    return Tower("vision", (_layers(c),), size, (*weights[0], *weights[1], *normed("post_layernorm", size)))


@tower_type("clip_vision_model")
def clip(c: Config, hidden: int) -> Tower:
    """A class token, and norms before and after the layers."""
    size = c.whole("hidden_size")
    embedding = (
        *linear("patch_embedding", size, patch_inputs(c), biased=False),
        vector("class_embedding", size),
    )
    positions = table("positions", patches(c) + 1, size)
    norms = normed("layernorm", size, copies=2)
    return Tower("vision", (_layers(c),), size, (*embedding, positions, *norms))


@tower_type("pixtral")
def pixtral(c: Config, hidden: int) -> Tower:
    """Gated MLPs, rotary positions, norms without biases."""
    size, heads = c.whole("hidden_size"), c.whole("num_attention_heads")
    attention = GroupedAttention(heads, heads, c.whole("head_dim", size // heads))
    layers = _layers(c, attention, mlp=GatedMlp(c.whole("intermediate_size")))
    weights = (*linear("patch_conv", size, patch_inputs(c), biased=False), vector("ln_pre", size))
    return Tower("vision", (layers,), size, weights, norm_bias=False)


def _merger(c: Config, size: int, out: int, norm: tuple[Weight, ...], copies: int = 1) -> tuple[Weight, ...]:
    """Four neighbouring patches joined and projected to the language model's size."""
    joined = size * c.whole("spatial_merge_size", 2) ** 2
    first = linear("merger.fc1", joined, joined, copies=copies)
    return (*norm, *first, *linear("merger.fc2", out, joined, copies=copies))


@tower_type("qwen2_vl", "qwen2_vl_vision")
def qwen2_vl(c: Config, hidden: int) -> Tower:
    """Two frames a patch; embed_dim is the tower's size, hidden_size the language model's."""
    size, heads = c.whole("embed_dim"), c.whole("num_attention_heads")
    attention = GroupedAttention(heads, heads, size // heads, qkv_bias=True, output_bias=True)
    mlp = PlainMlp(int(size * c.whole("mlp_ratio", 4)), bias=True)
    patch = linear("patch_embed", size, patch_inputs(c, c.whole("temporal_patch_size", 2)), biased=False)
    merger = _merger(c, size, c.whole("hidden_size", hidden), normed("merger.norm", size))
    return Tower("vision", (Layers(layer_count(c), attention, (mlp,)),), size, (*patch, *merger))


@tower_type("qwen2_5_vl", "qwen2_5_vl_vision")
def qwen2_5_vl(c: Config, hidden: int) -> Tower:
    """Gated MLPs with biases, norms without."""
    size, heads = c.whole("hidden_size"), c.whole("num_attention_heads")
    attention = GroupedAttention(heads, heads, size // heads, qkv_bias=True, output_bias=True)
    layers = _layers(c, attention, mlp=GatedMlp(c.whole("intermediate_size"), bias=True))
    patch = linear("patch_embed", size, patch_inputs(c, c.whole("temporal_patch_size", 2)), biased=False)
    merger = _merger(c, size, c.whole("out_hidden_size", hidden), (vector("merger.norm", size),))
    return Tower("vision", (layers,), size, (*patch, *merger), norm_bias=False)


@tower_type("qwen3_vl", "qwen3_vl_moe", "qwen3_vl_vision", "qwen3_vl_moe_vision", "qwen3_5", "qwen3_5_vision")
@tower_type("qwen3_5_moe", "qwen3_5_moe_vision")
def qwen3_vl(c: Config, hidden: int) -> Tower:
    """Learned positions, and a merger more for each layer whose output joins the language model's."""
    size, out = c.whole("hidden_size"), c.whole("out_hidden_size", hidden)
    taps = len(c.get("deepstack_visual_indexes") or [])
    joined = size * c.whole("spatial_merge_size", 2) ** 2
    patch = linear("patch_embed", size, patch_inputs(c, c.whole("temporal_patch_size", 2)))
    positions = table("positions", c.whole("num_position_embeddings"), size)
    merger = _merger(c, size, out, normed("merger.norm", size))
    deep = _merger(c, size, out, normed("deepstack.norm", joined, taps), taps) if taps else ()
    return Tower("vision", (_layers(c),), size, (*patch, positions, *merger, *deep))


@tower_type("llama4_vision_model")
def llama4(c: Config, hidden: int) -> Tower:
    """A class token, three norms, a two-layer adapter without biases."""
    size, inner = c.whole("hidden_size"), c.whole("intermediate_size")
    output = c.whole("projector_output_dim", c.whole("vision_output_dim"))
    c.get("pixel_shuffle_ratio")  # what is shuffled together is intermediate_size wide
    weights = (
        *linear("patch_embedding", size, patch_inputs(c), biased=False),
        vector("class_embedding", size),
        table("positions", patches(c) + 1, size),
        *normed("layernorm", size, copies=2),
        *linear("adapter.fc1", c.whole("projector_input_dim", inner), inner, biased=False),
        *linear("adapter.fc2", output, c.whole("projector_input_dim", inner), biased=False),
    )
    return Tower("vision", (_layers(c),), size, weights)


@tower_type("gemma4_vision")
def gemma4(c: Config, hidden: int) -> Tower:
    """Gated MLPs, four norms, norms over each head of Q and K, positions by row and column."""
    size, heads = c.whole("hidden_size"), c.whole("num_attention_heads")
    attention = GroupedAttention(
        heads, c.whole("num_key_value_heads", heads), c.whole("head_dim", size // heads), qk_norm="head"
    )
    layers = _layers(c, attention, mlp=GatedMlp(c.whole("intermediate_size")), norms=4)
    positions = table("positions", 2 * c.whole("position_embedding_size", 10240), size)
    weights = (*linear("patch_embedder", size, patch_inputs(c), biased=False), positions)
    standard = (vector("standardize", 2 * size),) if c.flag("standardize") else ()
    return Tower("vision", (layers,), size, (*weights, *standard), norm_bias=False)


@tower_type("internvl_vision")
def internvl(c: Config, hidden: int) -> Tower:
    """A class token, and a learned scale on each part of a layer."""
    size, heads = c.whole("hidden_size"), c.whole("num_attention_heads")
    attention = GroupedAttention(
        heads,
        heads,
        size // heads,
        qkv_bias=c.flag("attention_bias"),
        output_bias=True,
        qk_norm="full" if c.flag("use_qk_norm") else "",
    )
    layers = _layers(c, attention, extras=(vector("lambdas", 2 * size),))
    weights = (
        *linear("patch_embedding", size, patch_inputs(c)),
        vector("cls_token", size),
        table("positions", patches(c) + 1, size),
        *(() if c.flag("use_mean_pooling", True) else normed("layernorm", size)),
    )
    return Tower("vision", (layers,), size, weights)


@tower_type("glm4v_vision", "glm4v_moe_vision", "glm4v", "glm4v_moe")
def glm4v(c: Config, hidden: int) -> Tower:
    """Gated MLPs as wide as the language model; a merger with a gated MLP of its own."""
    size, out, inner = (
        c.whole("hidden_size"),
        c.whole("out_hidden_size", hidden),
        c.whole("intermediate_size"),
    )
    heads, bias_ = c.whole("num_attention_heads"), c.flag("attention_bias")
    attention = GroupedAttention(heads, heads, size // heads, qkv_bias=bias_, output_bias=False)
    layers = _layers(c, attention, mlp=GatedMlp(out))
    merge = c.whole("spatial_merge_size", 2) ** 2
    weights = (
        table("positions", patches(c), size),
        *linear("patch_embed", size, patch_inputs(c, c.whole("temporal_patch_size", 2))),
        *linear("merger.proj", out, out, biased=False),
        *normed("merger.norm", out),
        *linear("merger.gate_up", 2 * inner, out, biased=False),
        *linear("merger.down", out, inner, biased=False),
        vector("norms", 2 * size),
        *linear("downsample", out, size * merge),
    )
    return Tower("vision", (layers,), size, weights, norm_bias=False)


@tower_type("kimi_k25_vision")
def kimi(c: Config, hidden: int) -> Tower:
    """Positions by height and width; a projector that joins neighbouring patches."""
    size, rows = c.whole("hidden_size"), c.whole("pos_emb_height", 64) * c.whole("pos_emb_width", 64)
    merge = c.get("merge_kernel_size") or [2, 2]
    joined = size * merge[0] * merge[1]
    weights = (
        *linear("patch_embed", size, patch_inputs(c)),
        table("positions", rows, size),
        *normed("norms", size, copies=2),
        *linear("projector.in", joined, joined),
        *linear("projector.out", hidden, joined),
    )
    return Tower("vision", (_layers(c),), size, weights)
