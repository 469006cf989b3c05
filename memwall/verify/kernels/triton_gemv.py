"""GEMV and batched GEMV in Triton; the sum is split over several programs where the rows are too few."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from memwall.verify.case import Launch, Tensors, Trial
from memwall.verify.kernels.blocks import GEMV_BLOCK_K, GEMV_BLOCK_M, gemv_splits
from memwall.verify.kernels.device import units


@triton.jit
def gemv_kernel(
    w, x, y, m, k, vectors, span,
    block_m: tl.constexpr, block_k: tl.constexpr,
):  # fmt: skip
    """One block of rows of one matrix, over its share of k; y[split, matrix, vector, row]."""
    rows = tl.program_id(0) * block_m + tl.arange(0, block_m)
    matrix, split = tl.program_id(1), tl.program_id(2)
    vector = 0
    while vector < vectors:
        total = tl.zeros((block_m, block_k), tl.float32)
        for start in range(split * span, min(k, (split + 1) * span), block_k):
            cols = start + tl.arange(0, block_k)
            inside = (rows[:, None] < m) & (cols[None, :] < k)
            place = (matrix * m + rows[:, None]).to(tl.int64) * k + cols[None, :]
            # read w: m k elements in all, each once; for further vectors again, from L2
            weights = tl.load(w + place, mask=inside, other=0.0)
            # read x: k elements for each block of rows, from L2
            values = tl.load(x + (matrix * vectors + vector) * k + cols, mask=cols < k, other=0.0)
            total += weights.to(tl.float32) * values.to(tl.float32)[None, :]
        place_y = ((split * tl.num_programs(1) + matrix) * vectors + vector) * m + rows
        # write y: m elements a vector; with splits as many partial sums in fp32
        tl.store(y + place_y, tl.sum(total, 1).to(y.dtype.element_ty), mask=rows < m)
        vector += 1


@triton.jit
def add_splits_kernel(partial, y, size, splits, block: tl.constexpr):
    """The partial sums of each result, added up."""
    places = tl.program_id(0) * block + tl.arange(0, block)
    total = tl.zeros((block,), tl.float32)
    for split in range(splits):
        # read partial sums: splits m elements of 4 bytes, just written, from L2
        total += tl.load(partial + split * size + places, mask=places < size, other=0.0)
    # write y: m elements
    tl.store(y + places, total.to(y.dtype.element_ty), mask=places < size)


def gemv(trial: Trial, tensors: Tensors) -> Launch:
    """y[batch,m] = x[batch,k] w[m,k]^T."""
    return _launch(tensors["w"], tensors["x"], tensors["y"], 1, trial.dims["m"], trial.dims["batch"])


def batched_gemv(trial: Trial, tensors: Tensors) -> Launch:
    """c[i,m] = a[i,m,k] b[i,k]: every product has its own matrix, a, and one vector, b."""
    return _launch(tensors["a"], tensors["b"], tensors["c"], trial.dims["batch"], trial.dims["m"], 1)


def _launch(w: Any, x: Any, y: Any, matrices: int, m: int, vectors: int) -> Launch:
    k = w.shape[-1]
    row_blocks = triton.cdiv(m, GEMV_BLOCK_M)
    splits = gemv_splits(row_blocks * matrices, k, units(w))
    span = triton.cdiv(triton.cdiv(k, splits), GEMV_BLOCK_K) * GEMV_BLOCK_K
    grid = (row_blocks, matrices, splits)
    size = matrices * vectors * m
    partial = torch.empty(splits * size, dtype=torch.float32, device=w.device) if splits > 1 else y

    def launch() -> None:
        gemv_kernel[grid](
            w, x, partial, m, k, vectors, span, block_m=GEMV_BLOCK_M, block_k=GEMV_BLOCK_K, num_warps=4
        )
        if splits > 1:
            add_splits_kernel[(triton.cdiv(size, 256),)](partial, y, size, splits, block=256)

    return launch
