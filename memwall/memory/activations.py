"""The memory that a forward pass needs for what is between its kernels: the default reserve.

    T x 2 B x (2 hidden + widest) + S x vocabulary x 6 B

T tokens a pass (prompts are cut into chunks of at most so many), S sequences whose next token is sampled. At
its widest a pass holds the residual stream and a normed copy of it (2 hidden), and one module of one
layer: what its first matrices write and what its last one reads, that is q, k, v and the heads' results, or
gate, up and their product; of experts those of each token's, and the tokens copied to them. Logits are
there in 16 bits and in 32 for the sampler. Heads and widths are split over the GPUs that share the model.

Checked against the logs of two servers (vLLM): Llama 3.1 8B asked for 29,000 tokens in one pass had 2.99 GiB
left unexplained by weights, runtime and cache, the formula gives 2.95; Qwen2.5-32B on two GPUs 1.26 GiB, the
formula 1.01. What the driver and libraries take apart from that (CUDA context, NCCL, graphs: 0.30 and
0.35 GiB in those logs) is not in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from memwall.models.inventory import layer_weights
from memwall.models.model import Layers, Model
from memwall.models.weights import Weight, largest_share

TOKENS_A_PASS = 8192
"""Assumed: the chunk of prompts that servers on large GPUs take by default."""
SAMPLED_SEQUENCES = 256
"""Assumed: the sequences that servers prepare for by default."""
ELEMENT_BYTES = 2
LOGIT_BYTES = 6
"""16 bits as the head writes them, and 32 as the sampler reads them."""
ROW_PARALLEL = ("o_proj", "down_proj", "out_proj", "linear_out")
"""Matrices cut along their inputs: what they read is split, what they write is whole on every GPU."""


def activation_bytes(
    model: Model,
    tokens: int = TOKENS_A_PASS,
    sequences: int = SAMPLED_SEQUENCES,
    tensor_parallel: int = 1,
) -> int:
    """The peak of a forward pass on each GPU [B]; see the module for the formula.

    Args:
        model: the model.
        tokens: T, new tokens in the pass.
        sequences: S, those whose next token is sampled; never more than tokens.
        tensor_parallel: GPUs that share the model.
    """
    widest = max(
        (sum(_elements(part, tensor_parallel)) for group in model.layers for part in modules(group, model)),
        default=0,
    )
    logits = min(sequences, tokens) * model.vocab_size * LOGIT_BYTES if model.head else 0
    return tokens * ELEMENT_BYTES * (2 * model.hidden_size + widest) + logits


def modules(group: Layers, model: Model) -> list[list[Weight]]:
    """A layer's matrices by module: attention, recurrence, MLP and experts."""
    parts: dict[str, list[Weight]] = {}
    for weight in layer_weights(group, model.hidden_size, model.norm_bias):
        if len(weight.shape) > 1 and weight.role in ("linear", "router"):
            parts.setdefault(weight.part, []).append(weight)
    return list(parts.values())


def _elements(module: Iterable[Weight], tensor_parallel: int) -> Iterator[int]:
    """Of one token: what each matrix writes, or of the last ones what they read; of experts, each's copy."""
    for weight in module:
        outputs, inputs = weight.shape[0], weight.shape[-1]
        last = weight.name in ROW_PARALLEL
        split = largest_share(inputs if last else outputs, weight.shards, tensor_parallel)
        whole = outputs if last and weight.used else 0
        yield (split + whole) * (weight.used or 1)
