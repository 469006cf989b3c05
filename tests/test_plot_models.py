"""Pictures of a model: decoding over batch, and what fills a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

import memwall
from memwall.cli import run
from memwall.plot import decode, memory
from memwall.plot.curves import text_area
from memwall.plot.layout import layout
from memwall.plot.metrics import width_of
from memwall.plot.scene import Box, Text
from memwall.plot.terminal import render
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


@pytest.mark.parametrize("width", [280, 390, 820])
@pytest.mark.parametrize("context", [None, 8192])
def test_headings_of_bars_stay_within_the_picture_whole(width: int, context: int | None) -> None:
    reports = [
        memwall.capacity("llama3-70b", gpu="h100", batch=batch, tp=tp, kv_dtype=kv, context=context)
        for batch in (8, 512)
        for tp in (2, 4)
        for kv in ("bf16", "fp8")
    ]
    picture = memory.figure(reports)
    scene = layout(picture, width)
    texts = [mark for mark in scene.marks if isinstance(mark, Text)]
    for text in texts:
        assert text.at[0] >= 0
        if text.anchor == "start":
            assert text.at[0] + width_of(text.text, text.height, text.bold) <= width, text.text
    bold = " ".join(text.text for text in texts if text.bold and text.height == 14)
    assert bold == " ".join(bar.name for bar in picture.bars)
    assert sum("79.11 GiB usable" in text.text for text in texts) == len(picture.bars)
    boxes = [mark for mark in scene.marks if isinstance(mark, Box)]
    inked = [text_area(text) for text in texts]
    for i, one in enumerate(inked):
        assert not any(
            one.left < other.right and other.left < one.right and one.top + 4 < other.bottom - 4 < one.bottom
            for other in inked[i + 1 :]
        ), texts[i].text
        middle = (one.top + one.bottom) / 2
        assert not any(box.at[1] < middle < box.at[1] + box.height for box in boxes), texts[i].text


def test_a_note_says_that_contexts_differ_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    bars = ["plot", "memory", "--model", "llama3-70b", "--gpu", "h100", "--tp", "2,4", "--batch", "8"]
    said = "Each bar has the longest context that fits, or the model's own"
    assert run(bars) == 0
    assert said in capsys.readouterr().out
    for args in (["--context", "1024,8192"], ["--context", "8192"]):
        assert run([*bars, *args]) == 0
        assert said not in capsys.readouterr().out
    assert (
        run(["plot", "memory", "--model", "llama3-8b", "--gpu", "h100,h200"]) == 0
    )  # the model's own on both
    assert said not in capsys.readouterr().out


def test_a_terminal_names_estimate_and_bound_where_it_has_no_widths() -> None:
    rows = [
        [memwall.step("llama3-8b", gpu="h200", context=context, batch=batch) for batch in (1, 8)]
        for context in (1024, 2048, 4096, 8192, 16384, 32768)
    ]
    picture = decode.figure(rows, [1, 8])
    text = render(picture)
    assert "thick" not in text
    assert ", thin" not in text
    assert "the estimate, and the least that it can take, the bound" in text
    key = [line.split("  ")[1:] for line in text.splitlines() if line.endswith((", estimate", ", bound"))]
    assert [name for _, name in key] == [
        f"context {row[0].tokens.seq_kv}, {which}" for row in rows for which in ("estimate", "bound")
    ]
    assert len({number for number, _ in key}) == 12
    assert "thick" in picture.subtitle
    bound = decode.figure([[pipeline(batch, bound_only=True) for batch in (1, 8)]], [1, 8])
    assert ", bound" not in render(bound)


def test_a_range_from_zero_begins_with_one_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plot", "decode", "--model", "llama3-8b", "--batch", "0:8"]) == 0
    assert "note: --batch 0:8 begins with 1: there is no size 0" in capsys.readouterr().err
    assert run(["plot", "decode", "--model", "llama3-8b", "--batch", "1:8"]) == 0
    assert "begins with" not in capsys.readouterr().err


def test_an_encoder_is_refused_in_words_that_can_be_typed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plot", "decode", "--model", "bert-base"]) == 4
    hint = capsys.readouterr().err.partition("Try memwall ")[2].strip()
    assert run(hint.split()) == 0
