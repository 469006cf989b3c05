"""Runs that end badly, or meet: killed, out of room, two at once, to what is no file; and equal shares."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from memwall.cli import run
from memwall.errors import FileError, UsageError
from memwall.sweeps import files, stream
from memwall.sweeps import grid as grids
from memwall.sweeps.grid import Grid, blocks_of
from memwall.sweeps.place import alone
from memwall.sweeps.plan import plan
from memwall.sweeps.planned import Planned, Spec
from memwall.sweeps.ranges import parse_axis
from memwall.sweeps.stream import File

ROOT = Path(__file__).parent.parent
GEMM = ["sweep", "--op", "gemm", "--n", "8", "--k", "8", "--m"]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids, "BLOCK_POINTS", 100)


def sweep() -> Planned:
    words = {"gpu": ("h100",), "dtype": ("bf16",)}
    return plan(Spec("gemm", words, {"m": "1:1000", "n": "8", "k": "8"}, {}))


def whole(tmp_path: Path) -> bytes:
    path = tmp_path / "whole.csv"
    File(sweep(), range(10), str(path), "csv").run(lambda _: None)
    text = path.read_bytes()
    path.unlink()
    return text


KILLED = """
import os
from memwall.sweeps import grid, stream
from memwall.sweeps.plan import plan
from memwall.sweeps.planned import Spec
grid.BLOCK_POINTS, stream.KEPT_EVERY_S = 100, 0.0
words = {"gpu": ("h100",), "dtype": ("bf16",)}
made = plan(Spec("gemm", words, {"m": "1:1000", "n": "8", "k": "8"}, {}))
stream.File(made, range(10), "out.csv", "csv").run(lambda done: done > 600 and os.kill(os.getpid(), 9))
"""


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_killed_run_is_gone_on_from(tmp_path: Path) -> None:
    text = whole(tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", KILLED], cwd=tmp_path, env=environment, check=False, timeout=60
    )
    assert done.returncode == -9
    path = tmp_path / "out.csv"
    assert not path.exists()
    with (tmp_path / "out.partial.csv").open("ab") as partial:
        partial.write(b"h100,gemm,7")  # a line that was torn off
    seen: list[int] = []
    File(sweep(), range(10), str(path), "csv").run(seen.append, resume=True)
    assert seen[0] == 700  # the seventh block was written, and not noted
    assert path.read_bytes() == text
    assert os.listdir(tmp_path) == ["out.csv"]


def test_a_disk_that_fills_leaves_what_can_be_gone_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = whole(tmp_path)
    path = tmp_path / "out.csv"
    write = files.Lines.write
    written: list[int] = []

    def filling(self: files.Lines, rows: Any) -> None:
        written.append(rows.length)
        if sum(written) > 400:
            self._put("half a li")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(self, rows)

    with monkeypatch.context() as patched:
        patched.setattr(files.Lines, "write", filling)
        patched.setattr(sys, "argv", ["memwall", *GEMM, "1:1000", "-o", str(path)])
        assert run([*GEMM, "1:1000", "-o", str(path)]) == 2
    assert "No space left on device. Make room, and go on with: memwall sweep" in capsys.readouterr().err
    assert (tmp_path / "out.partial.csv").read_bytes() == b"".join(text.splitlines(True)[:401])
    assert run([*GEMM, "1:1000", "-o", str(path), "--resume"]) == 0
    assert path.read_bytes() == text


def test_one_run_alone_writes_a_file(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    path = tmp_path / "out.csv"
    with alone(str(tmp_path / "out.partial.csv")):
        for resume in (False, True):
            with pytest.raises(UsageError, match="another sweep is writing it"):
                File(sweep(), range(10), str(path), "csv").run(lambda _: None, resume)
    assert os.listdir(tmp_path) == []
    File(sweep(), range(10), str(path), "csv").run(lambda _: None)
    assert os.listdir(tmp_path) == ["out.csv"]


def test_what_there_is_to_resume_is_said(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    file = File(sweep(), range(10), str(path), "csv")
    with pytest.raises(FileError, match="there is nothing to resume"):
        file.run(lambda _: None, resume=True)
    file.run(lambda _: None)
    with pytest.raises(FileError, match="is whole: there is nothing to resume"):
        file.run(lambda _: None, resume=True)
    path.unlink()
    (tmp_path / "out.partial.csv").write_text("gpu,op\n")
    with pytest.raises(FileError, match="killed before it had noted"):
        file.run(lambda _: None, resume=True)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a fifo")
def test_what_is_no_file_is_written_as_it_stands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fifo, read = tmp_path / "pipe.csv", []
    os.mkfifo(fifo)
    reader = threading.Thread(target=lambda: read.append(fifo.read_bytes()))
    reader.start()
    assert run([*GEMM, "1:1000", "-o", str(fifo)]) == 0
    reader.join(30)
    assert read == [whole(tmp_path)]
    assert fifo.is_fifo()
    assert os.listdir(tmp_path) == ["pipe.csv"]
    assert run([*GEMM, "1:1000", "-o", str(fifo), "--format", "parquet"]) in (2, 4)  # 4: without pyarrow
    capsys.readouterr()


@pytest.mark.parametrize(("points", "shares"), [(64, 4), (1000, 7), (12_345, 16), (5, 8), (1, 1)])
def test_shares_are_alike(points: int, shares: int) -> None:
    axis = parse_axis(f"1:{points}", "m", "--m")
    coarse = Grid({"gpu": ("h100", "h200")}, (axis,), 65_536)
    fine = Grid(coarse.words, coarse.axes, coarse.cut_for(shares))
    sizes = [
        sum(fine.block(number).points for number in fine.shard(index, shares))
        for index in range(1, shares + 1)
    ]
    assert sum(sizes) == 2 * points
    assert max(sizes) - min(sizes) <= max(1, 2 * points / shares / 10)


def test_a_share_without_points_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*GEMM, "1:4", "--shard", "1/9"]) == 0
    assert "this share has no points" in capsys.readouterr().out
    assert run([*GEMM, "1:4", "--where", "m > 9"]) == 0
    assert "no row meets the condition" in capsys.readouterr().out


def test_more_blocks_than_64_bits_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert blocks_of(range(10**40)) == 10**40
    huge = ["sweep", "--op", "gemm", "--m", "1:1e15", "--n", "1:1e15", "--k", "1:1e15"]
    assert run([*huge, "-o", str(tmp_path / "out.csv")]) == 2
    said = capsys.readouterr().err
    assert "1e+45 points take about" in said
    assert "or say --yes" in said


def test_several_conditions_are_one(capsys: pytest.CaptureFixture[str]) -> None:
    words = [*GEMM, "1:9", "--format", "csv", "--where", "m > 2 or m == 1", "--where", "m < 4"]
    assert run(words) == 0
    rows = capsys.readouterr().out.splitlines()[1:]
    assert [row.split(",")[2] for row in rows] == ["1", "3"]


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("m = 4", "'m == 4'"),
        ("m > 4 && n > 2 || k < 1", "'m > 4 and n > 2 or k < 1'"),
        ("traffic_bytes > 33.6MB", "SI units"),
        ("m in (4, 8)", "m == 4 or m == 8"),
        ("regime == memory-bound", 'regime == "memory-bound"'),
        ('regime == "memory_bound"', "memory-bound or compute-bound"),
        ('"h200" == gpu', "It is h100"),
        ("estimate_time_s < 1", "Add --estimate"),
        ("", "no condition"),
    ],
)
def test_a_slip_in_a_condition_is_put_right(
    condition: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*GEMM, "1:4", "--where", condition]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("typed", "said"), [("1:0", "Try --m 0:1"), ("10:1:-2", "Try --m 1:10:2")])
def test_a_range_that_runs_backwards_is_turned(
    typed: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*GEMM, typed]) == 2
    assert said in capsys.readouterr().err
    assert run([*GEMM, said.rpartition(" ")[2]]) == 0


def test_notes_are_kept_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "KEPT_EVERY_S", 0.0)
    note = tmp_path / "out.partial.csv.resume"
    there: list[bool] = []
    File(sweep(), range(10), str(tmp_path / "out.csv"), "csv").run(lambda _: there.append(note.exists()))
    assert there == [False, *[True] * 9]
    assert not note.exists()
