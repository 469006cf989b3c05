"""Matrix products: gemm, gemv, batched and grouped gemm.

A multiply and an add are two FLOPs. Bytes are compulsory: each operand once, however the tiles
re-read them. Weights (`b`, or gemv's matrix) may be stored in another format than they are computed
in: `--weight-dtype int4-g128`.
"""

from __future__ import annotations

from memwall.dtypes import Precision
from memwall.maths import Count
from memwall.ops.registry import operator
from memwall.program import Kernel, Program, Tensor


@operator(example={"m": 4096, "n": 4096, "k": 4096}, aliases=("matmul", "linear", "mm"), rows="m")
def gemm(m: Count, n: Count, k: Count, *, precision: Precision) -> Program:
    """Matrix product: c[m,n] = a[m,k] b[n,k]^T.

        FLOPs = 2 m n k                     on the matrix unit
        read a     m k     activations
        read b     n k     weights
        write c    m n     16-bit for 8- and 4-bit floats, 32-bit for integers

    Args:
        m: rows of a and c (tokens).
        n: columns of c (output features).
        k: the dimension summed over (input features).
        precision: formats of a, b and c.

    4096 x 4096 x 4096 in bf16: 137.4e9 FLOPs, 100.7e6 bytes.
    Source: the definition of the product.
    """
    return _product("gemm", (), m, n, k, precision)


@operator(
    example={"m": 8192, "k": 8192},
    aliases=("matvec", "mv"),
    default_shape={"m": 8192, "k": 8192},
    rows="batch",
)
def gemv(m: Count, k: Count, batch: Count = 1, *, precision: Precision) -> Program:
    """Matrix times one or a few vectors that share the matrix: y[batch,m] = x[batch,k] w[m,k]^T.

        FLOPs = 2 m k batch                 on the matrix unit
        read w     m k       weights, once for all vectors
        read x     batch k
        write y    batch m

    Args:
        m: rows of the matrix (outputs).
        k: columns of the matrix (inputs).
        batch: vectors multiplied at once.
        precision: formats of x, w and y.

    8192 x 8192 in bf16: 134.2e6 FLOPs, 134.25e6 bytes: one FLOP a byte.
    Source: the definition of the product.
    """
    w = Tensor("w", (m, k), precision.weight, "weight")
    x = Tensor("x", (batch, k), precision.activation)
    y = Tensor("y", (batch, m), precision.result)
    kernel = Kernel("gemv", (w, x), (y,), 2 * m * k * batch, compute=precision.compute)
    return Program("gemv", (kernel,))


@operator(example={"batch": 64, "m": 512, "n": 512, "k": 128}, aliases=("bmm",))
def batched_gemm(batch: Count, m: Count, n: Count, k: Count, *, precision: Precision) -> Program:
    """Independent products of one shape: c[i] = a[i] b[i]^T for i < batch.

        FLOPs = 2 batch m n k               on the matrix unit
        read a     batch m k
        read b     batch n k   each product has its own
        write c    batch m n

    Args:
        batch: how many products.
        m: rows of each a and c.
        n: columns of each c.
        k: the dimension summed over.
        precision: formats of a, b and c.

    Source: the definition of the product.
    """
    return _product("batched_gemm", (batch,), m, n, k, precision)


@operator(example={"experts": 8, "m": 128, "n": 28672, "k": 4096}, aliases=("moe_gemm",), rows="m")
def grouped_gemm(experts: Count, m: Count, n: Count, k: Count, *, precision: Precision) -> Program:
    """One product for each expert, with m rows each: c[e] = a[e] w[e]^T.

        FLOPs = 2 experts m n k             on the matrix unit
        read a     experts m k
        read w     experts n k   weights of the experts that have rows
        write c    experts m n

    Args:
        experts: experts that have rows.
        m: rows for each expert.
        n: columns of each c.
        k: the dimension summed over.
        precision: formats of a, w and c.

    Source: the definition of the product.
    """
    return _product("grouped_gemm", (experts,), m, n, k, precision)


def _product(
    name: str, outer: tuple[Count, ...], m: Count, n: Count, k: Count, precision: Precision
) -> Program:
    a = Tensor("a", (*outer, m, k), precision.activation)
    b = Tensor("b", (*outer, n, k), precision.weight, "weight")
    c = Tensor("c", (*outer, m, n), precision.result)
    flops = 2 * m * n * k
    for count in outer:
        flops = flops * count
    return Program(name, (Kernel(name, (a, b), (c,), flops, compute=precision.compute),))
