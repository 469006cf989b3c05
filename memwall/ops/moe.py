"""Mixtures of experts: choosing them, their products, and putting the results together.

A token meets top_k experts, so `rows` tokens make rows x top_k pairs; the weights that are read are those
of the experts that some token has chosen.
"""

from __future__ import annotations

from memwall.dtypes import Precision, find
from memwall.maths import Count
from memwall.ops.registry import Dims, operator
from memwall.program import Kernel, Program, Tensor

_EXAMPLE = {"rows": 4096, "cols": 4096, "top_k": 2}


def _enough_experts(dims: Dims) -> Dims:
    from memwall.errors import UsageError

    if dims.get("top_k", 1) > dims.get("experts", dims.get("top_k", 1)):
        raise UsageError(f"a token cannot use {dims['top_k']} of {dims['experts']} experts", "Try --top-k 1")
    return dims


@operator(example={"rows": 4096, "experts": 8, "top_k": 2}, aliases=("topk",), complete=_enough_experts)
def route(rows: Count, experts: Count, top_k: Count, *, precision: Precision) -> Program:
    """Routing: softmax of the router's scores, the top_k of each row, and their weights.

        vector FLOPs = 5 rows experts          softmax's 4 and a comparison
        special      = rows experts + rows     one exp a score, one reciprocal a row
        read scores     rows experts
        write weights   rows top_k
        write ids       rows top_k             32-bit

    Args:
        rows: tokens.
        experts: experts to choose from.
        top_k: experts that a token uses.
        precision: format of the scores and weights.

    Source: Shazeer et al. 2017, arXiv:1701.06538, section 2.1.
    """
    scores = Tensor("scores", (rows, experts), precision.activation)
    weights = Tensor("weights", (rows, top_k), precision.plain)
    ids = Tensor("ids", (rows, top_k), find("int32"))
    pairs = rows * experts
    kernel = Kernel("route", (scores,), (weights, ids), vector_flops=5 * pairs, special_ops=pairs + rows)
    return Program("route", (kernel,))


@operator(example={"tokens": 64, "rows": 128, "experts": 8, "n": 28672, "k": 4096})
def expert_gemm(
    tokens: Count, rows: Count, experts: Count, n: Count, k: Count, *, precision: Precision
) -> Program:
    """The experts' products, however unevenly the rows fall: c[r] = a[token of r] w[expert of r]^T.

        FLOPs = 2 rows n k                  on the matrix unit
        read a     tokens k      each token once, however many experts it meets
        read w     experts n k   weights of the experts that have rows
        write c    rows n

    Args:
        tokens: rows of a: tokens, or as many as rows where each pair has its own.
        rows: pairs of a token and an expert.
        experts: distinct experts among them; on average N (1 - (1 - top_k/N)^tokens) of N.
        n: columns of c.
        k: the dimension summed over.
        precision: formats of a, w and c.

    Source: the definition of the product.
    """
    a = Tensor("a", (tokens, k), precision.activation)
    w = Tensor("b", (experts, n, k), precision.weight, "weight")
    c = Tensor("c", (rows, n), precision.result)
    kernel = Kernel("grouped_gemm", (a, w), (c,), 2 * rows * n * k, compute=precision.compute)
    return Program("expert_gemm", (kernel,))


@operator(example=_EXAMPLE)
def moe_dispatch(rows: Count, cols: Count, top_k: Count, *, precision: Precision) -> Program:
    """Tokens copied to their experts' rows, where the products do not gather them themselves.

        FLOPs = 0
        read x    rows cols
        read ids  rows top_k          32-bit
        write y   rows top_k cols

    Args:
        rows: tokens.
        cols: features.
        top_k: experts that a token uses.
        precision: format of x and y.

    Source: the definition.
    """
    x = Tensor("x", (rows, cols), precision.activation)
    ids = Tensor("ids", (rows, top_k), find("int32"))
    y = Tensor("y", (rows, top_k, cols), precision.plain)
    return Program("moe_dispatch", (Kernel("moe_dispatch", (x, ids), (y,)),))


@operator(example=_EXAMPLE)
def moe_combine(rows: Count, cols: Count, top_k: Count, *, precision: Precision) -> Program:
    """The experts' results of each token, weighted and added up.

        vector FLOPs = 2 rows top_k cols
        read y         rows top_k cols
        read weights   rows top_k
        write x        rows cols

    Args:
        rows: tokens.
        cols: features.
        top_k: experts that a token uses.
        precision: format of x, y and the weights.

    Source: Shazeer et al. 2017, arXiv:1701.06538, equation 1.
    """
    y = Tensor("y", (rows, top_k, cols), precision.activation)
    weights = Tensor("weights", (rows, top_k), precision.activation)
    x = Tensor("x", (rows, cols), precision.plain)
    kernel = Kernel("moe_combine", (y, weights), (x,), vector_flops=2 * rows * top_k * cols)
    return Program("moe_combine", (kernel,))
