"""Weights and cache kept in the host's memory, and streamed to the GPU in every pass.

    bound    = bytes / (link to the host, one way; at most the GPU's part of the host memory's bandwidth)
    estimate = bound / 0.88

What is streamed may be fetched ahead while the pass runs, so that a pass takes the longer of the two.
The share is what large copies to and from pinned memory reached over PCIe 5: 55.4 and 55.1 of 63 GB/s.
"""

from __future__ import annotations

from typing import NamedTuple

from memwall.bound import Term
from memwall.collectives import host_share
from memwall.errors import NotPublished
from memwall.hardware import Device
from memwall.links import Link, how_to_give, link_of
from memwall.nodes import Node

TO_HOST = ("nvlink_c2c", "pcie")
"""Fastest first."""


class HostStream(NamedTuple):
    """What one GPU fetches from its host in a pass."""

    name: str
    bytes: int
    link: Link

    @property
    def term(self) -> Term:
        """As a term of the pass's bound."""
        return Term("link", self.bytes, self.link.rate.value, (self.link.rate,))

    @property
    def bound_time_s(self) -> float:
        """The least time [s]."""
        return self.term.time_s

    @property
    def estimate_time_s(self) -> float:
        """The expected time [s]."""
        return self.bound_time_s / host_share()


def host_link(device: Device, gpus: int, node: Node | None) -> Link:
    """The link to the host of each of so many GPUs that stream at once.

    Raises:
        NotPublished: its file gives no rate for any.
    """
    link = next((found for kind in TO_HOST if (found := link_of(device, kind))), None)
    if link is None:
        raise NotPublished(f"{device.title}: no link to the host is in its file", how_to_give(device))
    memory = node.constant("host", "memory_gb_per_s") if node else None
    if memory is None or memory.value / gpus >= link.rate.value:
        return link
    note = f"the host's memory, shared by {gpus} GPUs"
    return link._replace(rate=memory.computed(memory.value / gpus, (memory,), note))


def streams(
    device: Device, weights_bytes: int, cache_bytes: int, gpus: int, node: Node | None
) -> tuple[HostStream, ...]:
    """What each GPU fetches in a pass: all that is kept in the host's memory, once.

    Raises:
        NotPublished: no link to the host is known.
    """
    kept = [("weights", weights_bytes), ("cache", cache_bytes)]
    if not any(size for _, size in kept):
        return ()
    link = host_link(device, gpus, node)
    return tuple(HostStream(f"host.{name}", size, link) for name, size in kept if size)
