"""quantization_config of each method: the bytes of one linear layer and of what stays at 16 bits, by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memwall.errors import FileError
from memwall.models.load import load
from memwall.models.parameters import count
from memwall.models.storage import weight_bytes
from memwall.reports.step import step

HIDDEN, WIDTH, VOCABULARY = 256, 512, 1000
ATTENTION = [(HIDDEN, HIDDEN)] * 4
MLP = [(WIDTH, HIDDEN), (WIDTH, HIDDEN), (HIDDEN, WIDTH)]
ONE_LAYER = {
    "model_type": "llama",
    "hidden_size": HIDDEN,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "intermediate_size": WIDTH,
    "vocab_size": VOCABULARY,
}
REST = 2 * (2 * VOCABULARY * HIDDEN + 3 * HIDDEN)  # both tables and three norms, 16 bits


def stored(quantisation: dict[str, Any], folder: Path) -> int:
    path = folder / "config.json"
    path.write_text(json.dumps({**ONE_LAYER, "quantization_config": quantisation}))
    return weight_bytes(load(str(path))).language


def linear(bits: float, per_row: float = 0, skipped: list[tuple[int, int]] | None = None) -> float:
    """All seven matrices at so many bits an element and bytes a row; skipped ones at 16 bits."""
    total = 0.0
    left = list(skipped or [])
    for shape in ATTENTION + MLP:
        rows, cols = shape
        if shape in left:
            left.remove(shape)
            total += 2 * rows * cols
        else:
            total += rows * cols * bits / 8 + rows * per_row
    return total


@pytest.mark.parametrize(
    ("quantisation", "layer"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, linear(8 + 32 / 128**2)),
        ({"quant_method": "fp8"}, linear(8)),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, linear(4 + (16 + 4) / 128)),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, linear(8, per_row=3)),
        ({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}, linear(4 + 20 / 128)),
        ({"quant_method": "awq", "w_bit": 4, "q_group_size": 64, "zero_point": False}, linear(4 + 16 / 64)),
        ({"quant_method": "mxfp4"}, linear(16)),  # experts alone, and it has none
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, linear(4.5)),
        ({"quantization": {"quant_algo": "FP8"}, "quant_method": "modelopt"}, linear(8)),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, linear(8, per_row=4)),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, linear(4.5)),
        (
            {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True},
            linear(4 + 8 / 64),
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {
                    "group_0": {"weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}
                },
            },
            linear(8, per_row=2),
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {
                    "group_0": {
                        "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128}
                    }
                },
            },
            linear(4 + 16 / 128),
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {
                    "g": {
                        "weights": {
                            "num_bits": 4,
                            "type": "float",
                            "strategy": "tensor_group",
                            "group_size": 16,
                        }
                    }
                },
            },
            linear(4.5),
        ),
    ],
)
def test_linear_layers_alone_are_quantised(
    quantisation: dict[str, Any], layer: float, tmp_path: Path
) -> None:
    assert stored(quantisation, tmp_path) == REST + layer


@pytest.mark.parametrize(
    ("patterns", "skipped"),
    [
        (["model.layers.*.self_attn"], ATTENTION),
        (["model.layers.0.self_attn"], ATTENTION),
        (["model.layers.1.self_attn"], []),
        (["model.layers.0.self_attn.o_proj"], ATTENTION[:1]),
        (["o_proj"], ATTENTION[:1]),
        (["re:.*self_attn.*"], ATTENTION),
        (["re:.*mlp.*"], MLP),
        (["model.layers.0.mlp*"], MLP),
        (["language_model.model.layers.0.mlp.down_proj"], MLP[2:]),
        (["lm_head", "model.embed_tokens"], []),
    ],
)
def test_named_modules_stay_at_16_bits(
    patterns: list[str], skipped: list[tuple[int, int]], tmp_path: Path
) -> None:
    quantisation = {"quant_method": "fp8", "modules_to_not_convert": patterns}
    assert stored(quantisation, tmp_path) == REST + linear(8, skipped=skipped)


def test_gptq_may_quantise_the_head(tmp_path: Path) -> None:
    plain = stored({"quant_method": "gptq", "bits": 4, "group_size": 128}, tmp_path)
    with_head = stored({"quant_method": "gptq", "bits": 4, "group_size": 128, "lm_head": True}, tmp_path)
    head = VOCABULARY * HIDDEN
    assert plain - with_head == 2 * head - head * (4 + 20 / 128) / 8


def test_layers_named_by_number_split_their_group(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    skipped = [f"model.layers.{i}.mlp" for i in (0, 31)]
    quantisation = {"quant_method": "fp8", "ignored_layers": skipped}
    path.write_text(json.dumps({**ONE_LAYER, "num_hidden_layers": 32, "quantization_config": quantisation}))
    model = load(str(path))
    assert sorted(group.repeats for group in model.layers) == [2, 30]
    mlp = sum(rows * cols for rows, cols in MLP)
    assert weight_bytes(model).quantised_parameters == 32 * (4 * HIDDEN**2 + mlp) - 2 * mlp
    assert count(model).total == 2 * VOCABULARY * HIDDEN + HIDDEN + 32 * (4 * HIDDEN**2 + mlp + 2 * HIDDEN)


@pytest.mark.parametrize(
    ("quantisation", "words"),
    [
        ({"quant_method": "gptq", "bits": 99}, "bits must be from 2 to 8"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 0}, "group_size must be -1"),
        ({"quant_method": "awq", "w_bit": 1}, "w_bit must be from 2 to 8"),
        ({"quant_method": "compressed-tensors", "config_groups": {}}, "config_groups"),
        (
            {"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": 1000}}}},
            "from 2 to 16",
        ),
        (
            {"quant_method": "bitsandbytes", "load_in_4bit": True, "load_in_8bit": True},
            "contradict each other",
        ),
    ],
)
def test_an_impossible_width_is_refused(quantisation: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=words):
        stored(quantisation, tmp_path)


@pytest.mark.parametrize(
    ("quantisation", "compute"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128], "activation_scheme": "dynamic"}, "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_method": "gptq", "bits": 4}, None),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {
                    "g": {
                        "weights": {"num_bits": 8, "type": "int", "strategy": "channel"},
                        "input_activations": {"num_bits": 8, "type": "int"},
                    }
                },
            },
            "int8",
        ),
    ],
)
def test_quantised_activations_say_what_it_computes_in(
    quantisation: dict[str, Any], compute: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**ONE_LAYER, "quantization_config": quantisation}))
    storage = load(str(path)).storage
    assert storage is not None
    assert storage.compute == compute


@pytest.mark.parametrize(("gpu", "dtype"), [("h100", "fp8"), ("a100", "bf16")])
def test_a_pass_computes_in_that_format_where_the_device_has_it(gpu: str, dtype: str) -> None:
    report = step("qwen3-32b-fp8", gpu=gpu, seq=512)
    assert f"dtype {dtype}" in report.defaults
    assert dtype in report.whole.work.matrix_flops
    table = 2 * 151936 * 5120  # the input embedding is looked up
    assert report.weight_bytes == weight_bytes(report.model).language - table


def test_a_pass_reads_the_checkpoint_s_own_blocks(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    quantisation = {"quant_method": "gptq", "bits": 4, "group_size": 32}
    path.write_text(json.dumps({**ONE_LAYER, "quantization_config": quantisation}))
    model = load(str(path))
    table = 2 * VOCABULARY * HIDDEN
    assert step(model, context=16).weight_bytes == weight_bytes(model).language - table


def test_a_format_asked_for_covers_what_the_checkpoint_leaves_alone() -> None:
    own, asked = (step("gpt-oss-20b", context=2048, weight_dtype=dtype) for dtype in (None, "fp8"))
    qkv = {line.launch.name: line.work.read_bytes for line in own.lines}["attention.qkv"]
    half = {line.launch.name: line.work.read_bytes for line in asked.lines}["attention.qkv"]
    assert half == pytest.approx(qkv / 2, rel=1e-3)
