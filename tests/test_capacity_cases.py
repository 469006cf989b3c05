"""Capacity against engines' own logs, block by block, and against the right values worked by hand.

A log prints GiB to two decimals, so a budget read from one is uncertain by 0.005 GiB; where a test allows
some blocks, that is why. Sources: the threads named.
"""

from __future__ import annotations

import pytest
from capacity_models import (
    DEEPSEEK_V2_LITE,
    GEMMA_3_27B,
    GEMMA_4_26B,
    GEMMA_4_31B,
    GPT_OSS_20B,
    QWEN3_5_9B,
    QWEN3_5_35B_A3B,
    grouped,
)

from memwall.dtypes import find
from memwall.models.attentions import GroupedAttention
from memwall.models.load import load
from memwall.models.mlps import GatedMlp
from memwall.models.model import Layers, Model, Storage
from memwall.reports.capacity import CapacityReport, capacity

KIB, MIB, GIB, GB = 2**10, 2**20, 2**30, 10**9
LLAMA_8B, QWEN_32B, GPT_OSS_120B = load("llama3-8b"), load("qwen2.5-32b"), load("gpt-oss-120b")


def cache_of(model: Model | str, gib: float, **options: object) -> CapacityReport:
    """A budget for the cache alone."""
    return capacity(model, kv_memory=f"{gib}GiB", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("gib", "blocks"), [(3.81, 1952), (2.89, 1478)])
def test_llama_8b_on_a_24_gb_card(gib: float, blocks: int) -> None:  # vllm-project/vllm issue 10517
    report = cache_of(LLAMA_8B, gib, context=29000)
    assert report.kv_bytes_per_token * 16 == 2 * MIB
    assert report.blocks == pytest.approx(blocks, abs=3)
    assert report.blocks == int(gib * GIB) // (2 * MIB)
    assert report.max_tokens == 16 * report.blocks


def test_llama_8b_refuses_what_its_engine_refused() -> None:
    refused = cache_of(LLAMA_8B, 2.89, context=29000)
    assert (refused.fits, round(refused.concurrency or 0, 2)) == (False, 0.82)
    assert refused.longest_context == refused.max_tokens == 23664


def test_llama_8b_states_its_weights_and_its_budget_in_full() -> None:
    report = capacity(LLAMA_8B, memory="23.58GiB", memory_fraction=0.9, reserve="3GiB", context=29000)
    assert report.budget.weight_bytes == 8030261248 * 2
    rope_table = 32 * MIB  # which the log counts among the weights
    assert (report.budget.weight_bytes + rope_table) / GIB == pytest.approx(14.9888, abs=5e-5)
    left = int(23.58 * GIB * 0.9) - 8030261248 * 2 - 3 * GIB
    assert report.max_tokens == left // (2 * MIB) * 16


@pytest.mark.parametrize(("gib", "tokens"), [(48.66, 205728), (55.65, 235296)])
def test_qwen3_coder_480b(gib: float, tokens: int) -> None:  # vllm-project/recipes PR 12
    coder = grouped(62, 96, 8, 128, hidden=6144)
    report = cache_of(coder, gib, context=262144)
    assert report.kv_bytes_per_token == 253952
    assert report.kv_bytes_per_sequence == 62 * GIB
    assert (
        report.max_tokens == report.longest_context == pytest.approx(tokens, abs=16)
    )  # 0.005 GiB: 1.3 blocks
    assert report.shortfall_bytes == 62 * GIB - int(gib * GIB + 0.5)


def test_qwen3_14b() -> None:  # LMCache/LMCache issue 1739
    report = cache_of(grouped(40, 40, 8, 128), 6.51, context=32768)
    assert report.kv_bytes_per_token == 163840
    assert report.max_tokens == pytest.approx(42664, abs=30)
    assert round(report.concurrency or 0, 2) == 1.30


def test_qwen3_235b_over_four_gpus() -> None:  # vllm-project/vllm issue 21348
    model = grouped(94, 64, 4, 128)
    report = cache_of(model, 8.11, context=4096, tp=4)
    assert report.kv_bytes_per_token == 48128
    assert cache_of(model, 8.11, context=4096).kv_bytes_per_token == 192512
    assert report.max_tokens == pytest.approx(180900, abs=150)
    keys = 367404 * report.kv_bytes_per_token / 2  # K alone, as the other engine prints it
    assert keys / GIB == pytest.approx(8.234, abs=0.001)


