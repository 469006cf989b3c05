"""What fits: weights, cache and a reserve, in the memory of one GPU or of several that share a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memwall.constant import Constant
from memwall.dtypes import find
from memwall.errors import UsageError, shown
from memwall.hardware import Device
from memwall.memory.activations import TOKENS_A_PASS
from memwall.memory.budget import Budget, total_memory
from memwall.memory.question import DEFAULT_BLOCK, Question, stored_as
from memwall.memory.sequences import POLICIES, Pool, Waste, is_latent, waste
from memwall.models.model import Model
from memwall.models.step.sides import source_default
from memwall.models.step.sides import source_tokens as read_by_encoder
from memwall.models.storage import PLAIN
from memwall.parallel.layout import check_tp, shared_sizes
from memwall.reports.arguments import ModelLike, checked, model_of
from memwall.reports.case import DEFAULT_GPU, DeviceLike, device_of
from memwall.reports.notebook import Report
from memwall.units import parse_size

if TYPE_CHECKING:
    from memwall.reports.levers import Lever

DEFAULT_CONTEXT = 4096
"""Where neither the user nor the model's file says."""


@dataclass(frozen=True, slots=True, repr=False)
class CapacityReport(Report):
    """What fits on one device, or on each of several that share the model. All bytes are of one GPU."""

    device: Device
    question: Question
    total: Constant
    """The device's memory, and how it is known."""
    budget: Budget
    pool: Pool
    defaults: tuple[str, ...]

    @property
    def model(self) -> Model:
        """The model."""
        return self.question.model

    @property
    def fits(self) -> bool:
        """Whether `batch` sequences of `context` tokens do."""
        return self.shortfall_bytes == 0

    @property
    def cache_bytes(self) -> int:
        """What `batch` sequences of `context` tokens take, in whole blocks [B]."""
        return self.question.batch * self.pool.paged_bytes(self.question.context)

    @property
    def shortfall_bytes(self) -> int:
        """What is missing; 0 if it fits."""
        return self.budget.shortfall_bytes(self.cache_bytes)

    @property
    def usable_bytes(self) -> int:
        """Total x fraction."""
        return self.budget.usable_bytes

    @property
    def kv_bytes_per_token(self) -> int:
        """What one more token adds once every window is full; an indexer's keys are counted [B]."""
        return self.pool.footprint.growth_bytes_per_token

    @property
    def kv_bytes_per_sequence(self) -> int:
        """What a sequence of `context` tokens keeps: caches, an indexer's keys and states [B]."""
        return self.pool.footprint.bytes(self.question.context)

    @property
    def max_tokens(self) -> int | None:
        """See Pool.max_tokens."""
        return self.pool.max_tokens(self.question.context)

    @property
    def max_sequences(self) -> int | None:
        """See Pool.max_sequences."""
        return self.pool.max_sequences(self.question.context)

    @property
    def blocks(self) -> int | None:
        """The tokens in blocks."""
        return None if self.max_tokens is None else self.max_tokens // self.question.block

    @property
    def longest_context(self) -> int | None:
        """Of each of `batch` sequences; None without a budget or without a limit."""
        return self.pool.longest_context(self.question.batch)

    @property
    def concurrency(self) -> float | None:
        """Sequences of `context` tokens, the last in part."""
        return self.pool.concurrency(self.question.context)

    @property
    def waste(self) -> Waste:
        """Reserved whole against paged, over a sequence's life."""
        return waste(self.pool.footprint, self.question.context, self.question.block)

    @property
    def policies(self) -> dict[str, Pool]:
        """The same budget under every layout of the cache that differs for this model."""
        named = [policy for policy in POLICIES if policy != "mha" or is_latent(self.model)]
        pools = {name: self.question._replace(policy=name).pool(self.pool.budget_bytes) for name in named}
        same = pools["exact"].footprint == pools["all-layers"].footprint
        return {name: pool for name, pool in pools.items() if not (same and name == "all-layers")}

    @property
    def fewest_gpus(self) -> int | None:
        """The fewest GPUs of a node on which it fits, shared by its heads; None: none, or not asked."""
        if self.question.kv_memory_bytes is not None or self.question.weights_given_bytes is not None:
            return None
        sizes = shared_sizes(self.model, self.device)
        return next(
            (n for n in sizes if solve(self.question._replace(tensor_parallel=n), self.device).fits), None
        )

    @property
    def levers(self) -> tuple[Lever, ...]:
        """What each change would free."""
        from memwall.reports.levers import levers

        return levers(self)


