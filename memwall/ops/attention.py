"""Attention: unfused as three kernels, and flash as the same program fused.

Queries are aligned with the end of the keys (query i of seq_q stands at position
seq_kv - seq_q + i), so one query token is a decode step and a square shape is a prefill.
Grouped queries: `kv_heads` heads of K and V serve `heads` query heads. K and V may be stored in
another format (`--kv-dtype`).
"""

from __future__ import annotations

from memwall.dtypes import Precision
from memwall.errors import UsageError
from memwall.maths import Count, minimum, triangle
from memwall.ops.registry import Dims, operator
from memwall.ops.softmax import softmax_kernel
from memwall.program import Kernel, Program, Tensor, fuse

FLASH = ("flash", "fa1", "fa2", "fa3")
"""Implementations that keep the scores on chip; their compulsory traffic is the same."""
LATENT, ROTARY = 512, 64  # DeepSeek-V2 and V3
IMPLS = ("flash", "standard", "fa1", "fa2", "fa3")


def visible_pairs(seq_q: Count, seq_kv: Count, window: Count | None = None) -> Count:
    """How many (query, key) pairs a causal mask leaves for one head.

    Query i sees its own position p = seq_kv - seq_q + i and the window - 1 before it:

        sum over i of min(p + 1, window) = F(seq_kv) - F(seq_kv - seq_q)
        F(n) = min(n, window)(min(n, window) + 1)/2 + window (n - min(n, window))

    Args:
        seq_q: query tokens.
        seq_kv: key tokens, at least seq_q.
        window: keys that a query may see, itself included; None for all.

    >>> visible_pairs(4096, 4096), visible_pairs(1, 4096), visible_pairs(4096, 4096, 128)
    (8390656, 4096, 516160)
    """
    return _seen_by_first(seq_kv, window) - _seen_by_first(seq_kv - seq_q, window)


def _seen_by_first(n: Count, window: Count | None) -> Count:
    if window is None:
        return triangle(n)
    ramp = minimum(n, window)
    return triangle(ramp) + window * (n - ramp)


def needed_keys(seq_q: Count, seq_kv: Count, window: Count | None = None) -> Count:
    """How many keys at least one query sees: min(seq_kv, seq_q + window - 1)."""
    return seq_kv if window is None else minimum(seq_kv, seq_q + window - 1)


def _complete(dims: Dims) -> Dims:
    """Fill in what follows: kv_heads and head_dim_v are like their partners."""
    full = dict(dims)
    if "heads" in full:
        full.setdefault("kv_heads", full["heads"])
    if "head_dim" in full:
        full.setdefault("head_dim_v", full["head_dim"])
    _check(full)
    return full


def _checked(dims: Dims) -> Dims:
    _check(dims)
    head_dim, head_dim_v = dims.get("head_dim", LATENT + ROTARY), dims.get("head_dim_v", LATENT)
    if head_dim_v > head_dim:
        raise UsageError(
            f"mla: the latent's {head_dim_v} elements are part of the {head_dim} that keys have",
            f"Try --head-dim {head_dim_v + ROTARY}",
        )
    return dims


def _check(dims: Dims) -> None:
    heads, kv_heads = dims.get("heads"), dims.get("kv_heads", 1)
    if heads is not None and heads % kv_heads:
        raise UsageError(
            f"attention: {kv_heads} KV heads do not divide {heads} heads",
            f"Each KV head serves a whole group: try --kv-heads {_divisor(heads, kv_heads)}",
        )
    if dims.get("seq_q", 1) > dims.get("seq_kv", dims.get("seq_q", 1)):
        raise UsageError(
            f"attention: {dims['seq_q']} queries are more than the {dims['seq_kv']} keys they end with",
            "seq_kv counts the new tokens too: try --seq-kv " + str(dims["seq_q"]),
        )


def settled_mask(dims: Dims, causal: bool | None) -> bool:
    """The mask for a shape: as asked, else causal for a square of several tokens and for a window.

    Raises:
        UsageError: a window without a mask, which is what it counts back from.
    """
    window = dims.get("window")
    if causal is None:
        return bool(dims["seq_q"] == dims["seq_kv"] > 1 or window)
    if window and not causal:
        raise UsageError(
            f"attention: a window of {window} counts back from each query, so it needs a causal mask",
            "Leave out --non-causal",
        )
    return causal


def _mask_of_new_tokens(dims: Dims, causal: bool | None) -> bool:
    """New tokens of one sequence do not see each other's future, unless asked otherwise."""
    return True if causal is None else causal


def _divisor(heads: int, near: int) -> int:
    """The divisor of `heads` nearest below `near`."""
    return next((d for d in range(min(near, 4096), 0, -1) if heads % d == 0), 1)


