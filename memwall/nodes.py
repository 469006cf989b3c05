"""Nodes: GPUs that one fabric joins, with their network cards, host memory and drives.

A node is one file of hardware/nodes/. Its GPUs' own link stands in the GPU's file; between nodes each GPU has
its share of the network cards. A GPU whose node nobody names has the catalogue's, if there is one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from memwall import yamlfile
from memwall.catalog import Catalog, Entry
from memwall.collectives import Collective, bound_term, estimate
from memwall.constant import Constant, kind_and_text
from memwall.errors import NotPublished, UsageError
from memwall.hardware import Device
from memwall.links import Link, link_between, network_link
from memwall.units import to_si

NODES = Catalog("node", "hardware/nodes", "memwall node", "memwall node dgx-h100 --yaml")


class Node(NamedTuple):
    """One node of the catalogue."""

    name: str
    title: str
    gpu: str
    gpus: int
    """Joined by the fabric: tensor parallelism stays among them."""
    data: Mapping[str, Any]

    def constant(self, group: str, key: str) -> Constant | None:
        """A number of its file in SI units, with its source; None if it is not there."""
        held = self.data.get(group)
        if not held or held.get(key) is None:
            return None
        value = to_si(key.removesuffix("_per_card"), held[key])
        return Constant(f"{group}.{key}", value, *_source(held["source"], key))

    @property
    def network(self) -> Link | None:
        """What each GPU has towards other nodes: its share of the cards; None without any."""
        held = self.data.get("network")
        if not held:
            return None
        each = held["gb_per_s_per_card"] * held["cards"] / self.gpus
        return network_link(each, "network.gb_per_s_per_card", *_source(held["source"], "gb_per_s_per_card"))


class Group(NamedTuple):
    """GPUs of one kind, on as many nodes as they need."""

    device: Device
    gpus: int
    link: Link
    """Within a node."""
    per_node: int
    """GPUs of the group on each node."""
    network: Link | None = None
    """Between nodes; None on one."""

    @property
    def nodes(self) -> int:
        """Nodes that the group spans."""
        return self.gpus // self.per_node

    def bound_s(self, what: Collective) -> float:
        """The least time of a collective of the whole group: the slowest of its links, all at once [s]."""
        return max((stage_bound_s(part, link) for part, link in self.floors(what)), default=0)

    def estimate_s(self, what: Collective) -> float | None:
        """The expected time: within the nodes, between them, within [s]; None for an unknown link."""
        times = [estimate(part, link) for part, link in self.stages(what)]
        known = [each.time_s for each in times if each is not None]
        return sum(known) if len(known) == len(times) else None

    def floors(self, what: Collective) -> list[tuple[Collective, Link]]:
        """What each link carries at least."""
        if self.network is None or self.nodes == 1:
            return [(what, self.link)]
        between = (self._between(what), self.network)
        return [between] if what.op == "send_recv" else [(self._inside(what), self.link), between]

    def stages(self, what: Collective) -> list[tuple[Collective, Link]]:
        """The collective as libraries do it over several nodes: one step within, one between, one within."""
        if self.network is None or self.nodes == 1:
            return [(what, self.link)]
        inside, between = self._inside(what), (self._between(what), self.network)
        if what.op == "all_reduce":
            scatter, gather = inside._replace(op="reduce_scatter"), inside._replace(op="all_gather")
            return [(scatter, self.link), between, (gather, self.link)]
        return [between] if what.op == "send_recv" else [between, (inside, self.link)]

    def _inside(self, what: Collective) -> Collective:
        """The part that stays within a node."""
        size = -(-what.bytes // self.nodes) if what.op == "all_to_all" else what.bytes
        return what._replace(gpus=self.per_node, bytes=size)

    def _between(self, what: Collective) -> Collective:
        """What each GPU's network card takes: GPUs of equal place on every node talk to each other."""
        if what.op in ("all_to_all", "send_recv"):
            return what._replace(gpus=self.nodes)
        return what._replace(gpus=self.nodes, bytes=-(-what.bytes // self.per_node))


def stage_bound_s(what: Collective, link: Link) -> float:
    """The least time of one collective on one link [s]."""
    return bound_term(what, link).time_s


def group(device: Device, gpus: int, nodes: int = 1, node: Node | None = None) -> Group:
    """So many of a device, spread evenly over nodes.

    Raises:
        UsageError: more than a node has, or a number that does not spread evenly.
        NotPublished: no link, or no network, is known.
    """
    home = node or node_of(device)
    if gpus % nodes:
        near = ", ".join(str(nodes * each) for each in (gpus // nodes, gpus // nodes + 1) if each)
        raise UsageError(f"{gpus} GPUs do not spread evenly over {nodes} nodes", f"Try --gpus {near}")
    each = gpus // nodes
    if home and each > home.gpus:
        raise too_many(device, home, gpus, nodes)
    link = link_between(device, each)
    if nodes == 1:
        return Group(device, gpus, link, each)
    network = home.network if home else None
    if network is None:
        raise NotPublished(
            f"{device.title}: no node with a network is in the catalogue",
            "Write one like memwall node dgx-h100 --yaml, and name it: --node FILE.yaml",
        )
    return Group(device, gpus, link, each, network)


def too_many(device: Device, home: Node, gpus: int, nodes: int) -> UsageError:
    """More GPUs than nodes have, and how many would do."""
    least = -(-gpus // home.gpus)
    return UsageError(
        f"{gpus} {device.name} on {nodes} node{'s' if nodes > 1 else ''}: one {home.title} has {home.gpus}",
        f"Try --gpus {home.gpus * nodes}, or --nodes {least}",
    )


def node_of(device: Device) -> Node | None:
    """The catalogue's first node with that GPU; None if there is none."""
    return next((node for node in _all(os.environ.get("MEMWALL_PATH", "")) if node.gpu == device.name), None)


@cache
def _all(path: str) -> tuple[Node, ...]:
    """Every node of the catalogue, for a search path."""
    return tuple(NODES.read_each(from_entry)[0])


def load(name: str) -> Node:
    """The node of that name, alias or file.

    Raises:
        UnknownName, FileError: as they say.
    """
    return from_entry(NODES.find(name))


def from_entry(entry: Entry) -> Node:
    """The node of a file; a user's own is checked against the schema first."""
    if entry.user:
        from memwall.schema.base import validate
        from memwall.schema.nodes import NodeFile

        validate(NodeFile, entry.text, entry.where)
    data = yamlfile.parse(entry.text, entry.where)
    return Node(data["name"], data["title"], data["gpu"], data["gpus"], data)


def _source(entries: list[Mapping[str, Any]], key: str) -> tuple[str, str]:
    own = [entry for entry in entries if key in (entry.get("for") or ())]
    rest = [entry for entry in entries if not entry.get("for")]
    return kind_and_text((own or rest or entries)[0])
