"""What a file of hardware/nodes/ may hold."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from memwall.schema.base import Name, Positive, Sourced, Strict, Text, Whole


class Fabric(Sourced):
    """What joins the GPUs; each GPU's own link stands in the GPU's file."""

    kind: Text
    switches: Whole | None = None
    note: str | None = None


class Network(Sourced):
    """The cards towards other nodes; bandwidth is one way."""

    form: Text
    cards: Whole
    gb_per_s_per_card: Positive


class Host(Sourced):
    """The processors and their memory."""

    form: Text
    memory_gb: Positive
    memory_gb_per_s: Positive


class Storage(Sourced):
    """Local drives."""

    nvme_gb: Positive


class SystemPower(Sourced):
    """Of the whole system, at most."""

    system_w: Positive


class NodeFile(Strict):
    """One node: GPUs joined by one fabric."""

    EXAMPLE: ClassVar[str] = "memwall node dgx-h100 --yaml"

    name: Name
    title: str = Field(max_length=80)
    aliases: list[str] = Field(default_factory=list)
    gpu: Name
    gpus: Whole
    fabric: Fabric
    network: Network | None = None
    host: Host | None = None
    storage: Storage | None = None
    power: SystemPower | None = None
