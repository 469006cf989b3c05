"""Every weight of a model, once: the list that parameters, bytes and shards are counted from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from memwall.models.model import Layers, Model, Tower
from memwall.models.weights import Weight, bias, vector


class Item(NamedTuple):
    """A weight, how often it occurs, and whether a checkpoint's quantisation covers it."""

    weight: Weight
    repeats: int
    quantised: bool

    @property
    def parameters(self) -> int:
        """Elements of all of them."""
        return self.weight.elements * self.repeats

    @property
    def active_parameters(self) -> int:
        """Elements that one token meets."""
        return self.weight.active_elements * self.repeats


def language_items(model: Model) -> Iterator[Item]:
    """The weights of the language model: tables, layers, final norm, head."""
    yield from (Item(weight, 1, False) for weight in outer_weights(model))
    for group in (*model.encoder, *model.layers):
        yield from _items(group, model.hidden_size, model.norm_bias)
    if model.encoder and model.final_norm:
        yield from (Item(norm, 1, False) for norm in norms(1, model.hidden_size, model.norm_bias))


def tower_items(tower: Tower) -> Iterator[Item]:
    """The weights of an encoder of images or sound; checkpoints keep them at 16 bits."""
    yield from (Item(weight, 1, False) for weight in tower.weights)
    for group in tower.layers:
        for item in _items(group, tower.hidden_size, tower.norm_bias):
            yield item._replace(quantised=False)


def outer_items(model: Model) -> list[Item]:
    """The weights outside the layers; the embedding first."""
    return [Item(weight, 1, False) for weight in outer_weights(model)]


def layer_items(model: Model) -> Iterator[tuple[list[Item], int]]:
    """The weights of one layer of each group, and how many such layers it has."""
    for group in (*model.encoder, *model.layers):
        one = [item._replace(repeats=1) for item in _items(group, model.hidden_size, model.norm_bias)]
        yield one, group.repeats


def outer_weights(model: Model) -> list[Weight]:
    """Those outside the layers. A tied table is the embedding alone; the head multiplies with it."""
    vocabulary = (model.vocab_size, model.row)
    weights = [Weight("embed_tokens", vocabulary, "embedding", model.vocab_size), *model.extras]
    if model.final_norm:
        weights += norms(1, model.hidden_size, model.norm_bias)
    if model.head and not model.tied_embeddings:
        weights.append(Weight("lm_head", vocabulary, "head", model.vocab_size))
    if model.head_bias:
        weights.append(vector("lm_head.bias", model.vocab_size, model.vocab_size))
    return weights


def layer_weights(group: Layers, hidden: int, norm_bias: bool = False) -> list[Weight]:
    """The weights of one layer of a group."""
    weights: list[Weight] = []
    if group.attention is not None:
        weights += group.attention.weights(hidden)
    if group.recurrence is not None:
        weights += group.recurrence.weights(hidden)
    if group.cross is not None:
        weights += [weight._replace(part="cross_attn") for weight in group.cross.weights(hidden)]
    for mlp in group.mlps:
        weights += mlp.weights(hidden)
    return [*weights, *group.extras, *norms(group.norms, hidden, norm_bias)]


def norms(count: int, hidden: int, biased: bool) -> list[Weight]:
    """So many norms over a token's elements."""
    if not count:
        return []
    norm = vector("norm", hidden, copies=count)
    return [norm, bias(norm)] if biased else [norm]


def _items(group: Layers, hidden: int, norm_bias: bool) -> Iterator[Item]:
    for weight in layer_weights(group, hidden, norm_bias):
        covered = weight.role == "linear" and f"{weight.part}.{weight.name}" not in group.unquantised
        yield Item(weight, group.repeats, covered)
