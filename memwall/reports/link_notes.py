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


def engine_remark(links: Iterable[Link]) -> list[str]:
    """Whose all-reduces the time of a pass has; nothing without links."""
    names = list(dict.fromkeys(link.library for link in links if link.vendor))
    if not names:
        return []
    return [
        "all-reduces as inference engines do them: up to a few MB, in one fabric, by a kernel of their own "
        f"(one shot, two shots), else by {' or '.join(names)}; memwall collective has both"
    ]


def links_of(device: Device, layouts: Iterable[Layout]) -> list[Link]:
    """The links that layouts talk over, within nodes and between them."""
    node = node_of(device)
    spread = [groups_of(device, layout, node) for layout in layouts if layout.gpus > 1]
    groups = [group for each in spread for group in each if group.gpus > 1]
    found = [link for group in groups for link in (group.link, group.network) if link is not None]
    return list(dict.fromkeys(found))
