"""What a sequence keeps in memory, and how many tokens and sequences a budget holds.

A sequence of n tokens keeps, on each GPU,

    bytes(n) = sum over caches of bytes_per_token x min(n, window) + indexer x n + states
             = growth x n + constant            once every window is full

Bytes / n is no property of a model with windows or states: it falls with n. So growth and constant are
quoted separately. The cache is handed out in blocks of some tokens, each sequence taking whole ones, so the
budget is charged bytes(n) with n, and each window, rounded up to whole blocks.
"""

from __future__ import annotations

from typing import NamedTuple

from memwall.dtypes import Dtype
from memwall.errors import NotAvailable
from memwall.maths import ceil_div
from memwall.models.attentions import GroupedAttention, LatentAttention
from memwall.models.cache import (
    Kept,
    cross_bytes_per_source_token,
    indexer_bytes_per_token,
    kept,
    state_bytes_per_sequence,
)
from memwall.models.model import Layers, Model
from memwall.units import LARGEST_COUNT

POLICIES = {
    "exact": "windowed layers keep their window, latent layers the latent",
    "all-layers": "every layer keeps all tokens, windows or not",
    "mha": "latent layers keep K and V of every head, and every layer all tokens",
}
"""How an engine lays out its cache. `exact` is what the model needs; the others are what engines without
sliding-window or latent support allocate."""


class Footprint(NamedTuple):
    """What each sequence keeps of one GPU."""

    caches: tuple[Kept, ...]
    indexer_bytes_per_token: int
    """Keys of sparse attention's indexers, on every GPU."""
    state_bytes: int
    """Recurrent states, however long the sequence."""
    source_bytes: int = 0
    """K and V of an encoder's tokens."""

    @property
    def growth_bytes_per_token(self) -> int:
        """What one more token adds once every window is full [B]; 0 if nothing grows for ever."""
        return self.indexer_bytes_per_token + sum(c.bytes_per_token for c in self.caches if c.window is None)

    @property
    def filling_bytes_per_token(self) -> int:
        """What one more token adds while every window fills [B]."""
        return self.indexer_bytes_per_token + sum(cache.bytes_per_token for cache in self.caches)

    @property
    def constant_bytes(self) -> int:
        """What a sequence keeps apart from growth x tokens, once every window is full [B]."""
        windows = sum(c.bytes_per_token * c.window for c in self.caches if c.window)
        return windows + self.state_bytes + self.source_bytes

    def bytes(self, tokens: int, block: int = 1) -> int:
        """Kept of a sequence of so many tokens [B]; in whole blocks of `block` tokens."""
        whole = whole_blocks(tokens, block)
        caches = sum(
            cache.bytes_per_token
            * min(whole, whole if cache.window is None else whole_blocks(cache.window, block))
            for cache in self.caches
        )
        return caches + self.indexer_bytes_per_token * whole + self.state_bytes + self.source_bytes


def whole_blocks(tokens: int, block: int) -> int:
    """Tokens rounded up to whole blocks."""
    return ceil_div(tokens, block) * block  # type: ignore[no-any-return]


def footprint(
    model: Model, kv: Dtype, tensor_parallel: int = 1, policy: str = "exact", source_tokens: int = 0
) -> Footprint:
    """What each sequence keeps of each of the GPUs that share the model.

    Args:
        model: the model.
        kv: the cache's format.
        tensor_parallel: GPUs that share the heads.
        policy: one of POLICIES.
        source_tokens: what an encoder has read, which cross-attention keeps.

    Raises:
        NotAvailable: mha of a model without latent attention.
    """
    if policy == "mha":
        model = without_latent(model)
    caches = kept(model, kv, tensor_parallel)
    if policy != "exact":
        caches = tuple(cache._replace(window=None) for cache in caches)
    return Footprint(
        caches,
        indexer_bytes_per_token(model, kv),
        state_bytes_per_sequence(model, tensor_parallel),
        source_tokens * cross_bytes_per_source_token(model, kv, tensor_parallel),
    )


def is_latent(model: Model) -> bool:
    """Whether some layer keeps a latent."""
    return any(isinstance(group.attention, LatentAttention) for group in model.layers)


def without_latent(model: Model) -> Model:
    """The model as an engine without latent attention keeps it: K and V of every head.

    Raises:
        NotAvailable: no layer keeps a latent.
    """
    if not is_latent(model):
        raise NotAvailable(f"{model.name} keeps no latent that mha would replace", "Leave out --policy mha")
    return model._replace(layers=tuple(map(_without_latent, model.layers)))


def _without_latent(group: Layers) -> Layers:
    kind = group.attention
    if not isinstance(kind, LatentAttention):
        return group
    heads = GroupedAttention(kind.heads, kind.heads, kind.head_dim, kind.v_head_dim, kind.window)
    return group._replace(attention=heads)