def test_qwen2_5_32b_over_two_l40s() -> None:  # vllm-project/vllm issue 15815
    options = {"memory": "44.42GiB", "memory_fraction": 0.9, "reserve": "1.56", "tp": 2, "context": 4096}
    logged = capacity(QWEN_32B, weights="30.71GiB", **options)  # type: ignore[arg-type]
    assert logged.kv_bytes_per_token == 131072
    assert logged.budget.left_bytes / GIB == pytest.approx(7.71, abs=0.01)
    assert logged.blocks == pytest.approx(3947, abs=3)
    assert logged.max_tokens == pytest.approx(63150, abs=100)
    # Half of the weights' elements at 2 bytes is 0.2 GiB less than that log had: the engine keeps more.
    counted = capacity(QWEN_32B, **options)  # type: ignore[arg-type]
    assert counted.budget.weight_bytes / GIB == pytest.approx(30.52, abs=0.01)


def test_qwen2_0_5b() -> None:  # NVIDIA/TensorRT-LLM issue 1188
    report = cache_of(grouped(24, 14, 2, 64, hidden=896), 4.53, context=1024)
    assert report.kv_bytes_per_token == 12288  # 14 query heads would give 86,016
    assert report.max_tokens == pytest.approx(395776, rel=0.001)


def test_qwen1_5_7b_in_blocks_of_64() -> None:  # NVIDIA/TensorRT-LLM issue 2268
    report = cache_of(grouped(32, 32, 32, 128), 0.9 * 21.89, context=1024, block=64)
    assert report.blocks == pytest.approx(631, abs=1)  # 630.4
    assert report.pool.paged_bytes(1) == 32 * MIB


def test_deepseek_v2_lite_by_latent_and_by_heads() -> None:  # vllm-project/vllm PR 10927
    exact = cache_of(DEEPSEEK_V2_LITE, 35.42, context=8192)
    heads = cache_of(DEEPSEEK_V2_LITE, 35.42, context=8192, policy="mha")
    assert (exact.kv_bytes_per_token, heads.kv_bytes_per_token) == (31104, 276480)
    assert exact.max_tokens == pytest.approx(1.22e6, rel=0.005)
    padded = cache_of(grouped(27, 16, 16, 256), 35.42, context=8192)  # 192 and 128 padded to 256
    assert padded.kv_bytes_per_token == 442368
    assert padded.blocks == pytest.approx(5373, abs=2)
    assert padded.concurrency == pytest.approx(10.49, abs=0.01)
    assert exact.policies["mha"].max_tokens(8192) == heads.max_tokens


@pytest.mark.parametrize(("kv_heads", "whole", "a_gpu"), [(8, 516096, 64512), (16, 1032192, 129024)])
def test_llama_405b_with_eight_and_with_sixteen_kv_heads(kv_heads: int, whole: int, a_gpu: int) -> None:
    model = grouped(126, 128, kv_heads, 128, hidden=16384)  # vllm-project/vllm issue 6746
    assert cache_of(model, 9.5, context=4096).kv_bytes_per_token == whole
    shared = cache_of(model, 79392 * a_gpu / GIB, context=4096, tp=8)
    assert (shared.kv_bytes_per_token, shared.max_tokens) == (a_gpu, 79392)


@pytest.mark.parametrize(("kv_heads", "gib"), [(8, 56.71), (16, 57.70)])
def test_llama_405b_with_8_bits_in_most_mlps(kv_heads: int, gib: float) -> None:
    attention = GroupedAttention(128, kv_heads, 128)
    kept = frozenset(f"self_attn.{name}_proj" for name in "qkvo")
    every = kept | {f"mlp.{name}_proj" for name in ("gate", "up", "down")}
    groups = tuple(
        Layers(repeats, attention, (GatedMlp(53248),), unquantised=names)
        for repeats, names in ((124, kept), (2, every))
    )
    storage = Storage("fp8 in 124 MLPs", find("fp8"))
    model = Model("llama-405b", "Llama 3.1 405B", 16384, 128256, False, groups, storage=storage)
    report = capacity(model, gpu="h100", tp=8, context=16)  # vllm-project/vllm issue 6746
    norms = 253 * 16384 * 2 * 7 / 8  # whole on each GPU, of which the case counts an eighth
    assert (report.budget.weight_bytes - norms) / GIB == pytest.approx(gib, abs=0.005)
    if kv_heads == 16:  # what the log had, but for rope's table and the scales of the rows
        assert (report.budget.weight_bytes + 32 * MIB) / GIB == pytest.approx(57.752, abs=0.02)


