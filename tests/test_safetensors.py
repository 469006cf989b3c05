"""Weights beside a config.json: the index's total, the headers' own sizes, and broken ones named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memwall.errors import FileError
from memwall.models.huggingface.safetensors import checkpoint_bytes
from memwall.models.load import load
from memwall.models.storage import storage_of, weight_bytes

CONFIG = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 100,
    "tie_word_embeddings": True,
}
PARAMETERS = 100 * 64 + 64 + 2 * (4 * 64 * 64 + 3 * 64 * 128 + 2 * 64)
INDEX = "model.safetensors.index.json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path


def tensors(path: Path, sizes: list[int]) -> None:
    """A file with tensors of so many bytes, as the format has them."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for number, size in enumerate(sizes):
        header[f"t{number}"] = {"dtype": "BF16", "shape": [size // 2], "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(at))


def test_an_index_adds_up(folder: Path) -> None:
    (folder / INDEX).write_text(
        json.dumps({"metadata": {"total_size": 123456}, "weight_map": {"a": "absent"}})
    )
    assert checkpoint_bytes(str(folder)) == 123456


def test_headers_add_up_without_an_index(folder: Path) -> None:
    tensors(folder / "a.safetensors", [200, 100])
    tensors(folder / "b.safetensors", [50])
    assert checkpoint_bytes(str(folder)) == 350


def test_an_index_without_a_total_reads_its_shards(folder: Path) -> None:
    tensors(folder / "a.safetensors", [200])
    tensors(folder / "b.safetensors", [50])
    tensors(folder / "not-of-the-model.safetensors", [1000])
    (folder / INDEX).write_text(json.dumps({"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}}))
    assert checkpoint_bytes(str(folder)) == 250


def test_no_weights_no_size(folder: Path) -> None:
    assert checkpoint_bytes(str(folder)) is None
    assert load(str(folder)).notes == ()


def test_a_checkpoint_that_agrees_changes_nothing(folder: Path) -> None:
    tensors(folder / "model.safetensors", [2 * PARAMETERS])
    model = load(str(folder))
    assert weight_bytes(model).language == 2 * PARAMETERS
    assert model.notes == (f"the weights' files hold {2 * PARAMETERS:,} B",)


def test_a_smaller_checkpoint_is_taken_at_its_word(folder: Path) -> None:
    tensors(folder / "model.safetensors", [PARAMETERS])
    model = load(str(folder))
    assert weight_bytes(model).language == PARAMETERS
    assert weight_bytes(model, storage_of(model, "bf16")).language == 2 * PARAMETERS  # as asked for


def test_a_checkpoint_in_32_bits_is_loaded_in_16(folder: Path) -> None:
    tensors(folder / "model.safetensors", [4 * PARAMETERS])
    model = load(str(folder))
    assert weight_bytes(model).language == 2 * PARAMETERS
    assert f"{2 * PARAMETERS:,} B more than is counted" in model.notes[0]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        (INDEX, b"{", "not JSON"),
        (INDEX, b"[]", "must be an object"),
        (INDEX, b"{}", "neither metadata.total_size nor a weight_map"),
        (INDEX, b'{"metadata": {"total_size": "big"}}', "whole number, not 'big'"),
        (INDEX, b'{"metadata": {"total_size": -1}}', "whole number, not -1"),
        (INDEX, b'{"weight_map": {"a": "absent.safetensors"}}', "absent.safetensors"),
        (INDEX, b'{"metadata": {}, "weight_map": {"a": "absent.safetensors"}}', "total_size is missing"),
        ("m.safetensors", b"", "not a safetensors file"),
        ("m.safetensors", b"\xff" * 64, "not a safetensors file"),
        ("m.safetensors", (100).to_bytes(8, "little") + b"{", "cut off"),
        ("m.safetensors", (2).to_bytes(8, "little") + b"[]", "not an object"),
        ("m.safetensors", (8).to_bytes(8, "little") + b'{"a": 1}', "a.data_offsets must be"),
    ],
)
def test_broken_weights_are_named(name: str, content: bytes, words: str, folder: Path) -> None:
    (folder / name).write_bytes(content)
    with pytest.raises(FileError) as raised:
        load(str(folder))
    assert name in str(raised.value)
    assert words in str(raised.value)
    assert raised.value.exit_code == 3


def test_a_shard_alone_is_not_a_model(folder: Path) -> None:
    tensors(folder / "model-00001-of-00004.safetensors", [2 * PARAMETERS])
    with pytest.raises(FileError, match="1 of 4 shards are there"):
        load(str(folder))


def test_files_that_cannot_be_the_model_are_refused(folder: Path) -> None:
    tensors(folder / "model.safetensors", [32])
    with pytest.raises(FileError, match="hold 32 B, less than a bit a parameter"):
        load(str(folder))


def test_weights_alone_are_no_model(folder: Path) -> None:
    tensors(folder / "model.safetensors", [2 * PARAMETERS])
    with pytest.raises(FileError, match="weights alone do not say"):
        load(str(folder / "model.safetensors"))
