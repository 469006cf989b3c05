"""Serving at a constant number of users: what each of them sees, and what the GPUs give.

    TTFT        = from a request's sending to its first token: start, queue, the pass that reads its prompt
    TPOT        = (from sending to the last token - TTFT) / (osl - 1): the others' prompts are in it
    throughput  = users x osl / time of a request

as means over all requests of a benchmark's run, which is played from event to event (serve_loop) with the
times of the model's passes (serve_times) and the scheduling of an engine (serve_engines). Users whose caches
find no room wait for others to end. With replicas each has its part of the users.

Alone, a user sees TTFT = start + a prompt's pass and TPOT = a step. Where prompts go first and each fills a
pass, u users who come at once see TTFT = start + (u + 1) / 2 x a prompt's pass, as a mean.

Source: the definitions of the serving benchmarks of vLLM, SGLang and TensorRT-LLM: TPOT = (end-to-end time -
TTFT) / (osl - 1), a mean of requests at a maximum concurrency.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any, NamedTuple

from memwall.errors import UsageError
from memwall.hardware import Device
from memwall.maths import ceil_div
from memwall.models.model import Model
from memwall.nodes import node_of
from memwall.parallel.fit import instead, most_sequences, nearest
from memwall.parallel.layout import Layout
from memwall.reports.arguments import ModelLike, checked, model_of
from memwall.reports.case import DEFAULT_GPU, DeviceLike, Formats, device_of
from memwall.reports.expected import Passes, subject
from memwall.reports.notebook import Report
from memwall.reports.serve_engines import CHUNK, DEFAULT_ENGINE, Serving, engine_of
from memwall.reports.serve_loop import Demand, Loop, Outcome
from memwall.reports.serve_times import PassTimes
from memwall.reports.step_layout import layout_of

ROUNDS = 10
"""Requests of each user that serving benchmarks send, by default."""
SPREAD = 0.99
"""Lengths vary by a per cent unless something else is asked: answers that all end in one step keep users in
step, which no traffic does. Chosen on configs/measurements/serving.csv (TTFT 26 %; 1: 34 %)."""
MOST_PROMPTS, MOST_AT_ONCE = 20_000, 100_000
"""Prompts of a replica's run, each once for every pass it takes: with more there are fewer rounds, down to
one; and the most of that one round."""


class Seen(NamedTuple):
    """What the requests of a run saw."""

    ttft_s: float
    """Mean time to the first token [s]."""
    ttft_median_s: float
    ttft_p90_s: float
    """Nine requests of ten have their first token by then [s]."""
    tpot_s: float | None
    """Mean time between two tokens, the others' prompts included; None: of a single one [s]."""
    request_s: float
    """From a prompt's sending to its last token [s]."""
    queue_s: float
    """Waiting for a place among those who run, in the TTFT [s]."""
    requests: int
    osl: float
    """Mean tokens of an answer."""


@dataclass(frozen=True, slots=True, repr=False)
class ServeReport(Report):
    """A model served to so many users."""

    model: Model
    device: Device
    layout: Layout
    formats: Formats
    demand: Demand
    serving: Serving
    slots: int
    """Users of a replica that run at once."""
    seen: Seen
    step_s: float
    """A step of decoding with all who run at once, at their mean context [s]."""
    alone_s: float
    """A prompt read alone [s]."""
    needed_bytes: int
    total_bytes: int
    basis: str
    roomier: tuple[Layout, ...]
    """The nearest layouts that hold it all, where this one does not."""
    most_users: int
    """Of whom this layout holds the caches; `users` if it holds them all."""
    defaults: tuple[str, ...]

    @property
    def users_each(self) -> int:
        """Users of the replica with most."""
        return int(ceil_div(self.demand.users, self.layout.dp))

    @property
    def ttft_s(self) -> float:
        """Mean time to the first token [s]."""
        return self.seen.ttft_s

    @property
    def tpot_s(self) -> float:
        """Mean time between two tokens of a user; of single tokens, a step [s]."""
        return self.step_s if self.seen.tpot_s is None else self.seen.tpot_s

    @property
    def request_s(self) -> float:
        """From a prompt's sending to its last token [s]."""
        return self.seen.request_s

    @property
    def tokens_per_s(self) -> float:
        """Generated, of all users."""
        return self.requests_per_s * self.seen.osl

    @property
    def requests_per_s(self) -> float:
        """Answered, of all users."""
        return self.demand.users / self.request_s

    @property
    def fits(self) -> bool:
        """Whether all users' caches are there at their longest."""
        return self.needed_bytes <= self.total_bytes

    @property
    def missing_bytes(self) -> int:
        """What the fullest GPU lacks of it [B]; 0 if it fits."""
        return max(self.needed_bytes - self.total_bytes, 0)

    @property
    def instead(self) -> str:
        """What to type for it to fit; empty if it does, or if nothing would do."""
        return "" if self.fits else instead(self.roomier, "--concurrency", self.most_users)

    @property
    def decodes(self) -> bool:
        """Whether there are tokens after the first, and so a time between two."""
        return self.demand.osl > 1


