"""Layers that keep a state of constant size instead of a growing cache: linear attention and state spaces.

Each kind lists its weights, and the elements of its state: the recurrent one and what its causal
convolution remembers, kernel - 1 tokens. Sources: the papers named with each, and the published
configurations and module shapes of the models named.
"""

from __future__ import annotations

from typing import NamedTuple

from memwall.models.weights import Weight, bias, vector, within


class GatedDelta(NamedTuple):
    """Gated DeltaNet, and with a gate for every channel Kimi Delta Attention.

    Yang et al. 2024, arXiv:2412.06464 (Qwen3-Next, Qwen3.5, OLMo Hybrid); arXiv:2510.26692 (Kimi Linear).
    """

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    convolution: int = 4
    """Tokens that the causal convolution over Q, K and V sees."""
    channel_gate_rank: int = 0
    """Width of the low-rank projections of the decay and the output gate (Kimi); 0: a decay a head."""

    @property
    def mixed(self) -> int:
        """Channels of Q, K and V together."""
        return 2 * self.key_heads * self.key_dim + self.value_heads * self.value_dim

    @property
    def state_elements(self) -> int:
        """A key_dim x value_dim matrix a value head, and the convolution's tokens."""
        return self.value_heads * self.key_dim * self.value_dim + (self.convolution - 1) * self.mixed

    @property
    def state_shards(self) -> int:
        """Heads of Q and K: a GPU has those of its V heads."""
        return self.key_heads

    @property
    def flops_per_token(self) -> int:
        """Decay, read with k, rank-one update, read with q: 1 + 2 + 2 + 2 an element of the matrix."""
        return 7 * self.value_heads * self.key_dim * self.value_dim

    def weights(self, hidden: int) -> tuple[Weight, ...]:
        """Q, K, V, gate, decay and beta; the convolution; the norm; the output."""
        values, heads = self.value_heads * self.value_dim, self.value_heads
        gates = self._channel_gates(hidden, values) if self.channel_gate_rank else self._head_gates(hidden)
        weights = [
            Weight("in_proj_qkv", (self.mixed, hidden), "linear", self.key_heads, kernel="in_proj"),
            *gates,
            Weight("conv1d", (self.mixed, self.convolution), "convolution", self.key_heads),
            vector("A_log", heads, heads),
            vector("norm", self.value_dim),
            Weight("out_proj", (hidden, values), "linear", heads, kernel="output"),
        ]
        return within("linear_attn", weights)

    def _head_gates(self, hidden: int) -> list[Weight]:
        heads, values = self.value_heads, self.value_heads * self.value_dim
        return [
            Weight("in_proj_z", (values, hidden), "linear", heads, kernel="in_proj"),
            Weight("in_proj_ba", (2 * heads, hidden), "linear", heads, kernel="in_proj"),
            vector("dt_bias", heads, heads),
        ]

    def _channel_gates(self, hidden: int, values: int) -> list[Weight]:
        rank, heads = self.channel_gate_rank, self.value_heads
        down = Weight("f_a_proj", (rank, hidden), kernel="gate_down")
        up = Weight("f_b_proj", (values, rank), "linear", heads, kernel="gate_up")
        return [
            down,
            up,
            down._replace(name="g_a_proj"),
            up._replace(name="g_b_proj"),
            Weight("b_proj", (heads, hidden), "linear", heads, kernel="in_proj"),
            vector("dt_bias", values, heads),
        ]


class Mamba(NamedTuple):
    """Selective state space, a decay for every channel and state (Gu and Dao 2023, arXiv:2312.00752)."""

    inner: int
    """Channels."""
    state: int
    """State elements a channel."""
    time_step_rank: int
    convolution: int = 4
    convolution_bias: bool = True
    bias: bool = False
    norms: bool = False
    """Norms on the time step, B and C (Jamba)."""

    @property
    def state_elements(self) -> int:
        """Each channel's state, and the convolution's tokens."""
        return self.inner * (self.state + self.convolution - 1)

    @property
    def state_shards(self) -> int:
        """Channels."""
        return self.inner

    @property
    def flops_per_token(self) -> int:
        """Decay's product, decay, input's product, add, read: 1 + 1 + 1 + 1 + 2 an element of the state."""
        return 6 * self.inner * self.state

    def weights(self, hidden: int) -> tuple[Weight, ...]:
        """Both inputs, the convolution, the time step, B and C, A and D, the output."""
        inner, rank = self.inner, self.time_step_rank
        into = Weight("in_proj", (2 * inner, hidden), "linear", inner)
        out = Weight("out_proj", (hidden, inner), "linear", inner, kernel="output")
        step = Weight("dt_proj", (inner, rank), "linear", inner)
        convolution = Weight("conv1d", (inner, self.convolution), "convolution", inner)
        biased = [
            step,
            *([into, out] if self.bias else []),
            *([convolution] if self.convolution_bias else []),
        ]
        weights = [
            into,
            convolution,
            Weight("x_proj", (rank + 2 * self.state, inner), "linear", inner),
            step,
            vector("A_log", inner * self.state, inner),
            vector("D", inner, inner),
            out,
            *map(bias, biased),
        ]
        norms = [vector("dt_layernorm", rank), vector("bc_layernorm", 2 * self.state)]
        return within("mamba", weights + (norms if self.norms else []))


