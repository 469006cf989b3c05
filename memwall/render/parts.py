"""The parts of a layer in words, and as records."""

from __future__ import annotations

from memwall.models.attentions import Attention, LatentAttention
from memwall.models.load import kind_of
from memwall.models.mlps import Experts, GatedMlp, Mlp
from memwall.models.model import Layers, Model
from memwall.models.recurrences import Recurrence
from memwall.render.data import Record


def group_record(group: Layers) -> Record:
    """A group of equal layers: how many, and what each is made of."""
    mlps = [_part_record(mlp) for mlp in group.mlps]
    parts: Record = {"layers": group.repeats}
    if group.attention is not None:
        parts["attention"] = _part_record(group.attention)
    if group.recurrence is not None:
        parts["recurrence"] = _part_record(group.recurrence)
    if group.cross is not None:
        parts["cross"] = _part_record(group.cross)
    if mlps:
        parts["mlp"] = mlps[0] if len(mlps) == 1 else mlps
    return parts


def mixer_text(group: Layers) -> str:
    """What mixes tokens in a layer: attention, a recurrence, both, or nothing."""
    words = [] if group.attention is None else [attention_text(group.attention)]
    if group.recurrence is not None:
        words.append(f"{kind_of(group.recurrence)}, state {group.recurrence.state_elements:,} elements")
    if group.cross is not None:
        words.append(f"cross: {attention_text(group.cross)}")
    return " + ".join(words) or "none"


def attention_summary(model: Model) -> str:
    """What mixes tokens in a model's layers, in a few words: the kinds, and in how many layers if not in all.

    32/8 of 128 are 32 heads, 8 of K and V, of 128 elements; those with a window are counted apart.
    """
    counts: dict[str, int] = {}
    windowed: dict[str, int] = {}
    for group in model.layers:
        if group.recurrence is not None:
            kind = kind_of(group.recurrence)
            counts[kind] = counts.get(kind, 0) + group.repeats
        if group.attention is not None:
            kind = _heads_text(group.attention)
            counts[kind] = counts.get(kind, 0) + group.repeats
            if group.attention.window is not None:
                windowed[kind] = windowed.get(kind, 0) + group.repeats
    total, kinds = sum(group.repeats for group in model.layers), [*counts]
    words = []
    for kind in kinds[:_SHOWN]:
        near = windowed.get(kind, 0)
        window = f", {near} windowed" if 0 < near < counts[kind] else ", windowed" if near else ""
        words.append(f"{kind}{window}" + (f" ({counts[kind]})" if counts[kind] != total else ""))
    return "; ".join(words) + ("; ..." if len(kinds) > _SHOWN else "")


_SHOWN = 2
"""Kinds of layers in a line of the list; `show` has them all."""


def _heads_text(attention: Attention) -> str:
    if isinstance(attention, LatentAttention):
        index = ", indexed" if attention.index_heads else ""
        return f"{attention.heads}/latent {attention.kv_lora_rank} + {attention.qk_rope_head_dim}{index}"
    return f"{attention.heads}/{attention.kv_heads} of {attention.head_dim}"


def attention_text(attention: Attention) -> str:
    """64 heads, 8 KV, of 128, window 4096."""
    if isinstance(attention, LatentAttention):
        index = f", {attention.index_heads} index heads" if attention.index_heads else ""
        latent = f"latent {attention.kv_lora_rank} + {attention.qk_rope_head_dim}"
        return f"{attention.heads} heads, {latent}{index}"
    value = "" if attention.head_dim_v == attention.head_dim else f" and {attention.head_dim_v}"
    window = "" if attention.window is None else f", window {attention.window}"
    shared = ", cache of an earlier layer" if attention.shares_cache else ""
    return f"{attention.heads} heads, {attention.kv_heads} KV, of {attention.head_dim}{value}{window}{shared}"


def mlps_text(group: Layers) -> str:
    """Gated, width 14336; or what the experts are."""
    return " + ".join(map(_mlp_text, group.mlps)) or "none"


def _mlp_text(mlp: Mlp) -> str:
    if isinstance(mlp, Experts):
        shared = f" + shared {mlp.shared_width}" if mlp.shared_width else ""
        return f"{mlp.experts_per_token} of {mlp.experts} experts of {mlp.width}{shared}"
    return f"{'gated' if isinstance(mlp, GatedMlp) else 'plain'}, width {mlp.width}"


def _part_record(part: Attention | Mlp | Recurrence) -> Record:
    return {"kind": kind_of(part), **part._asdict()}
