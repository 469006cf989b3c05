"""Mistakes in config.json files and in the weights beside them: each answered with file, key and advice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memwall.errors import FileError, MemwallError, NotAvailable
from memwall.models.load import load

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
}
MIXTRAL = {**LLAMA, "model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2}


def error_of(text: str | bytes, folder: Path, name: str = "config.json") -> MemwallError:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(MemwallError) as raised:
        load(str(path))
    assert len(str(raised.value)) < 400
    return raised.value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("config.json:1", "not JSON")),
        ('{"model_type": "llama", ', ("config.json:1", "not JSON", "cut off")),
        ('{\n"model_type": "llama"\n"hidden_size": 1}', ("config.json:3", "not JSON")),
        (b"\x89PNG\r\n\x1a\n\x00\xff", ("config.json", "not UTF-8")),
        ("[1, 2]", ("config.json:1", "must be an object")),
        ("[" * 100_000, ("config.json", "nested too deep")),
        ('{"a": "' + "x" * 1_100_000 + '"}', ("config.json", "larger than 1 MiB")),
        ("{}", ("model_type", "is missing")),
        ('{"model_type": 7}', ("model_type",)),
        ('{"hidden_size": 1, "hidden_size": 2}', ("hidden_size", "is there twice")),
    ],
)
def test_a_file_that_is_no_config(text: str | bytes, words: tuple[str, ...], tmp_path: Path) -> None:
    error = error_of(text, tmp_path)
    assert isinstance(error, FileError)
    for word in words:
        assert word in str(error)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"num_hidden_layers": 0}, ("num_hidden_layers", "must be from 1", "not 0")),
        ({"num_hidden_layers": -1}, ("num_hidden_layers", "not -1")),
        ({"num_hidden_layers": 10**9}, ("num_hidden_layers", "not 1000000000")),
        ({"num_hidden_layers": 1.5}, ("num_hidden_layers", "whole number, not 1.5")),
        ({"num_hidden_layers": True}, ("num_hidden_layers", "whole number, not True")),
        ({"num_hidden_layers": [32]}, ("num_hidden_layers", "whole number, not [32]")),
        ({"hidden_size": "4096"}, ("hidden_size", "whole number, not '4096'")),
        ({"vocab_size": None}, ("vocab_size", "is missing", "Add it")),
        ({"model_type": 5}, ("model_type", "must be a word, not 5")),
        ({"tie_word_embeddings": "yes"}, ("tie_word_embeddings", "true or false, not 'yes'")),
        ({"num_attention_heads": 24}, ("num_attention_heads", "24 does not divide hidden_size 4096")),
        ({"num_key_value_heads": 5}, ("num_key_value_heads", "5 does not divide the 32 heads")),
        (
            {"layer_types": ["full_attention"] * 3, "sliding_window": 8},
            ("layer_types", "3 entries for 32 layers"),
        ),
        ({"layer_types": "full", "sliding_window": 8}, ("layer_types", "must be a list")),
        (
            {"layer_types": ["full"] * 32, "sliding_window": 8},
            ("layer_types", "has 'full'", "full_attention"),
        ),
        ({"num_heads": 16}, ("num_attention_heads", "32 contradicts num_heads 16")),
        ({"hidden_size": float("nan")}, ("hidden_size", "whole number, not nan")),
        ({"vocab_size": float("inf")}, ("vocab_size", "whole number, not inf")),
        ({"quantization_config": "fp8"}, ("quantization_config", "must be an object")),
        ({"quantization_config": {"quant_method": "magic"}}, ("quant_method", "'magic'", "Known: awq")),
        ({"quantization_config": {"quant_method": "gptq"}}, ("quantization_config.bits", "is missing")),
    ],
)
def test_a_wrong_value_names_its_key(changes: dict[str, Any], words: tuple[str, ...], tmp_path: Path) -> None:
    error = error_of(json.dumps({**LLAMA, **changes}, indent=1), tmp_path)
    assert isinstance(error, FileError)
    assert error.exit_code == 3
    for word in ("config.json:", *words):
        assert word in str(error)


def test_the_line_is_that_of_the_key(tmp_path: Path) -> None:
    text = json.dumps({**LLAMA, "num_key_value_heads": 5}, indent=1)
    line = text[: text.index("num_key_value_heads")].count("\n") + 1
    assert f"config.json:{line}: num_key_value_heads" in str(error_of(text, tmp_path))


@pytest.mark.parametrize("key", ["hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size"])
def test_a_missing_dimension_is_not_made_up(key: str, tmp_path: Path) -> None:
    config = {k: v for k, v in LLAMA.items() if k != key}
    assert f"{key} is missing" in str(error_of(json.dumps(config), tmp_path))


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("num_key_value_head", "num_key_value_heads"),
        ("num_key_values_heads", "num_key_value_heads"),
        ("sliding_windows", "sliding_window"),
        ("intermediate_sizes", "intermediate_size"),
        ("tie_word_embedding", "tie_word_embeddings"),
    ],
)
def test_a_misspelt_key_is_not_ignored(wrong: str, right: str, tmp_path: Path) -> None:
    config = {k: v for k, v in LLAMA.items() if k != right}
    error = error_of(json.dumps({**config, wrong: True if "tie" in wrong else 8}), tmp_path)
    assert error.exit_code == 3
    assert right in str(error)


def test_more_experts_than_there_are(tmp_path: Path) -> None:
    error = error_of(json.dumps({**MIXTRAL, "num_experts_per_tok": 9}), tmp_path)
    assert "num_experts_per_tok 9 is more than the 8 experts" in str(error)


def test_an_unknown_key_that_could_size_something_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**LLAMA, "num_ghost_layers": 4, "colour": "blue", "rope_theta": 1e6}))
    notes = load(str(path)).notes
    assert "not read, may change the answer: num_ghost_layers" in notes
    assert "not read: colour" in notes
    assert not any("rope_theta" in note for note in notes)


@pytest.mark.parametrize("kind", ["unheard_of", "lama", "unet"])
def test_an_unknown_architecture_is_refused_by_name(kind: str, tmp_path: Path) -> None:
    error = error_of(json.dumps({**LLAMA, "model_type": kind}), tmp_path)
    assert isinstance(error, NotAvailable)
    assert error.exit_code == 4
    assert f"'{kind}' is not known" in error.message


def test_a_near_architecture_is_named(tmp_path: Path) -> None:
    assert "Did you mean llama" in error_of(json.dumps({**LLAMA, "model_type": "lama"}), tmp_path).hint


def test_a_diffusion_model_is_refused(tmp_path: Path) -> None:
    error = error_of('{"_class_name": "UNet2DConditionModel"}', tmp_path)
    assert isinstance(error, NotAvailable)
    assert "UNet2DConditionModel" in error.message
    error = error_of('{"_class_name": "StableDiffusionPipeline"}', tmp_path, "model_index.json")
    assert isinstance(error, NotAvailable)


def test_a_folder_without_a_config(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"no config\.json in this folder"):
        load(str(tmp_path))


def test_a_folder_is_its_config(tmp_path: Path) -> None:
    folder = tmp_path / "my-llama"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA))
    assert load(str(folder)).name == load(str(folder / "config.json")).name == "my-llama"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no such file"):
        load(str(tmp_path / "config.json"))


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text("\ufeff" + json.dumps(LLAMA))
    assert load(str(path)).hidden_size == 4096


@pytest.mark.parametrize("dtype", ["float32", "bananas"])
def test_a_dtype_that_is_not_counted_is_said(dtype: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**LLAMA, "torch_dtype": dtype}))
    assert any(note.startswith(f"torch_dtype {dtype}") for note in load(str(path)).notes)


def test_another_architecture_by_name_is_said(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**LLAMA, "model_type": "qwen2", "architectures": ["LlamaForCausalLM"]}))
    assert "architectures names LlamaForCausalLM, model_type qwen2: read as qwen2" in load(str(path)).notes


def test_experts_that_an_architecture_has_not_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**LLAMA, "num_local_experts": 8}))
    model = load(str(path))
    assert model.layers[0].mlps[0]._asdict() == {"width": 14336, "bias": False}
    assert model.warnings == ("not read, may change the answer: num_local_experts",)
