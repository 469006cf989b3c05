"""Standard attention in CUDA C++: three kernels, S and P between them in memory. All in fp32."""

from __future__ import annotations

import torch

from memwall.verify.case import Launch, Tensors, Trial
from memwall.verify.kernels.cupy_products import tiled_product
from memwall.verify.kernels.raw import compiled, in_turn, launcher

SOURCE = r"""
typedef long long Int;
#define INFINITY __int_as_float(0x7f800000)

// One block a row; three passes over it, the later two from L1 or L2. A row that L2 held is read once.
extern "C" __global__ void softmax(const float* s, float* p, Int cols) {
    __shared__ float shared[32];
    s += blockIdx.x * cols; p += blockIdx.x * cols;
    float largest = -INFINITY, sum = 0.0f;
    for (Int i = threadIdx.x; i < cols; i += blockDim.x) largest = fmaxf(largest, s[i]);  // read S
    for (int apart = 16; apart; apart /= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, apart));
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = largest;
    __syncthreads();
    for (int warp = 0; warp < blockDim.x / 32; warp++) largest = fmaxf(largest, shared[warp]);
    __syncthreads();
    for (Int i = threadIdx.x; i < cols; i += blockDim.x) sum += __expf(s[i] - largest);
    for (int apart = 16; apart; apart /= 2) sum += __shfl_xor_sync(~0u, sum, apart);
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int warp = 0; warp < blockDim.x / 32; warp++) sum += shared[warp];
    for (Int i = threadIdx.x; i < cols; i += blockDim.x) p[i] = __expf(s[i] - largest) / sum;  // write P
}
"""


def standard(trial: Trial, tensors: Tensors) -> Launch:
    """S = Q K^T / sqrt(d), P = softmax(S), O = P V, each a kernel; a mask makes no S and P smaller."""
    q, k, v, o = (tensors[name] for name in ("Q", "K", "V", "O"))
    batch, heads, seq_q, head_dim = q.shape
    seq_kv, group, count = k.shape[2], heads // k.shape[1], batch * heads
    s = torch.empty((count, seq_q, seq_kv), dtype=q.dtype, device=q.device)
    p = torch.empty_like(s)
    return in_turn(
        tiled_product(
            q, k, s, (count, seq_q, seq_kv, head_dim),
            group=group, scale=head_dim**-0.5, masked=bool(trial.causal),
        ),
        launcher(compiled(SOURCE, "softmax"), (count * seq_q,), (256,), s, p, seq_kv),
        tiled_product(p, v, o, (count, seq_q, head_dim, seq_kv), transposed=False, group=group),
    )  # fmt: skip
