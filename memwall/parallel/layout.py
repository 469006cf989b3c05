"""How a model stands on several GPUs.

    tensor parallel (tp)      each matrix is cut between GPUs, which add up after every part of a layer
    pipeline parallel (pp)    layers in stages, one after the other; the batch goes through in microbatches
    expert parallel (ep)      whole experts on different GPUs, those of the tp x dp group
    data parallel (dp)        replicas of everything but the experts, each with its part of the batch
    sequence parallel         norms and residual sums cut by tokens among the tp GPUs

GPUs = tp x pp x dp. Experts that are spread over fewer GPUs than tp x dp are cut among the rest.

Source: Shoeybi et al. 2019, arXiv:1909.08053 (tensor); Korthikanti et al. 2022, arXiv:2205.05198 (sequence);
Huang et al. 2018, arXiv:1811.06965 (pipeline); Lepikhin et al. 2020, arXiv:2006.16668 (experts).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from memwall import nodes
from memwall.errors import UsageError
from memwall.hardware import Device
from memwall.maths import Count, ceil_div, minimum
from memwall.models.attentions import GroupedAttention
from memwall.models.mlps import Experts
from memwall.models.model import Layers, Model
from memwall.nodes import Node

MOST_TP = 128
"""GPUs of a tp group up to which a nearest one is looked for, where no node says how many there are."""
MOST_SHARED = 64
EXAMPLES = {"tp": 8, "pp": 2, "ep": 8, "dp": 2}
"""Degrees, as those who typed none that can be are shown them."""


class Layout(NamedTuple):
    """Degrees of each kind of parallelism."""

    tp: int = 1
    pp: int = 1
    ep: int = 1
    dp: int = 1
    sequence_parallel: bool = False
    imbalance: float = 1.0
    """Tokens of the busiest GPU's experts over the mean; 1 is even routing."""

    @property
    def gpus(self) -> int:
        """All of them."""
        return self.tp * self.pp * self.dp

    @property
    def expert_tp(self) -> int:
        """GPUs that each expert's matrices are cut between."""
        return self.tp * self.dp // self.ep if self.ep > 1 else self.tp

    @property
    def expert_dp(self) -> int:
        """Replicas of the experts' tokens that meet in one group: dp where experts are spread, else 1."""
        return self.dp if self.ep > 1 else 1

    @property
    def text(self) -> str:
        """For people: TP 8, EP 8."""
        named = {"TP": self.tp, "PP": self.pp, "EP": self.ep, "DP": self.dp}
        words = [f"{name} {degree}" for name, degree in named.items() if degree > 1]
        return ", ".join([*words, *(["sequence parallel"] if self.sequence_parallel else [])]) or "one GPU"

    def microbatches(self, batch: Count) -> Count:
        """Parts of a replica's batch that follow each other through the stages: one a stage, if so many."""
        return minimum(self.pp, ceil_div(batch, self.dp))

    def local_batch(self, batch: Count) -> Count:
        """Sequences that a GPU has in a pass: of the replica with most, the largest microbatch."""
        return ceil_div(ceil_div(batch, self.dp), self.microbatches(batch))

    def uneven(self, batch: int) -> list[str]:
        """A remark on replicas that have different numbers of sequences; none if all have as many."""
        most, full = ceil_div(batch, self.dp), batch % self.dp
        if not full:
            return []
        parts = f"{full} with {most}, {self.dp - full} with {most - 1}"
        return [f"a batch of {batch} over {self.dp} replicas: {parts}"]


def check(layout: Layout, model: Model, device: Device) -> Node | None:
    """The node that a model laid out so stands on; None if the catalogue has none with that GPU.

    Every command that takes a layout asks here.

    Raises:
        UsageError: the model cannot be laid out so, or tensor parallelism would leave the node; says why and
            what is nearest.
    """
    node = nodes.node_of(device)
    fault = next(faults(layout, model, node), None)
    if fault:
        raise fault
    return node


def check_tp(tp: int, model: Model, device: Device) -> None:
    """Whether so many GPUs may share a model by its heads, where there are no stages.

    Raises:
        UsageError: as `check` says.
    """
    node = nodes.node_of(device)
    fault = next(faults(Layout(tp=tp), model, node, stages=False), None)
    if fault:
        raise fault


