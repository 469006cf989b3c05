"""A pass of every published architecture: each weight read once, as stored, and multiplied with each token.

The configs are those that parameter counts are checked with, made tiny or as published: two hundred and more.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memwall.errors import NotAvailable
from memwall.memory.streams import streamed_cache_bytes, streamed_weight_bytes
from memwall.models import cache
from memwall.models.cache import DEFAULT_FORMAT
from memwall.models.inventory import Item, language_items
from memwall.models.load import load
from memwall.models.model import Model
from memwall.models.storage import item_bytes, storage_of
from memwall.reports.step import StepReport, step

FOLDER = Path(__file__).parent / "huggingface"
CASES = {
    f"{file}: {case['name']}": case["config"]
    for file in ("published", "transformers")
    for case in map(json.loads, (FOLDER / f"{file}.jsonl").read_text().splitlines())
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Model]:
    """Those that have a formula."""
    path = tmp_path_factory.mktemp("configs") / "config.json"
    found = {}
    for name, config in CASES.items():
        path.write_text(json.dumps(config))
        try:
            found[name] = load(str(path))
        except NotAvailable:
            continue
    return found


def test_there_are_many(models: dict[str, Model]) -> None:
    assert len(models) > 250
    assert sum(bool(model.encoder) for model in models.values()) > 5
    assert sum(not model.decodes for model in models.values()) > 5


def met(item: Item, tokens: int) -> float:
    """The part of a weight's copies that so many tokens meet."""
    weight = item.weight
    return 1.0 if weight.used is None else 1 - (1 - weight.used / weight.copies) ** tokens


def weights_read(model: Model, tokens: int) -> float:
    """Each once in its own format; of tables nothing, unless the embedding is the head."""
    storage, total = storage_of(model), 0.0
    for item in language_items(model):
        tied_head = item.weight.role == "embedding" and model.tied_embeddings and model.head
        if item.weight.role in ("embedding", "table") and not tied_head:
            continue
        total += item_bytes(item, storage) * met(item, tokens)
    return total


def products(model: Model, report: StepReport) -> int:
    """Two FLOPs for each weight of a matrix and token; the head's by the tokens that it predicts."""
    tokens = report.tokens.batch * report.tokens.seq_q
    total = 0
    for item in language_items(model):
        if item.weight.role in ("linear", "router"):
            whole_cache = item.weight.name == "kv_b_proj" and not report.setting.absorbed
            rows = report.tokens.batch * report.tokens.seq_kv if whole_cache else tokens
            total += 2 * item.active_parameters * rows
    if model.head:
        total += 2 * model.vocab_size * model.row * (report.tokens.batch if model.decodes else tokens)
    return total


def computed(report: StepReport) -> int:
    return sum(
        line.launch.repeats * line.launch.kernel.matrix_flops
        for line in report.lines
        if line.launch.kind in ("linear", "routing", "head")
    )


def check(model: Model, shape: dict[str, Any]) -> None:
    fused, eager = (step(model, gpu="h200", eager=e, **shape) for e in (False, True))
    tokens = fused.tokens.batch * fused.tokens.seq_q
    for report in (fused, eager):
        fractions = 2 * sum(line.launch.repeats for line in report.lines)  # of experts, rounded up to a byte
        assert report.weight_bytes == pytest.approx(weights_read(model, tokens), rel=0, abs=fractions)
        assert computed(report) == products(model, report)
    assert fused.whole.work.traffic_bytes < eager.whole.work.traffic_bytes
    assert fused.whole.work.matrix_flops == eager.whole.work.matrix_flops


@pytest.mark.parametrize("name", CASES)
def test_each_weight_is_read_once_and_multiplied_with_each_token(name: str, models: dict[str, Model]) -> None:
    model = models.get(name)
    if model is None or model.encoder:
        return
    check(model, {"seq": 40, "batch": 2})
    if model.decodes:
        check(model, {"context": 50, "batch": 3})


@pytest.mark.parametrize("name", CASES)
def test_a_step_adds_to_the_cache_what_the_cache_grows_by(name: str, models: dict[str, Model]) -> None:
    model = models.get(name)
    if model is None or not model.decodes:
        return
    report = step(model, phase="decode", context=60, batch=3)
    grown = cache.all_layers_bytes_per_token(model) + cache.indexer_bytes_per_token(model)
    assert report.written_bytes("cache") == 3 * grown
    assert report.written_bytes("state") == 3 * cache.state_bytes_per_sequence(model)


@pytest.mark.parametrize("name", CASES)
def test_a_translator_reads_its_encoder_in_the_prefill_alone(name: str, models: dict[str, Model]) -> None:
    model = models.get(name)
    if model is None or not model.encoder:
        return
    prefill, decode = step(model, seq=40), step(model, phase="decode", source_tokens=40, context=3)
    assert prefill.weight_bytes == pytest.approx(weights_read(model, 1), rel=1e-9)
    encoder = model._replace(layers=(), extras=(), head=False, head_bias=False, final_norm=False)
    less = prefill.weight_bytes - decode.weight_bytes
    assert less >= weights_read(encoder, 1)
    assert not [line for line in decode.lines if line.launch.name.startswith("encoder.")]


@pytest.mark.parametrize("name", CASES)
def test_kernels_read_what_the_formulas_of_a_step_s_memory_say(name: str, models: dict[str, Model]) -> None:
    """Written apart: sums over the inventory and over caches, which know no kernel."""
    model = models.get(name)
    if model is None or not model.decodes:
        return
    for asked in (None, "fp8"):
        report = step(model, phase="decode", context=60, batch=3, weight_dtype=asked)
        fractions = 2 * sum(line.launch.repeats for line in report.lines)
        weights = streamed_weight_bytes(model, storage_of(model, asked), 3)
        assert report.weight_bytes == pytest.approx(weights, rel=0, abs=fractions)
        caches = report.read_bytes("cache", "state") + report.written_bytes("state")
        assert caches == 3 * streamed_cache_bytes(model, 60, DEFAULT_FORMAT, source_tokens=report.source)