@checked
def serve(
    model: ModelLike,
    *,
    users: int,
    isl: int,
    osl: int,
    rounds: int = ROUNDS,
    spread: float = SPREAD,
    engine: str = DEFAULT_ENGINE,
    max_batch: int | None = None,
    ahead: int | None = None,
    poll: int = 1,
    hold: int = 0,
    stream: int = 1,
    gpu: DeviceLike = DEFAULT_GPU,
    dtype: str | None = None,
    weight_dtype: str | None = None,
    kv_dtype: str | None = None,
    changes: Mapping[str, str | float] | None = None,
    defaults: tuple[str, ...] = (),
    **degrees: Any,
) -> ServeReport:
    """TTFT, TPOT and throughput of a model at so many users.

    Args:
        model: a model, or its name or file.
        users: requests in flight, on all GPUs.
        isl: tokens of a prompt, at most.
        osl: tokens of an answer, at most.
        rounds: requests of each user; 1: all come at once and none follows.
        spread: lengths are even from this part of isl and osl up; 1: all alike.
        engine: vllm, trtllm or sglang.
        max_batch: requests that a replica runs at once, at most.
        ahead: steps scheduled ahead; None: as the engine does.
        poll: steps between looks for new requests.
        hold: steps that a prompt is held, so that others join it.
        stream: tokens of an answer sent out together.
        gpu: a device, or its name or file.
        dtype: format that the linear layers compute and are stored in.
        weight_dtype: format that they are stored in.
        kv_dtype: the cache's format.
        changes: what-ifs on the device.
        defaults: what the caller assumed on the user's behalf, for the report.
        degrees: tp, pp, ep, dp, sequence_parallel, imbalance.

    Raises:
        UsageError: an unknown name, a value that cannot be, or a layout that the model does not have.
        NotAvailable: a constant is not published.
    """
    if not 0 < spread <= 1:
        raise UsageError(f"spread is a part of the lengths, above 0 and up to 1, not {spread}", "Try 0.8")
    serving = Serving(engine_of(engine), max_batch, ahead, poll, hold, stream)
    device = device_of(gpu, changes)
    loaded = model_of(model)
    layout = layout_of(loaded, device, degrees)
    served, formats = subject(loaded, device, dtype, weight_dtype, kv_dtype)
    defaults = defaults if dtype else (*defaults, f"dtype {formats.dtype}")
    passes = Passes(served)
    demand = Demand(users, isl, osl, rounds, spread)
    each = demand._replace(users=int(ceil_div(users, layout.dp)))
    _round(each)
    slots = _slots(passes, layout, each, max_batch)
    times = PassTimes(passes, layout, each, slots, serving.host_s)
    return ServeReport(
        loaded,
        device,
        layout,
        formats,
        demand,
        serving,
        slots,
        _played(times, each, serving, slots),
        times.step_s(slots, isl + osl / 2),
        times.read_s(isl),
        passes.needed_bytes(layout, users, isl + osl),
        passes.total_bytes,
        passes.basis,
        *_roomier(passes, layout, users, isl + osl),
        defaults,
    )


def _played(times: PassTimes, demand: Demand, serving: Serving, slots: int) -> Seen:
    """A run of the benchmark on one replica."""
    rules = serving.rules(slots, demand.isl)
    rounds = min(demand.rounds, max(1, MOST_PROMPTS // _round(demand)))
    return seen(Loop(times, demand._replace(rounds=rounds), rules).run())


def _round(demand: Demand) -> int:
    """Passes over the prompts of a round, at least.

    Raises:
        UsageError: more than is played here.
    """
    prompts = int(demand.users * ceil_div(demand.isl, CHUNK))
    if prompts > MOST_AT_ONCE:
        raise UsageError(
            f"{demand.users} users of a replica with prompts of {demand.isl} tokens are more than is played: "
            f"{prompts} passes over prompts in a round",
            f"Ask for fewer: {MOST_AT_ONCE} users of {CHUNK} tokens are the most",
        )
    return prompts


def seen(outcome: Outcome) -> Seen:
    """Means and percentiles of what the users saw."""
    waits = sorted(outcome.ttft_s)
    requests = len(waits)
    return Seen(
        fmean(waits),
        median(waits),
        waits[-(-9 * requests // 10) - 1],
        fmean(outcome.tpot_s) if outcome.tpot_s else None,
        fmean(outcome.request_s),
        fmean(outcome.queue_s),
        requests,
        outcome.made_tokens / requests,
    )


def _slots(passes: Passes, layout: Layout, demand: Demand, max_batch: int | None) -> int:
    """Users of a replica that run at once; where not even one fits, all, as if there were room."""
    length = demand.isl + demand.osl
    empty = passes.needed_bytes(layout, 0, length)
    one = passes.needed_bytes(layout, layout.dp, length) - empty
    room = passes.total_bytes - empty
    by_memory = demand.users if room < one or not one else room // one
    return min(demand.users, by_memory, max_batch or demand.users)


def _roomier(passes: Passes, layout: Layout, users: int, length: int) -> tuple[tuple[Layout, ...], int]:
    """The nearest layouts under which everything fits, and the users that this one holds."""

    def holds(wider: Layout, count: int = users) -> bool:
        return passes.needed_bytes(wider, count, length) <= passes.total_bytes

    if holds(layout):
        return (), users
    model, device = passes.subject.model, passes.subject.device
    return nearest(model, layout, node_of(device), holds), most_sequences(users, lambda n: holds(layout, n))
