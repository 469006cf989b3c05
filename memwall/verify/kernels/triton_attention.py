"""FlashAttention forward in Triton: the outer loop over blocks of queries, scores on chip.

Causal or not, grouped queries, head dimensions of 16 to 256. Queries stand at the end of the keys.
"""

from __future__ import annotations

import triton
import triton.language as tl

from memwall.verify.case import Launch, Tensors, Trial
from memwall.verify.kernels.blocks import flash_blocks
from memwall.verify.kernels.device import stages_that_fit

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def flash_kernel(
    q, k, v, o, scale, seq_q, seq_kv, heads, group,
    head_dim: tl.constexpr, causal: tl.constexpr, block_q: tl.constexpr, block_k: tl.constexpr,
):  # fmt: skip
    """One block of queries of one head."""
    # Causal: the last block of queries has the most keys; it goes first, so that none runs alone at the end.
    block = tl.num_programs(0) - 1 - tl.program_id(0) if causal else tl.program_id(0)
    head = tl.program_id(1)
    kv_head = (head // heads) * (heads // group) + (head % heads) // group
    dims = tl.arange(0, head_dim)
    rows = block * block_q + tl.arange(0, block_q)
    q_place = (head.to(tl.int64) * seq_q + rows)[:, None] * head_dim + dims[None, :]
    kv_start = kv_head.to(tl.int64) * seq_kv * head_dim
    # read Q: seq_q head_dim elements a head, once
    queries = tl.load(q + q_place, mask=rows[:, None] < seq_q, other=0.0)
    positions = seq_kv - seq_q + rows  # of the queries among the keys
    last = min(seq_kv, seq_kv - seq_q + (block + 1) * block_q) if causal else seq_kv
    # Blocks of keys that every query of the block sees whole need no mask.
    free = min(seq_kv, seq_kv - seq_q + block * block_q + 1) if causal else seq_kv
    unmasked = free // block_k * block_k
    total = tl.zeros((block_q,), tl.float32)
    maximum = tl.full((block_q,), float("-inf"), tl.float32)
    result = tl.zeros((block_q, head_dim), tl.float32)
    for start in range(0, unmasked, block_k):
        places = (start + tl.arange(0, block_k))[:, None] * head_dim + dims[None, :]
        # read K: each block of queries loads its own keys; from L2, where other blocks and heads left them
        keys = tl.load(k + kv_start + places)
        # read V: likewise
        values = tl.load(v + kv_start + places)
        scores = tl.dot(queries, keys.T) * (scale * LOG2_E)
        total, maximum, result = absorb(total, maximum, result, scores, values)
    for start in range(unmasked, last, block_k):
        cols = start + tl.arange(0, block_k)
        places = cols[:, None] * head_dim + dims[None, :]
        keys = tl.load(k + kv_start + places, mask=cols[:, None] < seq_kv, other=0.0)
        values = tl.load(v + kv_start + places, mask=cols[:, None] < seq_kv, other=0.0)
        seen = cols[None, :] < seq_kv
        if causal:
            seen = seen & (cols[None, :] <= positions[:, None])
        scores = tl.where(seen, tl.dot(queries, keys.T) * (scale * LOG2_E), float("-inf"))
        total, maximum, result = absorb(total, maximum, result, scores, values)
    # write O: seq_q head_dim elements a head, once
    tl.store(o + q_place, (result / total[:, None]).to(o.dtype.element_ty), mask=rows[:, None] < seq_q)


@triton.jit
def absorb(total, maximum, result, scores, values):
    """The online softmax, in powers of two: S and P never leave the chip."""
    new = tl.maximum(maximum, tl.max(scores, 1))
    powers = tl.exp2(scores - new[:, None])
    shrink = tl.exp2(maximum - new)
    result = tl.dot(powers.to(values.dtype), values, result * shrink[:, None])
    return total * shrink + tl.sum(powers, 1), new, result


def flash(trial: Trial, tensors: Tensors) -> Launch:
    """Attention of a whole shape."""
    dims = trial.dims
    sizes = flash_blocks(dims["head_dim"])
    grid = (triton.cdiv(dims["seq_q"], sizes.block_q), dims["batch"] * dims["heads"])
    pointers = [tensors[name] for name in ("Q", "K", "V", "O")]
    row_bytes = dims["head_dim"] * pointers[0].element_size()
    stages = stages_that_fit(
        pointers[0], sizes.stages, 2 * sizes.block_k * row_bytes, other_bytes=sizes.block_q * row_bytes
    )

    def launch() -> None:
        flash_kernel[grid](
            *pointers,
            dims["head_dim"] ** -0.5,
            dims["seq_q"],
            dims["seq_kv"],
            dims["heads"],
            dims["heads"] // dims["kv_heads"],
            head_dim=dims["head_dim"],
            causal=bool(trial.causal),
            block_q=sizes.block_q,
            block_k=sizes.block_k,
            num_warps=sizes.warps,
            num_stages=stages,
        )

    return launch
