"""What a model's weights take in memory: in its checkpoint's own format, or in one asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from memwall.dtypes import Dtype, bytes_of, find
from memwall.maths import ceil_div
from memwall.models.inventory import Item, language_items, tower_items
from memwall.models.model import Model, Storage
from memwall.models.weights import Weight, largest_share

PLAIN = find("bf16")
"""Everything that is not quantised: 2 bytes an element, whatever torch_dtype a file names."""

WHOLE_FILES = {"q4_k_m": ("q6_k", "q4_k_m")}
"""Recipes for a whole file: the formats of its head and embedding, llama.cpp, src/llama-quant.cpp."""


class WeightBytes(NamedTuple):
    """Stored weights [B]."""

    language: int
    towers: int
    quantised_parameters: int
    """Parameters of the language model in the linear layers' format."""

    @property
    def total(self) -> int:
        """All that a GPU must hold."""
        return self.language + self.towers


def storage_of(model: Model, weight_dtype: str | None = None) -> Storage:
    """The format asked for in the linear layers, else the checkpoint's own, else 16 bits.

    Raises:
        UnknownName: no such format.
    """
    if weight_dtype is None:
        return model.storage or Storage(PLAIN.name, PLAIN)
    linear = find(weight_dtype)
    if linear.name in WHOLE_FILES:
        head, table = (find(name) for name in WHOLE_FILES[linear.name])
        return Storage(weight_dtype, linear, head=True, every=True, head_in=head, table=table)
    return Storage(weight_dtype, linear, every=True)


def weight_bytes(model: Model, storage: Storage | None = None, tensor_parallel: int = 1) -> WeightBytes:
    """Weights on each of the GPUs that share them [B].

        linear layers           elements x bits / 8, and the scales of their blocks
        embedding, head, norms, routers, biases, convolutions      2 bytes an element

    Args:
        model: the model.
        storage: the linear layers' format; None: the checkpoint's own. Of its own format its files' exact
            size is taken, where they lie beside its config and hold no more than the formula.
        tensor_parallel: GPUs; each weight is cut between its heads, columns or rows, as far as there are
            any, and norms and latent projections stand on every GPU. Where the cut is uneven, this is
            the GPU with most.
    """
    chosen = storage or storage_of(model)
    items = list(language_items(model))
    quantised = sum(item.parameters for item in items if _covered(item, chosen))
    tower_parts = [item for tower in model.towers for item in tower_items(tower)]
    plain = chosen._replace(every=False)  # towers stay at 16 bits
    language, towers = _stored(items, chosen, tensor_parallel), _stored(tower_parts, plain, tensor_parallel)
    if chosen == storage_of(model) and model.checkpoint_bytes:
        whole = _stored(items, chosen, 1)
        exact = model.checkpoint_bytes - _stored(tower_parts, plain, 1)
        # A checkpoint in 32 bits is loaded in 16, so more than the formula is not taken.
        language = ceil_div(language * exact, whole) if 0 < exact <= whole else language
    return WeightBytes(language, towers, quantised if chosen.linear != PLAIN else 0)


def item_bytes(item: Item, storage: Storage, tensor_parallel: int = 1) -> int:
    """One kind of weight, all its repeats, on each GPU [B]."""
    dtype = storage.linear if _covered(item, storage) else PLAIN
    if item.weight.role == "head" and storage.head:
        dtype = storage.head_in or storage.linear
    elif "embed_tokens" in item.weight.name:
        dtype = storage.table or PLAIN
    return item.repeats * _bytes(item.weight, dtype, tensor_parallel)


def _stored(items: Iterable[Item], storage: Storage, tensor_parallel: int) -> int:
    return sum(item_bytes(item, storage, tensor_parallel) for item in items)


def _covered(item: Item, storage: Storage) -> bool:
    asked = storage.every and item.weight.role == "linear"
    return item.quantised or asked or (storage.head and item.weight.role == "head")


def _bytes(weight: Weight, dtype: Dtype, tensor_parallel: int) -> int:
    """Copies times one tensor; the largest part of it where it is cut."""
    whole: int = weight.copies * bytes_of(weight.shape, dtype)
    return largest_share(whole, weight.shards, tensor_parallel)
