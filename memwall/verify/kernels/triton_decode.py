"""Split-KV decode in Triton: one query token, the keys of a KV head shared among several programs."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from memwall.verify.case import Launch, Tensors, Trial
from memwall.verify.kernels.blocks import DECODE_BLOCK_K, decode_splits
from memwall.verify.kernels.device import stages_that_fit, units

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def decode_kernel(
    q, k, v, partial, log_sums, scale, seq_kv, span, group,
    head_dim: tl.constexpr, block_k: tl.constexpr, padded: tl.constexpr,
):  # fmt: skip
    """One split of one KV head, for all query heads that share it."""
    kv_head, split = tl.program_id(0), tl.program_id(1)
    members, dims = tl.arange(0, padded), tl.arange(0, head_dim)
    there = members < group
    q_place = (kv_head * group + members)[:, None] * head_dim + dims[None, :]
    # read q: group head_dim elements for each split; from L2 after the first
    queries = tl.load(q + q_place, mask=there[:, None], other=0.0)
    total = tl.zeros((padded,), tl.float32)
    maximum = tl.full((padded,), float("-inf"), tl.float32)
    result = tl.zeros((padded, head_dim), tl.float32)
    kv_start = kv_head.to(tl.int64) * seq_kv * head_dim
    for start in range(split * span, min(seq_kv, (split + 1) * span), block_k):
        cols = start + tl.arange(0, block_k)
        places = cols[:, None] * head_dim + dims[None, :]
        # read K and V: seq_kv head_dim elements each a KV head, once for the whole group
        keys = tl.load(k + kv_start + places, mask=cols[:, None] < seq_kv, other=0.0)
        values = tl.load(v + kv_start + places, mask=cols[:, None] < seq_kv, other=0.0)
        scores = tl.dot(queries, keys.T) * (scale * LOG2_E)
        scores = tl.where(cols[None, :] < seq_kv, scores, float("-inf"))
        new = tl.maximum(maximum, tl.max(scores, 1))
        powers, shrink = tl.exp2(scores - new[:, None]), tl.exp2(maximum - new)
        result = tl.dot(powers.to(values.dtype), values, result * shrink[:, None])
        total, maximum = total * shrink + tl.sum(powers, 1), new
    slot = (kv_head * tl.num_programs(1) + split) * group + members
    # write partial results: splits group (head_dim + 1) numbers of 4 bytes
    tl.store(partial + slot[:, None] * head_dim + dims[None, :], result / total[:, None], mask=there[:, None])
    tl.store(log_sums + slot, maximum + tl.log2(total), mask=there)


@triton.jit
def combine_kernel(
    partial, log_sums, o, splits, group,
    head_dim: tl.constexpr, padded: tl.constexpr,
):  # fmt: skip
    """The partial results of one query head, weighed by their sums."""
    head, parts, dims = tl.program_id(0), tl.arange(0, padded), tl.arange(0, head_dim)
    slot = (head // group * splits + parts) * group + head % group
    # read partial results: splits group (head_dim + 1) numbers of 4 bytes, just written, from L2
    logs = tl.load(log_sums + slot, mask=parts < splits, other=float("-inf"))
    outputs = tl.load(
        partial + slot[:, None] * head_dim + dims[None, :], mask=parts[:, None] < splits, other=0.0
    )
    weights = tl.exp2(logs - tl.max(logs, 0))
    result = tl.sum(weights[:, None] * outputs, 0) / tl.sum(weights, 0)
    # write O: head_dim elements
    tl.store(o + head * head_dim + dims, result.to(o.dtype.element_ty))


def decode(trial: Trial, tensors: Tensors) -> Launch:
    """Attention of one query token a sequence."""
    dims = trial.dims
    head_dim, kv_heads, group = dims["head_dim"], dims["kv_heads"], dims["heads"] // dims["kv_heads"]
    q, k, v, o = (tensors[name] for name in ("Q", "K", "V", "O"))
    splits, span = decode_splits(dims["batch"] * kv_heads, dims["seq_kv"], units(q))
    stages = stages_that_fit(q, 3, 2 * DECODE_BLOCK_K * head_dim * q.element_size())
    slots = dims["batch"] * dims["heads"] * splits
    partial = torch.empty((slots, head_dim), dtype=torch.float32, device=q.device)
    log_sums = torch.empty((slots,), dtype=torch.float32, device=q.device)
    padded = max(16, triton.next_power_of_2(group))  # the least that the matrix unit takes

    def launch() -> None:
        decode_kernel[(dims["batch"] * kv_heads, splits)](
            q, k, v, partial, log_sums, head_dim**-0.5, dims["seq_kv"], span, group,
            head_dim=head_dim, block_k=DECODE_BLOCK_K, padded=padded, num_warps=4, num_stages=stages,
        )  # fmt: skip
        combine_kernel[(dims["batch"] * dims["heads"],)](
            partial, log_sums, o, splits, group, head_dim=head_dim, padded=triton.next_power_of_2(splits)
        )

    return launch