class Pool(NamedTuple):
    """A budget of memory for the cache of one GPU, handed out in blocks."""

    budget_bytes: int
    """Below zero: what is missing before any cache."""
    block: int
    """Tokens a block."""
    footprint: Footprint

    def paged_bytes(self, tokens: int) -> int:
        """What a sequence of so many tokens takes, in whole blocks [B]."""
        return self.footprint.bytes(tokens, self.block)

    def concurrency(self, context: int) -> float | None:
        """Budget / what a sequence of `context` tokens takes; None without a budget or a cache."""
        each = self.paged_bytes(context)
        return self.budget_bytes / each if each and self.budget_bytes >= 0 else None

    def max_sequences(self, context: int) -> int | None:
        """The most whole sequences of `context` tokens at once.

        None if the weights and the reserve alone do not fit, or if a sequence keeps nothing.
        """
        concurrency = self.concurrency(context)
        return None if concurrency is None else self.budget_bytes // self.paged_bytes(context)

    def longest_context(self, batch: int = 1) -> int | None:
        """The most tokens, in whole blocks, of each of `batch` equal sequences.

        None if nothing more is taken from some length on (windows and states alone), so that memory sets no
        limit, or if there is no budget. 0: not even one block.
        """
        if self.budget_bytes < 0 or self._unlimited(batch):
            return None
        blocks, beyond = 0, LARGEST_COUNT // self.block
        while beyond - blocks > 1:
            middle = (blocks + beyond) // 2
            fits = batch * self.paged_bytes(middle * self.block) <= self.budget_bytes
            blocks, beyond = (middle, beyond) if fits else (blocks, middle)
        return blocks * self.block

    def max_tokens(self, context: int) -> int | None:
        """The most tokens held at once, in sequences of `context` tokens of which the last may be shorter.

        Sequences take whole blocks, and `context` counts as it is rounded up to them. Where every token
        costs the same (no windows, no states) that is blocks x block whatever the context; where a sequence
        has a constant part, long sequences hold more tokens in all than short ones, so the number
        belongs to its context. If not one sequence of `context` tokens fits, it is the longest that does.

        None as in `max_sequences`.
        """
        sequences = self.max_sequences(context)
        if sequences is None:
            return None
        full = whole_blocks(context, self.block)
        rest = self._replace(budget_bytes=self.budget_bytes - sequences * self.paged_bytes(context))
        last = rest.longest_context()
        return sequences * full + (0 if last is None else min(last, full))

    def _unlimited(self, batch: int) -> bool:
        """Whether a sequence of any length fits."""
        return batch * self.paged_bytes(LARGEST_COUNT) <= self.budget_bytes


class Waste(NamedTuple):
    """Memory that sequences hold without using it, growing from one token to `context` tokens."""

    contiguous_bytes: float
    """On average, of a sequence whose whole context is reserved from its first token on."""
    paged_bytes: float
    """On average, of a sequence that takes a block when it needs one."""
    reserved_bytes: int
    """What a contiguous sequence reserves."""

    @property
    def contiguous_share(self) -> float:
        """Idle / reserved, on average."""
        return self.contiguous_bytes / self.reserved_bytes if self.reserved_bytes else 0.0


def waste(footprint: Footprint, context: int, block: int) -> Waste:
    """The mean of what is held minus what is kept, over lengths 1 to context.

        contiguous: bytes(context) - bytes(n)
        paged:      bytes(n in whole blocks) - bytes(n)

    Source: Kwon et al. 2023, arXiv:2309.06180, section 3 (reservation and internal fragmentation).
    """
    reserved = footprint.bytes(context)
    used = _total(footprint, context, 1)
    paged = _total(footprint, context, block)
    return Waste(reserved - used / context, (paged - used) / context, reserved)


def _total(footprint: Footprint, context: int, block: int) -> int:
    """The sum of bytes(n) in whole blocks over n = 1 ... context."""
    caches = [(cache.bytes_per_token, cache.window) for cache in footprint.caches]
    if footprint.indexer_bytes_per_token:
        caches.append((footprint.indexer_bytes_per_token, None))
    total = (footprint.state_bytes + footprint.source_bytes) * context
    for each, window in caches:
        cap = context if window is None else min(context, window)
        full = whole_blocks(cap, block)
        total += each * (_rounded_sum(cap, block) + (context - cap) * full)
    return total


def _rounded_sum(last: int, block: int) -> int:
    """The sum of ceil(n / block) x block over n = 1 ... last."""
    blocks, rest = divmod(last, block)
    return block * (block * blocks * (blocks + 1) // 2 + rest * (blocks + 1))
