"""A pass on several GPUs: one GPU's part of it, what passes between them, the link's term of the bound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index
from typing import Any, NamedTuple

from memwall import nodes
from memwall.bound import Bound, Term
from memwall.errors import UsageError
from memwall.estimate.engine import Engine
from memwall.hardware import Device
from memwall.maths import Count
from memwall.models.model import Model
from memwall.models.passes import Tokens
from memwall.models.step.launch import Setting
from memwall.parallel.exchanges import Exchange, exchanges, groups_of
from memwall.parallel.host import HostStream, streams
from memwall.parallel.layout import Layout, check
from memwall.parallel.stages import filled, slowest_share, waiting_share
from memwall.units import format_bytes, parse_size


class Spread(NamedTuple):
    """A layout, and what its GPUs exchange in one microbatch's way through it."""

    layout: Layout
    exchanges: tuple[Exchange, ...]
    batch: int
    """Sequences on all GPUs."""
    decoding: bool
    host: tuple[HostStream, ...] = ()
    """What each GPU fetches from its host in a pass."""

    @property
    def bound_time_s(self) -> float:
        """The sum of the exchanges' bounds [s]."""
        return sum(each.repeats * each.bound_time_s for each in self.exchanges)

    @property
    def offloaded_bytes(self) -> int:
        """What is in the host's memory instead of a GPU's [B]."""
        return sum(each.bytes for each in self.host)

    def beside_host(self, time_s: float) -> float:
        """A pass of that time on the GPUs, with what it fetches from the host meanwhile [s]."""
        return max(time_s, sum(each.estimate_time_s for each in self.host))

    @property
    def estimate_time_s(self) -> float | None:
        """The sum of the exchanges' expected times in an engine [s]; None where a link is unknown."""
        known = [(each.repeats, each.estimate_time_s) for each in self.exchanges]
        times = [repeats * time_s for repeats, time_s in known if time_s is not None]
        return sum(times) if len(times) == len(known) else None

    @property
    def bubble(self) -> Count:
        """Part of the time in which a stage of the pipeline waits.

        A prefill of m microbatches through p stages: (p - 1) / (m + p - 1). Decoding never drains: 1 - m / p.
        """
        return self.waits(self.stretch)

    def waits(self, stretch: Count) -> Count:
        """The same of a pass that takes so many times one microbatch's way through all stages."""
        return waiting_share(self.layout.microbatches(self.batch), self.layout.pp, stretch)

    @property
    def stretch(self) -> float:
        """Time of the pass over that of one microbatch through all stages: (m + p - 1) / p in a prefill."""
        m, p = self.layout.microbatches(self.batch), self.layout.pp
        filled: float = (m + p - 1) / p
        return 1 if self.decoding else filled

    def expected_stretch(self, layers: int, head_share: Count) -> Count:
        """The same of an estimate, whose stages are as engines cut them: see memwall.parallel.stages."""
        p = self.layout.pp
        if p == 1:
            return self.stretch
        slowest = slowest_share(layers, p, head_share)
        return filled(self.layout.microbatches(self.batch), slowest, self.decoding)


def layout_of(model: Model, device: Device, asked: Mapping[str, Any]) -> Layout:
    """The layout that is asked for, on GPUs of that kind.

    Raises:
        UsageError: the model cannot be laid out so.
    """
    layout = Layout(**{key: asked[key] for key in Layout._fields if key in asked})
    if layout.imbalance < 1:
        raise UsageError(
            "--imbalance is the busiest GPU's tokens / the mean: at least 1", "Try --imbalance 1.2"
        )
    check(layout, model, device)
    if layout.imbalance > layout.ep == 1:
        raise UsageError(
            "--imbalance is of experts that are spread over GPUs, and here none are",
            "Leave it out, or spread the experts with --ep",
        )
    if layout.imbalance > layout.ep:
        raise UsageError(
            f"--imbalance {layout.imbalance:g}: at {layout.ep} one of {layout.ep} GPUs has all the tokens",
            f"Try --imbalance {layout.ep}",
        )
    return layout


