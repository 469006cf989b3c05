"""Models as records and pages."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.models.cache import bytes_per_token
from memwall.models.model import Attention, Experts, LatentAttention, Layers, Mlp, Model
from memwall.models.parameters import count
from memwall.render.data import Record
from memwall.render.page import Lines, Page, Section, Table
from memwall.units import format_parameters


def record(model: Model) -> Record:
    """The model under its documented keys."""
    parameters = count(model)
    return {
        "model": model.name,
        "title": model.title,
        "parameters_total": parameters.total,
        "parameters_active": parameters.active,
        "parameters_embedding": parameters.embedding,
        "layers": model.layer_count,
        "hidden_size": model.hidden_size,
        "vocab_size": model.vocab_size,
        "tied_embeddings": model.tied_embeddings,
        "kv_growth_bytes_per_token": bytes_per_token(model, every_layer=False),
        "kv_all_layers_bytes_per_token": bytes_per_token(model, every_layer=True),
        "layer_groups": [_group_record(group) for group in model.layers],
    }


def list_page(models: Sequence[Model]) -> Page:
    """Every model, one row each."""
    rows = []
    for model in models:
        parameters = count(model)
        kinds = list(dict.fromkeys(_attention_text(group.attention) for group in model.layers))
        rows.append(
            (
                model.name,
                format_parameters(parameters.total),
                format_parameters(parameters.active),
                str(model.layer_count),
                str(model.hidden_size),
                "; ".join(kinds),
            )
        )
    header = ("model", "parameters", "active", "layers", "hidden", "attention")
    return [Section("", Table(rows, header, frozenset({1, 2, 3, 4})))]


def show_page(model: Model) -> Page:
    """One model."""
    parameters = count(model)
    growth, everywhere = bytes_per_token(model, every_layer=False), bytes_per_token(model, every_layer=True)
    facts = [
        ("parameters", f"{parameters.total:,}", format_parameters(parameters.total)),
        ("active a token", f"{parameters.active:,}", "without the input embedding"),
        (
            "embedding",
            f"{parameters.embedding:,}",
            "tied to the head" if model.tied_embeddings else "the head is as large",
        ),
        ("hidden size", f"{model.hidden_size:,}"),
        ("vocabulary", f"{model.vocab_size:,}"),
        ("KV cache a token", f"{growth:,} B", "16-bit"),
    ]
    if growth != everywhere:
        facts.append(("while windows fill", f"{everywhere:,} B", "every layer still grows"))
    rows = [(str(g.repeats), _attention_text(g.attention), _mlp_text(g.mlp)) for g in model.layers]
    layers = Table(rows, ("layers", "attention", "MLP"), frozenset({0}))
    sources = Lines([f"{source.kind}: {source.source}" for source in model.sources])
    heading = f"{model.title} ({model.name})"
    return [Section(heading, Table(facts)), Section("Layers", layers), Section("Source", sources)]


def _group_record(group: Layers) -> Record:
    attention = {"kind": "latent" if isinstance(group.attention, LatentAttention) else "grouped"}
    mlp = {"kind": "experts" if isinstance(group.mlp, Experts) else "gated"}
    return {
        "layers": group.repeats,
        "attention": {**attention, **group.attention._asdict()},
        "mlp": {**mlp, **group.mlp._asdict()},
    }


def _attention_text(attention: Attention) -> str:
    if isinstance(attention, LatentAttention):
        latent = f"latent {attention.kv_lora_rank} + {attention.qk_rope_head_dim}"
        return f"{attention.heads} heads, {latent}"
    window = "" if attention.window is None else f", window {attention.window}"
    return f"{attention.heads} heads, {attention.kv_heads} KV, of {attention.head_dim}{window}"


def _mlp_text(mlp: Mlp) -> str:
    if isinstance(mlp, Experts):
        shared = f" + shared {mlp.shared_width}" if mlp.shared_width else ""
        return f"{mlp.experts_per_token} of {mlp.experts} experts of {mlp.width}{shared}"
    return f"gated, width {mlp.width}"
