"""Which layout to serve a model with: those that fit and meet the targets, ranked, and why each other fails.

    TTFT    a prefill of one prompt alone on its replica, nothing queued before it
    TPOT    a step of decoding with the whole batch at the full context: time between two tokens of a user
    tokens/s of a layout = batch / TPOT; a GPU's share is divided by the GPUs

Each layout takes the largest batch, of 1, 2, 4 ..., that fits and keeps the targets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from memwall.errors import MemwallError, UsageError
from memwall.hardware import Device
from memwall.models.mlps import Experts
from memwall.models.model import Model
from memwall.models.passes import Tokens
from memwall.nodes import node_of
from memwall.parallel.layout import Layout, faults
from memwall.reports.arguments import ModelLike, checked, model_of
from memwall.reports.case import DEFAULT_GPU, DeviceLike, Formats, device_of
from memwall.reports.expected import Passes, subject
from memwall.reports.notebook import Report
from memwall.units import format_bytes, format_seconds

LARGEST_BATCH = 4096
"""Sequences of a replica beyond which no batch is tried: engines are not run with more."""
HOUR_S = 3600
TOO_LARGE = "does not fit"
DOUBLINGS = 6


class Targets(NamedTuple):
    """What is asked of a layout."""

    context: int
    """Tokens of a sequence when it is longest."""
    prompt: int
    ttft_s: float | None = None
    tpot_s: float | None = None


class Candidate(NamedTuple):
    """A layout, with the batch that it serves best."""

    layout: Layout
    batch: int = 0
    ttft_s: float | None = None
    tpot_s: float | None = None
    needed_bytes: int = 0
    reason: str = ""
    """Why it fails; empty if it does not."""

    @property
    def fits(self) -> bool:
        """Whether its smallest batch is within the memory."""
        return not self.reason.startswith(TOO_LARGE)

    @property
    def meets(self) -> bool:
        """Whether it fits and keeps every target."""
        return not self.reason

    @property
    def tokens_per_s(self) -> float:
        """Of all its users; 0 if it fails."""
        return self.batch / self.tpot_s if self.tpot_s and self.meets else 0

    @property
    def tokens_per_s_per_gpu(self) -> float:
        """Those, a GPU."""
        return self.tokens_per_s / self.layout.gpus


@dataclass(frozen=True, slots=True, repr=False)
class PlanReport(Report):
    """Every layout of so many GPUs."""

    model: Model
    device: Device
    gpus: int
    formats: Formats
    targets: Targets
    candidates: tuple[Candidate, ...]
    """Best first, then those that fail."""
    evaluated: int
    """Layouts and batches looked at."""
    total_bytes: int
    defaults: tuple[str, ...]
    impossible: tuple[str, ...] = ()
    """Why yet others cannot be: degrees that the model or the node does not have."""
    enough_gpus: int | None = None
    """GPUs, doubled, of which some layout holds it where none of so many does; None: no need, or none."""
    price_per_gpu_hour: float | None = None
    """As the user named it; None: no cost is asked for."""

    def price_per_token(self, candidate: Candidate) -> float | None:
        """Of a generated token: GPUs x $/GPU-hour / 3600 / tokens a second; None without a price."""
        if self.price_per_gpu_hour is None or not candidate.tokens_per_s:
            return None
        return candidate.layout.gpus * self.price_per_gpu_hour / HOUR_S / candidate.tokens_per_s

    @property
    def chosen(self) -> Candidate | None:
        """The best; None if all fail."""
        return self.candidates[0] if self.candidates and self.candidates[0].meets else None


@checked
def plan(
    model: ModelLike,
    *,
    gpu: DeviceLike = DEFAULT_GPU,
    gpus: int = 8,
    context: int,
    prompt: int | None = None,
    ttft_s: float | None = None,
    tpot_s: float | None = None,
    batch: int | None = None,
    price: float | None = None,
    dtype: str | None = None,
    weight_dtype: str | None = None,
    kv_dtype: str | None = None,
    changes: Mapping[str, str | float] | None = None,
    defaults: tuple[str, ...] = (),
) -> PlanReport:
    """Layouts of a model on so many GPUs.

    Args:
        model: a model, or its name or file.
        gpu: a device, or its name or file.
        gpus: how many there are; every layout uses them all.
        context: tokens of a sequence when it is longest.
        prompt: tokens of the prompt; by default the whole context.
        ttft_s: time to first token that must be kept [s].
        tpot_s: time between tokens that must be kept [s].
        batch: sequences on all GPUs; by default the best of 1, 2, 4 ... a replica.
        price: of a GPU-hour, for the cost of tokens.
        dtype: format that the linear layers compute and are stored in.
        weight_dtype: format that they are stored in.
        kv_dtype: the cache's format.
        changes: what-ifs on the device.
        defaults: what the caller assumed on the user's behalf, for the report.

    Raises:
        UsageError: an unknown name, or no such model or context.
        NotAvailable: a constant is not published.
    """
    device = device_of(gpu, changes)
    loaded = model_of(model)
    if prompt is not None and prompt > context:
        raise UsageError(f"a prompt of {prompt} tokens is longer than the context", f"Try --context {prompt}")
    served, formats = subject(loaded, device, dtype, weight_dtype, kv_dtype)
    defaults = defaults if dtype else (*defaults, f"dtype {formats.dtype}")
    targets = Targets(context, prompt or context, ttft_s, tpot_s)
    passes = Passes(served)
    possible, impossible = _sorted_out(list(layouts(loaded, gpus)), loaded, device)
    searches = [Search(passes, layout, targets, batch) for layout in possible]
    found = [search.best() for search in searches]
    ranked = sorted(found, key=lambda each: (not each.meets, -each.tokens_per_s, each.layout))
    evaluated = sum(search.evaluated for search in searches)
    return PlanReport(
        loaded, device, gpus, formats, targets, tuple(ranked), evaluated, passes.total_bytes, defaults,
        impossible, None if any(each.fits for each in found) else _enough(passes, gpus, targets), price,
    )  # fmt: skip


def layouts(model: Model, gpus: int) -> Iterator[Layout]:
    """Every way to use all GPUs: tp x pp x dp, experts cut with the matrices or spread over tp x dp."""
    mixture = any(isinstance(mlp, Experts) for group in model.layers for mlp in group.mlps)
    for tp in _divisors(gpus):
        for pp in _divisors(gpus // tp):
            dp = gpus // tp // pp
            yield Layout(tp=tp, pp=pp, dp=dp)
            if mixture:
                yield from (Layout(tp=tp, pp=pp, dp=dp, ep=ep) for ep in _divisors(tp * dp) if ep > 1)


def _enough(passes: Passes, gpus: int, targets: Targets) -> int | None:
    """The fewest GPUs, doubled, of which a layout holds one sequence a replica."""
    model, device = passes.subject.model, passes.subject.device
    for count in (gpus << doubling for doubling in range(1, DOUBLINGS + 1)):
        possible, _ = _sorted_out(list(layouts(model, count)), model, device)
        if any(
            passes.needed_bytes(each, each.dp, targets.context) <= passes.total_bytes for each in possible
        ):
            return count
    return None


def _sorted_out(every: list[Layout], model: Model, device: Device) -> tuple[list[Layout], tuple[str, ...]]:
    """Those that can be, and why the others cannot: each reason once, with the degrees that it is about."""
    node = node_of(device)
    wrong = [(each, next(faults(each, model, node), None)) for each in every]
    reasons: dict[str, list[str]] = {}
    for message in dict.fromkeys(fault.message for _, fault in wrong if fault):
        degree, _, reason = message.partition(": ")
        reasons.setdefault(reason, []).append(degree.removeprefix("--"))
    texts = (f"{', '.join(degrees)}: {reason}" for reason, degrees in reasons.items())
    return [each for each, fault in wrong if fault is None], tuple(texts)


def _divisors(number: int) -> list[int]:
    return [each for each in range(1, number + 1) if number % each == 0]


class Search:
    """The best batch of one layout."""

    def __init__(self, passes: Passes, layout: Layout, targets: Targets, batch: int | None) -> None:
        self.passes, self.layout, self.targets, self.batch = passes, layout, targets, batch
        self.total = passes.total_bytes
        self.evaluated = 0

    def best(self) -> Candidate:
        """The layout with the largest batch that keeps everything; or with why the smallest does not."""
        try:
            return self._search()
        except MemwallError as error:
            return Candidate(self.layout, reason=_short(error))

    def _search(self) -> Candidate:
        """From the largest batch down: more sequences never give fewer tokens a second."""
        found = self._at(self._batches()[0])  # the smallest, whose reason is the layout's
        for batch in reversed(self._batches()[1:] if found.meets else []):
            larger = self._at(batch)
            if larger.meets:
                return larger
        return found

    def _batches(self) -> list[int]:
        """Batches to try, doubling, those beyond the first as far as they fit."""
        if self.batch:
            return [self.batch]
        first = self.layout.dp
        sizes = [first]
        while 2 * sizes[-1] <= LARGEST_BATCH * first and self._needed(2 * sizes[-1]) <= self.total:
            sizes.append(2 * sizes[-1])
        return sizes

    @cached_property
    def prefill_s(self) -> float:
        """Of one prompt on one replica."""
        prompt = self.targets.prompt
        alone = self.layout._replace(dp=1) if self.layout.ep == 1 else self.layout
        return self.passes.time(alone, Tokens(alone.dp, prompt, prompt), prefill=True).time_s

    def _needed(self, batch: int) -> int:
        self.evaluated += 1
        return self.passes.needed_bytes(self.layout, batch, self.targets.context)

    def _at(self, batch: int) -> Candidate:
        targets, needed = self.targets, self._needed(batch)
        if needed > self.total:
            over = f"{TOO_LARGE}: {format_bytes(needed - self.total)} too much on a GPU"
            return Candidate(self.layout, batch, needed_bytes=needed, reason=over)
        ttft_s = self.prefill_s
        here = Candidate(self.layout, batch, ttft_s, None, needed)
        tpot_s = self.passes.time(self.layout, Tokens(batch, 1, targets.context), prefill=False).time_s
        here = here._replace(tpot_s=tpot_s)
        if targets.ttft_s is not None and ttft_s > targets.ttft_s:
            over = f"TTFT {format_seconds(ttft_s)} > {format_seconds(targets.ttft_s)}"
            return here._replace(reason=over)
        if targets.tpot_s is not None and tpot_s > targets.tpot_s:
            over = f"TPOT {format_seconds(tpot_s)} > {format_seconds(targets.tpot_s)} at batch {batch}"
            return here._replace(reason=over)
        return here


def _short(error: MemwallError) -> str:
    return error.message