def test_gpt_oss_120b_under_both_policies() -> None:  # alvarobartt/hf-mem issue 60
    one = cache_of(GPT_OSS_120B, 5.38, context=1)
    assert one.kv_bytes_per_sequence == 73728
    long = cache_of(GPT_OSS_120B, 5.38, context=4096)
    assert long.kv_bytes_per_sequence == 18 * 2048 * 4096 + 18 * 2048 * 128
    assert long.kv_bytes_per_token == 36864
    full = cache_of(GPT_OSS_120B, 5.38, context=4096, policy="all-layers")
    assert full.kv_bytes_per_token == 73728
    assert full.max_tokens == pytest.approx(78352, abs=16)
    assert full.max_tokens == pytest.approx(78384, rel=0.001)  # the engine's
    assert long.policies["all-layers"] == full.pool


def test_gpt_oss_20b_under_both_policies() -> None:  # alvarobartt/hf-mem PR 70
    exact = cache_of(GPT_OSS_20B, 13, context=8192, batch=32)
    full = cache_of(GPT_OSS_20B, 13, context=8192, batch=32, policy="all-layers")
    assert exact.cache_bytes / GIB == pytest.approx(6.094, abs=0.001)
    assert full.cache_bytes == 12 * GIB


@pytest.mark.parametrize(("context", "gb"), [(4096, 0.294), (8192, 0.377), (32768, 0.881), (131072, 2.894)])
def test_gemma_4_26b(context: int, gb: float) -> None:  # ollama/ollama PR 16958, without the micro-batch
    assert cache_of(GEMMA_4_26B, 4, context=context).kv_bytes_per_sequence / GB == pytest.approx(gb, abs=5e-4)


@pytest.mark.parametrize(
    ("context", "mib"), [(4096, 178), (8192, 306), (16384, 562), (32768, 1074), (65536, 2098), (131072, 4146)]
)
def test_qwen3_5_9b(context: int, mib: int) -> None:  # jaylfc/taOS issue 144
    report = cache_of(QWEN3_5_9B, 8, context=context)
    assert report.kv_bytes_per_sequence / MIB == pytest.approx(mib, abs=0.3)
    assert report.kv_bytes_per_token * 4096 == 128 * MIB
    assert report.pool.footprint.constant_bytes / MIB == 50.25


def test_a_block_scaled_cache_counts_its_scales() -> None:  # ggml-org/llama.cpp issue 11337
    q8, int8 = (cache_of(QWEN_32B, 9, context=32768, kv_dtype=name) for name in ("q8_0", "int8"))
    assert q8.kv_bytes_per_sequence == 4352 * MIB
    assert int8.kv_bytes_per_sequence == 4096 * MIB


def test_mixtral_in_4_bits_on_two_24_gb_cards() -> None:  # vllm-project/vllm issue 2382
    report = capacity("mixtral-8x7b", gpu="rtx-3090", tp=2, weight_dtype="int4-g128", context=4096)
    assert report.kv_bytes_per_token * 16 == MIB
    assert cache_of("mixtral-8x7b", 6487 / KIB, tp=2, context=4096).blocks == 6487
    # 46.7B at 4.0 to 4.3 bits, half of them on each; not the 12.9B active
    assert 11 < report.budget.weight_bytes / GIB < 11.8
    assert report.fits


@pytest.mark.parametrize(("gib", "logged"), [(5.98, 4.33), (6.01, 4.35)])
def test_qwen3_6_35b_a3b_in_an_fp8_cache(gib: float, logged: float) -> None:  # noonghunna/club-3090 issue 612
    report = cache_of(QWEN3_5_35B_A3B, gib, context=131072, kv_dtype="fp8")
    assert report.kv_bytes_per_token == 10240
    assert report.pool.footprint.state_bytes / MIB == pytest.approx(62.8, abs=0.05)
    assert report.kv_bytes_per_sequence / GIB == pytest.approx(1.311, abs=0.0005)
    assert logged < (report.concurrency or 0) < logged * 1.06  # the log is 5 % lower: pages are aligned
    assert report.max_sequences == 4
    assert 4.3 < (report.max_tokens or 0) / 131072 < 4.6


@pytest.mark.parametrize("tp", [1, 4, 8])
def test_a_latent_stands_on_every_gpu(tp: int) -> None:  # vllm-project/vllm issue 47929
    assert cache_of(DEEPSEEK_V2_LITE, 10, context=4096, tp=tp).kv_bytes_per_token == 31104
    v3 = cache_of("deepseek-v3", 10, context=4096, tp=tp)
    assert v3.kv_bytes_per_token == 70272
    assert v3.max_tokens == 10 * GIB // (70272 * 16) * 16


def test_few_kv_heads_are_copied_beyond_their_number() -> None:
    model = grouped(36, 16, 2, 128, hidden=2048)  # Qwen2.5-3B
    sizes = [cache_of(model, 1, context=4096, tp=tp).kv_bytes_per_token for tp in (1, 2, 8)]
    assert sizes == [36864, 18432, 18432]
    assert 8 * sizes[2] == 4 * sizes[0]


