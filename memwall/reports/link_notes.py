"""What a reader of times over links needs to know: whose collectives they are, and what they rest on."""

from __future__ import annotations

from collections.abc import Iterable

from memwall.collectives import constants_of
from memwall.hardware import Device
from memwall.links import Link
from memwall.nodes import node_of
from memwall.parallel.exchanges import groups_of
from memwall.parallel.layout import Layout
from memwall.reports.evidence import confession


def link_remarks(links: Iterable[Link], unknown: str = "no estimate") -> list[str]:
    """What holds of estimates over these links, each remark once: weak rates, and constants' own notes."""
    found: list[str] = []
    for link in dict.fromkeys(links):
        known = constants_of(link)
        if known is None:
            found.append(f"{unknown}: nothing measured is known of {link.title}")
        elif known.note:
            found.append(f"{link.title}: {known.note}")
        doubts = [link.rate, *(known.basis if known else ())]
        found += [confession(each) for each in doubts if each.weak]
    return list(dict.fromkeys(found))


def engine_remark(layouts: Iterable[Layout]) -> list[str]:
    """Whose all-reduces the times of passes under these layouts have; nothing if they do none."""
    if not any(each.tp > 1 and not each.sequence_parallel for each in layouts):
        return []
    return [
        "all-reduces as inference engines do them: in one fabric by a kernel of their own where that is "
        "faster (one shot, two shots), else by the maker's library (NCCL, RCCL); memwall collective has both"
    ]


def own_kernel_remark(link: Link) -> list[str]:
    """That an engine's own all-reduce over such a link is an assumption; nothing where it was measured."""
    if link.kind not in ("nvlink", "infinity_fabric") or (link.kind, link.generation) == MEASURED_OWN:
        return []
    return [
        f"an engine's own all-reduce over {link.title}: start and share are assumed to be those of 8 H100"
    ]


MEASURED_OWN = ("nvlink", 4)
"""Kind and generation of the link that engines' own all-reduces were measured over."""


def pass_remarks(device: Device, layouts: Iterable[Layout]) -> list[str]:
    """What holds of the links that passes under these layouts talk over."""
    spread = [each for each in layouts if each.gpus > 1]
    summing = [each for each in spread if each.tp > 1 and not each.sequence_parallel]
    own = [remark for link in _links(device, summing) for remark in own_kernel_remark(link)]
    alone = [
        f"no node with a {device.name} is in the catalogue: all GPUs are taken to stand in one"
        for _ in spread[:1]
        if node_of(device) is None
    ]
    return [
        *alone,
        *dict.fromkeys(own),
        *link_remarks(_links(device, spread), "the links' bound stands for an estimate"),
    ]


def _links(device: Device, layouts: Iterable[Layout]) -> list[Link]:
    """The links that layouts talk over, within nodes and between them."""
    node = node_of(device)
    spread = [groups_of(device, layout, node) for layout in layouts if layout.gpus > 1]
    groups = [group for each in spread for group in each if group.gpus > 1]
    return [link for group in groups for link in (group.link, group.network) if link is not None]
