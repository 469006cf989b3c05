"""What each GPU of a layout holds: its part of the weights, and its sequences' caches. The largest stage."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.dtypes import Dtype
from memwall.maths import ceil_div
from memwall.models import cache
from memwall.models.inventory import Item, layer_items, outer_items, tower_items
from memwall.models.model import Model, Storage
from memwall.models.storage import item_bytes, storage_of, weight_bytes
from memwall.parallel.layout import Layout


def weights_on_a_gpu(model: Model, storage: Storage | None, layout: Layout) -> int:
    """Stored weights of the GPU with most [B].

    Args:
        model: the whole model.
        storage: as in memwall.models.storage.weight_bytes.
        layout: how it is laid out.
    """
    whole = weight_bytes(model, storage, layout.tp).total
    if layout.pp == layout.ep == 1:
        return whole
    chosen = storage or storage_of(model)
    layers = [
        size
        for items, repeats in layer_items(model)
        for size in [_layer_bytes(items, chosen, layout)] * repeats
    ]
    outer = [item_bytes(item, chosen, layout.tp) for item in outer_items(model)]
    plain = chosen._replace(every=False)
    towers = [item_bytes(item, plain, layout.tp) for tower in model.towers for item in tower_items(tower)]
    if layout.pp == 1:
        return sum(layers) + sum(outer) + sum(towers)
    return _largest_stage(layers, outer[0] + sum(towers), sum(outer[1:]), layout.pp)


def cache_on_a_gpu(model: Model, length: int, batch: int, layout: Layout, kv: Dtype, source: int = 0) -> int:
    """Caches and states of a replica's sequences, on the GPU of a tp group with most [B].

    Of a pipeline, the stage with most layers has its share of them.
    """
    if not model.decodes:
        return 0
    tp = layout.tp
    each = cache.sequence_bytes(model, length, kv, tp) + length * cache.indexer_bytes_per_token(model, kv)
    each += cache.state_bytes_per_sequence(model, tp)
    each += source * cache.cross_bytes_per_source_token(model, kv, tp)
    layers = model.layer_count
    stage = ceil_div(layers, layout.pp)
    return ceil_div(ceil_div(batch, layout.dp) * each * stage, layers)  # type: ignore[no-any-return]


def _layer_bytes(items: Sequence[Item], storage: Storage, layout: Layout) -> int:
    """One layer; whole experts on different GPUs."""
    total = 0
    for item in items:
        weight = item.weight
        if weight.part == "mlp.experts" and layout.ep > 1:
            own = item._replace(weight=weight._replace(copies=weight.copies // layout.ep))
            total += item_bytes(own, storage, layout.expert_tp)
        else:
            total += item_bytes(item, storage, layout.tp)
    return total


def _largest_stage(layers: Sequence[int], first: int, last: int, stages: int) -> int:
    """Layers in stages of equal number, the table with the first and the head with the last."""
    size = ceil_div(len(layers), stages)
    cut = [sum(layers[start : start + size]) for start in range(0, len(layers), size)]
    cut[0] += first
    cut[-1] += last
    return max(cut)
