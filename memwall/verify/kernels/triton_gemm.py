"""Tiled GEMM in Triton, its tiles ordered in groups of rows so that neighbours share operands in L2."""

from __future__ import annotations

import triton
import triton.language as tl

from memwall.verify.case import Launch, Tensors, Trial
from memwall.verify.kernels.blocks import GEMM
from memwall.verify.kernels.device import stages_that_fit


@triton.jit
def gemm_kernel(
    a, b, c, m, n, k,
    tile_m: tl.constexpr, tile_n: tl.constexpr, tile_k: tl.constexpr, group: tl.constexpr,
):  # fmt: skip
    """One output tile of c[m,n] = a[m,k] b[n,k]^T."""
    tile = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(m, tile_m), tl.cdiv(n, tile_n)
    band = tile // (group * tiles_n)  # `group` rows of tiles, column by column
    height = min(group, tiles_m - band * group)
    within = tile % (group * tiles_n)
    rows = (band * group + within % height) * tile_m + tl.arange(0, tile_m)
    cols = (within // height) * tile_n + tl.arange(0, tile_n)
    a_rows = (rows % m).to(tl.int64)[:, None] * k  # beyond the edge: other rows, which are not stored
    b_rows = (cols % n).to(tl.int64)[:, None] * k
    total = tl.zeros((tile_m, tile_n), tl.float32)
    for start in range(0, k, tile_k):
        inner = start + tl.arange(0, tile_k)
        # read a: m k elements for each of the n / tile_n columns of tiles
        left = tl.load(a + a_rows + inner[None, :], mask=inner[None, :] < k, other=0.0)
        # read b: n k elements for each of the m / tile_m rows of tiles
        right = tl.load(b + b_rows + inner[None, :], mask=inner[None, :] < k, other=0.0)
        total = tl.dot(left, right.T, total)
    inside = (rows[:, None] < m) & (cols[None, :] < n)
    # write c: m n elements, once
    tl.store(c + rows.to(tl.int64)[:, None] * n + cols[None, :], total.to(c.dtype.element_ty), mask=inside)


def gemm(trial: Trial, tensors: Tensors) -> Launch:
    """The product of a whole shape."""
    m, n, k = (trial.dims[name] for name in ("m", "n", "k"))
    a, b, c = (tensors[name] for name in ("a", "b", "c"))
    stages = stages_that_fit(a, GEMM.stages, (GEMM.tile_m + GEMM.tile_n) * GEMM.tile_k * a.element_size())
    grid = (triton.cdiv(m, GEMM.tile_m) * triton.cdiv(n, GEMM.tile_n),)

    def launch() -> None:
        gemm_kernel[grid](
            a, b, c, m, n, k, tile_m=GEMM.tile_m, tile_n=GEMM.tile_n, tile_k=GEMM.tile_k, group=GEMM.group,
            num_warps=GEMM.warps, num_stages=stages,
        )  # fmt: skip

    return launch
