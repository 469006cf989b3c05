"""Elementwise kernels and plain streams: copy, read, add, GELU, SiLU times up, a gate.

Computed in fp32 on the vector lanes, stored in the activations' format.
"""

from __future__ import annotations

from memwall.dtypes import Precision
from memwall.maths import Count
from memwall.ops.registry import operator
from memwall.program import Kernel, Program, Tensor, fuse

_EXAMPLE = {"rows": 16384, "cols": 8192}


@operator(example=_EXAMPLE)
def copy(rows: Count, cols: Count, *, precision: Precision) -> Program:
    """Copy: y = x.

        FLOPs = 0
        read x    rows cols
        write y   rows cols

    Args:
        rows: rows.
        cols: elements a row.
        precision: format of x and y.

    Source: McCalpin's STREAM, its copy kernel.
    """
    x = Tensor("x", (rows, cols), precision.activation)
    y = Tensor("y", (rows, cols), precision.plain)
    return Program("copy", (Kernel("copy", (x,), (y,)),))


@operator(example=_EXAMPLE, aliases=("read", "reduce_sum"))
def read_sum(rows: Count, cols: Count, *, precision: Precision) -> Program:
    """Read everything and add it up: y = sum(x), one number.

        vector FLOPs = rows cols
        read x    rows cols
        write y   1

    Args:
        rows: rows.
        cols: elements a row.
        precision: format of x and y.

    Source: the definition.
    """
    x = Tensor("x", (rows, cols), precision.activation)
    y = Tensor("y", (1,), precision.plain)
    return Program("read_sum", (Kernel("read_sum", (x,), (y,), vector_flops=rows * cols),))


@operator(example=_EXAMPLE, aliases=("elementwise_add", "residual_add"))
def add(rows: Count, cols: Count, *, precision: Precision) -> Program:
    """Sum of two tensors: y = a + b.

        vector FLOPs = rows cols
        read a, b   2 rows cols
        write y     rows cols

    Args:
        rows: rows.
        cols: elements a row.
        precision: format of a, b and y.

    Source: the definition.
    """
    a = Tensor("a", (rows, cols), precision.activation)
    b = Tensor("b", (rows, cols), precision.activation)
    y = Tensor("y", (rows, cols), precision.plain)
    return Program("add", (Kernel("add", (a, b), (y,), vector_flops=rows * cols),))


@operator(example=_EXAMPLE)
def gelu(rows: Count, cols: Count, *, precision: Precision) -> Program:
    """GELU, tanh form: y = 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).

        vector FLOPs = 8 rows cols     x^2, x^3, fused scale and add (2), scale, 1 +, x times, half
        special      = rows cols       one tanh an element
        read x    rows cols
        write y   rows cols

    Args:
        rows: rows.
        cols: elements a row.
        precision: format of x and y.

    Source: Hendrycks and Gimpel 2016, arXiv:1606.08415, section 2.
    """
    x = Tensor("x", (rows, cols), precision.activation)
    y = Tensor("y", (rows, cols), precision.plain)
    kernel = Kernel("gelu", (x,), (y,), vector_flops=8 * rows * cols, special_ops=rows * cols)
    return Program("gelu", (kernel,))


@operator(example=_EXAMPLE, aliases=("swiglu", "silu_and_mul"), impls=("fused", "eager"))
def silu_mul(rows: Count, cols: Count, *, precision: Precision, impl: str = "fused") -> Program:
    """The gate of a SwiGLU MLP: y = gate / (1 + exp(-gate)) * up.

        vector FLOPs = 3 rows cols     1 +, gate times, up times
        special      = 2 rows cols     one exp and one reciprocal an element
        read gate, up   2 rows cols
        write y         rows cols
        eager only: silu(gate) is written and read back, 2 rows cols more

    Args:
        rows: tokens.
        cols: features of gate, up and y.
        precision: format of every tensor.
        impl: fused, one kernel; or eager, silu and a product.

    Source: Shazeer 2020, arXiv:2002.05202, equation 6.
    """
    shape = (rows, cols)
    gate = Tensor("gate", shape, precision.activation)
    up = Tensor("up", shape, precision.activation)
    activated = Tensor("silu(gate)", shape, precision.activation)
    y = Tensor("y", shape, precision.plain)
    silu = Kernel("silu", (gate,), (activated,), vector_flops=2 * rows * cols, special_ops=2 * rows * cols)
    product = Kernel("mul", (activated, up), (y,), vector_flops=rows * cols)
    program = Program("silu_mul", (silu, product))
    return program if impl == "eager" else fuse(program)


@operator(example=_EXAMPLE, impls=("fused", "eager"))
def sigmoid_mul(rows: Count, cols: Count, *, precision: Precision, impl: str = "fused") -> Program:
    """A gate on attention's output: y = x / (1 + exp(-gate)).

        vector FLOPs = 2 rows cols     1 +, x times
        special      = 2 rows cols     one exp and one reciprocal an element
        read gate, x    2 rows cols
        write y         rows cols
        eager only: sigmoid(gate) is written and read back, 2 rows cols more

    Args:
        rows: tokens.
        cols: features of gate, x and y.
        precision: format of every tensor.
        impl: fused, one kernel; or eager, sigmoid and a product.

    Source: Qiu et al. 2025, arXiv:2505.06708 (gated attention, as in Qwen3-Next).
    """
    shape = (rows, cols)
    gate = Tensor("gate", shape, precision.activation)
    x = Tensor("x", shape, precision.activation)
    opened = Tensor("sigmoid(gate)", shape, precision.activation)
    y = Tensor("y", shape, precision.plain)
    sigmoid = Kernel("sigmoid", (gate,), (opened,), vector_flops=rows * cols, special_ops=2 * rows * cols)
    product = Kernel("mul", (opened, x), (y,), vector_flops=rows * cols)
    program = Program("sigmoid_mul", (sigmoid, product))
    return program if impl == "eager" else fuse(program)
