"""Parameter counts, to the last one, from a model's weights."""

from __future__ import annotations

from typing import NamedTuple

from memwall.models.inventory import Item, language_items, tower_items
from memwall.models.model import Model

LOOKED_UP = ("embedding", "table")
"""Roles of weights of which a token reads a row and multiplies with none."""


class Parameters(NamedTuple):
    """How many parameters a model has."""

    total: int
    """All of them, those of towers for images and sound included."""
    active: int
    """Those that one token's pass multiplies with: the chosen experts, and not the input embedding,
    of which a token reads one row. A tied table counts once, as the head."""
    embedding: int
    """The input embedding table."""
    towers: int
    """Those of the towers."""

    @property
    def language(self) -> int:
        """Those of the language model."""
        return self.total - self.towers


def count(model: Model) -> Parameters:
    """The parameters of a model.

    total = embedding + head (unless tied) + tables + norms + layers + towers. An encoder alone reads every
    token at once and has no step whose weights could be fewer: all its parameters are active.
    """
    items = list(language_items(model))
    towers = sum(item.parameters for tower in model.towers for item in tower_items(tower))
    language = sum(item.parameters for item in items)
    table = model.vocab_size * model.row
    active = sum(_active(item, model) for item in items) if model.decodes else language
    return Parameters(language + towers, active, table, towers)


def _active(item: Item, model: Model) -> int:
    tied_head = item.weight.role == "embedding" and model.tied_embeddings
    if item.weight.role in LOOKED_UP and not tied_head:
        return 0
    return item.active_parameters