class Mamba2(NamedTuple):
    """State space duality: one decay a head (Dao and Gu 2024, arXiv:2405.21060)."""

    heads: int
    head_dim: int
    groups: int
    state: int
    convolution: int = 4
    convolution_bias: bool = True
    bias: bool = False
    norm: bool = True
    """A gated norm before the output."""

    @property
    def inner(self) -> int:
        """Channels."""
        return self.heads * self.head_dim

    @property
    def mixed(self) -> int:
        """Channels that the convolution sees: x, B and C."""
        return self.inner + 2 * self.groups * self.state

    @property
    def state_elements(self) -> int:
        """A head_dim x state matrix a head, and the convolution's tokens."""
        return self.inner * self.state + (self.convolution - 1) * self.mixed

    @property
    def state_shards(self) -> int:
        """Heads; B and C of few groups are copied, which is not counted."""
        return self.heads

    @property
    def flops_per_token(self) -> int:
        """Decay, rank-one update, read: 1 + 2 + 2 an element of the state."""
        return 5 * self.inner * self.state

    def weights(self, hidden: int) -> tuple[Weight, ...]:
        """The inputs together, the convolution, a time step, A and D a head, the norm, the output."""
        heads = self.heads
        into = Weight("in_proj", (self.inner + self.mixed + heads, hidden), "linear", heads)
        out = Weight("out_proj", (hidden, self.inner), "linear", heads, kernel="output")
        convolution = Weight("conv1d", (self.mixed, self.convolution), "convolution", heads)
        biased = [*([into, out] if self.bias else []), *([convolution] if self.convolution_bias else [])]
        a_head = [vector(name, heads, heads) for name in ("dt_bias", "A_log", "D")]
        norm = [vector("norm", self.inner, heads)] if self.norm else []
        return within("mamba", [into, convolution, *a_head, *norm, out, *map(bias, biased)])


class LightningAttention(NamedTuple):
    """Linear attention with a fixed decay a head and an output gate (MiniMax-01, arXiv:2501.08313)."""

    heads: int
    head_dim: int

    @property
    def state_elements(self) -> int:
        """A head_dim x head_dim matrix a head."""
        return self.heads * self.head_dim * self.head_dim

    @property
    def state_shards(self) -> int:
        """Heads."""
        return self.heads

    @property
    def flops_per_token(self) -> int:
        """Decay, rank-one update, read: 1 + 2 + 2 an element of the state."""
        return 5 * self.state_elements

    def weights(self, hidden: int) -> tuple[Weight, ...]:
        """Q, K and V, the gate, a norm over all heads, the output."""
        width, heads = self.heads * self.head_dim, self.heads
        weights = [
            Weight("qkv_proj", (3 * width, hidden), "linear", heads, kernel="in_proj"),
            Weight("output_gate", (width, hidden), "linear", heads, kernel="in_proj"),
            vector("norm", width, heads),
            Weight("out_proj", (hidden, width), "linear", heads, kernel="output"),
        ]
        return within("self_attn", weights)


class ShortConvolution(NamedTuple):
    """A gated causal convolution over a few tokens (LFM2)."""

    width: int
    convolution: int = 3
    bias: bool = False

    @property
    def state_elements(self) -> int:
        """The convolution's tokens."""
        return (self.convolution - 1) * self.width

    @property
    def state_shards(self) -> int:
        """Channels."""
        return self.width

    @property
    def flops_per_token(self) -> int:
        """Two gates, and a multiply-add a tap."""
        return (2 + 2 * self.convolution) * self.width

    def weights(self, hidden: int) -> tuple[Weight, ...]:
        """Both gates and the input, the taps, the output."""
        into = Weight("in_proj", (3 * self.width, hidden), "linear", self.width)
        taps = Weight("conv", (self.width, self.convolution), "convolution", self.width)
        out = Weight("out_proj", (hidden, self.width), "linear", self.width, kernel="output")
        biases = [bias(weight) for weight in (into, taps, out)] if self.bias else []
        return within("conv", [into, taps, out, *biases])


class GatedLinearRecurrence(NamedTuple):
    """Real-gated linear recurrent unit behind a convolution (Griffin, arXiv:2402.19427)."""

    width: int
    heads: int
    """Blocks of the gates' block-diagonal matrices."""
    convolution: int = 4

    @property
    def state_elements(self) -> int:
        """One element a channel, and the convolution's tokens."""
        return self.convolution * self.width

    @property
    def state_shards(self) -> int:
        """Channels."""
        return self.width

    @property
    def flops_per_token(self) -> int:
        """Decay, gate and add, and a multiply-add a tap."""
        return (3 + 2 * self.convolution) * self.width

    def weights(self, hidden: int) -> tuple[Weight, ...]:
        """Two inputs, the convolution, two block-diagonal gates, the decay, the output; all biased."""
        width, heads = self.width, self.heads
        into = Weight("linear_x", (width, hidden), "linear", heads, kernel="in_proj")
        taps = Weight("conv_1d", (width, self.convolution), "convolution", heads)
        gate = Weight("rg_lru.input_gate", (width, width // heads), "linear", heads, kernel="gates")
        out = Weight("linear_out", (hidden, width), "linear", heads, kernel="output")
        biased = [
            into,
            into._replace(name="linear_y"),
            taps,
            gate,
            gate._replace(name="rg_lru.recurrent_gate"),
            out,
        ]
        return within("temporal_block", [*biased, *map(bias, biased), vector("rg_lru.decay", width, heads)])


Recurrence = GatedDelta | Mamba | Mamba2 | LightningAttention | ShortConvolution | GatedLinearRecurrence
