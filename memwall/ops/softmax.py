"""Softmax over the last dimension, computed in fp32."""

from __future__ import annotations

from memwall.dtypes import Precision
from memwall.maths import Count
from memwall.ops.registry import operator
from memwall.program import Kernel, Program, Tensor


@operator(example={"rows": 4096, "cols": 4096})
def softmax(rows: Count, cols: Count, *, precision: Precision) -> Program:
    """Softmax of each row: y = exp(x - max(x)) / sum(exp(x - max(x))).

        vector FLOPs = 4 rows cols             max, subtract, sum, scale
        special      = rows cols + rows        one exp an element, one reciprocal a row
        read x       rows cols
        write y      rows cols

    Args:
        rows: independent rows.
        cols: elements a row; kept on chip between the passes.
        precision: format of x and y.

    Source: Milakov and Gimelshein 2018, arXiv:1805.02867, algorithm 2 (its three passes, read once).
    """
    x = Tensor("x", (rows, cols), precision.activation)
    y = Tensor("y", (rows, cols), precision.plain)
    return Program("softmax", (softmax_kernel(x, y, rows, rows * cols),))


def softmax_kernel(x: Tensor, y: Tensor, rows: Count, elements: Count) -> Kernel:
    """Softmax of so many elements in so many rows; attention's mask leaves fewer than the tensors hold."""
    return Kernel("softmax", (x,), (y,), vector_flops=4 * elements, special_ops=elements + rows)
