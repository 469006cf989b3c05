"""The kernels of each kind of attention: projections, heads, attention itself, output."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.dtypes import Precision, find
from memwall.models.attentions import Attention, GroupedAttention, LatentAttention
from memwall.models.passes import Tokens, attention_program
from memwall.models.step.gate import gated
from memwall.models.step.heads import grouped_heads, index_heads, latent_heads
from memwall.models.step.launch import Launch, Setting, launched, narrowed, reading
from memwall.models.step.linear import linear, parameters, precision_of
from memwall.models.weights import Weight
from memwall.ops.attention import attention, mla, visible_pairs
from memwall.ops.norm import rmsnorm
from memwall.program import Kernel, Program, Tensor


def attended(kind: Attention, weights: Sequence[Weight], setting: Setting) -> list[Launch]:
    """All kernels of a layer's attention."""
    if isinstance(kind, LatentAttention):
        return _latent(kind, weights, setting)
    return _grouped(kind, weights, setting)


def crossed(kind: GroupedAttention, weights: Sequence[Weight], setting: Setting) -> list[Launch]:
    """Attention to the encoder's tokens; their K and V are made once, in the prefill, and kept."""
    s, area = setting, "cross"
    target = [w for w in weights if not w.name.startswith(("k_proj", "v_proj"))]
    launches = linear(area, "q", _of_product("q", target), s)
    if s.prefill:
        encoded = [w for w in weights if w.name.startswith(("k_proj", "v_proj"))]
        made = linear(area, "kv", _of_product("kv", encoded), s, rows=s.tokens.batch * s.source)
        launches += [_kept(launch, s) for launch in made]
    tokens = Tokens(s.tokens.batch, s.tokens.seq_q, s.source)
    program = attention(
        kind.heads,
        kind.head_dim,
        tokens.seq_q,
        tokens.seq_kv,
        kind.kv_heads,
        kind.head_dim_v,
        tokens.batch,
        precision=s.plain,
        impl=s.impl,
    )
    norms = parameters([w for w in weights if w.name.startswith(("q_norm", "k_norm"))], s)
    core = reading(launched(f"{area}.attention", "attention", program), *norms)
    return [*launches, *narrowed(core, s), *linear(area, "output", weights, s)]


def _of_product(name: str, weights: Sequence[Weight]) -> list[Weight]:
    """The weights, those of QKV in a product of that name: queries here read another input than K and V."""
    return [w._replace(kernel=name) if w.gemm == "qkv" else w for w in weights]


def _kept(launch: Launch, setting: Setting) -> Launch:
    """A product whose results go into the cache as they are."""
    kv = setting.plain.kv
    writes = tuple(tensor._replace(role="cache", dtype=kv) for tensor in launch.kernel.writes)
    return launch._replace(kernel=launch.kernel._replace(writes=writes))


def _grouped(kind: GroupedAttention, weights: Sequence[Weight], setting: Setting) -> list[Launch]:
    s, area = setting, "attention"
    name = area if kind.window is None else f"{area}, window {kind.window}"
    program = attention_program(kind, s.tokens, s.plain, s.causal or kind.window is not None, s.impl)
    core = launched(name, "attention", program if s.causal else _uncached(program))
    sinks = parameters([w for w in weights if w.name == "sinks"], s)
    core = reading(core, *sinks) if sinks else core
    return [
        *linear(area, "qkv", weights, s),
        *grouped_heads(kind, weights, s, area),
        *narrowed([*core, *_gated(kind, s)], s),
        *linear(area, "output", weights, s),
    ]


def _gated(kind: GroupedAttention, setting: Setting) -> list[Launch]:
    """The gate on the result, an element or a head each."""
    if not kind.gate:
        return []
    return gated("attention.gate", kind.heads * kind.head_dim_v, kind.gate, setting)


def _uncached(program: Program) -> Program:
    """The same where K and V are not kept: an encoder's, or those made of the latent."""
    kernels = []
    for kernel in program.kernels:
        reads = tuple(t._replace(role="activation") if t.role == "cache" else t for t in kernel.reads)
        kernels.append(kernel._replace(reads=reads))
    return program._replace(kernels=tuple(kernels))


def _latent(kind: LatentAttention, weights: Sequence[Weight], setting: Setting) -> list[Launch]:
    s, area = setting, "attention"
    launches = linear(area, "down", weights, s)
    if kind.q_lora_rank:
        norm = launched(f"{area}.q_a_norm", "norm", rmsnorm(s.rows, kind.q_lora_rank, precision=s.plain))
        launches += [*narrowed(norm, s), *linear(area, "q_up", weights, s)]
    launches += latent_heads(kind, weights, s, area)
    if kind.index_heads:
        launches += [*linear(area, "index_q", weights, s), *linear(area, "index_k", weights, s)]
        launches += [*index_heads(kind, weights, s, area), *_index(kind, s)]
    core = _absorbed(kind, weights, s) if s.absorbed else _unabsorbed(kind, weights, s)
    return [*launches, *narrowed(core, s), *linear(area, "output", weights, s)]


