"""A collective on a group of GPUs: the bound of its links and what a good library takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from memwall import nodes as catalogue
from memwall.collectives import (
    Collective,
    Estimate,
    bound_term,
    collective,
    constants_of,
    engine_estimate,
    estimate,
)
from memwall.constant import Constant
from memwall.hardware import Device
from memwall.links import Link
from memwall.nodes import Group, Node
from memwall.parallel.exchanges import OWN_KERNELS
from memwall.reports.arguments import checked
from memwall.reports.case import DEFAULT_GPU, DeviceLike, device_of
from memwall.reports.notebook import Report


class Stage(NamedTuple):
    """One of the steps that a collective over several nodes is made of."""

    what: Collective
    link: Link

    @property
    def bound_time_s(self) -> float:
        """The least time [s]."""
        return bound_term(self.what, self.link).time_s

    @property
    def estimate_time_s(self) -> float | None:
        """The expected time [s]; None where nothing is known of such links."""
        known = estimate(self.what, self.link)
        return None if known is None else known.time_s

    @property
    def algorithm(self) -> str:
        """The way that takes least time: ring, in-switch, exchange; low latency for short messages."""
        known = estimate(self.what, self.link)
        return "unknown" if known is None else known.algorithm


@dataclass(frozen=True, slots=True, repr=False)
class CollectiveReport(Report):
    """One collective on one group."""

    what: Collective
    group: Group
    node: Node | None
    defaults: tuple[str, ...]

    @property
    def device(self) -> Device:
        """The GPU."""
        return self.group.device

    @property
    def stages(self) -> tuple[Stage, ...]:
        """What it is made of, in order."""
        return tuple(Stage(*stage) for stage in self.group.stages(self.what))

    @property
    def bound_time_s(self) -> float:
        """The least time [s]: wire bytes over each link's rate one way, the slowest."""
        return self.group.bound_s(self.what)

    @property
    def estimate_time_s(self) -> float | None:
        """The expected time of a good library [s]."""
        return self.group.estimate_s(self.what)

    @property
    def library(self) -> str:
        """Whose collective the estimate is of: NCCL, RCCL, oneCCL."""
        return self.group.link.library

    @property
    def engine(self) -> Estimate | None:
        """That of an inference engine's own kernel, where it has one that takes less; None elsewhere."""
        if self.group.nodes > 1:
            return None
        known = engine_estimate(self.what, self.group.link)
        return known if known and known.algorithm in OWN_KERNELS else None

    @property
    def algbw_bytes_per_s(self) -> float | None:
        """Bytes / time, at the estimate."""
        return self.what.bytes / self.estimate_time_s if self.estimate_time_s else None

    @property
    def busbw_bytes_per_s(self) -> float | None:
        """Algbw x the operation's factor, as nccl-tests prints it, at the estimate."""
        return None if self.algbw_bytes_per_s is None else self.algbw_bytes_per_s * self.what.factor

    @property
    def rests_on(self) -> tuple[Constant, ...]:
        """The links' rates, and what the estimate was fitted to."""
        links = {stage.link.rate.key: stage.link for stage in self.stages}
        rates = [link.rate for link in links.values()]
        found = [known for link in links.values() if (known := constants_of(link))]
        return (*rates, *(constant for known in found for constant in known.basis))


@checked
def collective_time(
    op: str,
    *,
    size_bytes: int,
    gpus: int = 8,
    gpu: DeviceLike = DEFAULT_GPU,
    nodes: int = 1,
    node: str | None = None,
    changes: Mapping[str, str | float] | None = None,
    defaults: tuple[str, ...] = (),
) -> CollectiveReport:
    """One collective: all_reduce, all_gather, reduce_scatter, all_to_all, broadcast or send_recv.

    Args:
        op: its name.
        size_bytes: bytes as nccl-tests counts them: of all_gather the whole output.
        gpus: GPUs that take part.
        gpu: a device, or its name or file.
        nodes: nodes that they stand on, evenly.
        node: a node of the catalogue, or its file; by default the GPU's own.
        changes: what-ifs on the device.
        defaults: what the caller assumed on the user's behalf, for the report.

    Raises:
        UsageError: no such collective, or more GPUs than the nodes have.
        NotAvailable: no link is published.
    """
    device = device_of(gpu, changes)
    home = catalogue.load(node) if node else catalogue.node_of(device)
    what = collective(op, size_bytes, gpus)
    return CollectiveReport(what, catalogue.group(device, gpus, nodes, home), home, defaults)
