"""What a picture says of its input: broken tables, runs above their roof, what-ifs, missing roofs."""

from __future__ import annotations

from pathlib import Path

import pytest

import memwall
from memwall.cli import run
from memwall.plot import accuracy, roofline
from memwall.plot.measured import runs
from memwall.plot.ops import reports_of

HEAD = "op,gpu,dtype,m,n,k,time_us\n"
GOOD = "gemm,h100,bf16,4096,4096,4096,200\n"
FAST = "gemm,h100,bf16,4096,4096,4096,100\n"  # its bound is 138.9 us


@pytest.mark.parametrize("command", ["accuracy --data", "accuracy --bound --data", "roofline --measured"])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "it has no rows"),
        ("a,b\n1,2\n", "it has no rows"),
        (HEAD, "it has no rows"),
        (HEAD + "gemm,h100,bf16,abc,4096,4096,200\n", "'abc'"),
        (HEAD + "gemm,h100,bf16,4096,4096,4096,soon\n", "a time of 'soon'"),
    ],
)
def test_a_table_without_a_usable_row_is_refused_as_memwall_accuracy_refuses_it(
    command: str, content: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "table.csv"
    table.write_text(content)
    assert run(["accuracy", "--data", str(table)]) == 3
    refusal = capsys.readouterr().err
    assert run(["plot", *command.split(), str(table), "-o", str(tmp_path / "plot.svg")]) == 3
    assert capsys.readouterr().err == refusal
    assert said in refusal
    assert not (tmp_path / "plot.svg").exists()


@pytest.mark.parametrize("command", ["accuracy --data", "roofline --gpu h100 --measured"])
def test_rows_that_are_left_out_are_counted_with_the_reason(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "table.csv"
    table.write_text(HEAD + GOOD + "gemm,h100,bf16,abc,4096,4096,200\n")
    assert run(["plot", *command.split(), str(table)]) == 0
    printed = capsys.readouterr()
    assert "warning: 1 row is left out: " in printed.err
    assert "'abc'" in " ".join(printed.out.split())


@pytest.mark.parametrize("command", ["accuracy --bound --data", "roofline --gpu h100 --measured"])
def test_a_run_above_its_roof_is_named(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, svg = tmp_path / "table.csv", tmp_path / "plot.svg"
    table.write_text(HEAD + GOOD + FAST)
    assert run(["plot", *command.split(), str(table), "-o", str(svg)]) == 0
    err = capsys.readouterr().err
    assert "faster than the bound" in err
    assert "gemm" in err
    text = svg.read_text()
    assert "faster than the bound" in text
    assert "no kernel is above" not in text
    assert "no row is faster" not in text


def test_how_many_are_above(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text(HEAD + GOOD + FAST)
    h100 = memwall.gpu("h100")
    kept = runs(str(table), [h100], [])
    assert [each.above for each in kept.found] == [False, True]
    picture = roofline.figure([h100], [each.report for each in kept.found], kept.found)
    assert "above their roof: 1 of 2" in picture.subtitle
    found = accuracy.agreement(str(table))
    assert len(found.beaten) == 1
    said = accuracy.figure(found, bound=True).subtitle
    assert "1 of 2 rows are faster than their bound by more than 2 %" in said


@pytest.mark.parametrize(("share", "beaten"), [(0.99, False), (0.97, True)])
def test_a_row_within_the_tolerance_is_not_said_to_be_below_its_bound(
    share: float, beaten: bool, tmp_path: Path
) -> None:
    bound_s = memwall.roofline("gemm", gpu="h100", m=4096, n=4096, k=4096).bound_time_s
    table = tmp_path / "table.csv"
    table.write_text(f"{HEAD}gemm,h100,bf16,4096,4096,4096,{share * bound_s * 1e6}\n")
    found = accuracy.agreement(str(table))
    picture = accuracy.figure(found, bound=True)
    (measured_s, bound_time_s), *_ = [point for points in found.bounds.values() for point in points]
    assert bound_time_s > measured_s  # the point is above the line
    assert "no point is above" not in picture.subtitle
    assert ("no row is faster than its bound by more than 2 %" in picture.subtitle) is not beaten
    assert ("1 of 1 rows are faster" in picture.subtitle) is beaten


def test_runs_of_a_gpu_that_is_not_drawn_are_counted() -> None:
    kept = runs("h200", [memwall.gpu("a100")], [])
    assert kept.found == []
    assert list(kept.left_out) == ["of h200, which is not drawn"]


@pytest.mark.parametrize(
    "command",
    [
        "roofline --op gemv",
        "decode --model llama3-8b --batch 1:8",
        "memory --model llama3-8b",
        "hierarchy",
    ],
)
def test_a_what_if_stands_in_title_and_notes(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    changed = ["--set", "memory.bandwidth_gb_per_s=9000"]
    assert run(["plot", *command.split(), "--gpu", "h100", *changed]) == 0
    out = capsys.readouterr().out
    assert ", what if" in out.splitlines()[0]
    assert "What if: memory.bandwidth_gb_per_s = 9000" in out
    assert "published" not in out


def test_an_operators_own_format_has_its_roof() -> None:
    h100 = memwall.gpu("h100")
    reports, _ = reports_of(["gemm:m=8192,n=8192,k=8192,dtype=fp8"], [h100], "bf16")
    for dtypes in ([], ["bf16"]):
        picture = roofline.figure([h100], reports, dtypes=dtypes)
        roofs = {curve.points[0][1] for curve in picture.curves if curve.points[0][1] == curve.points[1][1]}
        assert reports[0].bound.attainable_flops_per_s in roofs


def test_formats_and_operators_that_a_gpu_lacks_are_in_the_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    svg = tmp_path / "plot.svg"
    args = ["--gpu", "a100,h100", "--dtype", "bf16,fp8", "--op", "gemm:m=64,n=64,k=64,dtype=fp8"]
    assert run(["plot", "roofline", *args, "-o", str(svg)]) == 0
    text = svg.read_text()
    assert "a100 has no roof of fp8: " in text
    assert "gemm on a100: " in text
    assert "--op gemm:...,dtype=" in capsys.readouterr().err
    assert run(["plot", "roofline", "--gpu", "a100", "--dtype", "fp8"]) == 4
    assert "no fp8 matrix path" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ("--op gemm", "gemm needs m, n, k. For example: --op gemm:m=4096,n=4096,k=4096"),
        ("--op gemm:q=4", "gemm has no q. Its shape is m, n, k"),
        ("--op gemm:m=0,n=4,k=4", "Write it like --op gemm:m=4096"),
        ("--op attention:heads=3,kv_heads=2,head_dim=128,seq=4", "try kv_heads=1"),
        ("--op gemv -o plot.jpg", "'.jpg' is no format of pictures here, .svg, .png, .pdf, .txt are"),
        ("--op gemv -o plot", "no ending"),
        ("--op gemv -o .", "is a folder. Name a file in it: -o ./plot.svg"),
        ("--measured a100", "--measured h200"),
    ],
)
def test_hints_are_in_the_words_of_a_picture(
    args: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["plot", "roofline", *args.split()]) in (2, 3)
    err = capsys.readouterr().err
    assert said in err
    assert "--replay" not in err


def test_help_says_that_one_gpu_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plot", "traffic", "--help"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "one GPU, by name or file" in out


def test_a_folder_of_tables_is_measured_too(tmp_path: Path) -> None:
    (tmp_path / "h100.csv").write_text(HEAD + GOOD)
    assert len(runs(str(tmp_path), [memwall.gpu("h100")], []).found) == 1
