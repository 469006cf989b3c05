"""Where `-o` names what is open or no file: stdout by another name, a descriptor, a pipe."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from memwall.cli import run

ROOT = Path(__file__).parent.parent
LINES = ["roofline --op gemv --json", "plot roofline --op gemv --format svg"]


@pytest.mark.skipif(not os.path.exists("/dev/fd/1"), reason="needs /dev/fd")
@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize(("name", "through"), [("/dev/stdout", ""), ("/dev/fd/1", ""), ("/dev/fd/3", "3>&1")])
def test_what_is_open_is_written_as_it_stands(line: str, name: str, through: str) -> None:
    def piped(options: str) -> str:
        done = subprocess.run(
            ["sh", "-c", f"{sys.executable} -m memwall {line} -o {options}"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert done.stderr == ""
        return done.stdout

    assert piped(f"{name} {through}") == piped("-")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a fifo")
@pytest.mark.parametrize("line", LINES)
def test_a_pipe_stays_a_pipe(line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*line.split(), "-o", "-"]) == 0
    expected = capsys.readouterr().out
    fifo, read = tmp_path / "pipe", []
    os.mkfifo(fifo)
    reader = threading.Thread(target=lambda: read.append(fifo.read_text()))
    reader.start()
    assert run([*line.split(), "-o", str(fifo)]) == 0
    reader.join(30)
    assert read == [expected]
    assert fifo.is_fifo()
    assert os.listdir(tmp_path) == ["pipe"]
