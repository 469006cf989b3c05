"""Choosing the next token."""

from __future__ import annotations

from memwall.dtypes import Precision, find
from memwall.maths import Count
from memwall.ops.registry import operator
from memwall.program import Kernel, Program, Tensor


@operator(example={"rows": 64, "cols": 128256}, aliases=("sampling", "greedy"))
def argmax(rows: Count, cols: Count, *, precision: Precision) -> Program:
    """Greedy sampling: the id of the largest score of each row. Any sampling reads as much.

        vector FLOPs = rows cols     a comparison an element
        read x     rows cols
        write ids  rows              64-bit

    Args:
        rows: sequences.
        cols: words of the vocabulary.
        precision: format of x.

    Source: the definition.
    """
    x = Tensor("x", (rows, cols), precision.activation)
    ids = Tensor("ids", (rows,), find("int64"))
    return Program("argmax", (Kernel("argmax", (x,), (ids,), vector_flops=rows * cols),))
