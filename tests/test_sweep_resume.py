"""What befalls a sweep's file from outside: pipes, other runs, kills, full disks; and equal shares."""

from __future__ import annotations

import errno
import importlib.util
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
from memwall.sweeps.lock import alone
from memwall.sweeps.plan import plan
from memwall.sweeps.planned import Planned, Spec
from memwall.sweeps.stream import File, Stopped

needs_arrow = pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="needs pyarrow")
COMMAND = ["sweep", "--op", "gemm", "--m", "1:1000", "--n", "4096,8192", "--k", "64"]


def sweep() -> Planned:
    return plan(Spec("gemm", {"gpu": ("h100", "h200")}, {"m": "1:100", "n": "8:80:8", "k": "64"}, {}))


def whole(tmp_path: Path) -> str:
    path = tmp_path / "whole" / "out.csv"
    path.parent.mkdir()
    made = sweep()
    File(made, range(made.grid.count), str(path), "csv").run(lambda _: None)
    return path.read_text()


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids, "BLOCK_POINTS", 130)


def test_a_pipe_is_written_as_it_stands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(path.read_text()))
    reader.start()
    assert run([*COMMAND, "--format", "csv", "-o", str(path)]) == 0
    reader.join(10)
    assert path.is_fifo()
    assert os.listdir(tmp_path) == ["pipe"]
    assert run([*COMMAND, "--format", "csv"]) == 0
    assert read == [capsys.readouterr().out]
    for more, said in ((["--resume"], "Leave out --resume"), (["--format", "parquet"], "goes to a file")):
        if more[-1] != "parquet" or importlib.util.find_spec("pyarrow"):
            assert run([*COMMAND, "--format", "csv", "-o", str(path), *more]) == 2
            assert said in capsys.readouterr().err


def test_a_full_device_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is no file keeps its inode; here a file that says it is none."""
    path = tmp_path / "device"
    path.write_text("")
    before = path.stat().st_ino

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    isfile = os.path.isfile
    monkeypatch.setattr(os.path, "isfile", lambda name: name != str(path) and isfile(name))
    monkeypatch.setattr(files.Lines, "write", full)
    assert run([*COMMAND, "--format", "csv", "-o", str(path)]) == 2
    assert "No space left" in capsys.readouterr().err
    assert (path.stat().st_ino, os.listdir(tmp_path)) == (before, ["device"])


def test_stdout_by_its_name_is_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*COMMAND, "--format", "csv", "-o", "/dev/stdout"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2001


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    target.write_text("old")
    link.symlink_to(target)
    assert run([*COMMAND, "-o", str(link)]) == 0
    assert link.is_symlink()
    assert len(target.read_text().splitlines()) == 2001
    assert sorted(os.listdir(tmp_path)) == ["link.csv", "target.csv"]


def test_two_runs_do_not_write_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "out.csv"
    with alone(str(tmp_path / "out.partial.csv")):
        assert run([*COMMAND, "-o", str(path)]) == 2
    said = capsys.readouterr().err
    assert "another sweep is writing" in said
    assert "-o out-2.csv" in said
    assert os.listdir(tmp_path) == []
    (tmp_path / "out.partial.csv.lock").write_text("")  # of a run that was killed
    assert run([*COMMAND, "-o", str(path)]) == 0
    assert os.listdir(tmp_path) == ["out.csv"]


def test_a_lock_without_the_systems_help(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memwall.sweeps.lock.fcntl", None)
    with alone(str(tmp_path / "x")), pytest.raises(UsageError, match="If it was killed, delete"):  # noqa: SIM117
        with alone(str(tmp_path / "x")):
            pass
    assert os.listdir(tmp_path) == []


KILLED = """
import os, signal, sys
from memwall.sweeps import grid, stream
from memwall.sweeps.plan import plan
from memwall.sweeps.planned import Spec
grid.BLOCK_POINTS, stream.KEPT_EVERY_S = 130, 0.0
made = plan(Spec("gemm", {"gpu": ("h100", "h200")}, {"m": "1:100", "n": "8:80:8", "k": "64"}, {}))
def seen(points):
    if points >= 600:
        os.kill(os.getpid(), signal.SIGKILL)
