"""A sweep's files: whole or not at all under their names, readable when stopped, gone on from."""

from __future__ import annotations

import csv
import errno
import importlib.util
import json
import os
import signal
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memwall.cli import run
from memwall.errors import FileError, UsageError
from memwall.sweeps import files
from memwall.sweeps import grid as grids
from memwall.sweeps.plan import plan
from memwall.sweeps.planned import Planned, Spec
from memwall.sweeps.stream import File, Stopped

ARROW = importlib.util.find_spec("pyarrow") is not None
FORMS = ["csv", "jsonl", pytest.param("parquet", marks=pytest.mark.skipif(not ARROW, reason="needs pyarrow"))]
COMMAND = ["sweep", "--op", "gemm", "--m", "1:1000", "--n", "4096,8192", "--k", "64"]


def sweep() -> Planned:
    spec = Spec("gemm", {"gpu": ("h100", "h200")}, {"m": "1:100", "n": "8:80:8", "k": "64"}, {})
    return plan(spec)


def written(path: Path, form: str) -> list[dict[str, Any]]:
    if form == "parquet":
        import pyarrow.parquet

        return list(pyarrow.parquet.read_table(path).to_pylist())
    if form == "jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    with path.open(newline="") as file:
        return [{k: v if k in TEXTS else float(v) for k, v in row.items()} for row in csv.DictReader(file)]


TEXTS = ("gpu", "op", "dtype", "regime", "limited_by")


def expected() -> list[dict[str, Any]]:
    made = sweep()
    every = [made.rows(number) for number in range(made.grid.count)]
    return [record for rows in every if rows for record in rows.records()]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids, "BLOCK_POINTS", 130)


def stop_after(points: int, how: Callable[[], None]) -> Callable[[int], None]:
    def seen(done: int) -> None:
        if done >= points:
            how()

    return seen


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("form", FORMS)
def test_a_file_has_every_row(form: str, tmp_path: Path) -> None:
    path = tmp_path / f"out.{form}"
    made = sweep()
    done = File(made, range(made.grid.count), str(path), form).run(lambda _: None)
    assert done.rows == done.points == made.grid.points == 2000
    assert written(path, form) == expected()
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_can_be_read_and_gone_on_from(form: str, number: int, tmp_path: Path) -> None:
    path = tmp_path / f"out.{form}"
    made = sweep()
    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    for stop in (500, 1200):
        file = File(sweep(), range(made.grid.count), str(path), form)
        with pytest.raises(Stopped) as stopped:
            file.run(stop_after(stop, lambda: os.kill(os.getpid(), number)), resume=stop > 500)
        partial = tmp_path / f"out.partial.{form}"
        assert stopped.value.path == str(partial)
        assert not path.exists()
        rows = written(partial, form)
        assert stop <= len(rows) == stopped.value.points < stop + 130
        assert rows == expected()[: len(rows)]
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == handlers
    File(sweep(), range(made.grid.count), str(path), form).run(lambda _: None, resume=True)
    assert written(path, form) == expected()
    assert os.listdir(tmp_path) == [path.name]


def test_what_was_torn_off_in_the_middle_is_written_again(tmp_path: Path) -> None:
    path, made = tmp_path / "out.csv", sweep()
    file = File(made, range(made.grid.count), str(path), "csv")
    with pytest.raises(Stopped):
        file.run(stop_after(500, interrupt))
    with (tmp_path / "out.partial.csv").open("a") as partial:  # a crash writes beyond what was noted
        partial.write("h100,gemm,77,")
    File(sweep(), range(made.grid.count), str(path), "csv").run(lambda _: None, resume=True)
    assert written(path, "csv") == expected()


def test_another_sweep_is_not_gone_on_with(tmp_path: Path) -> None:
    path, made = tmp_path / "out.csv", sweep()
    with pytest.raises(FileError, match="nothing to resume"):
        File(made, range(made.grid.count), str(path), "csv").run(lambda _: None, resume=True)
    with pytest.raises(Stopped):
        File(made, range(made.grid.count), str(path), "csv").run(stop_after(500, interrupt))
    other = plan(made.spec._replace(where="m > 3"))
    with pytest.raises(UsageError, match="another sweep"):
        File(other, range(other.grid.count), str(path), "csv").run(lambda _: None, resume=True)
    assert (tmp_path / "out.partial.csv").exists()


@pytest.mark.parametrize("form", FORMS)
def test_a_full_disk_leaves_no_file_and_says_so(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files.Parquet if form == "parquet" else files.Lines, "write", full)
    path = tmp_path / f"out.{form}"
    assert run([*COMMAND, "-o", str(path)]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_disk_that_is_full_is_met_by_a_real_write(tmp_path: Path) -> None:
    made = sweep()
    os.symlink("/dev/full", tmp_path / "out.partial.csv")
    with pytest.raises(OSError, match="No space left"):
        File(made, range(made.grid.count), str(tmp_path / "out.csv"), "csv").run(lambda _: None)
    assert os.listdir(tmp_path) == []


def test_memory_does_not_grow_with_the_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids, "BLOCK_POINTS", 2048)

    def peak(rows: int) -> int:
        made = plan(Spec("gemm", {"gpu": ("h100",)}, {"m": f"1:{rows}", "n": "64", "k": "64"}, {}))
        tracemalloc.start()
        File(made, range(made.grid.count), str(tmp_path / "out.csv"), "csv").run(lambda _: None)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(4096)  # what is imported once
    assert peak(65_536) < 1.2 * peak(8192)


