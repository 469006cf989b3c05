"""Streams and access patterns in CUDA C++: copy, read, sum of two, and single elements far apart."""

from __future__ import annotations

from memwall.maths import ceil_div
from memwall.verify.case import Launch, Tensors, Trial
from memwall.verify.kernels.raw import compiled, in_turn, launcher

THREADS = 256
_SUMMING_BLOCKS = 2048
"""Enough to fill any GPU; each adds its sum to the total once, and all of them to one address."""

SOURCE = r"""
typedef long long Int;
#define FOR_EACH(i, count) \
    for (Int i = blockIdx.x * (Int)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (Int)blockDim.x)

// 16 bytes a thread: neighbouring threads, neighbouring addresses.
extern "C" __global__ void copy(const float4* x, float4* y, Int quads) {
    FOR_EACH(i, quads) y[i] = x[i];  // read x, write y: 4 elements each
}

extern "C" __global__ void add(const float4* a, const float4* b, float4* y, Int quads) {
    FOR_EACH(i, quads) {
        float4 p = a[i], q = b[i];  // read a and b
        y[i] = make_float4(p.x + q.x, p.y + q.y, p.z + q.z, p.w + q.w);  // write y
    }
}

extern "C" __global__ void read_sum(const float4* x, float* y, Int quads) {
    float sum = 0.0f;
    FOR_EACH(i, quads) {
        float4 p = x[i];  // read x
        sum += (p.x + p.y) + (p.z + p.w);
    }
    __shared__ float sums[32];
    for (int apart = 16; apart; apart /= 2) sum += __shfl_xor_sync(~0u, sum, apart);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x) return;
    for (int warp = 1; warp < blockDim.x / 32; warp++) sum += sums[warp];
    atomicAdd(y, sum);  // write y: one element, in L2
}

// One element a thread, `step` elements apart, around the end of x. Step 1 is coalesced; from 8 on
// each 4-byte element takes a 32-byte sector of its own; an odd step near 0.618 of x scatters them.
extern "C" __global__ void access(const float* x, float* y, Int count, Int step, Int elements) {
    FOR_EACH(i, count) y[i] = x[(i * step) & (elements - 1)];
}
"""


def copy(trial: Trial, tensors: Tensors) -> Launch:
    """The copy y = x."""
    return _stream("copy", tensors, "x", "y")


def add(trial: Trial, tensors: Tensors) -> Launch:
    """The sum y = a + b: the traffic of STREAM's triad."""
    return _stream("add", tensors, "a", "b", "y")


def read_sum(trial: Trial, tensors: Tensors) -> Launch:
    """The total y = sum(x)."""
    return in_turn(tensors["y"].zero_, _stream("read_sum", tensors, "x", "y", most=_SUMMING_BLOCKS))


def access(trial: Trial, tensors: Tensors) -> Launch:
    """Single elements: y[i] = x[i step mod elements]."""
    count, step, elements = (trial.dims[name] for name in ("count", "step", "elements"))
    grid = (ceil_div(count, THREADS),)
    arguments = (tensors["x"], tensors["y"], count, step, elements)
    return launcher(compiled(SOURCE, "access"), grid, (THREADS,), *arguments)


def _stream(name: str, tensors: Tensors, *names: str, most: int | None = None) -> Launch:
    pointers = [tensors[each] for each in names]
    quads = pointers[0].numel() // 4
    blocks = ceil_div(quads, THREADS)
    grid = (min(most or blocks, blocks),)
    return launcher(compiled(SOURCE, name), grid, (THREADS,), *pointers, quads)
