"""Sweeps of passes over layouts, libraries and encoders' tokens: each point is what `memwall step` says."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest

import memwall
from memwall.cli import run
from memwall.errors import UsageError
from memwall.render import step_record
from memwall.sweeps.table import Table

SHAPES = [{"batch": [1, 5, 64], "context": [2, 900, 9000]}, {"batch": [1, 6], "seq": [1, 4, 9, 700]}]
EXACT = 1 << 53


def compare(table: Table, model: str, asked: tuple[str, ...], **same: Any) -> None:
    """Some of the rows with the single answers: counts to the last digit, quotients to a few bits."""
    rows = table.to_rows()
    for row in random.Random(model).sample(rows, min(len(rows), 6)):
        point = {name: row[name] for name in asked if row.get(name) is not None}
        single = step_record.record(memwall.step(model, **point, **same))
        shared = {name for name in row if name in single and name not in asked} - {"op", "model"}
        assert {"bound_time_s", "kernels_bound_time_s", "resident_cache_bytes", "regime", "fits"} <= shared
        for name in shared:
            if (isinstance(single[name], int) and single[name] < EXACT) or not isinstance(row[name], float):
                assert row[name] == single[name], (name, point)
            else:
                assert row[name] == pytest.approx(single[name], rel=1e-12), (name, point)


@pytest.mark.parametrize("shape", SHAPES, ids=["decode", "prefill"])
@pytest.mark.parametrize(
    ("model", "layout", "settings"),
    [
        ("llama3-70b", {"tp": [1, 2, 8]}, {}),
        ("llama3-70b", {"tp": [2], "pp": [2, 3]}, {"sequence_parallel": True}),
        ("qwen3-30b-a3b", {"tp": [1, 4], "dp": [1, 2], "ep": [4]}, {}),
        ("deepseek-v3", {"tp": [8], "ep": [1, 8], "imbalance": [1.0, 1.3]}, {}),
        ("gemma3-4b", {"dp": [3], "pp": [1, 4]}, {"eager": True}),
        ("jamba-v0.1", {"tp": [2, 4]}, {}),
    ],
)
def test_layouts_sweep_to_their_single_answers(
    model: str, layout: dict[str, Any], settings: dict[str, Any], shape: dict[str, Any]
) -> None:
    table = memwall.sweep("step", model=model, estimate=True, **layout, **shape, **settings)
    every = list(itertools.product(*layout.values(), *shape.values()))
    assert len(table) + table.left_out.points == len(every)
    assert len(table)
    compare(table, model, (*layout, *shape), **settings)


def test_libraries_formats_and_hosts_sweep_to_their_single_answers() -> None:
    asked: dict[str, Any] = {
        "library": ["vllm", "trtllm"], "kv_dtype": ["bf16", "fp8"], "impl": ["flash", "standard"],
        "offload_weights": ["4GiB"], "gpu": ["h200", "mi300x"], "batch": [1, 30], "context": [3000],
    }  # fmt: skip
    table = memwall.sweep("step", model="llama3-8b", estimate=True, **asked)
    assert len(table) == 32
    compare(table, "llama3-8b", tuple(asked))


def test_offloading_more_than_there_is_is_left_out_as_a_single_step_refuses_it() -> None:
    asked: dict[str, Any] = {
        "offload_cache": ["1GiB"], "offload_weights": ["1GiB", "500GiB"],
        "batch": [1, 30, 64], "context": [3000, 4096],
    }  # fmt: skip
    table = memwall.sweep("step", model="llama3-8b", gpu=["h200"], **asked)
    assert (len(table), table.left_out.points) == (4, 8)  # a sequence of 4096 has 0.5 GiB
    compare(table, "llama3-8b", tuple(asked), gpu="h200")


def test_engines_sweep_to_their_single_answers() -> None:
    asked: dict[str, Any] = {
        "engine": ["vllm", "llama.cpp", "tensorrt-llm"], "weight_dtype": ["q4_k_m"],
        "gpu": ["h100", "mi300x"], "batch": [1, 7, 20], "context": [1, 3000], "pp": [1, 2],
    }  # fmt: skip
    table = memwall.sweep("step", model="llama3-8b", estimate=True, **asked)
    assert (len(table), table.left_out.points) == (60, 12)  # TensorRT-LLM is for NVIDIA's alone
    compare(table, "llama3-8b", tuple(asked))


T5 = {
    "model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "d_model": 512, "d_kv": 64,
    "d_ff": 2048,
    "num_heads": 8, "num_layers": 6, "num_decoder_layers": 6, "vocab_size": 32128, "n_positions": 512,
    "relative_attention_num_buckets": 32, "feed_forward_proj": "relu", "is_encoder_decoder": True,
}  # fmt: skip


def test_what_an_encoder_has_read_is_an_axis(tmp_path: Path) -> None:
    model = tmp_path / "config.json"
    model.write_text(json.dumps(T5))
    asked: dict[str, Any] = {
        "source_tokens": [1, 70, 500],
        "batch": [1, 8],
        "context": [2, 400],
        "tp": [1, 2],
    }
    table = memwall.sweep("step", model=str(model), estimate=True, **asked)
    assert len(table) == 24
    compare(table, str(model), tuple(asked))
    prefill: dict[str, Any] = {"batch": [1, 3], "seq": [5, 400]}
    compare(memwall.sweep("step", model=str(model), **prefill), str(model), tuple(prefill))
    with pytest.raises(UsageError, match="no encoder with a decoder"):
        memwall.sweep("step", model="llama3-8b", **asked)


def test_layouts_that_cannot_be_are_counted_once_with_their_reason() -> None:
    table = memwall.sweep("step", model="llama3-70b", tp=[1, 3, 5, 16], batch=[1, 2], context=[64, 128, 256])
    assert sorted({row["tp"] for row in table.to_rows()}) == [1]
    assert table.left_out.lines == [
        "12 points left out: --tp 3: the heads of Llama 3 70B (64, 8 KV) do not split so",
        "6 points left out: --tp 16: one NVIDIA DGX H100 has 8 GPUs, and tensor parallelism stays in it",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "--tp 3", "--ep 4", "--pp 1000", "--tp 2 --gpu cpu-like", "--imbalance 0", "--impl fa9",
        "--library nobody", "--dtype nvfp4", "--source-tokens 8", "--tp 16", "--dp 0",
    ],
)  # fmt: skip
def test_a_refusal_has_the_words_of_step(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["step", "--model", "llama3-70b", "--batch", "8", "--context", "4096", *line.split()]
    code = run(words)
    expected = capsys.readouterr().err
    assert code in (2, 4)
    assert run(["sweep", *words]) == code
    assert capsys.readouterr().err == expected.replace("memwall step", "memwall sweep step")


@pytest.mark.parametrize(
    "line",
    [
        "--op gemm --m 1e13,1e15 --n 1e13 --k 1e13",
        "--op gemm --m 1e15 --n 1e15 --k 1e15 --estimate",
        "--op attention --heads 1e6 --head-dim 1e6 --seq 1e12",
        "step --model llama3-8b --batch 1e15 --context 1e15 --estimate",
        "step --model mixtral-8x7b --batch 1,1e15 --context 1e15 --tp 1,8",
        "step --model gemma3-4b --batch 1e15 --seq 1e15",
        "capacity --model llama3-8b --batch 1e15 --context 1e15",
    ],
)
def test_what_no_64_bits_hold_is_computed_all_the_same(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sweep", *line.split()]) == 0
    for form in ("json", "csv", "jsonl"):
        assert run(["sweep", *line.split(), "--format", form]) == 0
        assert "nan" not in capsys.readouterr().out.lower()


def test_large_products_are_those_of_the_roofline() -> None:
    row = memwall.sweep("gemm", m=10**13, n=10**13, k=10**13).to_rows()[0]
    single = memwall.roofline("gemm", m=10**13, n=10**13, k=10**13)
    assert row["flops"] == pytest.approx(2 * 10**39, rel=1e-15)
    assert row["bound_time_s"] == pytest.approx(single.bound_time_s, rel=1e-14)
