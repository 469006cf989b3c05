"""Products in CUDA C++: GEMV, and GEMM naive and tiled through shared memory. All in fp32."""

from __future__ import annotations

from memwall.maths import ceil_div
from memwall.verify.case import Launch, Tensors, Trial
from memwall.verify.kernels.raw import compiled, launcher

TILE = 32

SOURCE = r"""
typedef long long Int;
#define INFINITY __int_as_float(0x7f800000)
#define TILE 32

// One warp a row. y[vector, row] = sum over k of w[row, k] x[vector, k].
extern "C" __global__ void gemv(const float* w, const float* x, float* y, Int m, Int k, Int vectors) {
    Int row = (blockIdx.x * (Int)blockDim.x + threadIdx.x) / 32;
    if (row >= m) return;
    for (Int vector = 0; vector < vectors; vector++) {
        float sum = 0.0f;
        #pragma unroll 8
        for (Int i = threadIdx.x % 32; i < k; i += 32)
            sum += w[row * k + i] * x[vector * k + i];  // read w: m k elements once; x from L1
        for (int apart = 16; apart; apart /= 2) sum += __shfl_xor_sync(~0u, sum, apart);
        if (threadIdx.x % 32 == 0) y[vector * m + row] = sum;  // write y: m elements
    }
}

// One thread an output: 2 m n k loads, which only the caches make bearable. c = a b^T.
extern "C" __global__ void naive_gemm(const float* a, const float* b, float* c, Int m, Int n, Int k) {
    Int row = blockIdx.y * (Int)blockDim.y + threadIdx.y, col = blockIdx.x * (Int)blockDim.x + threadIdx.x;
    if (row >= m || col >= n) return;
    float sum = 0.0f;
    for (Int i = 0; i < k; i++) sum += a[row * k + i] * b[col * k + i];  // read a and b: k elements each
    c[row * n + col] = sum;  // write c: m n elements
}

// One block a tile of 32 x 32: each operand is loaded n / 32, or m / 32, times. c = scale a b^T, for each
// of gridDim.z matrices; element (col, i) of b stands at b[col col_step + i inner_step], and `group`
// matrices of a share one of b. With a mask, columns after row + n - m are -infinity.
extern "C" __global__ void tiled_gemm(const float* a, const float* b, float* c, Int m, Int n, Int k,
                                      Int col_step, Int inner_step, Int group, float scale, Int masked) {
    __shared__ float left[TILE][TILE + 1], right[TILE][TILE + 1];
    Int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
    a += blockIdx.z * m * k; b += blockIdx.z / group * n * k; c += blockIdx.z * m * n;
    float sum = 0.0f;
    for (Int start = 0; start < k; start += TILE) {
        // Whichever way b lies, neighbouring threads load neighbouring addresses.
        bool along = inner_step == 1;
        Int b_col = blockIdx.x * TILE + (along ? threadIdx.y : threadIdx.x);
        Int b_inner = start + (along ? threadIdx.x : threadIdx.y), inner = start + threadIdx.x;
        left[threadIdx.y][threadIdx.x] = row < m && inner < k ? a[row * k + inner] : 0.0f;  // read a
        // read b: likewise
        float loaded = b_col < n && b_inner < k ? b[b_col * col_step + b_inner * inner_step] : 0.0f;
        right[along ? threadIdx.y : threadIdx.x][along ? threadIdx.x : threadIdx.y] = loaded;
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < TILE; i++) sum += left[threadIdx.y][i] * right[threadIdx.x][i];
        __syncthreads();
    }
    bool hidden = masked && col > row + n - m;
    if (row < m && col < n) c[row * n + col] = hidden ? -INFINITY : scale * sum;  // write c: m n elements
}
"""


def gemv(trial: Trial, tensors: Tensors) -> Launch:
    """Each row of y = x w^T by a warp."""
    m, k, batch = (trial.dims[name] for name in ("m", "k", "batch"))
    arguments = (*(tensors[name] for name in ("w", "x", "y")), m, k, batch)
    return launcher(compiled(SOURCE, "gemv"), (ceil_div(m, 8),), (256,), *arguments)


def naive_gemm(trial: Trial, tensors: Tensors) -> Launch:
    """Each output of c = a b^T by a thread."""
    m, n, k = (trial.dims[name] for name in ("m", "n", "k"))
    grid = (ceil_div(n, TILE), ceil_div(m, TILE))
    arguments = (*(tensors[name] for name in ("a", "b", "c")), m, n, k)
    return launcher(compiled(SOURCE, "naive_gemm"), grid, (TILE, TILE), *arguments)


def tiled_gemm(trial: Trial, tensors: Tensors) -> Launch:
    """Each tile of c = a b^T by a block."""
    m, n, k = (trial.dims[name] for name in ("m", "n", "k"))
    return tiled_product(tensors["a"], tensors["b"], tensors["c"], (1, m, n, k))


def tiled_product(
    a: object,
    b: object,
    c: object,
    shape: tuple[int, int, int, int],
    *,
    transposed: bool = True,
    group: int = 1,
    scale: float = 1.0,
    masked: bool = False,
) -> Launch:
    """So many products of m x k and k x n.

    Args:
        a: m x k each.
        b: n x k each if transposed, else k x n.
        c: m x n each.
        shape: matrices, m, n, k.
        transposed: how b lies.
        group: matrices of a that share one of b.
        scale: factor of the result.
        masked: columns after row + n - m become minus infinity.
    """
    import numpy

    count, m, n, k = shape
    steps = (k, 1) if transposed else (1, n)
    grid = (ceil_div(n, TILE), ceil_div(m, TILE), count)
    return launcher(
        compiled(SOURCE, "tiled_gemm"), grid, (TILE, TILE),
        a, b, c, m, n, k, *steps, group, numpy.float32(scale), int(masked),
    )  # fmt: skip