def part_of(setting: Setting, layout: Layout, tokens: Tokens) -> Setting:
    """What one GPU's kernels are made under: its part of the batch, and of the tokens between its layers."""
    local = tokens._replace(batch=layout.local_batch(tokens.batch))
    met = local.batch * local.seq_q * layout.expert_dp if layout.expert_dp > 1 else 0
    return setting._replace(
        tokens=local,
        spread=layout.tp if layout.sequence_parallel else 1,
        expert_gpus=layout.ep,
        expert_rows=met,
        imbalance=layout.imbalance,
    )


def exchanged(model: Model, device: Device, layout: Layout, setting: Setting) -> tuple[Exchange, ...]:
    """The collectives of a pass; none on one GPU.

    Raises:
        UsageError: the layout needs more GPUs in a node than it has.
        NotPublished: no link is known.
    """
    if layout.gpus == 1:
        return ()
    return exchanges(model, layout, setting, groups_of(device, layout, nodes.node_of(device)))


def spread_of(
    model: Model, device: Device, layout: Layout, setting: Setting, asked: Mapping[str, Any]
) -> Spread:
    """A layout with all that passes over its links.

    Raises:
        UsageError, NotPublished: as `exchanged` and memwall.parallel.host.streams say.
    """
    weights, cache = (parse_size(str(asked[key] or 0), f"--{key.replace('_', '-')}") for key in OFFLOADS)
    gpus = min(layout.gpus, node.gpus) if (node := nodes.node_of(device)) else layout.gpus
    return Spread(
        layout,
        exchanged(model, device, layout, setting),
        asked["batch"],
        not setting.prefill,
        streams(device, weights, cache, gpus, node),
    )


def check_offloads(spread: Spread, weight_bytes: Count, cache_bytes: Count) -> None:
    """Whether a GPU has as much as is to be kept in its host's memory.

    Raises:
        UsageError: there is less of it.
    """
    there = {"weights": weight_bytes, "cache": cache_bytes}
    for each in spread.host:
        kind = each.name.partition(".")[2]
        if each.bytes > there[kind]:
            have_bytes = index(there[kind])
            asked, have = format_bytes(each.bytes), format_bytes(have_bytes)
            raise UsageError(
                f"--offload-{kind}: {asked} of each GPU's {kind}, and it has {have}",
                f"Try --offload-{kind} {have_bytes // 2}B",
            )


OFFLOADS = ("offload_weights", "offload_cache")


def with_links(whole: Bound, spread: Spread) -> Bound:
    """The bound with the time of the busiest kind of link among its terms; links of two kinds overlap."""
    busiest = busiest_link([*(e.term for e in spread.exchanges), *(e.term for e in spread.host)])
    if busiest is None:
        return whole
    terms = sorted([*whole.terms, busiest], key=lambda term: term.time_s, reverse=True)
    return whole._replace(terms=tuple(terms))


def busiest_link(terms: Iterable[Term]) -> Term | None:
    """The terms of each kind of link added up, the one that takes longest; None if nothing passes."""
    by_link: dict[str, Term] = {}
    for term in terms:
        key = term.rests_on[0].key
        amount = term.amount + (by_link[key].amount if key in by_link else 0)
        by_link[key] = term._replace(amount=amount)
    busiest = max(by_link.values(), key=lambda term: term.time_s, default=None)
    return busiest if busiest is not None and busiest.amount else None


def engine_s(engine: Engine, model: Model, device: Device, spread: Spread, batch: Count) -> Count:
    """What an engine adds to the kernels and exchanges of a pass, of a GPU's batch [s]."""
    layers = sum(group.repeats for group in model.layers)
    exchanges = sum(each.repeats for each in spread.exchanges)
    return engine.overhead_s(device, layers, batch, spread.layout.tp, spread.layout.pp, exchanges)