def test_qwen3_32b_over_four_gpus() -> None:  # huggingface/transformers PR 48566
    report = cache_of("qwen3-32b", 3258 * 256 * 65536 / GIB, context=4096, tp=4, block=256)
    assert (report.kv_bytes_per_token, report.blocks) == (65536, 3258)
    alone = cache_of("qwen3-32b", 3258 * 256 * 65536 / GIB, context=4096, block=256)
    assert alone.blocks == 814


def test_growth_and_constant_are_apart() -> None:  # vllm-project/vllm issue 51041
    report = cache_of(GEMMA_3_27B, 20, context=131072)
    assert report.kv_bytes_per_token == 80 * KIB
    assert report.pool.footprint.constant_bytes == 416 * MIB
    assert cache_of(GEMMA_3_27B, 20, context=1024).kv_bytes_per_sequence == 496 * KIB * 1024
    assert report.kv_bytes_per_sequence // 131072 == 83 * KIB + 256  # 80 + 416 x 1024 / 131072


def test_weights_beyond_the_fraction_are_a_shortfall() -> None:  # SemiAnalysisAI/InferenceX issue 2128
    report = capacity(  # the shape of the cache is another's: none of it enters
        LLAMA_8B, memory="140.4GB", memory_fraction=0.88, weights="125.65GB", reserve="0", context=16
    )
    assert not report.fits
    assert report.budget.left_bytes / GB == pytest.approx(-2.1, abs=0.005)
    assert report.budget.smallest_fraction() == pytest.approx(0.895, abs=0.0005)
    assert (report.max_tokens, report.max_sequences, report.blocks) == (None, None, None)
    assert report.shortfall_bytes == report.cache_bytes - report.budget.left_bytes


def test_80_gb_in_three_meanings() -> None:  # modal-labs/modal-client PR 2797
    tokens = {
        memory: capacity(LLAMA_8B, memory=memory, reserve="0", context=4096).max_tokens or 0
        for memory in ("80GB", "79.5GiB", "80")
    }
    assert tokens["79.5GiB"] - tokens["80GB"] == pytest.approx(40960, abs=200)  # 5 GiB of 128 KiB
    assert tokens["80"] > tokens["79.5GiB"]
    h100 = capacity(LLAMA_8B, gpu="h100", context=4096)
    assert h100.total.value / GIB == pytest.approx(79.1, abs=0.05)


@pytest.mark.parametrize(
    ("model", "size"),
    [  # LMCache/LMCache issue 688: head_dim as the file states it
        (grouped(40, 32, 8, 128, hidden=5120), 163840),
        (GPT_OSS_20B, 49152),
        (grouped(48, 16, 8, 256, hidden=3840), 393216),
        (load("qwen3-32b"), 262144),
        (grouped(36, 32, 8, 128, hidden=2560), 147456),
    ],
    ids=["mistral-small-24b", "gpt-oss-20b", "gemma-3-12b", "qwen3-32b", "qwen3-4b"],
)
def test_a_token_where_every_layer_is_in_full(model: Model, size: int) -> None:
    assert cache_of(model, 4, context=64, policy="all-layers").kv_bytes_per_token == size


def test_quantised_weights_do_not_change_the_cache() -> None:  # vllm-project/vllm issue 22291
    for dtype in (None, "int8", "int4-g128"):
        report = cache_of("qwen2.5-7b", 4, context=3072, weight_dtype=dtype)
        assert report.kv_bytes_per_sequence == 168 * MIB


def test_the_cache_hardly_depends_on_the_size_of_the_model() -> None:  # HenriGrimm/Minnow PR 854
    small, large = grouped(28, 16, 8, 128), grouped(36, 32, 8, 128, hidden=4096)  # Qwen3-0.6B and 8B
    assert cache_of(small, 4, context=64).kv_bytes_per_token == 114688
    assert cache_of(large, 40, context=32768).kv_bytes_per_sequence == 4.5 * GIB
    assert cache_of(large, 40, context=262144).kv_bytes_per_sequence == 36 * GIB


@pytest.mark.parametrize(("context", "exact", "full"), [(32768, 3.28, 27.5), (131072, 10.78, 110)])
def test_gemma_4_31b_under_both_policies(context: int, exact: float, full: float) -> None:
    report = cache_of(GEMMA_4_31B, 120, context=context)  # vllm-project/vllm PR 39254
    sizes = [pool.footprint.bytes(context) / GIB for pool in report.policies.values()]
    assert sizes == [pytest.approx(exact, abs=0.005), pytest.approx(full, abs=0.005)]
