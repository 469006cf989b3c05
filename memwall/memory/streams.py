"""What one decode step must read: the weights once, whatever the batch, and every sequence's cache."""

from __future__ import annotations

from collections.abc import Iterator

from memwall.dtypes import Dtype
from memwall.models.attentions import GroupedAttention
from memwall.models.cache import (
    cross_bytes_per_source_token,
    indexer_bytes_per_token,
    sequence_bytes,
    state_bytes_per_sequence,
)
from memwall.models.inventory import Item, language_items
from memwall.models.mlps import expected_distinct
from memwall.models.model import Layers, Model, Storage
from memwall.models.parameters import LOOKED_UP
from memwall.models.step.sides import sides
from memwall.models.storage import item_bytes


def streamed_weight_bytes(model: Model, storage: Storage, batch: int = 1, tensor_parallel: int = 1) -> float:
    """Weights that a step of `batch` tokens reads on each GPU [B].

        all but the embedding, of which a token reads one row; a tied table is read once, as the head;
        of N experts, of which a token uses k, the N (1 - (1 - k/N)^batch) that the batch meets on average;
        of an encoder nothing, nor what made its tokens' K and V: both ran in the prefill

    Args:
        model: the model.
        storage: its weights' format.
        batch: tokens, one of each sequence.
        tensor_parallel: GPUs that share it.
    """
    items = streamed_items(model)
    return sum(item_bytes(item, storage, tensor_parallel) * _met(item, batch) for item in items)


def streamed_items(model: Model) -> Iterator[Item]:
    """The weights that a step of decoding multiplies with or adds."""
    decoder = model._replace(encoder=(), extras=sides(model).decoder)
    return (item for item in language_items(decoder) if _is_streamed(item, model))


def streamed_cache_bytes(
    model: Model, context: int, kv: Dtype, tensor_parallel: int = 1, source_tokens: int = 0
) -> int:
    """What a step reads of each sequence's cache, and its states, read and written, on each GPU [B].

    Windows are read as far as they go; with an indexer all index keys, and the latents that it picks; a cache
    that layers share, by each of them; of an encoder's tokens the K and V that were made of them.
    """
    reading = model._replace(layers=tuple(map(_reading, model.layers)))
    return (
        sequence_bytes(reading, context, kv, tensor_parallel)
        + context * indexer_bytes_per_token(model, kv)
        + 2 * state_bytes_per_sequence(model, tensor_parallel)
        + source_tokens * cross_bytes_per_source_token(model, kv, tensor_parallel)
    )


def _is_streamed(item: Item, model: Model) -> bool:
    weight = item.weight
    if weight.part == "cross_attn" and weight.name.removesuffix(".bias") in ("k_proj", "v_proj"):
        return False
    tied_head = weight.role == "embedding" and model.tied_embeddings and model.head
    return tied_head or weight.role not in LOOKED_UP


def _met(item: Item, batch: int) -> float:
    """The share of a weight's copies that a batch meets."""
    copies, used = item.weight.copies, item.weight.used
    return 1 if used is None else expected_distinct(copies, used, batch) / copies


def _reading(group: Layers) -> Layers:
    """The layer with a cache of what it reads."""
    kind = group.attention
    if isinstance(kind, GroupedAttention):
        return group._replace(attention=kind._replace(shares_cache=False))
    if kind is None or not kind.index_heads:
        return group
    seen = min(kind.index_topk, kind.window or kind.index_topk)
    return group._replace(attention=kind._replace(window=seen))
