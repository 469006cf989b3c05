"""A model and how it is served: the question that capacity answers, ready to be asked again."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from memwall.dtypes import find
from memwall.errors import NotAvailable, NotPublished
from memwall.hardware import Device
from memwall.memory.activations import SAMPLED_SEQUENCES, TOKENS_A_PASS, activation_bytes
from memwall.memory.sequences import Pool, footprint
from memwall.models.model import Model
from memwall.models.storage import PLAIN, storage_of, weight_bytes

DEFAULT_BLOCK = 16


class Question(NamedTuple):
    """A model and how it is served, ready to be asked again with something changed."""

    model: Model
    context: int
    batch: int
    tensor_parallel: int = 1
    weight_dtype: str | None = None
    """None: the checkpoint's own."""
    kv_dtype: str = PLAIN.name
    block: int = DEFAULT_BLOCK
    policy: str = "exact"
    fraction: float = 1.0
    memory_bytes: int | None = None
    """Instead of the device's total."""
    kv_memory_bytes: int | None = None
    """The cache's budget, whatever else there is."""
    reserve_bytes: int | None = None
    """None: the activation estimate."""
    weights_given_bytes: int | None = None
    """Weights of each GPU, where an engine has reported them."""
    chunk: int = TOKENS_A_PASS
    """New tokens in a pass, for the activation estimate."""
    source_tokens: int = 0
    """What an encoder has read for each sequence."""

    @property
    def stored_bytes(self) -> int:
        """Weights on each GPU, those of image and sound towers among them [B]."""
        if self.weights_given_bytes is not None:
            return self.weights_given_bytes
        own = (
            self.weight_dtype is None
        )  # then the checkpoint's files, where they are there, have the last word
        storage = None if own else storage_of(self.model, self.weight_dtype)
        return weight_bytes(self.model, storage, self.tensor_parallel).total

    @property
    def reserved_bytes(self) -> int:
        """Kept free for what is neither weights nor cache, on each GPU [B]."""
        if self.reserve_bytes is not None:
            return self.reserve_bytes
        return activation_bytes(self.model, self.chunk, SAMPLED_SEQUENCES, self.tensor_parallel)

    def pool(self, left_bytes: int) -> Pool:
        """The cache's memory under the question's policy."""
        kept = footprint(
            self.model, find(self.kv_dtype), self.tensor_parallel, self.policy, self.source_tokens
        )
        return Pool(left_bytes, self.block, kept)


def stored_as(dtype: str | None, weight_dtype: str | None, device: Device) -> str | None:
    """The linear layers' format from both options; None: the checkpoint's own.

    Raises:
        NotAvailable: no engine computes in `dtype`, or this device has none that does.
    """
    if dtype is not None:
        computed = find(dtype)
        if computed.engine is None:
            raise NotAvailable(
                f"no engine computes in {computed.name}: it is a storage format",
                f"Try --weight-dtype {computed.name}",
            )
        with suppress(NotPublished):  # it may well be there, and memory does not depend on how fast it is
            device.peak(computed.engine)
    named = weight_dtype or dtype
    return None if named is None else find(named).name
