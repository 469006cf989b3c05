"""An imported model as YAML: what is printed is read back as the same model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memwall.errors import NotAvailable
from memwall.models.load import load
from memwall.models.parameters import count
from memwall.models.yamlform import to_yaml

FILE = Path(__file__).parent / "huggingface" / "published.jsonl"
PUBLISHED = [json.loads(line) for line in FILE.read_text().splitlines()]
CONFIGS = {case["name"]: case["config"] for case in PUBLISHED if "expected" in case}
EXPRESSIBLE = ["llama-3.1-8b", "mixtral-8x7b", "olmo3-32b", "qwen3-next-80b-a3b", "jamba-v0.1", "glm-5"]
BEYOND = {
    "gemma-3-4b": "tower",
    "gpt2": "tables or projections",
    "gpt-oss-20b": "checkpoint's own format",
    "phi-2-msft": "a head",
    "bert-base-uncased": "an encoder",
}


def read(name: str, folder: Path) -> str:
    (folder / "config.json").write_text(json.dumps(CONFIGS[name]))
    return str(folder)


@pytest.mark.parametrize("name", EXPRESSIBLE)
def test_the_printed_model_is_read_back_the_same(name: str, tmp_path: Path) -> None:
    model = load(read(name, tmp_path))._replace(name="mine", title="Mine")
    (tmp_path / "mine.yaml").write_text(to_yaml(model))
    again = load(str(tmp_path / "mine.yaml"))
    assert again.layers == model.layers
    assert again._replace(sources=(), notes=()) == model._replace(sources=(), notes=())
    assert count(again) == count(model)


@pytest.mark.parametrize("name", BEYOND)
def test_a_part_without_a_key_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(NotAvailable, match=BEYOND[name]):
        to_yaml(load(read(name, tmp_path)))


def test_every_layer_s_kind_can_be_written(tmp_path: Path) -> None:
    written = 0
    for name in CONFIGS:
        try:
            to_yaml(load(read(name, tmp_path)))
            written += 1
        except NotAvailable:
            pass
    assert written > 40
