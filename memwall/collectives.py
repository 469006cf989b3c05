"""Collectives: the least time that a link needs for one, and what a good library takes.

Bytes are counted as nccl-tests does: of all_reduce, broadcast and send_recv the buffer of one GPU, of
all_gather the whole output, of reduce_scatter and all_to_all the whole input. Each GPU sends, and receives,

    all_reduce                        2 (N-1)/N S; S where the switch does the sums
    all_gather, reduce_scatter, all_to_all      (N-1)/N S
    broadcast, send_recv                        S

    bound    = wire bytes / (link one way)
    estimate = start + steps x step + min(wire / (a x link), fill + wire / (share x link))

A ring takes N - 1 steps, twice as many to reduce and spread; an exchange is one step among all. Short
messages travel under a protocol that needs no fence and has a part of the link (a), long ones pay to fill
the pipeline and have more of it. The estimate's constants stand in hardware/standards/collectives.yaml.

Source: Patarasuk and Yuan 2009, JPDC 69(2) (the ring's optimality); nccl-tests doc/PERFORMANCE.md (counting).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from memwall.bound import Term
from memwall.catalog import shipped_text
from memwall.constant import Constant, kind_and_text
from memwall.errors import UsageError
from memwall.links import Link
from memwall.maths import Count, minimum, where
from memwall.units import to_si
from memwall.yamlfile import parse

OPS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send_recv")
FILE = "hardware/standards/collectives.yaml"
LARGEST_GROUP = 100_000
FEWEST_IN_SWITCH = 5
"""GPUs from which NCCL lets the switch reduce (measured: not on 2 and 4, on 8)."""


class Collective(NamedTuple):
    """One collective: what, how much, among how many."""

    op: str
    bytes: int
    gpus: int

    def wire_bytes(self, in_switch: bool = False) -> float:
        """What each GPU sends, and receives [B]."""
        size, n = self.bytes, self.gpus
        if n == 1:
            return 0
        if self.op in ("broadcast", "send_recv") or (self.op == "all_reduce" and in_switch):
            return size
        return size * self.factor

    @property
    def factor(self) -> float:
        """Busbw / algbw, as nccl-tests has it."""
        n = self.gpus
        if self.op in ("broadcast", "send_recv"):
            return 1
        return (2 if self.op == "all_reduce" else 1) * (n - 1) / n

    @property
    def steps(self) -> int:
        """Messages that follow on each other."""
        n = self.gpus
        return {"all_reduce": 2 * (n - 1), "all_to_all": 1, "send_recv": 1}.get(self.op, n - 1)

    @property
    def exchanges(self) -> bool:
        """Whether each GPU sends straight to the others, not along a ring."""
        return self.op in ("all_to_all", "send_recv")


class Estimate(NamedTuple):
    """What a good library takes, and on what that rests."""

    time_s: float
    algorithm: str
    """ring, ring, low latency; in-switch; exchange."""
    basis: tuple[Constant, ...]


def collective(op: str, size_bytes: int, gpus: int) -> Collective:
    """A collective by name; dashes are taken for underscores.

    Raises:
        UsageError: no such collective, or fewer than one GPU.
    """
    name = op.replace("-", "_").lower()
    name = {"alltoall": "all_to_all", "allreduce": "all_reduce", "allgather": "all_gather"}.get(name, name)
    if name not in OPS:
        raise UsageError(f"no collective is called '{op:.40}'", f"One of: {', '.join(OPS)}")
    if not 1 <= gpus <= LARGEST_GROUP or size_bytes < 0:
        raise UsageError(f"a collective of {size_bytes} bytes among {gpus} GPUs cannot be", "Try --gpus 8")
    return Collective(name, size_bytes, gpus)


def bound_term(what: Collective, link: Link, times: float = 1) -> Term:
    """The link's term of a bound: wire bytes over its rate one way, so many times."""
    return Term("link", what.wire_bytes(link.switched) * times, link.rate.value, (link.rate,))


