"""What the GPUs of a layout exchange in one pass.

tensor parallel      an all-reduce of the tokens after every part of a layer that adds to the residual
stream (two a layer), one after the embedding, and a gather of the logits
sequence parallel    a reduce-scatter and an all-gather in place of each all-reduce: the same bytes
expert parallel      with replicas, tokens go to the experts' GPUs and come back; without, every GPU of
the tp group has the tokens, and the all-reduce after the layer adds its experts' part
pipeline             the tokens from each stage to the next
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from memwall.bound import Term
from memwall.collectives import Collective, bound_term, engine_estimate
from memwall.hardware import Device
from memwall.models.mlps import Experts
from memwall.models.model import Layers, Model
from memwall.models.step.launch import Setting
from memwall.nodes import Group, Node, group
from memwall.parallel.layout import Layout

OWN_KERNELS = ("one shot", "two shots")
"""Ways of memwall.collectives.engine_estimate that are an engine's own."""


class Exchange(NamedTuple):
    """A collective that a pass does so many times."""

    name: str
    what: Collective
    group: Group
    repeats: int

    @property
    def bound_time_s(self) -> float:
        """Of one of them [s]."""
        return self.group.bound_s(self.what)

    @property
    def estimate_time_s(self) -> float | None:
        """Of one, in an inference engine [s]; None where nothing is known of such a link."""
        if self.group.nodes > 1:
            return self.group.estimate_s(self.what)
        known = engine_estimate(self.what, self.group.link)
        return None if known is None else known.time_s

    @property
    def algorithm(self) -> str:
        """What takes that time."""
        if self.group.nodes > 1:
            return f"over {self.group.nodes} nodes"
        known = engine_estimate(self.what, self.group.link)
        return "unknown" if known is None else known.algorithm

    @property
    def by(self) -> str:
        """Whose collective that is: the engine's own kernel, or the library."""
        return "engine" if self.algorithm in OWN_KERNELS else self.group.link.library

    @property
    def term(self) -> Term:
        """All of them, as a term of the pass's bound."""
        if self.group.nodes == 1:
            return bound_term(self.what, self.group.link, self.repeats)
        part, link = max(self.group.floors(self.what), key=lambda floor: bound_term(*floor).time_s)
        return bound_term(part, link, self.repeats)


class Groups(NamedTuple):
    """The GPUs that each kind of exchange is among."""

    tensor: Group
    experts: Group
    stage: Group
    """Two GPUs of neighbouring stages."""


def groups_of(device: Device, layout: Layout, node: Node | None) -> Groups:
    """Where a layout's groups stand: tp in one node, then experts' groups, then stages, as far as nodes go.

    Raises:
        UsageError: more tp than a node has GPUs.
        NotPublished: no link is known.
    """
    room = node.gpus if node else layout.gpus
    spread = layout.tp * layout.dp
    nodes = -(-spread // room)
    apart = layout.pp > 1 and layout.gpus > room
    stage = group(device, 2, 2, node) if apart else group(device, 2 if layout.pp > 1 else 1, 1, node)
    return Groups(
        group(device, layout.tp, 1, node),
        group(device, spread, nodes, node) if layout.ep > 1 else group(device, layout.tp, 1, node),
        stage,
    )


def exchanges(model: Model, layout: Layout, setting: Setting, groups: Groups) -> tuple[Exchange, ...]:
    """Every exchange of a pass in which one GPU has the setting's tokens.

    Args:
        model: the whole model.
        layout: how it is laid out.
        setting: of one GPU.
        groups: where the layout stands.
    """
    found: dict[tuple[str, Collective, Group], int] = {}
    for each in _all(model, layout, setting, groups):
        key = (each.name, each.what, each.group)
        found[key] = found.get(key, 0) + each.repeats
    return tuple(Exchange(*key, repeats) for key, repeats in found.items() if repeats)


def _all(model: Model, layout: Layout, s: Setting, groups: Groups) -> Iterator[Exchange]:
    wide = s.rows * model.hidden_size * s.plain.activation.bits // 8
    if layout.tp > 1:
        yield from _sums("embedding", wide, 1, layout, groups)
        for layers in (*(model.encoder if s.prefill else ()), *model.layers):
            repeats = layers.repeats * _tensor_sums(layers, layout)
            yield from _sums("layers", wide, repeats, layout, groups)
        if model.head:
            rows = s.tokens.batch if model.decodes and s.prefill else s.rows
            logits = rows * model.vocab_size * s.plain.activation.bits // 8
            yield Exchange("logits", Collective("all_gather", logits, layout.tp), groups.tensor, 1)
    if layout.ep > 1 and layout.dp > 1:
        for layers in model.layers:
            yield from _experts(layers, model, layout, s, groups)
    if layout.pp > 1:
        yield Exchange("stages", Collective("send_recv", wide, 2), groups.stage, layout.pp - 1)


def _sums(name: str, size: int, repeats: int, layout: Layout, groups: Groups) -> Iterator[Exchange]:
    ops = ("reduce_scatter", "all_gather") if layout.sequence_parallel else ("all_reduce",)
    for op in ops:
        yield Exchange(f"{name}.{op}", Collective(op, size, layout.tp), groups.tensor, repeats)


def _tensor_sums(layers: Layers, layout: Layout) -> int:
    """Sums after the parts of a layer: one each, unless parts stand beside each other and add up together."""
    mixers = layers.attention is not None or layers.recurrence is not None
    parts = [mixers, layers.cross is not None, bool(layers.mlps)]
    sums = min(sum(parts), max(layers.norms, 1))
    spread = layout.ep > 1 and layout.dp > 1 and any(isinstance(mlp, Experts) for mlp in layers.mlps)
    return sums - 1 if spread and sums > 1 else sums


def _experts(layers: Layers, model: Model, layout: Layout, s: Setting, groups: Groups) -> Iterator[Exchange]:
    """Tokens to their experts and back. A token goes once to each GPU that has any of its experts.

    An expert that is cut between GPUs has the token sent to all of them, and each sends its part back.
    """
    for mlp in layers.mlps:
        if not isinstance(mlp, Experts):
            continue
        groups_reached = layout.ep * (1 - (1 - 1 / layout.ep) ** mlp.experts_per_token)
        reached = groups_reached * layout.expert_tp
        rows = s.rows / layout.tp * reached * layout.imbalance
        elements = rows * (mlp.expert_hidden or model.hidden_size)
        there = round(elements * (s.narrow or s.plain.activation).bits / 8)
        back = round(elements * s.plain.activation.bits / 8)
        n = layout.tp * layout.dp
        yield Exchange("experts.dispatch", Collective("all_to_all", there, n), groups.experts, layers.repeats)
        yield Exchange("experts.combine", Collective("all_to_all", back, n), groups.experts, layers.repeats)
        if layout.tp > 1:
            whole = s.rows * model.hidden_size * s.plain.activation.bits // 8
            gathered = Collective("all_gather", whole, layout.tp)
            yield Exchange("experts.gather", gathered, groups.tensor, layers.repeats)