@checked
def capacity(
    model: ModelLike,
    *,
    gpu: DeviceLike = DEFAULT_GPU,
    context: int | None = None,
    batch: int | None = None,
    tp: int = 1,
    dtype: str | None = None,
    weight_dtype: str | None = None,
    kv_dtype: str | None = None,
    block: int = DEFAULT_BLOCK,
    policy: str = "exact",
    memory: str | None = None,
    memory_fraction: float | None = None,
    kv_memory: str | None = None,
    reserve: str | float | None = None,
    weights: str | None = None,
    chunk: int = TOKENS_A_PASS,
    source_tokens: int | None = None,
    changes: Mapping[str, str | float] | None = None,
    defaults: tuple[str, ...] = (),
) -> CapacityReport:
    """What of a model fits on each of `tp` GPUs.

    Args:
        model: a model, or its name or file.
        gpu: a device, or its name or file.
        context: tokens of each sequence; by default the model's own, or the most that fits if that is less.
        batch: sequences at once; by default 1.
        tp: GPUs that share the model: heads, widths and vocabulary split while there are any.
        dtype: format that the linear layers compute in, and are stored in; the device must have it.
        weight_dtype: format that they are stored in. Neither: the checkpoint's own.
        kv_dtype: the cache's format; by default 16 bits, however the weights are stored.
        block: tokens a block of the cache.
        policy: exact, all-layers or mha: memwall.memory.sequences.POLICIES.
        memory: total of the GPU, instead of its file's: "44.42GiB".
        memory_fraction: of the total that may be used.
        kv_memory: budget of the cache alone: "6.51GiB".
        reserve: kept free: "1.5GiB", or a number of GiB; by default the activation estimate.
        weights: weights of each GPU, where an engine has reported them.
        chunk: new tokens in a pass, for the activation estimate.
        source_tokens: what an encoder has read for each sequence, which cross-attention keeps; by default
            all that its table has positions for, else as many as `context`.
        changes: what-ifs on the device.
        defaults: what the caller assumed on the user's behalf, for the report.

    Raises:
        UsageError: an unknown name, an amount that cannot be, or a tp that model or node do not have.
        NotAvailable: the device has no engine for `dtype`, or its memory is not published.
    """
    device = device_of(gpu, changes)
    loaded = model_of(model)
    fraction = 1.0 if memory_fraction is None else memory_fraction
    if not 0 < fraction <= 1:
        raise UsageError(
            f"--memory-fraction must be above 0 and at most 1, not {shown(memory_fraction)}", "Try 0.9"
        )
    if policy not in POLICIES:
        raise UsageError(f"no policy '{shown(policy)}'", f"One of: {', '.join(POLICIES)}")
    check_tp(tp, loaded, device)
    length = context or loaded.context or DEFAULT_CONTEXT
    encoded = read_by_encoder(loaded, source_tokens, length)
    question = Question(
        loaded,
        length,
        batch or 1,
        tp,
        stored_as(dtype, weight_dtype, device),
        find(kv_dtype or PLAIN.name).name,
        block,
        policy,
        fraction,
        _size(memory, "--memory", 1),
        _size(kv_memory, "--kv-memory", 1),
        _size(reserve, "--reserve"),
        _size(weights, "--weights", 1),
        chunk,
        encoded,
    )
    report = solve(question, device, (*defaults, *source_default(source_tokens, encoded)))
    return report if context else _at_its_own_length(report)


def solve(question: Question, device: Device, defaults: tuple[str, ...] = ()) -> CapacityReport:
    """A question's answer on a device.

    Raises:
        NotPublished: the device's memory is not known.
    """
    given = question.memory_bytes
    total = total_memory(device) if given is None else _given(given)
    budget = Budget(
        int(total.value),
        question.fraction,
        question.stored_bytes,
        question.reserved_bytes,
        question.kv_memory_bytes,
    )
    return CapacityReport(device, question, total, budget, question.pool(budget.left_bytes), defaults)


def _at_its_own_length(report: CapacityReport) -> CapacityReport:
    """Nobody named a context: the model's own, or the longest that fits if that is shorter."""
    question, longest = report.question, report.longest_context
    if not report.fits and longest:
        question = question._replace(context=longest)
    which = f"context {question.context}"
    if question.context != (question.model.context or DEFAULT_CONTEXT):
        which += ", the longest that fits"
    elif not report.fits:
        which += ", though no length fits"
    return replace(report, question=question, defaults=(*report.defaults, which))


def _given(total_bytes: int) -> Constant:
    return Constant("memory", total_bytes, "seen", "given by you")


def _size(text: str | float | None, flag: str, least: int = 0) -> int | None:
    return None if text is None else parse_size(str(text), flag, least)