def faults(
    layout: Layout, model: Model, node: Node | None = None, stages: bool = True
) -> Iterator[UsageError]:
    """Everything that keeps a model from being laid out so.

    Args:
        layout: the layout.
        model: the whole model.
        node: what it stands on; None: nobody knows, and it may be of any size.
        stages: whether a hint may name --pp.
    """
    wrong = next((name for name in EXAMPLES if getattr(layout, name) < 1), None)
    if wrong:
        yield UsageError(
            f"--{wrong} is a number of GPUs, at least 1, not {getattr(layout, wrong)}",
            f"Try --{wrong} {EXAMPLES[wrong]}",
        )
        return
    layers = layout_layers(model)
    if layout.pp > layers:
        yield UsageError(f"--pp {layout.pp}: {model.title} has {layers} layers", f"Try --pp {layers}")
    if not splits_heads(model, layout.tp):
        heads = f"the heads of {model.title} ({_heads_text(model)})"
        near = _nearest(layout.tp, splitting(model, node))
        yield UsageError(f"--tp {layout.tp}: {heads} do not split so", f"Try {near}")
    elif node and layout.tp > node.gpus:
        widest = splitting(model, node)[-1]
        deep = min(ceil_div(layout.tp, widest) * layout.pp, layers)
        yield UsageError(
            f"--tp {layout.tp}: one {node.title} has {node.gpus} GPUs, and tensor parallelism stays in it",
            f"Try --tp {widest}" + (f" --pp {deep}" if stages and deep > 1 else ""),
        )
    yield from _expert_faults(layout, model)


def splitting(model: Model, node: Node | None) -> list[int]:
    """Numbers of GPUs that may share the model by its heads, within a node, fewest first."""
    most = node.gpus if node else MOST_TP
    return [tp for tp in range(1, most + 1) if splits_heads(model, tp)]


def shared_sizes(model: Model, device: Device) -> list[int]:
    """Those that are used: powers of two."""
    return [tp for tp in splitting(model, nodes.node_of(device)) if tp & (tp - 1) == 0 and tp <= MOST_SHARED]


def _expert_faults(layout: Layout, model: Model) -> Iterator[UsageError]:
    if layout.ep == 1:
        return
    experts = sorted({mlp.experts for mlp in _experts(model)})
    if not experts:
        yield UsageError(f"--ep {layout.ep}: {model.title} has no experts", "Leave out --ep")
        return
    group = layout.tp * layout.dp
    options = [ep for ep in range(1, group + 1) if group % ep == 0 and all(n % ep == 0 for n in experts)]
    if layout.ep not in options:
        counted = " and ".join(map(str, experts))
        yield UsageError(
            f"--ep {layout.ep}: experts spread over GPUs of the tp x dp = {group}, in parts of its {counted}",
            f"Try {_nearest(layout.ep, options, '--ep')}",
        )


def layout_layers(model: Model) -> int:
    """Layers that pipeline stages are cut between."""
    return model.layer_count


def splits_heads(model: Model, tp: int) -> bool:
    """Whether query heads and states split evenly, and heads of K and V split or repeat evenly."""
    return all(_splits(group, tp) for group in (*model.encoder, *model.layers))


def _splits(group: Layers, tp: int) -> bool:
    attentions = [each for each in (group.attention, group.cross) if each is not None]
    for attention in attentions:
        if attention.heads % tp:
            return False
        shared = isinstance(attention, GroupedAttention)
        if shared and attention.kv_heads % tp and tp % attention.kv_heads:
            return False
    return group.recurrence is None or group.recurrence.state_shards % tp == 0


def _experts(model: Model) -> list[Experts]:
    return [mlp for group in model.layers for mlp in group.mlps if isinstance(mlp, Experts)]


def _heads_text(model: Model) -> str:
    kinds = [group.attention for group in model.layers if group.attention is not None]
    words = dict.fromkeys(f"{kind.heads}, {kind.kv_heads} KV" for kind in kinds)
    return "; ".join(words) or "none"


def _nearest(asked: int, options: list[int], flag: str = "--tp") -> str:
    below = max((n for n in options if n < asked), default=None)
    above = min((n for n in options if n > asked), default=None)
    return " or ".join(f"{flag} {n}" for n in (below, above) if n)
