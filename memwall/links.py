"""The links between GPUs: which one a group of them talks over, and how much it carries each way.

Vendors print the sum of both directions; the catalogue and everything here have one. A bridge joins two
cards, or four; what does not fit on it goes over PCIe. Of a mesh (xGMI), where one link joins each pair, a
group of N uses N - 1 of the links.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from memwall.constant import Constant, kind_and_text
from memwall.errors import NotPublished
from memwall.hardware import Device
from memwall.units import GIGA

BETWEEN_GPUS = ("nvlink", "infinity_fabric", "xe_link", "ici", "neuronlink", "scale_up", "ethernet", "pcie")
"""Fastest first; the first that a device's file gives a rate for is the one."""
TITLES = {
    "nvlink": "NVLink",
    "infinity_fabric": "Infinity Fabric",
    "xe_link": "Xe Link",
    "ici": "ICI",
    "neuronlink": "NeuronLink",
    "scale_up": "scale-up link",
    "ethernet": "Ethernet",
    "pcie": "PCIe",
    "nvlink_c2c": "NVLink-C2C",
    "network": "network",
}
_RATE = "gb_per_s_per_direction"


class Link(NamedTuple):
    """What one GPU of a group has towards all the others."""

    kind: str
    """As in the device's file: nvlink, pcie ...; network between nodes."""
    rate: Constant
    """One way, all its lanes [B/s]."""
    generation: float | None = None
    vendor: str = ""
    reach: int | None = None
    """GPUs that it joins at most; None: as many as a node has."""
    form: str = ""
    """A bridge, or the way that messages between peers take, where the device's file says."""

    @property
    def title(self) -> str:
        """For people: NVLink 4."""
        name = TITLES[self.kind]
        return name if self.generation is None else f"{name} {self.generation:g}"

    @property
    def library(self) -> str:
        """The collectives library of its maker's GPUs; between nodes, of whichever they are."""
        return _LIBRARIES.get(self.vendor, "the library")

    @property
    def switched(self) -> bool:
        """Whether its switches can add up what passes through them: NVLink of generation 4 and later."""
        return self.kind == "nvlink" and self.reach is None and (self.generation or 0) >= _REDUCING


_LIBRARIES = {"NVIDIA": "NCCL", "AMD": "RCCL", "Intel": "oneCCL"}
_REDUCING = 4
"""NVLink SHARP came with the third NVSwitch. Source: NVIDIA H100 architecture whitepaper (recalled)."""


def link_between(device: Device, gpus: int) -> Link:
    """The link that so many of a device talk over.

    Raises:
        NotPublished: its file gives no rate for any.
    """
    for kind in BETWEEN_GPUS:
        link = link_of(device, kind)
        if link and (link.reach is None or gpus <= link.reach):
            return _meshed(link, device, gpus)
    raise NotPublished(f"{device.title}: no link to others of its kind is in its file", how_to_give(device))


def how_to_give(device: Device, kind: str = "pcie") -> str:
    """What to type to give a device the link that its file lacks."""
    if kind in device.group("links"):
        return f"Give one: --set links.{kind}.{_RATE}=31.5"
    own = f"memwall gpu show {device.name} --yaml > mine.yaml, and --gpu mine.yaml"
    return f"Add links.{kind}.{_RATE} to its file: {own}"


def link_of(device: Device, kind: str) -> Link | None:
    """A device's link of that kind; None without a published rate."""
    group = device.group("links").get(kind) or {}
    if not group.get(_RATE):
        return None
    generation = group.get("generation")
    number = float(generation) if isinstance(generation, int | float) else None
    form = str(group.get("form") or "")
    vendor = str(device.data["vendor"])
    return Link(kind, _rate(device, kind, group), number, vendor, _reach(kind, form), form)


def network_link(gb_per_s: float, key: str, kind: str, source: str) -> Link:
    """What one GPU has towards other nodes, through its network card."""
    return Link("network", Constant(key, gb_per_s * GIGA, kind, source))


def _rate(device: Device, kind: str, group: Mapping[str, Any]) -> Constant:
    key = f"links.{kind}.{_RATE}"
    value = float(group[_RATE]) * GIGA
    if key in device.assumed:
        return Constant(key, value, "assumed", "set by you")
    entries = group["source"]
    own = [entry for entry in entries if _RATE in (entry.get("for") or ())]
    rest = [entry for entry in entries if not entry.get("for")]
    return Constant(key, value, *kind_and_text((own or rest or entries)[0]))


def _reach(kind: str, form: str) -> int | None:
    """Two cards to a bridge unless it says more."""
    if kind != "nvlink" or "bridge" not in form:
        return None
    return max((int(number) for number in re.findall(r"(\d)-way", form)), default=2)


def _meshed(link: Link, device: Device, gpus: int) -> Link:
    """Of a mesh, the links to the group's others; the sum needs all peers busy."""
    links = device.group("links")[link.kind].get("links")
    if link.kind != "infinity_fabric" or not links or gpus > links:
        return link
    used = max(gpus - 1, 1)
    note = f"{used} of {links} links: one joins each pair"
    return link._replace(rate=link.rate.computed(link.rate.value * used / links, (link.rate,), note))
