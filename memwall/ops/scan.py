"""Recurrences: linear attention and state spaces, which keep a state of constant size.

Bytes are those of the recurrent form: the state once in and once out in fp32, and what each token brings.
FLOPs are the least that any form needs, so that the bound holds for kernels that work in chunks on
the matrix unit: the products of the recurrence there, and the decay of a whole chunk folded into them,
so that it costs one FLOP an element of the state a launch and not a token.
"""

from __future__ import annotations

from memwall.dtypes import Precision, find
from memwall.maths import Count
from memwall.ops.registry import Dims, operator
from memwall.program import Kernel, Program, Tensor

_EXAMPLE = {"heads": 32, "key_heads": 16, "key_dim": 128, "value_dim": 128, "batch": 16}


def _keyed(dims: Dims) -> Dims:
    from memwall.errors import UsageError

    full = dict(dims)
    if "heads" in full:
        full.setdefault("key_heads", full["heads"])
        if full["heads"] % full["key_heads"]:
            raise UsageError(
                f"{full['key_heads']} key heads do not divide {full['heads']} heads",
                f"Try --key-heads {full['heads']}",
            )
    return full


@operator(example=_EXAMPLE, complete=_keyed)
def delta_rule(
    heads: Count,
    key_dim: Count,
    value_dim: Count,
    key_heads: Count | None = None,
    seq: Count = 1,
    batch: Count = 1,
    *,
    precision: Precision,
) -> Program:
    """Gated delta rule, a matrix a head: S = decay S (1 - beta k k^T) + beta v k^T; o = S q.

        matrix FLOPs = 6 batch seq heads key_dim value_dim   read with k, rank-one update, read with q
        vector FLOPs = batch heads key_dim value_dim         decay
        special      = batch seq heads                       one exp a decay
        read q, k       2 batch seq key_heads key_dim
        read v          batch seq heads value_dim
        read gates      2 batch seq heads                    decay and beta
        read, write S   batch heads key_dim value_dim each   fp32
        write o         batch seq heads value_dim

    Args:
        heads: value heads, each with a state.
        key_dim: elements of a key head.
        value_dim: elements of a value head.
        key_heads: heads of q and k; as many as heads unless given.
        seq: new tokens of each sequence.
        batch: sequences.
        precision: format of all but the state.

    Source: Yang et al. 2024, arXiv:2412.06464, equation 10.
    """
    keys = heads if key_heads is None else key_heads
    return matrix_recurrence(
        "delta_rule", 6, (batch, seq), (keys, heads, key_dim, value_dim), 2 * heads, precision
    )


@operator(example=_EXAMPLE, aliases=("ssd", "mamba2", "lightning"), complete=_keyed)
def linear_attention(
    heads: Count,
    key_dim: Count,
    value_dim: Count,
    key_heads: Count | None = None,
    seq: Count = 1,
    batch: Count = 1,
    *,
    precision: Precision,
) -> Program:
    """Linear attention with a decay, a matrix a head: S = decay S + v k^T; o = S q. Mamba-2 is one.

        matrix FLOPs = 4 batch seq heads key_dim value_dim   rank-one update, read with q
        vector FLOPs = batch heads key_dim value_dim         decay
        special      = batch seq heads                       one exp a decay
        read q, k       2 batch seq key_heads key_dim
        read v          batch seq heads value_dim
        read decay      batch seq heads
        read, write S   batch heads key_dim value_dim each   fp32
        write o         batch seq heads value_dim

    Args:
        heads: value heads, each with a state; Mamba-2: its heads.
        key_dim: elements of a key head; Mamba-2: its state.
        value_dim: elements of a value head; Mamba-2: its head_dim.
        key_heads: heads of q and k; as many as heads unless given. Mamba-2: its groups.
        seq: new tokens of each sequence.
        batch: sequences.
        precision: format of all but the state.

    Source: Dao and Gu 2024, arXiv:2405.21060, equation 5.
    """
    keys = heads if key_heads is None else key_heads
    return matrix_recurrence(
        "linear_attention", 4, (batch, seq), (keys, heads, key_dim, value_dim), heads, precision
    )


def matrix_recurrence(
    name: str,
    flops: int,
    tokens: tuple[Count, Count],
    shape: tuple[Count, Count, Count, Count],
    gates: Count,
    precision: Precision,
) -> Program:
    """A recurrence whose state is a matrix a head.

    Args:
        name: the operator's.
        flops: of the products, an element of the state and a token.
        tokens: sequences, and new tokens of each.
        shape: key heads, heads, key_dim, value_dim.
        gates: decays and the like that a token brings.
        precision: format of all but the state.
    """
    batch, seq = tokens
    key_heads, heads, key_dim, value_dim = shape
    q, k = (Tensor(x, (batch, seq, key_heads, key_dim), precision.activation) for x in ("q", "k"))
    v = Tensor("v", (batch, seq, heads, value_dim), precision.activation)
    gate = Tensor("gates", (batch, seq, gates), precision.activation)
    before, after = states((batch, heads, key_dim, value_dim))
    o = Tensor("o", v.shape, precision.attended)
    elements = batch * heads * key_dim * value_dim
    kernel = Kernel(
        name,
        (q, k, v, gate, before),
        (o, after),
        flops * seq * elements,
        elements,
        batch * seq * heads,
        precision.compute,
    )
    return Program(name, (kernel,))


