"""Rotary positions: turning the heads of Q and K, and writing K and V into the cache.

Frameworks turn a head in five steps (negate half, concatenate, times cos, times sin, add); a fused
kernel reads it once. cos and sin are a table in fp32, half a head each.
"""

from __future__ import annotations

from typing import Any

from memwall.dtypes import Precision, find
from memwall.errors import UsageError
from memwall.maths import Count, exact_div
from memwall.ops.registry import Dims, operator
from memwall.program import Kernel, Program, Tensor


def _even_head(dims: Dims) -> Dims:
    if dims.get("head_dim", 0) % 2:
        raise UsageError(
            f"rope turns pairs: head_dim must be even, not {dims['head_dim']}", "Try --head-dim 128"
        )
    return dims


def _cached_heads(dims: Dims) -> Dims:
    full = dict(_even_head(dims))
    if "head_dim" in full:
        full.setdefault("head_dim_v", full["head_dim"])
    return full


@operator(
    example={"rows": 4096, "heads": 64, "head_dim": 128},
    aliases=("rotary",),
    complete=_even_head,
    impls=("fused", "eager"),
)
def rope(rows: Count, heads: Count, head_dim: Count, *, precision: Precision, impl: str = "fused") -> Program:
    """Rotary position embedding: each pair of a head's elements turned by the token's angle.

        vector FLOPs = 3 rows heads head_dim   4 products and 2 sums a pair
        read x          rows heads head_dim
        read cos, sin   rows head_dim          fp32 table, half a head each
        write y         rows heads head_dim
        eager only: the negated half, the rotated head and both products are written and read back,
                    and x is read twice: 8 rows heads head_dim more

    Args:
        rows: tokens.
        heads: query and key heads turned.
        head_dim: elements a head, even.
        precision: format of x and y.
        impl: fused, one kernel; or eager, five.

    Source: Su et al. 2021, arXiv:2104.09864, equation 34.
    """
    x = Tensor("x", (rows, heads, head_dim), precision.activation)
    y = Tensor("y", (rows, heads, head_dim), precision.plain)
    if impl == "eager":
        return Program("rope", turning_steps(x, y))
    flops = 6 * exact_div(rows * heads * head_dim, 2)
    return Program("rope", (Kernel("rope", (x, angles(rows, head_dim)), (y,), vector_flops=flops),))


@operator(
    example={"rows": 4096, "heads": 64, "kv_heads": 8, "head_dim": 128},
    complete=_cached_heads,
    impls=("fused", "eager"),
)
def rope_cache(
    rows: Count,
    heads: Count,
    kv_heads: Count,
    head_dim: Count,
    head_dim_v: Count | None = None,
    *,
    precision: Precision,
    impl: str = "fused",
) -> Program:
    """Rotary positions of Q and K, and the new tokens' K and V written into the cache.

        vector FLOPs = 3 rows (heads + kv_heads) head_dim
        read q, k, v    rows (heads head_dim + kv_heads (head_dim + head_dim_v))
        read cos, sin   rows head_dim          fp32 table, half a head each
        write Q         rows heads head_dim
        write K, V      rows kv_heads (head_dim + head_dim_v), in the cache's format
        eager only: rope's steps on q and on k, and the turned k is written and read back

    Args:
        rows: new tokens.
        heads: query heads.
        kv_heads: heads of K and V.
        head_dim: elements of a query and key head, even.
        head_dim_v: elements of a value head; head_dim unless given.
        precision: formats of q, k and v, and of the cache.
        impl: fused, one kernel; or eager, rope's steps twice and two writes.

    Source: rope, and Kwon et al. 2023, arXiv:2309.06180 (the cache written as tokens come).
    """
    value = head_dim if head_dim_v is None else head_dim_v
    q = Tensor("q", (rows, heads, head_dim), precision.activation)
    k = Tensor("k", (rows, kv_heads, head_dim), precision.activation)
    v = Tensor("v", (rows, kv_heads, value), precision.activation)
    turned = Tensor("Q", q.shape, precision.activation)
    keys = Tensor("K", k.shape, precision.kv, "cache")
    values = Tensor("V", v.shape, precision.kv, "cache")
    if impl == "eager":
        k_turned = k._replace(name="k turned")
        writes = (
            Kernel("write K", (k_turned,), (keys,)),
            Kernel("write V", (v,), (values,)),
        )
        return Program("rope_cache", (*turning_steps(q, turned), *turning_steps(k, k_turned), *writes))
    flops = 6 * exact_div(rows * (heads + kv_heads) * head_dim, 2)
    table = angles(rows, head_dim)
    kernel = Kernel("rope_cache", (q, k, v, table), (turned, keys, values), vector_flops=flops)
    return Program("rope_cache", (kernel,))


def angles(rows: Count, head_dim: Count) -> Tensor:
    """The cosines and sines of so many tokens' angles, half a head each."""
    return Tensor("cos, sin", (rows, head_dim), find("fp32"), "parameter")


def turning_steps(x: Tensor, y: Tensor) -> tuple[Kernel, ...]:
    """The steps of y = x cos + rotated(x) sin, a kernel each; changing a sign is no FLOP."""
    rows, heads, head_dim = x.shape
    half: tuple[Any, ...] = (rows, heads, exact_div(head_dim, 2))
    elements = rows * heads * head_dim
    first, second = (x._replace(name=f"{x.name}, {which} half", shape=half) for which in ("first", "second"))
    negated = second._replace(name=f"-{second.name}")
    rotated, by_cos, by_sin = (x._replace(name=f"{x.name} {what}") for what in ("rotated", "cos", "sin"))
    cos, sin = (Tensor(name, (rows, half[2]), find("fp32"), "parameter") for name in ("cos", "sin"))
    return (
        Kernel(f"rope {x.name}: negate", (second,), (negated,)),
        Kernel(f"rope {x.name}: concatenate", (negated, first), (rotated,)),
        Kernel(f"rope {x.name}: times cos", (x, cos), (by_cos,), vector_flops=elements),
        Kernel(f"rope {x.name}: times sin", (rotated, sin), (by_sin,), vector_flops=elements),
        Kernel(f"rope {x.name}: add turned", (by_cos, by_sin), (y,), vector_flops=elements),
    )
