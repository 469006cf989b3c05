"""Between the projections and attention: norms of Q and K, rotary positions, and the cache write.

Fused, it is one kernel that reads the projections' result once; eager, a step a kernel.
"""

from __future__ import annotations

from collections.abc import Sequence

from memwall.models.attentions import GroupedAttention, LatentAttention
from memwall.models.step.launch import Launch, Setting, launched
from memwall.models.step.linear import parameters
from memwall.models.weights import Weight
from memwall.ops.rope import angles, turning_steps
from memwall.program import Kernel, Program, Tensor


def grouped_heads(
    kind: GroupedAttention, weights: Sequence[Weight], setting: Setting, area: str
) -> list[Launch]:
    """Q ready for attention, K and V of the new tokens in the cache."""
    s, plain = setting, setting.plain
    q = Tensor("q", (s.rows, kind.heads, kind.head_dim), plain.activation)
    steps = _ready(q, "Q", _of_norm("q_norm", weights, s), s)
    if not kind.shares_cache:
        k = Tensor("k", (s.rows, kind.kv_heads, kind.head_dim), plain.activation)
        v = k if kind.keys_are_values else k._replace(name="v", shape=(*k.shape[:2], kind.head_dim_v))
        ready = _ready(k, "k ready", _of_norm("k_norm", weights, s), s)
        steps += ready
        if s.causal:
            steps += _cache_writes(ready[-1].writes[0] if ready else k, v, kind, s)
    return _one_or_all(f"{area}.{_done(steps)}", steps, s, kind.head_dim)


def _done(steps: Sequence[Kernel]) -> str:
    """What the steps are for: rope+kv; kv alone where positions turn nothing, rope alone without a cache."""
    written = {tensor.name for kernel in steps for tensor in kernel.writes}
    turned = not written.isdisjoint(("Q", "k ready"))
    kept = any(tensor.role == "cache" for kernel in steps for tensor in kernel.writes)
    return "+".join(name for name, there in (("rope", turned), ("kv", kept)) if there) or "norm"


def latent_heads(
    kind: LatentAttention, weights: Sequence[Weight], setting: Setting, area: str
) -> list[Launch]:
    """The rotary parts of Q and of the latent turned, the latent normalised and in the cache."""
    s, plain = setting, setting.plain
    rope, rank = kind.qk_rope_head_dim, kind.kv_lora_rank
    q = Tensor("q", (s.rows, kind.heads, rope), plain.activation)
    k = Tensor("k", (s.rows, 1, rope), plain.activation)
    latent = Tensor("kv", (s.rows, rank), plain.activation)
    normed = latent._replace(name="kv normed")
    norm = parameters([w for w in weights if w.name.startswith("kv_a_norm")], s)
    turned = k._replace(name="k ready")
    steps = [_norm("norm latent", latent, normed, norm)]
    steps += [*turning_steps(q, q._replace(name="Q")), *turning_steps(k, turned)]
    kept = Tensor("cache", (s.rows, kind.cached_elements), plain.kv, "cache")
    steps.append(Kernel("write latent", (normed, turned), (kept,)))
    return _one_or_all(f"{area}.rope+kv", steps, s, rope)


def index_heads(
    kind: LatentAttention, weights: Sequence[Weight], setting: Setting, area: str
) -> list[Launch]:
    """The indexer's key of each new token, normalised and in its cache."""
    s = setting
    key = Tensor("k", (s.rows, kind.index_head_dim), s.plain.activation)
    normed = key._replace(name="k normed")
    norm = parameters([w for w in weights if w.name.startswith("indexer.k_norm")], s)
    kept = key._replace(name="index cache", dtype=s.plain.kv, role="cache")
    steps = [_norm("norm index key", key, normed, norm), Kernel("write index key", (normed,), (kept,))]
    return _one_or_all(f"{area}.index+kv", steps, s, 0)


def _of_norm(name: str, weights: Sequence[Weight], setting: Setting) -> tuple[Tensor, ...]:
    return parameters([w for w in weights if w.name in (name, f"{name}.bias")], setting)


def _ready(x: Tensor, name: str, norm: tuple[Tensor, ...], setting: Setting) -> list[Kernel]:
    """Norm and rotary steps of Q or K, as far as the model has them."""
    steps = []
    if norm:
        normed = x._replace(name=f"{x.name} normed")
        steps.append(_norm(f"norm {x.name}", x, normed, norm))
        x = normed
    if setting.rotary and x.shape[-1] % 2 == 0:
        steps += turning_steps(x, x._replace(name=name))
    return steps


def _norm(name: str, x: Tensor, y: Tensor, weights: tuple[Tensor, ...]) -> Kernel:
    """A root-mean-square norm of each row, or head."""
    elements = rows = 1
    for dimension in x.shape[:-1]:
        rows *= dimension
    elements = rows * x.shape[-1]
    return Kernel(name, (x, *weights), (y,), vector_flops=4 * elements + 2 * rows, special_ops=rows)


def _cache_writes(k: Tensor, v: Tensor, kind: GroupedAttention, setting: Setting) -> list[Kernel]:
    kv = setting.plain.kv
    keys = Tensor("K", (setting.rows, kind.kv_heads, kind.head_dim), kv, "cache")
    values = Tensor("V", (setting.rows, kind.kv_heads, kind.head_dim_v), kv, "cache")
    return [Kernel("write K", (k,), (keys,)), Kernel("write V", (v,), (values,))]


def _one_or_all(name: str, steps: Sequence[Kernel], setting: Setting, head_dim: int) -> list[Launch]:
    """The steps, or one kernel that reads what they start from and writes what they end with."""
    if not steps:
        return []
    if setting.eager:
        return launched(name, "elementwise", Program(name, tuple(steps)))
    made = {tensor.name for kernel in steps for tensor in kernel.writes}
    used = {tensor.name for kernel in steps for tensor in kernel.reads}
    written = {t.name: t for kernel in steps for t in kernel.writes if t.name not in used}
    read = {t.name: t for kernel in steps for t in kernel.reads if t.name not in made}
    halves = [n for n in read if n.endswith(" half")]
    turned = {n.rpartition(", ")[0] for n in halves}  # eager steps read a head whole and by halves
    inputs = [t for n, t in read.items() if n not in halves and n not in ("cos", "sin")]
    if turned:
        inputs.append(angles(setting.rows, head_dim))
    kernel = Kernel(
        "rope_cache",
        tuple(inputs),
        tuple(written.values()),
        vector_flops=sum(k.vector_flops for k in steps),
        special_ops=sum(k.special_ops for k in steps),
    )
    return launched(name, "elementwise", Program(name, (kernel,)))