def test_shards_together_are_the_whole(tmp_path: Path) -> None:
    parts = []
    for index in range(1, 6):
        path = tmp_path / f"part-{index}.csv"
        assert run([*COMMAND, "-o", str(path), "--shard", f"{index}/5"]) == 0
        parts.append(path.read_text().splitlines())
    assert run([*COMMAND, "-o", str(tmp_path / "all.csv")]) == 0
    every = (tmp_path / "all.csv").read_text().splitlines()
    assert [parts[0][0], *(line for part in parts for line in part[1:])] == every
    assert len(every) == 2001


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["sweep", "--op", "gemm"], 2, "needs a range"),
        (
            ["sweep", "--op", "gemm", "--m", "1:8"],
            2,
            "gemm needs --n, --k. For example: memwall sweep --op gemm --m",
        ),
        (["sweep", "tile", "--op", "gemm", "--m", "8"], 2, "memwall sweep tile --op gemm --m"),
        (["sweep", "--op", "gemm", "--m", "8:1", "--n", "1", "--k", "1"], 2, "Try --m 1:8"),
        (["sweep", "--op", "gemm", "--m", "", "--n", "1", "--k", "1"], 2, "empty"),
        (["sweep", "--op", "gem", "--m", "1"], 2, "or gemm?"),
        (["sweep", "--m", "1"], 2, "--op OP"),
        (["sweep", "stop", "--m", "1"], 2, "not of 'stop'. Did you mean step?"),
        (["sweep", "step", "--model", "llama3-8b", "--m", "1"], 2, "memwall sweep step has no flag '--m'"),
        (["sweep", "step", "--model", "llama3-8b", "--batch", "1:4"], 2, "which pass"),
        (["sweep", "step", "--batch", "1:4"], 2, "needs --model"),
        ([*COMMAND, "--phase", "decode"], 2, "memwall sweep has no flag '--phase'"),
        ([*COMMAND, "--weight-dtype", "fp9"], 2, "unknown dtype"),
        ([*COMMAND, "--kv-dtype", "fp8"], 2, "no tensor that --kv-dtype"),
        ([*COMMAND, "--gpu", "v100"], 4, "no bf16 matrix path"),
        ([*COMMAND, "--gpu", "h100,h10"], 2, "unknown GPU"),
        ([*COMMAND, "--shard", "6/5", "-o", "x.csv"], 2, "--shard takes I/N"),
        ([*COMMAND, "--resume"], 2, "--resume goes on with a file"),
        ([*COMMAND, "-o", "nowhere/out.csv"], 2, "No such file or directory"),
        ([*COMMAND, "-o", "."], 2, "which format"),
        ([*COMMAND, "-o", "out.txt"], 2, "'.txt' is no format. Endings: .csv"),
        ([*COMMAND, "--format", "parquet"], 2, "goes to a file"),
        ([*COMMAND], 2, "more than 200 rows are too many for a page"),
        ([*COMMAND, "--where", "m >"], 2, "no condition"),
        ([*COMMAND, "--best", "regime"], 2, "no number"),
        ([*COMMAND, "--best", "fits"], 2, "no column 'fits'"),
        ([*COMMAND, "--top", "3"], 2, "--top says how many of the best rows"),
        ([*COMMAND, "--dtype", "bf16,fp9"], 2, "unknown dtype"),
        ([*COMMAND, "--library", "nobody"], 2, "unknown library"),
    ],
)
def test_what_cannot_be_meant_is_said(
    args: list[str],
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(args) == code
    assert said in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


def test_a_sweep_of_years_is_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(grids, "BLOCK_POINTS", 4096)
    huge = ["sweep", "--op", "gemm", "--m", "1:1e5", "--n", "1:1e5", "--k", "1:1e5"]
    assert run([*huge, "-o", str(tmp_path / "out.csv")]) == 2
    said = capsys.readouterr().err
    assert "1,000,000,000,000,000 points take about" in said
    assert "years" in said
    assert "PB of" in said
    assert "--yes" in said
    assert os.listdir(tmp_path) == []
    for more in (["--best", "flops"], ["--format", "csv"], ["--where", "m < 0"]):
        assert run([*huge, *more]) == 2
        said = capsys.readouterr().err
        assert "points take about" in said
        assert "free" not in said


def test_rows_go_to_a_pipe_as_they_come(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*COMMAND, "--format", "csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2001
    assert run([*COMMAND, "--format", "jsonl", "--where", "m == 7"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["n"] for row in rows] == [4096, 8192]
    single = ["roofline", "--op", "gemm", "--m", "7", "--n", "8192", "--k", "64", "--json"]
    assert run(single) == 0
    report = json.loads(capsys.readouterr().out)
    assert all(report[name] == rows[1][name] for name in rows[1] if name in report)


def test_what_is_left_out_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    attention = ["sweep", "--op", "attention", "--heads", "8", "--kv-heads", "1:8", "--head-dim", "64"]
    assert run([*attention, "--seq", "512", "--gpu", "v100,h100", "--json"]) == 0
    printed = capsys.readouterr()
    assert [row["kv_heads"] for row in json.loads(printed.out)["results"]] == [1, 2, 4, 8]
    assert "4 points left out: NVIDIA V100" in printed.err
    assert "8 points left out: attention: 3 KV heads do not divide 8 heads" in printed.err


def test_progress_is_for_terminals_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from memwall.cli import progress

    monkeypatch.setattr(progress, "FIRST_AFTER_S", 0.0)
    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    assert run([*COMMAND, "-o", str(tmp_path / "out.csv")]) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert run([*COMMAND, "-o", str(tmp_path / "out.csv")]) == 0
    said = capsys.readouterr().err
    assert "points/s" in said
    assert "left" in said
    assert said.endswith(f"2,000 rows of 2,000 points: {tmp_path / 'out.csv'}\n")
