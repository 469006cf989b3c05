"""The activations that a layer keeps for its backward pass, tensor by tensor.

Every kernel of the forward pass keeps the inputs that its gradient needs, in 16 bits:

    norm                its input
    q, k, v             their shared input; and each head norm its input
    attention           q, k, v; standard: its probabilities, of s keys a head; flash: its result and a sum
    output projection   its input (flash's result, once)
    MLP                 its input; plain: the activation's input and output; gated: gate, its activation, up
                        and their product
    experts             the router's scores in 32 bits; of each chosen expert a copy of the token, its MLP's
                        tensors and its result
    recurrence          its input, what its projections and its convolution write, what its output reads
    dropout, if any     a byte a masked element, and the masked probabilities

For a GPT layer with dropout that is s b h (34 + 5 a s / h) bytes, of which tensor parallelism of t leaves
s b h (10 + 24/t + 5 a s / (h t)), and with sequence parallelism s b h (34 + 5 a s / h) / t: Korthikanti et
al. 2022, arXiv:2205.05198, equations 1, 2 and 4. The statistics of norms, and the states that a recurrence
keeps at the edges of its chunks, are not counted. Experts are chosen evenly.
"""

from __future__ import annotations

from typing import NamedTuple

from memwall.maths import ceil_div
from memwall.memory.activations import ROW_PARALLEL
from memwall.models.attentions import Attention, GroupedAttention, LatentAttention
from memwall.models.mlps import Experts, GatedMlp, Mlp, PlainMlp
from memwall.models.model import Layers, Model
from memwall.models.recurrences import Recurrence
from memwall.models.weights import largest_share

ELEMENT_BYTES = 2
LOGIT_BYTES = 4
MASK_BYTES = 1
CHECKPOINTING = ("none", "selective", "full")
ATTENTIONS = ("flash", "standard")


class Run(NamedTuple):
    """What decides how much a layer keeps."""

    seq: int
    batch: int = 1
    """Sequences of a micro-batch."""
    tensor_parallel: int = 1
    sequence_parallel: bool = False
    """Whether the tensors between the split ones are split too, along the sequence."""
    attention: str = "flash"
    checkpointing: str = "none"
    dropout: bool = False

    @property
    def tokens(self) -> int:
        """Of a micro-batch."""
        return self.seq * self.batch


class Tensors(NamedTuple):
    """Kept for one token [B]."""

    stream: int = 0
    """Along the residual stream: whole on every GPU unless sequences are split."""
    split: int = 0
    """Of heads and widths."""
    scores: int = 0
    """For each key that the token may see: probabilities of all heads."""

    def plus(self, other: Tensors) -> Tensors:
        """Both."""
        return Tensors(*(a + b for a, b in zip(self, other, strict=True)))

    def bytes(self, run: Run) -> int:
        """On each GPU, for a micro-batch [B]."""
        t = run.tensor_parallel
        stream = ceil_div(self.stream, t) if run.sequence_parallel else self.stream
        pairs = run.tokens * run.seq
        return int(run.tokens * (stream + ceil_div(self.split, t)) + ceil_div(pairs * self.scores, t))


def layer_bytes(group: Layers, model: Model, run: Run) -> int:
    """What one layer keeps on each GPU for a micro-batch [B].

    selective: standard attention's probabilities are computed again; flash does so in any case.
    full: the layer's input alone is kept.
    """
    if run.checkpointing == "full":
        return Tensors(ELEMENT_BYTES * model.hidden_size).bytes(run)
    kept = layer_tensors(group, model, run)
    return (kept if run.checkpointing == "none" else kept._replace(scores=0)).bytes(run)


def layer_tensors(group: Layers, model: Model, run: Run) -> Tensors:
    """What one layer keeps of each token when nothing is computed again."""
    hidden = model.hidden_size
    kept = Tensors(group.norms * ELEMENT_BYTES * hidden)
    for attention in (group.attention, group.cross):
        if attention is not None:
            kept = kept.plus(_attention(attention, hidden, run))
    if group.recurrence is not None:
        kept = kept.plus(_recurrence(group.recurrence, hidden))
    for mlp in group.mlps:
        kept = kept.plus(_mlp(mlp, hidden, run))
    return kept


