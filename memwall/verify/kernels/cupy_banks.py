"""A transpose through shared memory, with and without the padding that keeps its banks apart."""

from __future__ import annotations

from memwall.maths import ceil_div
from memwall.verify.case import Launch, Tensors, Trial
from memwall.verify.kernels.raw import compiled, launcher

TILE = 32

SOURCE = r"""
typedef long long Int;
#define TILE 32

// Both sides coalesced: rows of x are loaded, rows of y stored, and the turn is made on chip. A column of
// the tile lies in one bank if its rows are 32 words long: 32 accesses in turn. One word of padding, and it
// lies in 32 banks. The memory traffic of both is the same.
template <int WIDTH> __device__ void turn(const float* x, float* y, Int rows, Int cols) {
    __shared__ float tile[TILE][WIDTH];
    Int col = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE;
    for (int i = threadIdx.y; i < TILE; i += blockDim.y)
        if (row + i < rows && col < cols) tile[i][threadIdx.x] = x[(row + i) * cols + col];  // read x, once
    __syncthreads();
    Int out_col = row + threadIdx.x, out_row = blockIdx.x * TILE;
    for (int i = threadIdx.y; i < TILE; i += blockDim.y)
        if (out_row + i < cols && out_col < rows)
            y[(out_row + i) * rows + out_col] = tile[threadIdx.x][i];  // write y, once
}
extern "C" __global__ void conflicting(const float* x, float* y, Int rows, Int cols) {
    turn<TILE>(x, y, rows, cols);
}
extern "C" __global__ void padded(const float* x, float* y, Int rows, Int cols) {
    turn<TILE + 1>(x, y, rows, cols);
}
"""


def conflicting(trial: Trial, tensors: Tensors) -> Launch:
    """The transpose, each column of the tile in one bank."""
    return _transpose("conflicting", trial, tensors)


def padded(trial: Trial, tensors: Tensors) -> Launch:
    """The transpose, each column of the tile in 32 banks."""
    return _transpose("padded", trial, tensors)


def _transpose(name: str, trial: Trial, tensors: Tensors) -> Launch:
    rows, cols = trial.dims["rows"], trial.dims["cols"]
    grid = (ceil_div(cols, TILE), ceil_div(rows, TILE))
    return launcher(compiled(SOURCE, name), grid, (TILE, 8), tensors["x"], tensors["y"], rows, cols)
