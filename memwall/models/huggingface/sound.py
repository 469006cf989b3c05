"""Encoders of sound in front of a language model."""

from __future__ import annotations

from memwall.models.huggingface.config import Config
from memwall.models.huggingface.parts import layer_count
from memwall.models.huggingface.towers import linear
from memwall.models.model import Layers, Tower
from memwall.models.weights import Weight, vector


def gemma4(c: Config, hidden: int) -> Tower:
    """A conformer: two convolutions over the spectrum, then layers of two MLPs, attention and a convolution.

    Args:
        c: the audio_config.
        hidden: elements of the language model's tokens.
    """
    size, out = c.whole("hidden_size"), c.whole("output_proj_dims", 1536)
    first, second = c.get("subsampling_conv_channels") or [128, 32]
    stem = (
        *linear("layer0.conv", first, 9, biased=False),
        vector("layer0.norm", first),
        *linear("layer1.conv", second, 9 * first, biased=False),
        vector("layer1.norm", second),
        *linear("input_proj", size, second * _BANDS // 4, biased=False),
    )
    layer = Layers(layer_count(c), norms=0, extras=_conformer(c, size))
    into = (*linear("output_proj", out, size), *linear("embed_audio", hidden, out, biased=False))
    return Tower("audio", (layer,), size, (*stem, *into), norm_bias=False)


_BANDS = 128
"""Mel bands of the spectrum; two strides of two leave a quarter."""


def _conformer(c: Config, size: int) -> tuple[Weight, ...]:
    """One layer: half-step MLPs before and after, attention with relative keys, a gated convolution."""
    heads, taps = c.whole("num_attention_heads"), c.whole("conv_kernel_size", 5)
    norms = vector("norms", 9 * size)  # two of each MLP, three around attention, two of the convolution
    return (
        Weight("ffw_layer_1", (4 * size, size), copies=2),
        Weight("ffw_layer_2", (size, 4 * size), copies=2),
        Weight("attention", (size, size), copies=5),  # Q, K, V, relative K, output
        vector("per_dim_scale", size // heads),
        Weight("lconv1d.linear_start", (2 * size, size)),
        Weight("lconv1d.linear_end", (size, size)),
        Weight("lconv1d.depthwise", (size, taps), "convolution"),
        norms,
    )