def outer_tensors(model: Model, run: Run, first: bool, last: bool) -> Tensors:
    """Outside the layers: the embedding's dropout; the final norm, the head's input, logits in 32 bits.

    Source: as above, section 4.3: s b h dropout, 4 s b h (1 + v / h).
    """
    kept = Tensors(MASK_BYTES * model.hidden_size if first and run.dropout else 0)
    if not last or not model.head:
        return kept
    norms = 2 if model.final_norm else 1
    return kept.plus(Tensors(norms * ELEMENT_BYTES * model.hidden_size, LOGIT_BYTES * model.vocab_size))


def _attention(kind: Attention, hidden: int, run: Run) -> Tensors:
    stream = ELEMENT_BYTES * hidden + (MASK_BYTES * hidden if run.dropout else 0)
    if isinstance(kind, LatentAttention):
        stream += ELEMENT_BYTES * _compressed(kind)
        inner = kind.heads * (2 * kind.head_dim + kind.head_dim_v)
    else:
        inner = _grouped(kind, run.tensor_parallel)
    inner = ELEMENT_BYTES * (inner + kind.heads * kind.head_dim_v)  # and what the output projection reads
    if run.attention == "flash":
        return Tensors(stream, inner + LOGIT_BYTES * kind.heads)
    score = ELEMENT_BYTES + (MASK_BYTES + ELEMENT_BYTES if run.dropout else 0)
    return Tensors(stream, inner, kind.heads * score)


def _grouped(kind: GroupedAttention, tensor_parallel: int) -> int:
    """q, k and v, and before their norms; the gate before its sigmoid, and the gated result."""
    shared = tensor_parallel * largest_share(kind.kv_heads, kind.kv_heads, tensor_parallel)  # copies counted
    kv_heads = 0 if kind.shares_cache else shared
    query, key = kind.heads * kind.head_dim, kv_heads * kind.head_dim
    normed = query + key if kind.qk_norm else 0
    return query + key + kv_heads * kind.head_dim_v + normed + 2 * kind.gate


def _compressed(kind: LatentAttention) -> int:
    """Each compressed vector before and after its norm, and the rotary key: whole on every GPU."""
    return 2 * (kind.q_lora_rank or 0) + 2 * kind.kv_lora_rank + kind.qk_rope_head_dim


def _recurrence(kind: Recurrence, hidden: int) -> Tensors:
    elements = 0
    for weight in kind.weights(hidden):
        if weight.role == "convolution":
            elements += weight.shape[0]
        elif weight.role == "linear":
            elements += weight.shape[-1 if weight.name in ROW_PARALLEL else 0]
    return Tensors(ELEMENT_BYTES * hidden, ELEMENT_BYTES * elements)


def _mlp(mlp: Mlp, hidden: int, run: Run) -> Tensors:
    mask = MASK_BYTES * hidden if run.dropout else 0
    stream = ELEMENT_BYTES * hidden + mask
    if not isinstance(mlp, Experts):
        return Tensors(stream, ELEMENT_BYTES * _tensors_of(mlp) * mlp.width)
    space, chosen = mlp.expert_hidden or hidden, mlp.experts_per_token
    each = 4 if mlp.gated else 2
    copies = chosen * 2 * space + (0 if mlp.expert_hidden is None else 2 * space)
    stream += ELEMENT_BYTES * copies + LOGIT_BYTES * mlp.experts
    return Tensors(stream, ELEMENT_BYTES * each * (chosen * mlp.width + mlp.shared_width))


def _tensors_of(mlp: GatedMlp | PlainMlp) -> int:
    """Of its width: gate, its activation, up, product; or the activation's input and output."""
    return 4 if isinstance(mlp, GatedMlp) else 2
