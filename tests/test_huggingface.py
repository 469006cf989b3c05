"""Hugging Face configs: parameters to the last one, cache, states and stored bytes, by independent counts.

huggingface/published.jsonl: configs as published, with figures that another program computed from them.
huggingface/transformers.jsonl: two configs a model_type at most, with the parameters of the module that
transformers 5.24.0 builds from them (without memory, on the meta device), and what its cache keeps of a token
in a pass over 23: counts of real tensors, not of a formula.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memwall.errors import NotAvailable
from memwall.models import cache
from memwall.models.load import load
from memwall.models.model import Model
from memwall.models.parameters import count
from memwall.models.storage import weight_bytes

FOLDER = Path(__file__).parent / "huggingface"


def cases(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / name).read_text().splitlines()]


PUBLISHED = {case["name"]: case for case in cases("published.jsonl")}
TRANSFORMERS = {case["name"]: case for case in cases("transformers.jsonl")}
COUNTED = [name for name, case in PUBLISHED.items() if "expected" in case]
WITHOUT_FORMULA = ["deepseek-v4-flash", "minimax-m3"]

# Where the other program's bytes are not those of the checkpoint, worked by hand.
CORRECTED_BYTES = {
    # kv_a_proj has 576 rows, 4.5 squares of 128: 61 layers store 5 rows of 56 scales, not 4.5
    "deepseek-v3": 673150545584 + 61 * 28 * 4,
    # a sink a head, 64 in each of 39 windowed layers, is a vector: 16 bits, not quantised
    "mimo-v2-flash": 310153419968 + 39 * 64,
}
CORRECTED_QUANTISED = {"mimo-v2-flash": 307479185856 - 39 * 64}


def written(config: dict[str, Any], folder: Path) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    return path


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Model]:
    folder = tmp_path_factory.mktemp("models")
    loaded = {}
    for name in COUNTED:
        (folder / name).mkdir()
        loaded[name] = load(str(written(PUBLISHED[name]["config"], folder / name)))
    return loaded


def test_every_published_config_is_counted_or_refused() -> None:
    assert len(PUBLISHED) == 74
    assert sorted(set(PUBLISHED) - set(COUNTED)) == WITHOUT_FORMULA


@pytest.mark.parametrize("name", COUNTED)
def test_parameters_are_exact(name: str, models: dict[str, Model]) -> None:
    parameters, expected = count(models[name]), PUBLISHED[name]["expected"]
    assert parameters.total == expected["total"]
    assert parameters.active == expected["active"]
    assert parameters.embedding == expected["embedding"]
    assert parameters.towers == expected["vision"]


@pytest.mark.parametrize("name", COUNTED)
def test_cache_and_states_are_exact(name: str, models: dict[str, Model]) -> None:
    model, expected = models[name], PUBLISHED[name]["expected"]
    assert cache.growth_bytes_per_token(model) == expected["kv_growth_bytes_per_token"]
    assert cache.all_layers_bytes_per_token(model) == expected["kv_all_layers_bytes_per_token"]
    assert cache.state_elements(model) == expected["state_elements"]
    assert cache.indexer_bytes_per_token(model) == expected["indexer_bytes_per_token"]
    for tokens, size in expected["kv_bytes"].items():
        assert cache.sequence_bytes(model, int(tokens)) == size


@pytest.mark.parametrize("name", COUNTED)
def test_stored_weights_are_exact(name: str, models: dict[str, Model]) -> None:
    stored, expected = weight_bytes(models[name]), PUBLISHED[name]["expected"]
    assert stored.language == CORRECTED_BYTES.get(name, expected["weight_bytes"])
    assert stored.quantised_parameters == CORRECTED_QUANTISED.get(name, expected["quantised"])


@pytest.mark.parametrize("name", COUNTED)
def test_no_key_of_a_published_config_is_left_unexplained(name: str, models: dict[str, Model]) -> None:
    assert not [note for note in models[name].notes if note.startswith("not read")]


@pytest.mark.parametrize("name", WITHOUT_FORMULA)
def test_an_architecture_without_a_formula_is_refused_by_name(name: str, tmp_path: Path) -> None:
    config = PUBLISHED[name]["config"]
    with pytest.raises(NotAvailable) as refused:
        load(str(written(config, tmp_path)))
    assert config["model_type"] in refused.value.message
    assert "(" in refused.value.message  # the keys that have no formula


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_parameters_are_those_of_the_module_that_transformers_builds(name: str, tmp_path: Path) -> None:
    model = load(str(written(TRANSFORMERS[name]["config"], tmp_path)))
    parameters, expected = count(model), TRANSFORMERS[name]["expected"]
    assert parameters.total == expected["total"]
    assert parameters.language == expected["language"]


@pytest.mark.parametrize(
    "name", [n for n, case in TRANSFORMERS.items() if "cached_elements_per_token" in case["expected"]]
)
def test_a_token_s_cache_is_what_a_forward_pass_of_that_module_keeps(name: str, tmp_path: Path) -> None:
    model = load(str(written(TRANSFORMERS[name]["config"], tmp_path)))
    everything, growing = TRANSFORMERS[name]["expected"]["cached_elements_per_token"]
    index = cache.indexer_bytes_per_token(model)
    assert cache.all_layers_bytes_per_token(model) + index == 2 * everything
    assert cache.growth_bytes_per_token(model) + index == 2 * growing


def test_both_sets_cover_the_model_types() -> None:
    types = {str(case["config"]["model_type"]) for case in (*PUBLISHED.values(), *TRANSFORMERS.values())}
    assert len(types) > 150
