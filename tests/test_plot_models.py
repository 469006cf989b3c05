"""Pictures of a model: decoding over batch, and what fills a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

import memwall
from memwall.cli import run
from memwall.plot import decode, memory
from memwall.reports.step import StepReport


def test_a_layouts_decode_is_each_gpus(capsys: pytest.CaptureFixture[str]) -> None:
    reports = [
        memwall.step("llama3-70b", gpu="h100", context=8192, batch=batch, tp=8, bound_only=True)
        for batch in (1, 64, 512)
    ]
    picture = decode.figure([reports], [1, 64, 512])
    assert picture.title == "Decode: Llama 3 70B on 8 x NVIDIA H100 SXM5 80 GB, TP 8"
    assert picture.curves[0].points == tuple((float(r.tokens.batch), r.bound_time_s) for r in reports[:2])
    assert picture.notes == ("Dashed: weights and cache are more than the memory of each GPU",)


def test_memory_is_drawn_of_any_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ["--model", "llama3-8b", "--gpu", "h100,b200", "--batch", "1e15", "--dtype", "fp8"]
    assert run(["plot", "memory", *args, "--set", "memory.capacity_gib=96"]) == 0
    assert "1,000,000,000,000,000 sequences" in capsys.readouterr().out


def pipeline(batch: int, **asked: bool | str) -> StepReport:
    return memwall.step("llama3-70b", gpu="h200", context=8192, batch=batch, tp=4, pp=2, **asked)  # type: ignore[arg-type]


def test_a_pipelines_decode_is_all_its_stages() -> None:
    reports = [pipeline(batch, bound_only=True) for batch in (1, 8)]
    (curve,) = decode.figure([reports], [1, 8]).curves
    assert curve.points == tuple((report.tokens.batch, report.bound_time_s) for report in reports)
    assert curve.strong


def test_the_estimate_is_drawn_above_its_bound() -> None:
    reports = [pipeline(batch, engine="vllm") for batch in (1, 8)]
    picture = decode.figure([reports], [1, 8])
    thick, thin = picture.curves
    assert (thick.strong, thin.strong) == (True, False)
    assert [time_s for _, time_s in thick.points] == [r.estimate.time_s for r in reports if r.estimate]
    assert [time_s for _, time_s in thin.points] == [r.bound_time_s for r in reports]
    assert picture.notes == (f"Estimate {reports[0].estimate.rests_on}",)  # type: ignore[union-attr]


def test_memory_has_a_bar_for_each_combination(tmp_path: Path) -> None:
    reports = [
        memwall.capacity("llama3-8b", gpu="h100", context=8192, batch=batch, tp=2, kv_dtype=kv)
        for batch in (8, 64)
        for kv in ("bf16", "fp8")
    ]
    bars = memory.figure(reports).bars
    assert [bar.name for bar in bars] == [
        "8 sequences, bf16 cache",
        "8 sequences, fp8 cache",
        "64 sequences, bf16 cache",
        "64 sequences, fp8 cache",
    ]
    # 8 KV heads of 128, keys and values, 32 layers, 2 bytes, on each of two GPUs
    assert bars[0].parts[1].value == 8 * 8192 * 2 * 8 * 128 * 32 * 2 / 2
    assert bars[1].parts[1].value * 2 == bars[0].parts[1].value
    assert memory.figure(reports).subtitle == "each of 2 GPUs, 8,192 tokens each"
    args = ["--model", "llama3-8b", "--gpu", "h100", "--batch", "8,64", "--kv-dtype", "bf16,fp8"]
    path = tmp_path / "memory.svg"
    assert run(["plot", "memory", *args, "--tp", "2", "--context", "8192", "-o", str(path)]) == 0
    assert all(f">{bar.name}<" in path.read_text() for bar in bars)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ("memory --model llama3-8b --batch 1:25", "room for 1 to 24 values, not 25"),
        ("memory --model llama3-8b --batch 1:9 --tp 1,2,4", "27 bars are too many"),
        ("memory --model llama3-8b --kv-dtype ,", "--kv-dtype names no format"),
        ("decode --model llama3-8b --engine vllm", "Add --estimate"),
    ],
)
def test_what_a_picture_has_no_room_for(args: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plot", *args.split()]) == 2
    assert said in capsys.readouterr().err


def test_decoding_on_several_gpus_is_a_curve_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        [memwall.step("llama3-8b", gpu=gpu, context=8192, batch=batch, bound_only=True) for batch in (1, 8)]
        for gpu in ("a100", "h100")
    ]
    picture = decode.figure(rows, [1, 8])
    assert picture.title == "Decode: Llama 3 8B on a100, h100"
    assert [(curve.name, curve.end) for curve in picture.curves] == [
        ("a100, context 8192", "a100"),
        ("h100, context 8192", "h100"),
    ]
    assert picture.curves[1].points[0] == (1.0, rows[1][0].bound_time_s)
    args = ["plot", "decode", "--model", "llama3-8b", "--gpu", "v100,h100", "--batch", "1,8"]
    assert run([*args, "--dtype", "fp8"]) == 0
    printed = capsys.readouterr()
    assert "warning: v100: " in printed.err
    assert "v100: " in printed.out
    assert run([*args, "--context", "1024:32768:log2"]) == 2
    assert "room for 1 to 4 values, not 6" in capsys.readouterr().err