stream.File(made, range(made.grid.count), sys.argv[1], sys.argv[2]).run(seen)
"""


def killed(path: Path, form: str) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(path), form], check=False)
    assert done.returncode == -9


def test_a_run_that_was_killed_is_gone_on_from(tmp_path: Path) -> None:
    every = whole(tmp_path)
    path = tmp_path / "out.csv"
    killed(path, "csv")
    assert len((tmp_path / "out.partial.csv").read_text().splitlines()) > 500
    seen: list[int] = []
    made = sweep()
    File(made, range(made.grid.count), str(path), "csv").run(seen.append, resume=True)
    assert 500 < seen[0] < 900
    assert path.read_text() == every
    assert sorted(os.listdir(tmp_path)) == ["out.csv", "whole"]


def test_what_is_shorter_than_noted_is_not_gone_on_from(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    killed(path, "csv")
    (tmp_path / "out.partial.csv").write_text("gpu")
    made = sweep()
    with pytest.raises(FileError, match="nothing to resume"):
        File(made, range(made.grid.count), str(path), "csv").run(lambda _: None, resume=True)


@needs_arrow
def test_parquet_that_was_killed_says_what_survives(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    killed(path, "parquet")
    made = sweep()
    with pytest.raises(FileError, match=r"no footer.*\.csv and \.jsonl survive"):
        File(made, range(made.grid.count), str(path), "parquet").run(lambda _: None, resume=True)


@needs_arrow
def test_parquet_goes_on_after_a_kill_of_the_run_that_went_on(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    path, made = tmp_path / "out.parquet", sweep()

    def stop(points: int) -> None:
        if points >= 600:
            os.kill(os.getpid(), 2)

    with pytest.raises(Stopped):
        File(made, range(made.grid.count), str(path), "parquet").run(stop)
    (tmp_path / "out.partial.parquet").rename(tmp_path / "out.partial.parquet.before")
    (tmp_path / "out.partial.parquet").write_text("torn")
    File(made, range(made.grid.count), str(path), "parquet").run(lambda _: None, resume=True)
    assert pq.read_metadata(path).num_rows == made.grid.points
    assert os.listdir(tmp_path) == ["out.parquet"]


def test_a_disk_that_fills_up_keeps_what_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, write, calls = tmp_path / "out.csv", files.Lines.write, []

    def fills(lines: files.Lines, rows: Any) -> None:
        calls.append(rows)
        if len(calls) == 4:
            lines._put("torn")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(lines, rows)

    monkeypatch.setattr(files.Lines, "write", fills)
    assert run([*COMMAND, "-o", str(path)]) == 2
    said = capsys.readouterr().err
    assert "Make room, and go on with: memwall" in said
    assert "--resume" in said
    assert "torn" not in (tmp_path / "out.partial.csv").read_text()
    assert run([*COMMAND, "-o", str(path), "--resume"]) == 0
    assert len({*path.read_text().splitlines()}) == 2001


def test_a_small_sweep_is_measured_where_the_disk_is_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1000})())
    assert run([*COMMAND, "-o", str(tmp_path / "out.csv")]) == 2
    said = capsys.readouterr().err
    assert "2,000 points take about" in said
    assert "of 1 kB free" in said
    assert "hours" not in said
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("form", ["csv", "jsonl", pytest.param("parquet", marks=needs_arrow)])
def test_a_file_that_is_whole_already_is_left_alone(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"out.{form}"
    line = [*COMMAND, "-o", str(path)]
    assert run(line) == 0
    before = path.stat().st_ino, path.stat().st_mtime_ns
    capsys.readouterr()
    assert run([*line, "--resume"]) == 0
    assert "already complete: 2,000 rows" in capsys.readouterr().err
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == before
    others = (["--k", "65"], ["--m", "1:999"], ["--where", "m > 0"], ["--gpu", "h200"], ["--shard", "1/2"])
    for other in others:  # of other sweeps, and of conditions nobody knows how many rows they have
        assert run([*line, *other, "--resume"]) == 3
        assert "nothing to resume" in capsys.readouterr().err
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == before


@pytest.mark.parametrize(("points", "shares"), [(64, 4), (1000, 7), (3, 5)])
def test_shares_of_a_small_sweep_are_equal(
    points: int, shares: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(grids, "BLOCK_POINTS", 65_536)
    line = ["sweep", "--op", "gemm", "--m", f"1:{points}", "--n", "8", "--k", "8", "--format", "csv"]
    assert run(line) == 0
    every = capsys.readouterr().out.splitlines()
    parts = []
    for share in range(1, shares + 1):
        assert run([*line, "--shard", f"{share}/{shares}"]) == 0
        printed = capsys.readouterr()
        parts.append(printed.out.splitlines()[1:])
        assert ("no points" in printed.err) == (not parts[-1])
    assert [row for part in parts for row in part] == every[1:]
    block = max(1, points // (16 * shares))
    assert all(abs(len(part) - points / shares) <= block for part in parts)


def test_a_share_without_points_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["sweep", "--op", "gemm", "--m", "1", "--n", "8", "--k", "8"]
    said = [
        (run([*line, "--shard", share]), "this share has no points" in capsys.readouterr().out)
        for share in ("1/2", "2/2")
    ]
    assert sorted(said) == [(0, False), (0, True)]


@needs_arrow
def test_a_share_without_points_is_no_parquet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["sweep", "--op", "gemm", "--m", "1", "--n", "8", "--k", "8", "-o", str(tmp_path / "out.parquet")]
    assert sorted(run([*line, "--shard", share]) for share in ("1/2", "2/2")) == [0, 4]
    assert "Cut into fewer shares" in capsys.readouterr().err


@needs_arrow
def test_a_full_disk_says_what_parquet_does_not_keep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files.Parquet, "flush", full)
    assert run([*COMMAND, "-o", str(tmp_path / "out.parquet"), "--yes"]) == 2
    assert "Make room and begin anew" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


def test_more_points_than_a_machine_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    huge = ["sweep", "--op", "gemm", "--m", "1:1e15", "--n", "1:1e15", "--k", "1:1e15"]
    for more in (["-o", str(tmp_path / "h.csv")], ["--best", "flops"], ["--shard", "2/3", "--format", "csv"]):
        assert run([*huge, *more]) == 2
        said = capsys.readouterr().err
        assert "points take about a million years or more" in said
        assert "--yes" in said


def test_one_year_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from memwall.cli import sweep_run

    assert [sweep_run._long(hours) for hours in (1.2, 5, 24 * 365.0, 1e6)] == [
        "1 hour", "5 hours", "1 year", "114 years",
    ]  # fmt: skip
    assert stream.KEPT_EVERY_S < 5
