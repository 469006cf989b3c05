"""Standard attention, FA1, FA2 and FA3 side by side: hand-worked bytes, counts, and what hardware lacks."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwall.cli import run
from memwall.errors import UsageError
from memwall.reports.generations import Generation, generations
from memwall.traffic import loaded_keys

SHAPE: dict[str, Any] = {"heads": 1, "head_dim": 128, "seq": 4096}


def of(impl: str, gpu: str = "h200", **options: Any) -> Generation:
    report = generations(gpu=gpu, impl=impl, **{**SHAPE, "causal": False, **options})
    return report.generations[0]


def test_compulsory_is_each_tensor_once() -> None:
    assert of("fa2").compulsory.total_bytes == 4 * 4096 * 128 * 2  # Q, K, V, O


def test_no_reuse_by_hand() -> None:
    blocks = 4096 // 128
    assert of("fa2").no_reuse.read_bytes == 4096 * 128 * 2 + blocks * 2 * 4096 * 128 * 2
    causal = of("fa2", causal=True, block_q=128, block_kv=128)
    loaded = 128 * sum(range(1, blocks + 1))  # 128, 256, ... keys
    assert causal.no_reuse.read_bytes == 4096 * 128 * 2 + loaded * 2 * 128 * 2


def test_fa1_has_both_counts() -> None:
    """Blocks of 256 keys: 16 passes. The figure: N d (3 T + 1) elements; the algorithm adds l, m and the
    start."""
    fa1 = of("fa1")
    tensor, statistics = 4096 * 128 * 2, 2 * 4096 * 4
    assert fa1.figure_bytes == tensor * (3 * 16 + 1)
    passes = 16 * (2 * tensor + statistics) + 17 * (tensor + statistics)
    assert fa1.no_reuse.total_bytes == 2 * tensor + passes


def test_the_published_figure_of_fa1_comes_out() -> None:
    """GPT-2 medium: 64 sequences, 16 heads of 64, 1024 tokens, fp16. Dao et al. 2022, figure 2, middle:
    1.744 GB."""
    fa1 = of("fa1", gpu="a100", heads=16, head_dim=64, seq=1024, batch=64, dtype="fp16")
    assert fa1.figure_bytes == pytest.approx(1.744e9, rel=0.002)


def test_modelled_lies_between_the_two_ends() -> None:
    for impl in ("fa1", "fa2", "fa3"):
        for causal in (False, True):
            each = of(impl, heads=32, causal=causal)
            assert each.compulsory.read_bytes <= each.dram.read_bytes <= each.no_reuse.read_bytes


def test_exponentials_are_one_a_score_and_one_a_row_and_block() -> None:
    fa2 = of("fa2", block_q=128, block_kv=128)
    assert fa2.exp_ops == 4096 * 4096 + 4096 * 32
    assert fa2.rescale_flops == 4096 * 32 * 128
    assert of("fa1", block_kv=128).rescale_flops == 3 * fa2.rescale_flops


def test_a_mask_skips_whole_blocks() -> None:
    causal = of("fa2", causal=True, block_q=128, block_kv=128)
    assert causal.computed_pairs == 128 * 128 * (32 * 33 // 2)
    assert causal.visible_pairs == 4096 * 4097 // 2


def test_backward_is_five_products_for_two() -> None:
    back = generations(**SHAPE, causal=False).backward
    assert back.ratio == 2.5
    assert back.recomputed_flops * 5 == back.matrix_flops
    assert back.saved_bytes == 4096 * 4096 * 2
    assert back.kept_bytes == 4096 * 4


def test_the_asymptote_by_hand() -> None:
    report = generations(**SHAPE, causal=False, gpu="h100")
    elements = 227 * 1024 / 2
    assert report.asymptote_bytes == pytest.approx(4096**2 * 128**2 / elements * 2)


@pytest.mark.parametrize(
    ("gpu", "runs", "lacks"),
    [
        ("h100", "fa3", ()),
        ("a100", "fa2", ("tma", "wgmma")),
        ("b200", "fa2", ("wgmma",)),
        ("v100", "fa1", ("tma", "wgmma")),
        ("mi300x", "fa2", ("tma", "wgmma")),
    ],
)
def test_what_runs_instead_of_fa3(gpu: str, runs: str, lacks: tuple[str, ...]) -> None:
    fa3 = of("fa3", gpu=gpu, dtype="fp16")
    assert (fa3.runs_as, fa3.lacks) == (runs, lacks)


def test_a_models_layers_are_added_up() -> None:
    one = generations("llama3-8b", seq=4096, impl="fa2").generations[0]
    shape: dict[str, Any] = {"heads": 32, "kv_heads": 8, "head_dim": 128, "seq": 4096}
    layer = generations(impl="fa2", causal=True, **shape).generations[0]
    assert one.dram.read_bytes == pytest.approx(32 * layer.dram.read_bytes)


@pytest.mark.parametrize("model", ["deepseek-v3", "gemma2-27b", "llama3-70b"])
def test_decoding_reads_the_cache_once(model: str) -> None:
    for each in generations(model, seq_q=1, seq_kv=8192, batch=16, impl="all").generations[2:]:
        assert each.dram.read_bytes == pytest.approx(each.compulsory.read_bytes)


def test_json_has_each_implementation(capsys: pytest.CaptureFixture[str]) -> None:
    shape = "--gpu h200 --heads 32 --head-dim 128 --seq 4096 --non-causal"
    assert run(f"attention --impl all --block-q 128 --block-kv 128 {shape} --json".split()) == 0
    document = json.loads(capsys.readouterr().out)
    fa2, fa3 = (document[name] for name in ("fa2", "fa3"))
    assert fa2["block_kv"] == 128
    assert fa2["dram_read_bytes"] == pytest.approx(104.6e6, rel=0.05)
    assert fa2["l2_counter_bytes"] == pytest.approx(2.79e9, rel=0.05)
    assert fa3["dram_read_bytes"] == pytest.approx(100.7e6, rel=0.05)
    assert fa3["l2_counter_bytes"] == pytest.approx(1.36e9, rel=0.05)


def test_several_gpus_say_what_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shlex.split("attention --impl all --model llama3-70b --seq 8192 --gpu a100,h100")) == 0
    assert "a100: fa3 needs TMA and WGMMA" in capsys.readouterr().out


def test_a_roofline_says_too_what_runs_instead(capsys: pytest.CaptureFixture[str]) -> None:
    line = "roofline --op attention --heads 32 --head-dim 128 --seq 8192 --dtype fp16 --impl fa3 --gpu"
    for gpu, runs in (("a100", "fa2"), ("v100", "fa1")):
        assert run([*line.split(), gpu]) == 0
        said = capsys.readouterr().out
        assert "fa3 needs TMA and WGMMA, which" in said
        assert f"lacks: {runs} runs" in said
    assert run([*line.split(), "h100"]) == 0
    assert "lacks" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("--impl fa4 --heads 1 --head-dim 64 --seq 128", 2),
        ("--block-q 128 --heads 1 --head-dim 64 --seq 128", 2),
        ("--impl all --block-q 4096 --heads 1 --head-dim 64 --seq 128", 2),
        ("--impl all --gpu tpu-v5e --heads 1 --head-dim 64 --seq 128", 4),
    ],
)
def test_mistakes_are_answered(command: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["attention", *command.split()]) == code
    assert capsys.readouterr().err.startswith("error: ")


def test_blocks_have_a_limit() -> None:
    with pytest.raises(UsageError, match="block-q"):
        generations(**SHAPE, block_q=5000)


@given(st.integers(1, 300), st.integers(0, 300), st.integers(1, 70), st.integers(1, 70))
def test_loaded_keys_block_by_block(seq_q: int, before: int, block_q: int, block_k: int) -> None:
    """Each block of queries loads whole blocks of keys up to its last query, or all that there are."""
    seq_kv = seq_q + before
    total = 0
    for first in range(0, seq_q, block_q):
        last = before + min(seq_q, first + block_q)
        total += min(seq_kv, -(-last // block_k) * block_k)
    assert loaded_keys(seq_q, seq_kv, block_q, block_k, causal=True) == total


def test_a_long_context_is_answered_at_once() -> None:
    assert loaded_keys(10**15, 10**15, 128, 128, causal=True) == 128 * (7812500000000 * 7812500000001 // 2)


@pytest.mark.parametrize(("block_q", "total_bytes"), [(64, 697.9e9), (128, 354.3e9)])
def test_no_reuse_of_a_whole_model(block_q: int, total_bytes: float) -> None:
    """Llama 3 70B, 4096 tokens, no mask: worked out apart from this code, 80 layers of 64 query heads."""
    report = generations("llama3-70b", seq=4096, causal=False, impl="fa2", block_q=block_q)
    by_hand = 80 * 64 * (2 * 4096 * 128 * 2 + 4096 // block_q * 2 * 4096 * 128 * 2)
    assert report.generations[0].no_reuse.total_bytes == by_hand
    assert by_hand == pytest.approx(total_bytes, rel=0.001)


def test_no_reuse_when_decoding_is_every_query_head_s_own_keys() -> None:
    each = of("fa2", heads=64, kv_heads=8, seq=None, seq_q=1, seq_kv=4096)
    assert each.no_reuse.read_bytes == 64 * (128 * 2 + 2 * 4096 * 128 * 2)
    assert each.l2.read_bytes == each.compulsory.read_bytes == 64 * 128 * 2 + 8 * 2 * 4096 * 128 * 2