@operator(example={"channels": 8192, "state": 16, "batch": 16}, aliases=("mamba",))
def selective_scan(
    channels: Count, state: Count, seq: Count = 1, batch: Count = 1, *, precision: Precision
) -> Program:
    """Selective state space, a decay a channel and state: h = exp(dt A) h + dt B x; y = C h.

        vector FLOPs = 6 batch seq channels state   dt A, decay, input, add; multiply and add of C h
        special      = batch seq channels state     one exp each
        read x, dt       2 batch seq channels
        read B, C        2 batch seq state
        read, write h    batch channels state each   fp32
        write y          batch seq channels

    Args:
        channels: channels.
        state: state elements a channel.
        seq: new tokens of each sequence.
        batch: sequences.
        precision: format of all but the state.

    Source: Gu and Dao 2023, arXiv:2312.00752, algorithm 2.
    """
    x, step = (Tensor(name, (batch, seq, channels), precision.activation) for name in ("x", "dt"))
    into, out = (Tensor(name, (batch, seq, state), precision.activation) for name in ("B", "C"))
    before, after = states((batch, channels, state))
    y = Tensor("y", x.shape, precision.plain)
    each = batch * seq * channels * state
    kernel = Kernel(
        "selective_scan", (x, step, into, out, before), (y, after), vector_flops=6 * each, special_ops=each
    )
    return Program("selective_scan", (kernel,))


@operator(example={"channels": 8192, "taps": 4, "batch": 16})
def causal_conv(
    channels: Count, taps: Count, seq: Count = 1, batch: Count = 1, *, precision: Precision
) -> Program:
    """Causal convolution of each channel by itself, over its last few tokens.

        vector FLOPs = 2 batch seq channels taps
        read x              batch seq channels
        read weight         channels taps
        read, write past    batch channels (taps - 1) each   fp32
        write y             batch seq channels

    Args:
        channels: channels.
        taps: tokens that it sees.
        seq: new tokens of each sequence.
        batch: sequences.
        precision: format of x, weight and y.

    Source: Gu and Dao 2023, arXiv:2312.00752, section 3.4.
    """
    x = Tensor("x", (batch, seq, channels), precision.activation)
    weight = Tensor("weight", (channels, taps), precision.activation, "parameter")
    before, after = states((batch, channels, taps - 1))
    y = Tensor("y", x.shape, precision.plain)
    kernel = Kernel(
        "causal_conv", (x, weight, before), (y, after), vector_flops=2 * batch * seq * channels * taps
    )
    return Program("causal_conv", (kernel,))


@operator(example={"channels": 4096, "batch": 16}, aliases=("rg_lru",))
def gated_recurrence(channels: Count, seq: Count = 1, batch: Count = 1, *, precision: Precision) -> Program:
    """Real-gated linear recurrence: h = a h + sqrt(1 - a^2) (i x), a = exp(decay r); i, r sigmoids of gates.

        vector FLOPs = 3 batch seq channels    decay, gate and add
        special      = 6 batch seq channels    exp, square root, two sigmoids
        read x, gates       3 batch seq channels
        read decay          channels
        read, write h       batch channels each   fp32
        write y             batch seq channels

    Args:
        channels: channels.
        seq: new tokens of each sequence.
        batch: sequences.
        precision: format of all but the state.

    Source: De et al. 2024, arXiv:2402.19427, equations 1 to 4.
    """
    x, gate, reset = (Tensor(n, (batch, seq, channels), precision.activation) for n in ("x", "i", "r"))
    decay = Tensor("decay", (channels,), precision.activation, "parameter")
    before, after = states((batch, channels))
    y = Tensor("y", x.shape, precision.plain)
    each = batch * seq * channels
    kernel = Kernel(
        "gated_recurrence",
        (x, gate, reset, decay, before),
        (y, after),
        vector_flops=3 * each,
        special_ops=6 * each,
    )
    return Program("gated_recurrence", (kernel,))


def states(shape: tuple[Count, ...]) -> tuple[Tensor, Tensor]:
    """A state as it is read and as it is written."""
    fp32 = find("fp32")
    return Tensor("state", shape, fp32, "state"), Tensor("new state", shape, fp32, "state")
