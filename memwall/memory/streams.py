"""What one decode step must read: the weights once, whatever the batch, and every sequence's cache."""

from __future__ import annotations

from memwall.dtypes import Dtype
from memwall.models.attentions import LatentAttention
from memwall.models.cache import indexer_bytes_per_token, sequence_bytes, state_bytes_per_sequence
from memwall.models.inventory import Item, language_items
from memwall.models.mlps import expected_distinct
from memwall.models.model import Layers, Model, Storage
from memwall.models.parameters import LOOKED_UP
from memwall.models.storage import item_bytes


def streamed_weight_bytes(model: Model, storage: Storage, batch: int = 1, tensor_parallel: int = 1) -> float:
    """Weights that a step of `batch` tokens reads on each GPU [B].

        all but the embedding, of which a token reads one row; a tied table is read once, as the head;
        of N experts, of which a token uses k, the N (1 - (1 - k/N)^batch) that the batch meets on average

    Args:
        model: the model.
        storage: its weights' format.
        batch: tokens, one of each sequence.
        tensor_parallel: GPUs that share it.
    """
    items = (item for item in language_items(model) if _is_streamed(item, model))
    return sum(item_bytes(item, storage, tensor_parallel) * _met(item, batch) for item in items)


def streamed_cache_bytes(model: Model, context: int, kv: Dtype, tensor_parallel: int = 1) -> int:
    """What a step reads of each sequence's cache, and its states, read and written, on each GPU [B].

    Windows are read as far as they go; with an indexer all index keys, and the latents that it picks.
    """
    picked = model._replace(layers=tuple(map(_picked, model.layers)))
    return (
        sequence_bytes(picked, context, kv, tensor_parallel)
        + context * indexer_bytes_per_token(model, kv)
        + 2 * state_bytes_per_sequence(model, tensor_parallel)
    )


def _is_streamed(item: Item, model: Model) -> bool:
    tied_head = item.weight.role == "embedding" and model.tied_embeddings and model.head
    return tied_head or item.weight.role not in LOOKED_UP


def _met(item: Item, batch: int) -> float:
    """The share of a weight's copies that a batch meets."""
    copies, used = item.weight.copies, item.weight.used
    return 1 if used is None else expected_distinct(copies, used, batch) / copies


def _picked(group: Layers) -> Layers:
    kind = group.attention
    if not isinstance(kind, LatentAttention) or not kind.index_heads:
        return group
    seen = min(kind.index_topk, kind.window or kind.index_topk)
    return group._replace(attention=kind._replace(window=seen))
