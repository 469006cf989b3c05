"""What people sized wrongly, by the model's own dimensions: head sizes, windows, states, active experts.

Each right value is worked in its test from the dimensions that the model's makers publish; where a serving
engine's log agrees, the test says so.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import memwall
from memwall.models import cache
from memwall.models.load import load
from memwall.models.model import Model
from memwall.models.parameters import count

MIB, GIB = 2**20, 2**30

QWEN3_CODER_480B = {
    "model_type": "qwen3_moe",
    "hidden_size": 6144,
    "num_hidden_layers": 62,
    "num_attention_heads": 96,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 8192,
    "moe_intermediate_size": 2560,
    "num_experts": 160,
    "num_experts_per_tok": 8,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "vocab_size": 151936,
    "max_position_embeddings": 262144,
    "tie_word_embeddings": False,
}
QWEN35_9B = {
    "model_type": "qwen3_5_text",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "full_attention_interval": 4,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
    "intermediate_size": 12288,
    "vocab_size": 248320,
}
GEMMA4_26B = {
    "model_type": "gemma4_text",
    "hidden_size": 2816,
    "intermediate_size": 2112,
    "num_hidden_layers": 30,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 256,
    "global_head_dim": 512,
    "num_global_key_value_heads": 2,
    "attention_k_eq_v": True,
    "num_kv_shared_layers": 0,
    "hidden_size_per_layer_input": 0,
    "sliding_window": 1024,
    "enable_moe_block": True,
    "num_experts": 128,
    "top_k_experts": 8,
    "moe_intermediate_size": 704,
    "vocab_size": 262144,
    "max_position_embeddings": 262144,
    "tie_word_embeddings": True,
}
GEMMA4_31B = {
    **GEMMA4_26B,
    "hidden_size": 5376,
    "intermediate_size": 21504,
    "num_hidden_layers": 60,
    "num_attention_heads": 32,
    "num_key_value_heads": 16,
    "num_global_key_value_heads": 4,
    "enable_moe_block": False,
}


def imported(config: dict[str, Any], folder: Path) -> Model:
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    return load(str(path))


def test_a_stated_head_size_is_not_hidden_over_heads(tmp_path: Path) -> None:
    model = imported(QWEN3_CODER_480B, tmp_path)
    assert cache.growth_bytes_per_token(model) == 62 * 8 * 128 * 2 * 2 == 253952
    assert cache.sequence_bytes(model, 262144) == 62 * GIB  # the engine: "62.00 GiB"; 6144 / 96 would give 31
    assert count(model).total == pytest.approx(480.15e9, rel=1e-4)  # 480B on its card


def test_the_file_s_number_of_kv_heads_is_the_one_that_counts(tmp_path: Path) -> None:
    dims = {
        "model_type": "llama",
        "hidden_size": 16384,
        "num_hidden_layers": 126,
        "num_attention_heads": 128,
        "intermediate_size": 53248,
        "vocab_size": 128256,
    }
    for kv_heads, size in ((8, 516096), (16, 1032192)):  # a first revision said 16, with its weights doubled
        model = imported({**dims, "num_key_value_heads": kv_heads}, tmp_path)
        assert cache.growth_bytes_per_token(model) == size


def test_a_hybrid_grows_slowly_from_a_constant(tmp_path: Path) -> None:
    model = imported(QWEN35_9B, tmp_path)
    assert cache.growth_bytes_per_token(model) == 8 * 4 * 256 * 2 * 2 == 32768
    state = 24 * (32 * 128 * 128 + 8192 * 3) * 4
    assert cache.state_bytes_per_sequence(model) == state == 50.25 * MIB
    measured_mib = {4096: 178, 8192: 306, 16384: 562, 32768: 1074, 65536: 2098, 131072: 4146}
    for tokens, mib in measured_mib.items():  # an engine's own figures
        assert (cache.sequence_bytes(model, tokens) + state) / MIB == pytest.approx(mib, abs=0.3)


def test_experts_beside_a_dense_mlp_are_counted_at_their_own_width(tmp_path: Path) -> None:
    model = imported(GEMMA4_26B, tmp_path)
    assert count(model).active == 3822530560  # 3.82B on its card; the dense MLP at the experts' width: 3.47B
    for tokens, gb in ((4096, 0.294), (8192, 0.377), (32768, 0.881), (131072, 2.894)):
        size = 5 * 4096 * tokens + 25 * 8192 * 1024  # 5 global layers of 2 x 512, 25 local ones of 8 x 256
        assert cache.sequence_bytes(model, tokens) == size
        assert size / 1e9 == pytest.approx(gb, abs=0.0006)


@pytest.mark.parametrize(("tokens", "windowed", "full"), [(32768, 3.28, 27.5), (131072, 10.8, 110)])
def test_windows_honoured_and_ignored(tokens: int, windowed: float, full: float, tmp_path: Path) -> None:
    model = imported(GEMMA4_31B, tmp_path)
    assert cache.sequence_bytes(model, tokens) / GIB == pytest.approx(windowed, abs=0.05)
    assert cache.all_layers_bytes_per_token(model) * tokens / GIB == pytest.approx(full, abs=0.5)


def test_growth_and_constant_are_apart() -> None:
    model = load("gemma3-27b")
    full, windowed = cache.kept(model)
    assert (full.bytes_per_token, full.window) == (80 * 1024, None)
    assert windowed.bytes(10**6) == 416 * MIB


def test_the_model_with_few_kv_heads_is_not_the_one_with_many_parameters() -> None:
    assert (
        cache.growth_bytes_per_token(load("falcon-7b")) == 32 * 64 * 2 * 2
    )  # one head, whatever num_kv_heads says
    assert cache.growth_bytes_per_token(load("qwen3-8b")) == 147456
    assert cache.growth_bytes_per_token(load("mistral-nemo-12b")) == 163840
    assert cache.growth_bytes_per_token(load("gpt-oss-20b")) == 24576


def test_every_expert_is_three_matrices() -> None:
    model = load("grok-1")
    assert count(model).total == pytest.approx(64 * 8 * 3 * 6144 * 32768 + 6.45e9, rel=2e-3)


@pytest.mark.parametrize("parallel", [1, 2, 4, 8])
def test_the_latent_stands_on_every_gpu_and_heads_are_shared(parallel: int) -> None:
    for name, size in (("deepseek-v3", 70272), ("deepseek-v2-lite", 31104)):
        assert cache.growth_bytes_per_token(load(name), tensor_parallel=parallel) == size
    heads = {1: 192512, 2: 96256, 4: 48128, 8: 48128}  # Qwen3-235B: four KV heads, then replicated
    model = load("qwen3-vl-235b-a22b")
    assert cache.growth_bytes_per_token(model, tensor_parallel=parallel) == heads[parallel]


def test_attention_s_flops_are_four_s_squared_d_a_head() -> None:
    # a paper's table has this shape with another count: S 1024, d 64, 16 heads, batch 64
    kernel = memwall.roofline(
        "attention", heads=16, head_dim=64, seq=1024, batch=64, causal=False, dtype="fp16"
    )
    assert kernel.bound.work.flops == 4 * 1024**2 * 64 * 16 * 64 == 274877906944


def test_a_decode_step_is_affine_in_its_context() -> None:
    first, middle, last = (memwall.step("falcon-7b", context=c).whole.time_s for c in (1024, 2048, 3072))
    assert middle == pytest.approx((first + last) / 2, rel=1e-12)
