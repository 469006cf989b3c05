"""Normalisation over the last dimension, alone or with the residual add before it.

Computed in fp32 on the vector lanes, stored in the activations' format.
"""

from __future__ import annotations

from memwall.dtypes import Precision
from memwall.maths import Count
from memwall.ops.registry import operator
from memwall.program import Kernel, Program, Tensor, fuse

_EXAMPLE = {"rows": 4096, "cols": 8192}


@operator(example=_EXAMPLE, aliases=("rms_norm",))
def rmsnorm(rows: Count, cols: Count, *, precision: Precision) -> Program:
    """Root-mean-square norm: y = x / sqrt(mean(x^2) + eps) * weight.

        vector FLOPs = 4 rows cols + 2 rows    square, accumulate, scale, weight; mean and eps a row
        special      = rows                    one rsqrt a row
        read x       rows cols
        read weight  cols
        write y      rows cols

    Args:
        rows: tokens.
        cols: features.
        precision: format of x, weight and y.

    Source: Zhang and Sennrich 2019, arXiv:1910.07467, equation 4.
    """
    x = Tensor("x", (rows, cols), precision.activation)
    return Program("rmsnorm", (_rmsnorm_kernel(x, precision),))


@operator(example=_EXAMPLE, aliases=("layer_norm",))
def layernorm(rows: Count, cols: Count, *, precision: Precision) -> Program:
    """Layer norm: y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias.

        vector FLOPs = 7 rows cols + 3 rows    sum; centre, square, accumulate; scale; weight, bias
        special      = rows                    one rsqrt a row
        read x             rows cols
        read weight, bias  2 cols
        write y            rows cols

    Args:
        rows: tokens.
        cols: features.
        precision: format of x, weight, bias and y.

    Source: Ba, Kiros and Hinton 2016, arXiv:1607.06450, equation 3.
    """
    x = Tensor("x", (rows, cols), precision.activation)
    return Program("layernorm", (_layernorm_kernel(x, precision),))


@operator(
    example=_EXAMPLE,
    aliases=("residual_norm", "add_rmsnorm", "add_norm", "fused_add_rmsnorm"),
    impls=("fused", "eager"),
)
def residual_rmsnorm(rows: Count, cols: Count, *, precision: Precision, impl: str = "fused") -> Program:
    """Residual add and root-mean-square norm: h = x + residual; y = rmsnorm(h). Both leave.

        vector FLOPs = 5 rows cols + 2 rows
        special      = rows
        read x, residual   2 rows cols
        read weight        cols
        write h, y         2 rows cols
        eager only: h is read back by the norm, rows cols more

    Args:
        rows: tokens.
        cols: features.
        precision: format of every tensor.
        impl: fused, one kernel; or eager, an add and a norm.

    Source: the sum of add and rmsnorm.
    """
    h = Tensor("h", (rows, cols), precision.plain)
    return _after_add("residual_rmsnorm", h, _rmsnorm_kernel(h, precision), precision, impl)


@operator(example=_EXAMPLE, aliases=("add_layernorm",), impls=("fused", "eager"))
def residual_layernorm(rows: Count, cols: Count, *, precision: Precision, impl: str = "fused") -> Program:
    """Residual add and layer norm: h = x + residual; y = layernorm(h). Both leave.

        vector FLOPs = 8 rows cols + 3 rows
        special      = rows
        read x, residual    2 rows cols
        read weight, bias   2 cols
        write h, y          2 rows cols
        eager only: h is read back by the norm, rows cols more

    Args:
        rows: tokens.
        cols: features.
        precision: format of every tensor.
        impl: fused, one kernel; or eager, an add and a norm.

    Source: the sum of add and layernorm.
    """
    h = Tensor("h", (rows, cols), precision.plain)
    return _after_add("residual_layernorm", h, _layernorm_kernel(h, precision), precision, impl)


def _after_add(name: str, h: Tensor, norm: Kernel, precision: Precision, impl: str) -> Program:
    rows, cols = h.shape
    x = Tensor("x", h.shape, precision.activation)
    residual = Tensor("residual", h.shape, precision.activation)
    add = Kernel("add", (x, residual), (h,), vector_flops=rows * cols)
    program = Program(name, (add, norm), frozenset({"h"}))
    return program if impl == "eager" else fuse(program)


def _rmsnorm_kernel(x: Tensor, precision: Precision) -> Kernel:
    rows, cols = x.shape
    weight = Tensor("weight", (cols,), precision.activation, "parameter")
    y = Tensor("y", x.shape, precision.plain)
    return Kernel("rmsnorm", (x, weight), (y,), vector_flops=4 * rows * cols + 2 * rows, special_ops=rows)


def _layernorm_kernel(x: Tensor, precision: Precision) -> Kernel:
    rows, cols = x.shape
    weight = Tensor("weight", (cols,), precision.activation, "parameter")
    bias = Tensor("bias", (cols,), precision.activation, "parameter")
    y = Tensor("y", x.shape, precision.plain)
    return Kernel(
        "layernorm", (x, weight, bias), (y,), vector_flops=7 * rows * cols + 3 * rows, special_ops=rows
    )
