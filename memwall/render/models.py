"""Models as records and pages."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.models import cache
from memwall.models.model import Model
from memwall.models.parameters import Parameters, count
from memwall.models.storage import storage_of, weight_bytes
from memwall.render.data import Record
from memwall.render.page import Lines, Page, Section, Table
from memwall.render.parts import attention_summary, group_record, mixer_text, mlps_text
from memwall.units import format_bytes, format_parameters


def record(model: Model) -> Record:
    """The model under its documented keys."""
    parameters, stored = count(model), weight_bytes(model)
    return {
        "model": model.name,
        "title": model.title,
        "parameters_total": parameters.total,
        "parameters_active": parameters.active,
        "parameters_embedding": parameters.embedding,
        "parameters_vision": parameters.towers,
        "weight_bytes": stored.language,
        "vision_weight_bytes": stored.towers,
        "weight_format": storage_of(model).scheme,
        "layers": model.layer_count,
        "hidden_size": model.hidden_size,
        "vocab_size": model.vocab_size,
        "tied_embeddings": model.tied_embeddings,
        "context": model.context,
        "kv_growth_bytes_per_token": cache.growth_bytes_per_token(model),
        "kv_all_layers_bytes_per_token": cache.all_layers_bytes_per_token(model),
        "indexer_bytes_per_token": cache.indexer_bytes_per_token(model),
        "cross_bytes_per_source_token": cache.cross_bytes_per_source_token(model),
        "state_bytes_per_sequence": cache.state_bytes_per_sequence(model),
        "sliding": [
            {"window": kept.window, "layers": kept.layers, "bytes_per_token": kept.bytes_per_token}
            for kept in cache.kept(model)
            if kept.window is not None
        ],
        "layer_groups": [group_record(group) for group in model.layers],
        "encoder_layer_groups": [group_record(group) for group in model.encoder],
        "notes": list(model.notes),
        "sources": [{"key": s.key, "kind": s.kind, "source": s.source} for s in model.sources],
    }


def list_page(models: Sequence[Model]) -> Page:
    """Every model, one row each."""
    rows = []
    for model in models:
        parameters = count(model)
        rows.append(
            (
                model.name,
                format_parameters(parameters.total),
                format_parameters(parameters.active),
                str(model.layer_count),
                attention_summary(model),
            )
        )
    header = ("model", "parameters", "active", "layers", "heads/KV of elements")
    return [Section("", Table(rows, header, frozenset({1, 2, 3})))]


def show_page(model: Model) -> Page:
    """One model."""
    facts = [*_size_rows(model, count(model)), *_memory_rows(model)]
    groups = [*model.encoder, *model.layers]
    rows = [(str(g.repeats), mixer_text(g), mlps_text(g)) for g in groups]
    heading = f"{model.title} ({model.name})"
    sources = [f"{source.kind}: {source.source}" for source in model.sources]
    return [
        Section(heading, Table(facts)),
        Section("Layers", Table(rows, ("layers", "attention", "MLP"), frozenset({0}))),
        *([Section("Notes", Lines(model.notes))] if model.notes else []),
        *([Section("Source", Lines(sources))] if sources else []),
    ]


def _size_rows(model: Model, parameters: Parameters) -> list[tuple[str, ...]]:
    active = "without the input embedding" if model.decodes else "all: it has no step by token"
    tied = "tied to the head" if model.tied_embeddings else "the head is as large"
    rows = [
        ("parameters", f"{parameters.total:,}", format_parameters(parameters.total)),
        ("active a token", f"{parameters.active:,}", active),
        ("embedding", f"{parameters.embedding:,}", tied if model.head else "no head"),
        ("hidden size", f"{model.hidden_size:,}"),
        ("vocabulary", f"{model.vocab_size:,}"),
    ]
    rows += [("vision, audio", f"{parameters.towers:,}", "of the total")] if parameters.towers else []
    return [*rows, ("context", f"{model.context:,}")] if model.context else rows


def _memory_rows(model: Model) -> list[tuple[str, ...]]:
    stored = weight_bytes(model)
    growth, everywhere = cache.growth_bytes_per_token(model), cache.all_layers_bytes_per_token(model)
    rows: list[tuple[str, ...]] = [
        ("weights", f"{stored.language:,} B", f"{format_bytes(stored.language)}, {storage_of(model).scheme}")
    ]
    if stored.towers:
        rows.append(("vision weights", f"{stored.towers:,} B", format_bytes(stored.towers)))
    rows.append(("KV cache a token", f"{growth:,} B", "16-bit"))
    if growth != everywhere:
        rows.append(("while windows fill", f"{everywhere:,} B", "every layer still grows"))
    indexer, states = cache.indexer_bytes_per_token(model), cache.state_bytes_per_sequence(model)
    if indexer:
        rows.append(("indexer a token", f"{indexer:,} B", "16-bit"))
    cross = cache.cross_bytes_per_source_token(model)
    if cross:
        rows.append(("cross cache", f"{cross:,} B", "a token of the encoder, 16-bit"))
    if states:
        rows.append(("states a sequence", f"{states:,} B", "4 bytes an element, however long it is"))
    return rows