def _absorbed(kind: LatentAttention, weights: Sequence[Weight], setting: Setting) -> list[Launch]:
    """Queries taken into the latent space, attention there, and its result taken out: one latent for all."""
    s, nope, rank = setting, kind.qk_nope_head_dim, kind.kv_lora_rank
    tokens, up = s.tokens, precision_of(_up(weights), s)
    keys = _seen(kind, tokens)
    program = mla(
        kind.heads,
        keys,
        tokens.seq_q,
        head_dim=kind.cached_elements,
        head_dim_v=rank,
        batch=tokens.batch,
        precision=s.plain,
        impl=s.impl,
    )
    rows, value = s.rows, kind.v_head_dim
    into = _by_head((kind.heads, rows, nope), (nope, rank), rank, up)
    out = _by_head((kind.heads, rows, rank), (value, rank), value, up)
    return [
        Launch("attention.absorb_k", "linear", into),
        *launched("attention, absorbed", "attention", program),
        Launch("attention.absorb_v", "linear", out),
    ]


def _by_head(x: tuple[int, int, int], stored: tuple[int, int], outputs: int, formats: Precision) -> Kernel:
    """A product a head with its part of the latent's up projection, in the layout that it is stored in."""
    heads, rows, inputs = x
    a = Tensor("a", x, formats.activation)
    b = Tensor("kv_b_proj", (heads * stored[0], stored[1]), formats.weight, "weight")
    c = Tensor("c", (heads, rows, outputs), formats.result)
    return Kernel("batched_gemm", (a, b), (c,), 2 * heads * rows * inputs * outputs, compute=formats.compute)


def _unabsorbed(kind: LatentAttention, weights: Sequence[Weight], setting: Setting) -> list[Launch]:
    """K and V of every head made of the latent, of all tokens in the cache too."""
    s, tokens = setting, setting.tokens
    up = linear("attention", "kv_up", weights, s, rows=tokens.batch * tokens.seq_kv)
    if tokens.cached:  # what it reads is the cache
        latent = Tensor("latent", up[0].kernel.reads[0].shape, s.plain.kv, "cache")
        up[0] = up[0]._replace(kernel=up[0].kernel._replace(reads=(latent, *up[0].kernel.reads[1:])))
    limited = kind._replace(window=_limit(kind))
    fresh = s.plain._replace(kv=s.plain.activation)
    program = attention_program(limited, tokens, fresh, True, s.impl)
    concat = _concatenated(kind, tokens, s) if s.eager else []
    return [*up, *concat, *launched("attention", "attention", _uncached(program))]


def _concatenated(kind: LatentAttention, tokens: Tokens, setting: Setting) -> list[Launch]:
    """The rotary part beside each head's own keys."""
    rows, sixteen = tokens.batch * tokens.seq_kv, setting.plain.activation
    own = Tensor("k nope", (rows, kind.heads, kind.qk_nope_head_dim), sixteen)
    shared = Tensor("k rope", (rows, 1, kind.qk_rope_head_dim), sixteen)
    whole = Tensor("k", (rows, kind.heads, kind.head_dim), sixteen)
    return [Launch("attention.concatenate", "elementwise", Kernel("concatenate", (own, shared), (whole,)))]


def _index(kind: LatentAttention, setting: Setting) -> list[Launch]:
    """Scores of every visible key by the indexer's heads, and the best of each query."""
    s, tokens = setting, setting.tokens
    pairs = tokens.batch * visible_pairs(tokens.seq_q, tokens.seq_kv)
    q = Tensor("q", (s.rows, kind.index_heads, kind.index_head_dim), s.linear.activation)
    weights = Tensor("weights", (s.rows, kind.index_heads), s.plain.activation)
    keys = Tensor("index keys", (tokens.batch, tokens.seq_kv, kind.index_head_dim), s.plain.kv, "cache")
    chosen = Tensor("ids", (s.rows, min(kind.index_topk, tokens.seq_kv)), find("int32"))
    kernel = Kernel(
        "index",
        (q, keys, weights),
        (chosen,),
        2 * pairs * kind.index_heads * kind.index_head_dim,
        vector_flops=2 * pairs * kind.index_heads,
        compute=s.linear.compute,
    )
    return [Launch("attention.index", "attention", kernel)]


def _limit(kind: LatentAttention) -> int | None:
    """Keys that a query attends to at most."""
    limits = [n for n in (kind.window, kind.index_topk if kind.index_heads else None) if n]
    return min(limits) if limits else None


def _seen(kind: LatentAttention, tokens: Tokens) -> int:
    """Keys of a sequence that some query attends to, at least."""
    limit = _limit(kind)
    return tokens.seq_kv if limit is None else min(tokens.seq_kv, tokens.seq_q + limit - 1)


def _up(weights: Sequence[Weight]) -> Weight:
    return next(weight for weight in weights if weight.name == "kv_b_proj")
