"""Parts of layers from the keys that most families share; a family says where it differs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from memwall.models.attentions import GroupedAttention, LatentAttention
from memwall.models.huggingface.config import MOST_LAYERS, Config
from memwall.models.mlps import Experts, GatedMlp, PlainMlp
from memwall.models.model import Layers, Model
from memwall.models.weights import Weight


def layer_count(c: Config) -> int:
    """How many layers."""
    count: int = c.whole("num_hidden_layers", most=MOST_LAYERS)
    return count


def head_dim(c: Config, heads: int) -> int:
    """As stated; hidden_size / heads only where nothing is stated.

    Raises:
        FileError: nothing is stated, and the heads do not divide hidden_size.
    """
    stated = c.whole("head_dim", None)
    if stated is not None:
        return int(stated)
    hidden = c.whole("hidden_size")
    if hidden % heads:
        raise c.wrong(
            "num_attention_heads", f"{heads} does not divide hidden_size {hidden}", "State head_dim"
        )
    return int(hidden // heads)


def grouped(c: Config, **traits: Any) -> GroupedAttention:
    """MHA, GQA or MQA; `traits` are its fields where they do not come from the usual keys.

    Raises:
        FileError: KV heads that do not divide the heads.
    """
    heads = traits.pop("heads", None) or c.whole("num_attention_heads")
    kv_heads = traits.pop("kv_heads", None) or c.whole("num_key_value_heads", heads)
    if heads % kv_heads:
        raise c.wrong("num_key_value_heads", f"{kv_heads} does not divide the {heads} heads")
    each = traits.pop("head_dim", None) or head_dim(c, heads)
    return GroupedAttention(heads, kv_heads, each, **traits)


def biased(c: Config, key: str = "attention_bias", output: bool = True) -> dict[str, bool]:
    """Biases on Q, K and V, and on the output too, if the key says so."""
    bias = c.flag(key)
    return {"qkv_bias": bias, "output_bias": bias and output}


def latent(c: Config, **traits: Any) -> LatentAttention:
    """Multi-head latent attention, with an indexer where its keys are there."""
    nope, rope = c.whole("qk_nope_head_dim"), c.whole("qk_rope_head_dim", 64)
    (
        c.get("qk_head_dim"),
        c.get("head_dim"),
        c.get("num_key_value_heads"),
    )  # say the same again, or the rope part
    indexer = {
        "index_heads": c.whole("index_n_heads", 0, least=0),
        "index_head_dim": c.whole("index_head_dim", 0, least=0),
        "index_topk": c.whole("index_topk", 0, least=0),
    }
    return LatentAttention(
        c.whole("num_attention_heads"),
        c.whole("q_lora_rank", None),
        c.whole("kv_lora_rank"),
        nope,
        rope,
        c.whole("v_head_dim"),
        bias=c.flag("attention_bias"),
        **{**indexer, **traits},
    )


def gated(c: Config, width: int | None = None, bias: bool = False) -> GatedMlp:
    """gate, up and down of intermediate_size."""
    return GatedMlp(width or c.whole("intermediate_size"), bias)


def plain(c: Config, width: int | None = None, bias: bool = False) -> PlainMlp:
    """Up and down; four times hidden_size where no width is stated."""
    return PlainMlp(width or c.whole("intermediate_size", 4 * c.whole("hidden_size")), bias)


def experts(c: Config, width: int, shared_width: int = 0, **traits: Any) -> Experts:
    """A mixture under the usual keys.

    Raises:
        FileError: more experts a token than there are.
    """
    count, chosen = c.whole("num_experts"), c.whole("num_experts_per_tok")
    c.get("intermediate_size")  # unused where every layer has experts of another width
    if chosen > count:
        raise c.wrong("num_experts_per_tok", f"{chosen} is more than the {count} experts")
    return Experts(count, chosen, width, shared_width, **traits)


def shared_experts(c: Config, width: int, key: str = "n_shared_experts") -> int:
    """The width of all shared experts together, each as wide as a routed one."""
    return int(c.whole(key, 0, least=0) * width)


def decoder(c: Config, layer: Callable[[int], Layers], **traits: Any) -> Model:
    """A model from what its layer i is made of."""
    layers = merged(layer(i) for i in range(layer_count(c)))
    return body(c, layers, **traits)


def body(c: Config, layers: tuple[Layers, ...], **traits: Any) -> Model:
    """What stands around the layers: embedding, head, context."""
    return Model(
        name="",
        title="",
        hidden_size=c.whole("hidden_size"),
        vocab_size=c.whole("vocab_size"),
        tied_embeddings=traits.pop("tied", None) or c.flag("tie_word_embeddings"),
        layers=layers,
        context=c.longest(),
        **traits,
    )


def merged(layers: Iterable[Layers]) -> tuple[Layers, ...]:
    """Equal layers counted together, in the order in which each kind first appears."""
    counts: dict[Layers, int] = {}
    for layer in layers:
        kind = layer._replace(repeats=1)
        counts[kind] = counts.get(kind, 0) + layer.repeats
    return tuple(kind._replace(repeats=count) for kind, count in counts.items())


def table(name: str, rows: int, cols: int) -> Weight:
    """A table that tokens look up, such as learned positions."""
    return Weight(name, (rows, cols), "table")
