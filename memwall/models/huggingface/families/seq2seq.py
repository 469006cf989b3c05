"""Encoders with decoders: T5, BART, Whisper and their relatives."""

from __future__ import annotations

from memwall.models.attentions import GroupedAttention
from memwall.models.huggingface.config import Config
from memwall.models.huggingface.families import family
from memwall.models.huggingface.parts import plain, table
from memwall.models.mlps import GatedMlp, Mlp, PlainMlp
from memwall.models.model import Layers, Model
from memwall.models.weights import Weight, bias, vector


@family("t5", "mt5", "umt5", "longt5")
def t5(c: Config) -> Model:
    """Relative positions in a table of each stack's first layer (umt5: of every layer); plain norms."""
    hidden, heads, width = (
        c.whole("hidden_size"),
        c.whole("num_attention_heads"),
        c.whole("intermediate_size"),
    )
    each, encoders = c.whole("head_dim"), c.whole("num_hidden_layers")
    decoders = c.whole("num_decoder_layers", encoders)
    activation = str(c.get("feed_forward_proj", "relu"))
    is_gated = c.flag("is_gated_act") or activation.startswith("gated")
    c.get("dense_act_fn")
    mlp: Mlp = GatedMlp(width) if is_gated else PlainMlp(width)
    attention = GroupedAttention(heads, heads, each)
    positions = Weight(
        "relative_attention_bias", (c.whole("relative_attention_num_buckets", 32), heads), "table"
    )
    each_layer = (positions,) if c.get("model_type") == "umt5" else ()
    return Model(
        name="",
        title="",
        hidden_size=hidden,
        vocab_size=c.whole("vocab_size"),
        tied_embeddings=c.flag("tie_word_embeddings", True),
        layers=(Layers(decoders, attention, (mlp,), cross=attention, norms=3, extras=each_layer),),
        encoder=(Layers(encoders, attention, (mlp,), extras=each_layer),),
        extras=() if each_layer else (positions._replace(copies=2),),
        context=c.longest(),
    )


@family("bart", "mbart", "pegasus", "marian", "m2m_100", "blenderbot", "blenderbot_small", "plbart")
def bart(c: Config) -> Model:
    """Biases and layer norms everywhere, learned or sinusoidal positions, one table for both sides."""
    kind, hidden = str(c.get("model_type")).replace("-", "_"), c.whole("hidden_size")
    computed = kind == "m2m_100"  # sinusoids, made anew; those of Pegasus and Marian are stored
    offset = 2 if kind in ("bart", "mbart", "plbart") else 0
    final = kind in ("mbart", "pegasus", "m2m_100", "blenderbot")
    norm = vector("layernorm_embedding", hidden, copies=2)
    embedding_norm = (norm, bias(norm)) if kind in ("bart", "mbart", "plbart", "blenderbot_small") else ()
    positions = table("embed_positions", c.whole("max_position_embeddings") + offset, hidden)
    return _stacks(c, final_norm=final)._replace(
        tied_embeddings=c.flag("tie_word_embeddings", True),
        extras=(*embedding_norm, *(() if computed else (positions._replace(copies=2),))),
    )


@family("whisper")
def whisper(c: Config) -> Model:
    """Two convolutions over the spectrum, no bias on K, tables of positions on both sides."""
    hidden, mels = c.whole("hidden_size"), c.whole("num_mel_bins", 80)
    first = Weight("conv1", (hidden, mels * 3), "convolution")
    second = first._replace(name="conv2", shape=(hidden, hidden * 3))
    target = table("decoder.embed_positions", c.whole("max_target_positions", 448), hidden)
    source = table("encoder.embed_positions", c.whole("max_source_positions", 1500), hidden)
    return _stacks(c, final_norm=True, key_bias=False)._replace(
        tied_embeddings=c.flag("tie_word_embeddings", True),
        extras=(first, bias(first), second, bias(second), target, source),
        context=c.whole("max_target_positions", 448),
    )


def _stacks(c: Config, final_norm: bool, key_bias: bool | None = None) -> Model:
    """Encoder and decoder layers of their own numbers and widths."""
    if any(str(name).endswith("ForCausalLM") for name in c.get("architectures") or ()):
        raise c.wrong("architectures", "names the decoder alone, which has no formula here")
    hidden = c.whole("hidden_size")
    encoder, decoder = (_side(c, side, hidden, key_bias) for side in ("encoder", "decoder"))
    c.get("num_hidden_layers")  # the encoder's again
    return Model(
        name="",
        title="",
        hidden_size=hidden,
        vocab_size=c.whole("vocab_size"),
        tied_embeddings=True,
        layers=(decoder,),
        encoder=(encoder,),
        norm_bias=True,
        final_norm=final_norm,
        context=c.longest(),
    )


def _side(c: Config, side: str, hidden: int, key_bias: bool | None) -> Layers:
    """The layers of one side; a decoder's attend to the encoder, too."""
    heads = c.whole(f"{side}_attention_heads")
    attention = GroupedAttention(
        heads, heads, hidden // heads, qkv_bias=True, key_bias=key_bias, output_bias=True
    )
    mlp = plain(c, c.whole(f"{side}_ffn_dim"), bias=True)
    layers = Layers(c.whole(f"{side}_layers"), attention, (mlp,))
    return layers._replace(cross=attention, norms=3) if side == "decoder" else layers
