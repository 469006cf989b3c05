"""What a reader of times over links needs to know: whose collectives they are, and what they rest on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memwall.collectives import constants_of
from memwall.hardware import Device
from memwall.links import Link
from memwall.nodes import node_of
from memwall.parallel.exchanges import groups_of
from memwall.parallel.layout import Layout
from memwall.reports.evidence import confession


def link_remarks(links: Iterable[Link]) -> list[str]:
    """What holds of estimates over these links, each remark once: weak rates, and constants' own notes."""
    found: list[str] = []
    for link in dict.fromkeys(links):
        known = constants_of(link)
        if known is None:
            found.append(f"no estimate: nothing measured is known of {link.title}")
        elif known.note:
            found.append(f"{link.title}: {known.note}")
        doubts = [link.rate, *(known.basis if known else ())]
        found += [confession(each) for each in doubts if each.weak]
    return list(dict.fromkeys(found))


def pass_remarks(device: Device, layouts: Sequence[Layout]) -> list[str]:
    """What holds of passes under these layouts: whose all-reduces their times have, and their links."""
    summing = [each for each in layouts if each.tp > 1 and not each.sequence_parallel]
    library = dict.fromkeys(link.library for link in _links(device, summing) if link.vendor)
    engine = [
        "all-reduces as inference engines do them: up to a few MB, in one fabric, by a kernel of their own "
        f"(one shot, two shots), else by {name}; memwall collective has both"
        for name in library
    ]
    return [*engine, *link_remarks(_links(device, layouts))]


def _links(device: Device, layouts: Iterable[Layout]) -> list[Link]:
    """The links that layouts talk over, within nodes and between them."""
    node = node_of(device)
    spread = [groups_of(device, layout, node) for layout in layouts if layout.gpus > 1]
    groups = [group for each in spread for group in each if group.gpus > 1]
    return [link for group in groups for link in (group.link, group.network) if link is not None]
