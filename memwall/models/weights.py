"""A model's weights, matrix by matrix: what its parameters, bytes, kernels and shards are counted from.

Each part of a layer lists its own weights once, under the names that checkpoints use (`q_proj`,
`gate_proj`). Parameter totals, stored bytes, the GEMMs of a pass and the share of each GPU all follow
from those lists.
"""

from __future__ import annotations

from math import prod
from typing import Literal, NamedTuple

from memwall.maths import ceil_div

Role = Literal["linear", "router", "head", "embedding", "table", "convolution", "vector"]
"""linear: a matrix that tokens are multiplied with, and that quantisation stores in fewer bits.
router: picks experts, kept at 16 bits. embedding, table: looked up, a row a token. vector: norms, biases."""


class Weight(NamedTuple):
    """One tensor of parameters, or so many equal ones."""

    name: str
    """As checkpoints call it: q_proj."""
    shape: tuple[int, ...]
    """Outputs before inputs."""
    role: Role = "linear"
    shards: int = 1
    """The most equal parts that tensor parallelism cuts it into; 1: each GPU holds all of it."""
    copies: int = 1
    """Experts: equal tensors beside each other."""
    used: int | None = None
    """How many of the copies one token meets; None for all."""
    kernel: str = ""
    """The GEMM that multiplies it, shared by weights that read the same input; empty: its own."""
    part: str = ""
    """The module it belongs to, as checkpoints call it: self_attn, mlp, mlp.experts."""

    @property
    def elements(self) -> int:
        """Parameters in all copies."""
        return prod(self.shape) * self.copies

    @property
    def active_elements(self) -> int:
        """Parameters that one token meets."""
        return prod(self.shape) * (self.copies if self.used is None else self.used)

    @property
    def gemm(self) -> str:
        """The name of the kernel that multiplies it."""
        return self.kernel or self.name.removesuffix("_proj")


def vector(name: str, elements: int, shards: int = 1, copies: int = 1, used: int | None = None) -> Weight:
    """A norm's weights, a bias or the like."""
    return Weight(name, (elements,), "vector", shards, copies, used)


def bias(of: Weight) -> Weight:
    """The bias of a linear layer: one element an output, cut as its outputs are."""
    cut = of.shards if of.kernel != "output" else 1
    return vector(f"{of.name}.bias", of.shape[0], cut, of.copies, of.used)


def within(part: str, weights: list[Weight]) -> tuple[Weight, ...]:
    """Weights as those of a module."""
    return tuple(weight._replace(part=part) for weight in weights)


def largest_share(whole: int, shards: int, gpus: int) -> int:
    """What the GPU with most holds of a tensor of so many shards (heads, columns, rows) [as whole].

        whole x ceil(shards / gpus) / shards

    Shards are never cut, so more GPUs than shards hold copies of them.

    >>> largest_share(1200, 12, 4), largest_share(1200, 12, 8), largest_share(1200, 2, 8)
    (300, 200, 600)
    """
    return ceil_div(whole * ceil_div(shards, gpus), shards)  # type: ignore[no-any-return]
