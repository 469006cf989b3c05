"""What flash attention's backward pass does and saves, and how its traffic grows."""

from __future__ import annotations

from typing import NamedTuple

from memwall import flash
from memwall.ops.attention import visible_pairs
from memwall.reports.attention import AttentionReport, LayerKind
from memwall.traffic import STATISTIC_BYTES


class Backward(NamedTuple):
    """The backward pass of flash attention."""

    matrix_flops: int
    ratio: float
    """To the forward pass's."""
    recomputed_flops: int
    """Of it, Q K^T once more."""
    saved_bytes: int
    """What standard attention would keep: P."""
    kept_bytes: int
    """What flash keeps: the log-sum-exp of each row."""


def shape_of(kind: LayerKind, base: AttentionReport) -> flash.Shape:
    """A layer's attention; on a latent, one head of K that serves as V too."""
    tokens, precision = base.tokens, base.formats.precision
    causal = base.causal and not tokens.decoding
    return flash.Shape(
        tokens.batch, kind.heads, kind.kv_heads, tokens.seq_q, tokens.seq_kv, kind.head_dim,
        0 if kind.absorbed else kind.head_dim_v, causal, kind.window,
        precision.activation.bits_per_element / 8, precision.kv.bits_per_element / 8,
    )  # fmt: skip


def visible_scores(shape: flash.Shape) -> int:
    """Scores that count, all heads: those that the mask leaves."""
    if not shape.causal:
        return shape.rows * shape.keys
    pairs = visible_pairs(shape.seq_q, shape.seq_kv, shape.window)
    return int(shape.batch * shape.heads * pairs)


def backward_of(base: AttentionReport) -> Backward:
    """Five products where the forward pass has two: S again, dP, dV, dQ and dK."""
    forward = backward = again = saved = kept = 0
    for kind in base.kinds:
        shape = shape_of(kind, base)
        pairs, value_dim = visible_scores(shape), kind.head_dim_v
        forward += kind.repeats * 2 * pairs * (kind.head_dim + value_dim)
        backward += kind.repeats * 2 * pairs * (3 * kind.head_dim + 2 * value_dim)
        again += kind.repeats * 2 * pairs * kind.head_dim
        saved += kind.repeats * kind.programs["standard"].produced["P"].bytes
        kept += kind.repeats * shape.rows * STATISTIC_BYTES
    return Backward(backward, backward / forward, again, saved, kept)


def asymptote_bytes_of(base: AttentionReport, limit_bytes: float | None) -> float | None:
    """N^2 d^2 / M elements a head, M the elements that fit in a block's shared memory; theorem 2 of FA1's
    paper.
    """
    if not limit_bytes:
        return None
    total = 0.0
    for kind in base.kinds:
        shape = shape_of(kind, base)
        elements = limit_bytes / shape.q_bytes
        head = shape.seq_q * shape.keys * shape.head_dim * shape.head_dim / elements * shape.q_bytes
        total += kind.repeats * shape.batch * shape.heads * head
    return total
