"""What a model keeps of each sequence: keys and values or the latent, and states of constant size."""

from __future__ import annotations

from typing import NamedTuple

from memwall.dtypes import Dtype, bytes_of, find
from memwall.models.attentions import Attention
from memwall.models.model import Model
from memwall.models.weights import largest_share

STATE_BYTES = 4
"""An element of a recurrent state: engines keep it in fp32."""
DEFAULT_FORMAT = find("bf16")
"""The cache's format unless another is asked for: 16 bits, however the weights are stored."""


class Kept(NamedTuple):
    """What the layers with one size of cache keep of a sequence."""

    layers: int
    bytes_per_token: int
    """Of all those layers together."""
    window: int | None
    """Tokens kept at most; None: all."""

    def bytes(self, tokens: int) -> int:
        """Kept of a sequence of so many tokens [B]."""
        return self.bytes_per_token * (tokens if self.window is None else min(tokens, self.window))


def kept(model: Model, kv: Dtype = DEFAULT_FORMAT, tensor_parallel: int = 1) -> tuple[Kept, ...]:
    """The caches of a model on each GPU, by window, full ones first.

        K and V: kv_heads (head_dim + head_dim_v) elements a token and layer, heads split over GPUs
                 as far as there are any, then replicated
        latent:  (kv_lora_rank + qk_rope_head_dim) elements, whole on each GPU

    Args:
        model: the model.
        kv: the cache's format, block scales included.
        tensor_parallel: GPUs that share the heads.
    """
    sizes: dict[int | None, tuple[int, int]] = {}
    for group in model.layers if model.decodes else ():
        if group.attention is None or not group.attention.cached_elements:
            continue
        layers, size = sizes.get(group.attention.window, (0, 0))
        each = group.repeats * _bytes_per_token(group.attention, kv, tensor_parallel)
        sizes[group.attention.window] = (layers + group.repeats, size + each)
    ordered = sorted(sizes.items(), key=lambda item: (item[0] is not None, item[0]))
    return tuple(Kept(layers, size, window) for window, (layers, size) in ordered)


def growth_bytes_per_token(model: Model, kv: Dtype = DEFAULT_FORMAT, tensor_parallel: int = 1) -> int:
    """Cache that one more token adds once every window is full [B]."""
    return sum(each.bytes_per_token for each in kept(model, kv, tensor_parallel) if each.window is None)


def all_layers_bytes_per_token(model: Model, kv: Dtype = DEFAULT_FORMAT, tensor_parallel: int = 1) -> int:
    """Cache of a token while windows still fill, or in an engine that ignores them [B]."""
    return sum(each.bytes_per_token for each in kept(model, kv, tensor_parallel))


def sequence_bytes(model: Model, tokens: int, kv: Dtype = DEFAULT_FORMAT, tensor_parallel: int = 1) -> int:
    """Cache of a sequence of so many tokens, windows at their cap; states apart [B]."""
    return sum(each.bytes(tokens) for each in kept(model, kv, tensor_parallel))


def state_elements(model: Model) -> int:
    """Elements of recurrent states that a sequence keeps, however long it is."""
    return sum(g.repeats * g.recurrence.state_elements for g in model.layers if g.recurrence is not None)


def state_bytes_per_sequence(model: Model, tensor_parallel: int = 1) -> int:
    """Recurrent states of a sequence, 4 bytes an element, heads split over GPUs while there are any [B]."""
    return STATE_BYTES * sum(
        g.repeats * largest_share(g.recurrence.state_elements, g.recurrence.state_shards, tensor_parallel)
        for g in model.layers
        if g.recurrence is not None
    )


def cross_bytes_per_source_token(model: Model, kv: Dtype = DEFAULT_FORMAT, tensor_parallel: int = 1) -> int:
    """Keys and values that a decoder's layers keep of each token of its encoder [B]."""
    crossing = [(group.repeats, group.cross) for group in model.layers if group.cross is not None]
    return sum(repeats * _bytes_per_token(cross, kv, tensor_parallel) for repeats, cross in crossing)


def indexer_bytes_per_token(model: Model, kv: Dtype = DEFAULT_FORMAT) -> int:
    """Keys that sparse attention's indexers keep of a token [B]; each GPU has them all."""
    return sum(
        group.repeats * bytes_of((getattr(group.attention, "index_head_dim", 0),), kv)
        for group in model.layers
        if getattr(group.attention, "index_heads", 0)
    )


def _bytes_per_token(attention: Attention, kv: Dtype, tensor_parallel: int) -> int:
    """Of one layer on one GPU."""
    elements = largest_share(attention.cached_elements, attention.cache_shards, tensor_parallel)
    return bytes_of((elements,), kv)  # type: ignore[no-any-return]
