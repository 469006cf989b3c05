"""Capacity of every published config: what another program computed of its cache, states and weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memwall.memory.backward import Run
from memwall.memory.streams import streamed_weight_bytes
from memwall.memory.training import Setup, needs
from memwall.models.load import load
from memwall.models.model import Model
from memwall.models.storage import storage_of
from memwall.reports.capacity import capacity

LINES = (Path(__file__).parent / "huggingface" / "published.jsonl").read_text().splitlines()
PUBLISHED = {case["name"]: case for case in map(json.loads, LINES) if "expected" in case}
QUANTISED = {name for name, case in PUBLISHED.items() if case["expected"]["quantised"]}
IN_16_BITS = sorted(set(PUBLISHED) - QUANTISED - {"bert-base-uncased"})  # which decodes nothing
LENGTHS = (1, 4096, 32768, 131072)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Model]:
    found = {}
    for name, case in PUBLISHED.items():
        path = tmp_path_factory.mktemp(name) / "config.json"
        path.write_text(json.dumps(case["config"]))
        found[name] = load(str(path))
    return found


def expected_of(name: str) -> dict[str, Any]:
    expected: dict[str, Any] = PUBLISHED[name]["expected"]
    return expected


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_sequence_keeps_its_cache_its_states_and_its_index(name: str, models: dict[str, Model]) -> None:
    expected = expected_of(name)
    for length in LENGTHS:
        kept = capacity(models[name], kv_memory="1GiB", context=length).kv_bytes_per_sequence
        constant, index = 4 * expected["state_elements"], length * expected["indexer_bytes_per_token"]
        assert kept == expected["kv_bytes"][str(length)] + constant + index


@pytest.mark.parametrize("name", PUBLISHED)
def test_all_layers_in_full_is_the_other_policy(name: str, models: dict[str, Model]) -> None:
    expected = expected_of(name)
    full = capacity(models[name], kv_memory="1GiB", context=4096, policy="all-layers").kv_bytes_per_token
    assert full == expected["kv_all_layers_bytes_per_token"] + expected["indexer_bytes_per_token"]


@pytest.mark.parametrize("name", IN_16_BITS)
def test_a_step_reads_what_is_active(name: str, models: dict[str, Model]) -> None:
    model = models[name]
    assert streamed_weight_bytes(model, storage_of(model)) == pytest.approx(2 * expected_of(name)["active"])


@pytest.mark.parametrize("name", PUBLISHED)
def test_training_holds_every_parameter(name: str, models: dict[str, Model]) -> None:
    assert needs(Setup(models[name], Run(16))).parameters == 2 * expected_of(name)["total"]
