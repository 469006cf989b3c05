"""Gathering rows of a table, as an embedding layer does."""

from __future__ import annotations

from memwall.dtypes import Precision, find
from memwall.maths import Count, minimum
from memwall.ops.registry import operator
from memwall.program import Kernel, Program, Tensor


@operator(example={"rows": 4096, "cols": 8192, "vocab": 128256}, aliases=("embedding", "embedding_gather"))
def gather(rows: Count, cols: Count, vocab: Count, *, precision: Precision) -> Program:
    """Embedding look-up: y[i] = table[ids[i]]. No multiplication by a one-hot matrix: 0 FLOPs.

        FLOPs = 0
        read ids     rows                    64-bit
        read table   min(rows, vocab) cols   the rows asked for, each once
        write y      rows cols

    Ids that repeat read less: the count holds for distinct ids, and falls towards one row.

    Args:
        rows: ids looked up (tokens).
        cols: features of a table row.
        vocab: rows of the table.
        precision: format of the table (weights) and of y.

    Source: the definition.
    """
    ids = Tensor("ids", (rows,), find("int64"))
    touched = Tensor("table", (minimum(rows, vocab), cols), precision.weight, "weight")
    y = Tensor("y", (rows, cols), precision.plain)
    return Program("gather", (Kernel("gather", (ids, touched), (y,)),))
