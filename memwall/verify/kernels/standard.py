"""Standard attention in 16 bits: cuBLAS, a softmax that masks as it goes, cuBLAS; S and P in memory."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from memwall.verify.case import Launch, Tensors, Trial


@triton.jit
def masked_softmax_kernel(s, p, seq_q, cols, causal: tl.constexpr, block: tl.constexpr):
    """One row of scores a program; keys after the row's query count nothing."""
    row, place = tl.program_id(0), tl.arange(0, block)
    start, inside = row.to(tl.int64) * cols, place < cols
    # read S: cols elements a row, the hidden ones too
    values = tl.load(s + start + place, mask=inside, other=float("-inf")).to(tl.float32)
    if causal:
        values = tl.where(place <= cols - seq_q + row % seq_q, values, float("-inf"))
    powers = tl.exp(values - tl.max(values, 0))
    # write P: cols elements a row
    tl.store(p + start + place, (powers / tl.sum(powers, 0)).to(p.dtype.element_ty), mask=inside)


def standard(trial: Trial, tensors: Tensors) -> Launch:
    """S = Q K^T / sqrt(d), P = softmax(S), O = P V, each a kernel."""
    q, k, v, o = (tensors[name] for name in ("Q", "K", "V", "O"))
    (batch, heads, seq_q, head_dim), seq_kv = q.shape, k.shape[2]
    # A KV head's query heads lie one after the other: to the products they are more rows.
    queries, result = (each.view(batch * k.shape[1], -1, head_dim) for each in (q, o))
    keys, values = (each.view(-1, seq_kv, head_dim) for each in (k, v))
    s = torch.empty((*queries.shape[:2], seq_kv), dtype=q.dtype, device=q.device)
    p = torch.empty_like(s)
    block = triton.next_power_of_2(seq_kv)

    def launch() -> None:
        # read Q, K and write S
        torch.baddbmm(s, queries, keys.mT, beta=0, alpha=head_dim**-0.5, out=s)
        masked_softmax_kernel[(batch * heads * seq_q,)](
            s,
            p,
            seq_q,
            seq_kv,
            causal=bool(trial.causal),
            block=block,
            num_warps=max(1, min(16, block // 512)),
        )
        # read P, V and write O
        torch.bmm(p, values, out=result)

    return launch
