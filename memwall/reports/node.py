"""A node: what it has, what its link does for tensor parallelism, and what leaving it costs."""

from __future__ import annotations

from typing import NamedTuple

from memwall.collectives import Collective, engine_estimate
from memwall.constant import Constant
from memwall.errors import NotAvailable
from memwall.hardware import Device
from memwall.links import Link, link_of
from memwall.models.load import load as load_model
from memwall.models.model import Model
from memwall.nodes import Group, Node, group

YARDSTICK = "llama3-70b"
"""The model whose all-reduces show what a link costs."""
SIZES = (("decode, 1 sequence", 1), ("decode, 32 sequences", 32), ("prefill, 8192 tokens", 8192))
TWO = 2
"""All-reduces a layer; nodes."""


class Traffic(NamedTuple):
    """All all-reduces of one pass, within a node and across two."""

    what: str
    size_bytes: int
    repeats: int
    inside_s: float | None
    """By the library."""
    engine_s: float | None
    """By an inference engine, whose own kernel does short ones."""
    across_s: float | None
    """The same number of GPUs, half of them on each of two nodes."""


class NodeReport(NamedTuple):
    """One node."""

    node: Node
    device: Device
    link: Link
    host_link: Link | None
    model: Model
    traffic: tuple[Traffic, ...]

    @property
    def memory_bytes(self) -> float | None:
        """Of all GPUs together [B]; None if it is not published."""
        try:
            return self.device.capacity.value * self.node.gpus
        except NotAvailable:
            return None

    @property
    def rests_on(self) -> tuple[Constant, ...]:
        """The numbers shown."""
        named = (("host", "memory_gb_per_s"), ("storage", "nvme_gb"), ("power", "system_w"))
        found = [constant for key in named if (constant := self.node.constant(*key))]
        network = [self.node.network.rate] if self.node.network else []
        return (self.link.rate, *network, *found)

    @property
    def step_out(self) -> float | None:
        """How many times slower the all-reduces of a small decode step are across two nodes."""
        first = self.traffic[0]
        return first.across_s / first.inside_s if first.inside_s and first.across_s else None


def node_report(node: Node, device: Device) -> NodeReport:
    """What a node has and what its link is worth.

    Args:
        node: the node.
        device: its GPU.

    Raises:
        NotPublished: the GPU's file gives no link.
    """
    model = load_model(YARDSTICK)
    gpus = min(node.gpus, 8)
    inside = group(device, gpus, node=node)
    across = group(device, gpus, TWO, node) if node.network else None
    rows = tuple(_traffic(what, tokens, model, inside, across) for what, tokens in SIZES)
    link = group(device, node.gpus, node=node).link
    return NodeReport(node, device, link, link_of(device, "pcie"), model, rows)


def _traffic(what: str, tokens: int, model: Model, inside: Group, across: Group | None) -> Traffic:
    size = tokens * model.hidden_size * 2  # 16 bits
    count = TWO * model.layer_count
    each = Collective("all_reduce", size, inside.gpus)
    near, far = inside.estimate_s(each), across.estimate_s(each) if across else None
    own = engine_estimate(each, inside.link)
    return Traffic(what, size, count, near and near * count, own and own.time_s * count, far and far * count)
