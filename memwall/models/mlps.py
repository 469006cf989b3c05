"""The kinds of MLP that a layer may have: dense, gated or plain, and mixtures of experts."""

from __future__ import annotations

from typing import Literal, NamedTuple

from memwall.models.weights import Weight, bias, vector, within


class GatedMlp(NamedTuple):
    """gate and up, an activation, down: three matrices."""

    width: int
    bias: bool = False

    def weights(self, hidden: int) -> tuple[Weight, ...]:
        """Gate, up and down."""
        return within("mlp", _matrices(hidden, self.width, True, self.bias))


class PlainMlp(NamedTuple):
    """up, an activation, down: two matrices."""

    width: int
    bias: bool = False

    def weights(self, hidden: int) -> tuple[Weight, ...]:
        """Up and down."""
        return within("mlp", _matrices(hidden, self.width, False, self.bias))


class Experts(NamedTuple):
    """A router over MLPs of which each token uses a few, with or without a shared one."""

    experts: int
    experts_per_token: int
    width: int
    shared_width: int = 0
    """The shared experts together."""
    shared_gate: bool = False
    """A learned gate on the shared expert: one output (Qwen2-MoE)."""
    router_bias: bool = False
    bias: bool = False
    """Biases on each expert's matrices (gpt-oss)."""
    gated: bool = True
    expert_hidden: int | None = None
    """What the routed experts read and write, where they work in a narrower space (Nemotron 3)."""

    def weights(self, hidden: int) -> tuple[Weight, ...]:
        """The router, the experts, and the shared expert."""
        router = Weight("gate", (self.experts, hidden), "router", kernel="router")
        routing = [router] + ([bias(router)] if self.router_bias else [])
        width = self.expert_hidden or hidden
        experts = [
            weight._replace(copies=self.experts, used=self.experts_per_token)
            for weight in _matrices(width, self.width, self.gated, self.bias)
        ]
        return (
            *within("mlp", routing + self._latent(hidden)),
            *within("mlp.experts", experts),
            *self._shared(hidden),
        )

    def _latent(self, hidden: int) -> list[Weight]:
        """Into the experts' narrower space and back."""
        if self.expert_hidden is None:
            return []
        return [
            Weight("fc1_latent_proj", (self.expert_hidden, hidden), kernel="latent_down"),
            Weight("fc2_latent_proj", (hidden, self.expert_hidden), kernel="latent_up"),
        ]

    def _shared(self, hidden: int) -> tuple[Weight, ...]:
        if not self.shared_width:
            return ()
        weights = _matrices(hidden, self.shared_width, self.gated, False)
        gate = [Weight("shared_expert_gate", (1, hidden), "router", kernel="router")]
        return (*within("mlp.shared_experts", weights), *within("mlp", gate if self.shared_gate else []))


def expected_distinct(experts: int, experts_per_token: int, tokens: int) -> float:
    """How many experts a batch of tokens meets, on average, when routing is even.

        N (1 - (1 - k/N)^B)

    Args:
        experts: N.
        experts_per_token: k.
        tokens: B, in the pass.

    >>> expected_distinct(8, 2, 3), round(expected_distinct(256, 8, 32), 1)
    (4.625, 163.3)

    Source: the expectation of N independent experts, each missed by a token with 1 - k/N.
    """
    missed: float = (1 - experts_per_token / experts) ** tokens
    return experts * (1 - missed)


def _matrices(hidden: int, width: int, gated: bool, biased: bool) -> list[Weight]:
    up = Weight("up_proj", (width, hidden), "linear", width, kernel="gate_up" if gated else "up")
    down = Weight("down_proj", (hidden, width), "linear", width, kernel="down")
    matrices = [up._replace(name="gate_proj"), up, down] if gated else [up, down]
    if not biased:
        return matrices
    return matrices + [vector(f"{m.name}.bias", m.shape[0], 1 if m is down else width) for m in matrices]


Mlp = GatedMlp | PlainMlp | Experts
MlpKind = Literal["gated", "plain", "experts"]
