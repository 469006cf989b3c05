"""One GPU's part of a model, as a model: the transformation that tensor parallelism is.

    Q, K, V, gate and up    cut by columns: heads, and the MLP's width
    output and down         cut by rows, so that each GPU has a partial sum of the result
    heads of K and V        cut while there are any, then each repeated on several GPUs
    MLA's latent            whole on every GPU; what is made of it is cut by heads
    embedding and head      cut by the vocabulary
    states                  cut by heads or channels

The kernels of the part are those that the GPU runs; what it exchanges stands in memwall.parallel.exchanges.
"""

from __future__ import annotations

from typing import TypeVar

from memwall.maths import ceil_div
from memwall.models.attentions import GroupedAttention, LatentAttention
from memwall.models.mlps import Experts, Mlp
from memwall.models.model import Layers, Model
from memwall.models.recurrences import Recurrence
from memwall.parallel.layout import Layout

Mixer = TypeVar("Mixer", GroupedAttention, LatentAttention, GroupedAttention | LatentAttention)

CUT = ("heads", "key_heads", "value_heads", "inner", "width", "groups")
"""Dimensions of a recurrence that its heads or channels make up."""


def shard(model: Model, layout: Layout) -> Model:
    """What one GPU of the tp group runs of a model; experts keep their number, cut by width.

    Args:
        model: the whole model.
        layout: one that memwall.parallel.layout.check lets pass.
    """
    if layout.tp == layout.expert_tp == 1:
        return model
    return model._replace(
        vocab_size=ceil_div(model.vocab_size, layout.tp),
        layers=tuple(_layers(group, layout) for group in model.layers),
        encoder=tuple(_layers(group, layout) for group in model.encoder),
    )


def _layers(group: Layers, layout: Layout) -> Layers:
    tp = layout.tp
    return group._replace(
        attention=None if group.attention is None else _attention(group.attention, tp),
        cross=None if group.cross is None else _attention(group.cross, tp),
        recurrence=None if group.recurrence is None else _recurrence(group.recurrence, tp),
        mlps=tuple(_mlp(mlp, layout) for mlp in group.mlps),
    )


def _attention(kind: Mixer, tp: int) -> Mixer:
    if isinstance(kind, LatentAttention):
        return kind._replace(heads=kind.heads // tp)
    return kind._replace(
        heads=kind.heads // tp, kv_heads=ceil_div(kind.kv_heads, tp), gate=ceil_div(kind.gate, tp)
    )


def _mlp(mlp: Mlp, layout: Layout) -> Mlp:
    if isinstance(mlp, Experts):
        shared = ceil_div(mlp.shared_width, layout.tp)
        return mlp._replace(width=ceil_div(mlp.width, layout.expert_tp), shared_width=shared)
    return mlp._replace(width=ceil_div(mlp.width, layout.tp))


def _recurrence(kind: Recurrence, tp: int) -> Recurrence:
    cut = {name: ceil_div(getattr(kind, name), tp) for name in CUT if name in kind._fields}
    return kind._replace(**cut)
