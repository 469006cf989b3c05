"""Where the energy of a pass goes, as far as the energy of a bit is published.

    memory = bytes through DRAM on all GPUs x 8 x pJ/bit        links = bytes sent x 8 x pJ/bit
    the rest = watts x time - memory - links: arithmetic, caches, leakage, waiting

The bytes are the pass's compulsory traffic. A figure for which no source was found makes its part unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from memwall.catalog import shipped_text
from memwall.constant import Constant, kind_and_text
from memwall.hardware import Device
from memwall.links import Link
from memwall.reports.step_report import StepReport
from memwall.units import to_si
from memwall.yamlfile import parse

FILE = "hardware/standards/energy.yaml"
BITS = 8


class Split(NamedTuple):
    """Energy of one token of a pass [J]; None: no figure was found."""

    total_j: float
    memory_j: float | None
    links_j: float | None
    """0 on one GPU."""

    @property
    def rest_j(self) -> float | None:
        """What neither memory nor links take; None if the memory's part is unknown, or they take more."""
        rest = None if self.memory_j is None else self.total_j - self.memory_j - (self.links_j or 0)
        return None if rest is None or rest < 0 else rest


def split(report: StepReport, total_j: float, tokens: int) -> Split:
    """The energy of a token of a pass.

    Args:
        report: the pass; its work is that of one GPU of each group of stages and one microbatch.
        total_j: of a token, from power and time [J].
        tokens: of the pass.
    """
    layout, batch = report.spread.layout, report.tokens.batch
    columns = layout.tp * layout.dp * layout.microbatches(batch)
    memory = memory_energy(report.device)
    traffic = report.whole.work.traffic_bytes * columns / tokens
    sent = [
        (each.repeats * each.what.wire_bytes() * columns / tokens, each.group.network or each.group.link)
        for each in report.spread.exchanges
    ]
    known = [(size, link_energy(link)) for size, link in sent]
    links = [size * BITS * constant.value for size, constant in known if constant]
    return Split(
        total_j,
        None if memory is None else traffic * BITS * memory.value,
        sum(links) if len(links) == len(known) else None,
    )


def memory_energy(device: Device) -> Constant | None:
    """Of a bit to or from the device's memory [J]; None if no figure was found."""
    return _find("memory", {"type": device.group("memory").get("type")})


def link_energy(link: Link) -> Constant | None:
    """Of a bit over a link [J]; None if nobody has published it."""
    return _find("links", {"link": link.kind, "generation": link.generation})


def _find(kind: str, has: Mapping[str, Any]) -> Constant | None:
    entries: Iterable[Mapping[str, Any]] = _file()[kind]
    found = next(
        (e for e in entries if all(has.get(key) == value for key, value in e["match"].items())), None
    )
    if found is None:
        return None
    how, source = kind_and_text(found["source"][0])
    name = "-".join(map(str, found["match"].values()))
    return Constant(f"energy.{name}", to_si("pj", found["pj_per_bit"]), how, source, found["what"])


@cache
def _file() -> dict[str, Any]:
    return parse(shipped_text(FILE), FILE)