@operator(
    example={"heads": 64, "kv_heads": 8, "head_dim": 128, "seq": 4096},
    aliases=("sdpa", "mha", "gqa", "flash_attention"),
    complete=_complete,
    impls=IMPLS,
    shorthand={"seq": ("seq_q", "seq_kv")},
    mask=settled_mask,
)
def attention(
    heads: Count,
    head_dim: Count,
    seq_q: Count,
    seq_kv: Count,
    kv_heads: Count | None = None,
    head_dim_v: Count | None = None,
    batch: Count = 1,
    window: Count | None = None,
    *,
    precision: Precision,
    causal: bool = False,
    impl: str = "flash",
) -> Program:
    """Scaled dot-product attention: O = softmax(Q K^T / sqrt(head_dim)) V.

        pairs = seq_q seq_kv; flash with a causal mask: exactly the visible ones, S(S+1)/2 if square
        matrix FLOPs = 2 batch heads pairs (head_dim + head_dim_v)
        vector FLOPs = 4 batch heads pairs + one an element of O      scale and subtract, max, sum
        special      = batch heads (pairs + seq_q)                    exp, reciprocal
        read Q     batch heads seq_q head_dim
        read K     batch kv_heads seq_kv head_dim
        read V     batch kv_heads seq_kv head_dim_v
        write O    batch heads seq_q head_dim_v
        standard only: S and P, batch heads seq_q seq_kv each, are written and read back

    Standard attention computes and moves the whole square, masked or not; a mask changes flash's
    FLOPs and no bytes. With a window only the keys that some query sees are read. Flash's bytes are
    the compulsory floor: a real kernel re-reads K and V from L2, or from memory, for every block of
    queries.

    Args:
        heads: query heads.
        head_dim: elements of a query and key head.
        seq_q: query tokens; --seq sets both lengths.
        seq_kv: key and value tokens, the new ones included.
        kv_heads: heads of K and V; as many as heads unless given.
        head_dim_v: elements of a value head; head_dim unless given.
        batch: sequences.
        window: keys that a query sees, itself included; needs a causal mask.
        precision: formats of Q and O, and of K and V.
        causal: mask the keys after each query; on the command line the default when seq_q = seq_kv > 1
            or a window is given.
        impl: flash (and fa1, fa2, fa3: the same floor), or standard.

    One head, 4096 tokens, head_dim 128, bf16, no mask: standard 138.4e6 bytes, flash 4.19e6; an
    H200's counters read 139e6 and 4.75e6 to 5.04e6 a head.
    Source: Dao et al. 2022, arXiv:2205.14135, algorithm 0 (standard) and theorem 2.
    """
    kv_heads = heads if kv_heads is None else kv_heads
    head_dim_v = head_dim if head_dim_v is None else head_dim_v
    keys = needed_keys(seq_q, seq_kv, window)
    masked = causal and impl in FLASH
    pairs = visible_pairs(seq_q, seq_kv, window) if masked else seq_q * keys
    q = Tensor("Q", (batch, heads, seq_q, head_dim), precision.activation)
    k = Tensor("K", (batch, kv_heads, keys, head_dim), precision.kv, "cache")
    v = Tensor("V", (batch, kv_heads, keys, head_dim_v), precision.kv, "cache")
    standard = _three_kernels(q, k, v, head_dim_v, pairs, precision)
    return standard if impl == "standard" else fuse(standard, "flash attention")


def _three_kernels(
    q: Tensor, k: Tensor, v: Tensor, head_dim_v: Count, pairs: Count, precision: Precision
) -> Program:
    """Q K^T, softmax and P V, with S and P between them; `pairs` scores a head are computed."""
    batch, heads, seq_q, head_dim = q.shape
    keys = k.shape[-2]
    s = Tensor("S", (batch, heads, seq_q, keys), precision.scores)
    p = Tensor("P", (batch, heads, seq_q, keys), precision.scores)
    o = Tensor("O", (batch, heads, seq_q, head_dim_v), precision.attended)
    rows = batch * heads * seq_q
    scores = batch * heads * pairs
    compute = precision.compute
    qk = Kernel("QK^T", (q, k), (s,), 2 * scores * head_dim, compute=compute)
    softmax = softmax_kernel(s, p, rows, scores)
    pv = Kernel("PV", (p, v), (o,), 2 * scores * head_dim_v, rows * head_dim_v, compute=compute)
    return Program("standard attention", (qk, softmax, pv))


@operator(
    example={"heads": 128, "seq_kv": 8192, "batch": 8},
    aliases=("mla_decode",),
    complete=_checked,
    impls=IMPLS,
    mask=_mask_of_new_tokens,
)
def mla(
    heads: Count,
    seq_kv: Count,
    seq_q: Count = 1,
    head_dim: Count = LATENT + ROTARY,
    head_dim_v: Count = LATENT,
    batch: Count = 1,
    *,
    precision: Precision,
    causal: bool = True,
    impl: str = "flash",
) -> Program:
    """Multi-head latent attention, absorbed, as it decodes: one latent tensor serves as K and V.

        matrix FLOPs = 2 batch heads pairs (head_dim + head_dim_v)
        vector FLOPs = 4 batch heads pairs + one an element of O
        special      = batch heads (pairs + seq_q)
        read q         batch heads seq_q head_dim
        read latent    batch seq_kv head_dim       once for all heads, as keys and as values
        write o        batch heads seq_q head_dim_v
        standard only: S and P, batch heads seq_q seq_kv each, are written and read back

    Un-absorbed prefill is `attention` with head_dim 192 and head_dim_v 128.

    Args:
        heads: query heads.
        seq_kv: tokens in the cache, the new ones included.
        seq_q: query tokens; more than one for speculative tokens.
        head_dim: latent plus rotary elements; DeepSeek-V2 and V3: 512 + 64.
        head_dim_v: latent elements, those that act as values.
        batch: sequences.
        precision: formats of q and o, and of the latent cache.
        causal: mask among the new tokens; with one query token it changes nothing.
        impl: flash (and fa1, fa2, fa3), or standard.

    Source: DeepSeek-AI 2024, arXiv:2405.04434, section 2.1 and appendix C.
    """
    masked = causal and impl in FLASH
    pairs = visible_pairs(seq_q, seq_kv) if masked else seq_q * seq_kv
    q = Tensor("q", (batch, heads, seq_q, head_dim), precision.activation)
    latent = Tensor("latent", (batch, seq_kv, head_dim), precision.kv, "cache")
    standard = _three_kernels(q, latent, latent, head_dim_v, pairs, precision)
    return standard if impl == "standard" else fuse(standard, "mla")
