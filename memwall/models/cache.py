"""What a model keeps of each token: keys and values, or the latent."""

from __future__ import annotations

from memwall.models.model import Model

KV_BYTES = 2
"""Bytes an element in the cache's default format, 16 bits."""


def bytes_per_token(model: Model, every_layer: bool) -> int:
    """Cache that one more token adds, in 16 bits [B].

        2 kv_heads head_dim x 2 bytes a layer; latent: (kv_lora_rank + qk_rope_head_dim) x 2 bytes

    Args:
        model: the model.
        every_layer: while windows fill, every layer grows; once they are full, those with a window do not.
    """
    return sum(
        group.repeats * group.attention.cached_elements * KV_BYTES
        for group in model.layers
        if every_layer or group.attention.window is None
    )
