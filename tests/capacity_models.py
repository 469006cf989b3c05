"""Models of the field's cases that the catalogue lacks, by their public dimensions.

Those with weights are whole; those made by `keeping` have no more than what the cache is counted from.
"""

from __future__ import annotations

from memwall.models.attentions import Attention, GroupedAttention, LatentAttention
from memwall.models.mlps import Experts, GatedMlp
from memwall.models.model import Layers, Model
from memwall.models.recurrences import GatedDelta


def keeping(*groups: tuple[int, Attention], hidden: int = 1024, context: int | None = None) -> Model:
    """A model of layers with these kinds of attention and nothing else."""
    layers = tuple(Layers(repeats, attention) for repeats, attention in groups)
    return Model("case", "Case", hidden, 1000, True, layers, context=context)


def grouped(layers: int, heads: int, kv_heads: int, head_dim: int, hidden: int = 1024) -> Model:
    return keeping((layers, GroupedAttention(heads, kv_heads, head_dim)), hidden=hidden)


DEEPSEEK_V2_LITE = Model(
    "deepseek-v2-lite",
    "DeepSeek-V2-Lite",
    2048,
    102400,
    False,
    (
        Layers(1, LatentAttention(16, None, 512, 128, 64, 128), (GatedMlp(10944),)),
        Layers(26, LatentAttention(16, None, 512, 128, 64, 128), (Experts(64, 6, 1408, 2816),)),
    ),
)
GPT_OSS_20B = keeping(
    (12, GroupedAttention(64, 8, 64)), (12, GroupedAttention(64, 8, 64, window=128)), hidden=2880
)
GEMMA_3_27B = keeping(
    (10, GroupedAttention(32, 16, 128)), (52, GroupedAttention(32, 16, 128, window=1024)), hidden=5376
)
GEMMA_4_26B = keeping(  # global layers: 2 KV heads of 512; local ones 8 of 256
    (5, GroupedAttention(16, 2, 512)), (25, GroupedAttention(16, 8, 256, window=1024)), hidden=2816
)
GEMMA_4_31B = keeping(  # global layers: 4 KV heads of 512; local ones 16 of 256
    (10, GroupedAttention(32, 4, 512)), (50, GroupedAttention(32, 16, 256, window=1024)), hidden=5376
)


def _linear(key_heads: int, value_heads: int) -> GatedDelta:
    return GatedDelta(key_heads, value_heads, 128, 128, 4)


QWEN3_5_9B = Model(
    "qwen3.5-9b",
    "Qwen3.5-9B",
    4096,
    248320,
    False,
    (
        Layers(8, GroupedAttention(16, 4, 256), (GatedMlp(12288),)),
        Layers(24, None, (GatedMlp(12288),), _linear(16, 32)),
    ),
)
_SPARSE = (Experts(256, 8, 512, shared_width=512, shared_gate=True),)
QWEN3_5_35B_A3B = Model(
    "qwen3.5-35b-a3b",
    "Qwen3.5-35B-A3B",
    2048,
    248320,
    False,
    (
        Layers(10, GroupedAttention(16, 2, 256, qk_norm="head", gate=16 * 256), _SPARSE),
        Layers(30, None, _SPARSE, _linear(16, 32)),
    ),
)