def estimate(what: Collective, link: Link) -> Estimate | None:
    """The expected time of a good library (NCCL, RCCL, oneCCL); None for a link that nothing is known of."""
    known = constants_of(link)
    if known is None:
        return None
    if what.gpus == 1:
        return Estimate(0, "none", ())
    start_s = known.number("start_us") + what.steps * known.number("step_us")
    wire, n = what.wire_bytes(), what.gpus
    if what.exchanges:
        start_s += known.number("exchange_us")
    crowd = min(1, 2 / n) ** known.number("crowding", 0)
    rate = link.rate.value * crowd
    ring = "exchange" if what.exchanges else "ring"
    ways = [
        (wire / (rate * known.number("low_latency_share")), f"{ring}, low latency"),
        (known.number("fill_us") + wire / (rate * known.share(what)), ring),
    ]
    if what.op == "all_reduce" and link.switched and known.in_switch and n >= FEWEST_IN_SWITCH:
        share = link.rate.value * known.number("in_switch_share")
        ways.append((known.number("in_switch_fill_us") + what.bytes / share, "in-switch"))
    moved_s, way = _quickest(ways)
    return Estimate(start_s + moved_s, way, known.basis)


def engine_estimate(what: Collective, link: Link) -> Estimate | None:
    """The time inside an inference engine: of a short all-reduce by a kernel of its own, where that is less.

    Such a kernel reads every peer's buffer at once (one shot), or a part of it and then the sums (two shots):

        one shot: start + (N - 1) S / (share x link)     two shots: 2 start + 2 (N-1)/N S / (share x link)

    Engines have it for GPUs that see each other's memory over a fabric, and messages of a few MB; it is taken
    here wherever it is the faster, which on two GPUs it is, by a tenth, for longer ones too.
    """
    library = estimate(what, link)
    known = constants_of(link)
    own = known.own.get("one_shot", known.common.get("one_shot")) if known else None
    reachable = link.kind in ("nvlink", "infinity_fabric") and what.gpus > 1
    if library is None or own is None or what.op != "all_reduce" or not reachable:
        return library
    start_s, rate = to_si("start_us", own["start_us"]), link.rate.value * own["share"]
    n = what.gpus
    ways = [
        (start_s + (n - 1) * what.bytes / rate, "one shot"),
        (2 * start_s + what.wire_bytes() / rate, "two shots"),
        (library.time_s, library.algorithm),
    ]
    time_s, way = _quickest(ways)
    return Estimate(time_s, way, library.basis)


def _quickest(ways: Sequence[tuple[Count, Count]]) -> tuple[Count, Count]:
    """The least of several times, and the name of what takes it."""
    time_s, way = ways[0]
    for other_s, other in ways[1:]:
        time_s, way = minimum(time_s, other_s), where(other_s < time_s, other, way)
    return time_s, way


class Constants(NamedTuple):
    """The estimate's numbers for one kind of link."""

    own: Mapping[str, Any]
    common: Mapping[str, Any]

    def number(self, key: str, default: float | None = None) -> float:
        """A number in SI units: the link's own, else the common one."""
        value = self.own.get(key, self.common.get(key, default))
        return float(value if "_" not in key or key.endswith("share") else to_si(key, value))

    def share(self, what: Collective) -> float:
        """The part of the link that long messages have."""
        shares = self.own.get("shares", self.common["shares"])
        if what.exchanges:
            return float(shares["exchange"])
        turn = shares["all_reduce_turn" if what.op == "all_reduce" else "ring_turn"]
        return float(1 / (shares["ring_wire"] + turn * what.gpus / (what.gpus - 1)))

    @property
    def in_switch(self) -> bool:
        """Whether its switches are known to reduce."""
        return bool(self.own.get("in_switch"))

    @property
    def note(self) -> str:
        """What a reader of the estimate should know; empty if nothing."""
        return str(self.own.get("note", ""))

    @property
    def basis(self) -> tuple[Constant, ...]:
        """Where they come from."""
        return tuple(
            Constant(f"collectives.{self.own['name']}", 0, *kind_and_text(entry))
            for entry in self.own["source"]
        )


@cache
def constants_of(link: Link) -> Constants | None:
    """The constants for a link: those of its kind, generation and vendor; the most particular match."""
    data = _file()
    found = [kind for kind in data["kinds"] if _matches(kind["match"], link)]
    best = max(found, key=lambda kind: len(kind["match"]), default=None)
    return None if best is None else Constants(best, data["common"])


def _matches(match: Mapping[str, Any], link: Link) -> bool:
    has = {"link": link.kind, "generation": link.generation, "vendor": link.vendor, "form": link.form}
    return all(has[key] == value for key, value in match.items())


def host_share() -> float:
    """The part of the link to the host that large copies reach."""
    return float(_file()["host"]["share"])


@cache
def _file() -> dict[str, Any]:
    return parse(shipped_text(FILE), FILE)
