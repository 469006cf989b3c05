"""An imported model as YAML: what is printed is read back as the same model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memwall.models.load import load
from memwall.models.yamlform import to_yaml

FILE = Path(__file__).parent / "huggingface" / "published.jsonl"
PUBLISHED = [json.loads(line) for line in FILE.read_text().splitlines()]
CONFIGS = {case["name"]: case["config"] for case in PUBLISHED if "expected" in case}


@pytest.mark.parametrize("name", CONFIGS)
def test_the_printed_model_is_read_back_the_same(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    folder.mkdir()
    config = folder / "config.json"
    config.write_text(json.dumps(CONFIGS[name]))
    model = load(str(folder))
    (tmp_path / f"{name}.yaml").write_text(to_yaml(model, str(config)))
    again = load(str(tmp_path / f"{name}.yaml"))
    assert again._replace(sources=()) == model


def test_a_name_that_a_file_cannot_have_is_mended(tmp_path: Path) -> None:
    folder = tmp_path / "Llama_2 7B (copy)"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIGS["llama-2-7b"]))
    text = to_yaml(load(str(folder)), str(folder / "config.json"))
    assert text.startswith("name: llama-2-7b-copy\n")


def test_a_wrong_key_is_named_with_its_line(tmp_path: Path) -> None:
    from memwall.errors import FileError

    path = tmp_path / "mine.yaml"
    config = json.dumps({**CONFIGS["llama-2-7b"], "num_key_value_heads": 5})
    path.write_text(f"name: mine\ntitle: Mine\nhuggingface: {config}\nsource:\n- derived: here\n")
    with pytest.raises(FileError, match=r"mine.yaml:3: huggingface|mine.yaml:3: num_key_value_heads"):
        load(str(path))
