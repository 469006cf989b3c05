"""A calibration of the user's own: it serves the GPUs that it names, and no other."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

import memwall
from memwall import hardware
from memwall.cli import run
from memwall.errors import UsageError
from memwall.verify.case import Trial
from memwall.verify.estimates import estimator

FILE = """name: h200
gpus: [h200]
fits:
  - family: elementwise
    format: any
    rows: 40
    error_p50: 0.01
    error_p90: 0.03
    constants: {launch_us: 50, bandwidth_share: 0.5, warm_bytes_per_clock: 32, reread: 0,
      resident_rows: 16, row_clocks: 0, element_clocks: 0, serial_clocks: 0, short_clocks: 0,
      short_serial_clocks: 0, first_us: 0, short_row: 1024, sharpness: 3}
"""
COPY = ["--op", "copy", "--rows", "8192", "--cols", "8192", "--json"]


@pytest.fixture
def mine(tmp_path: Path) -> str:
    path = tmp_path / "mine.yaml"
    path.write_text(FILE)
    return str(path)


def test_of_several_gpus_only_the_named_one_takes_it(mine: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["roofline", *COPY, "--gpu", "h200,mi300x"]) == 0
    plain = json.loads(capsys.readouterr().out)["results"]
    assert run(["roofline", *COPY, "--gpu", "h200,mi300x", "--calibration", mine]) == 0
    own = json.loads(capsys.readouterr().out)["results"]
    assert own[0] != plain[0]
    assert own[1] == plain[1]


@pytest.mark.parametrize(
    "line",
    [
        "roofline --op copy --rows 64 --cols 64 --gpu mi300x",
        "roofline --op copy --rows 64 --cols 64 --gpu mi300x,h100",
        "attention --heads 8 --head-dim 128 --seq 1024 --gpu mi300x",
        "step --model llama3-8b --context 1024 --gpu mi300x",
        "step --model llama3-8b --context 1024 --gpu mi300x,h100",
        "verify --replay h200 --gpu h100",
    ],
)
def test_a_calibration_of_another_gpu_is_refused(
    line: str, mine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*line.split(), "--calibration", mine]) == 2
    assert "is of h200, not of" in capsys.readouterr().err


def test_from_python_too(mine: str) -> None:
    with pytest.raises(UsageError, match="is of h200, not of mi300x"):
        memwall.roofline("copy", gpu="mi300x", calibration=mine, rows=64, cols=64)
    trial = Trial("library.copy", "copy", {"rows": 64, "cols": 64})
    with pytest.raises(UsageError, match="is of h200, not of h100"):
        estimator(mine)(trial, hardware.load("h100"))


def test_a_table_takes_it_row_by_row(mine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "cases.csv"
    table.write_text("gpu,op,rows,cols\nh200,copy,8192,8192\nmi300x,copy,8192,8192\n")
    assert run(["predict", str(table)]) == 0
    plain = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert run(["predict", str(table), "--calibration", mine]) == 0
    own = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert (own[0]["basis"], own[0]["error_p50"]) == ("calibrated: h200", "0.01")
    assert own[0]["estimate_us"] != plain[0]["estimate_us"]
    assert own[1] == plain[1]
    table.write_text("gpu,op,rows,cols\nmi300x,copy,8192,8192\n")
    assert run(["predict", str(table), "--calibration", mine]) == 2
    assert "is of h200, not of mi300x" in capsys.readouterr().err


def test_a_file_of_an_earlier_version_is_still_taken(
    mine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head, _, _ = FILE.partition("    constants:")
    path = tmp_path / "older.yaml"
    path.write_text(
        f"{head}    constants: {{launch_us: 50, bandwidth_share: 0.5, warm_gain: 1, passes: 1,\n"
        "      row_clocks: 0, element_clocks: 0, serial_clocks: 0, short_share: 0, sharpness: 3}\n"
    )
    assert run(["roofline", *COPY, "--gpu", "h200", "--calibration", mine]) == 0
    new = json.loads(capsys.readouterr().out)
    assert run(["roofline", *COPY, "--gpu", "h200", "--calibration", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["estimate_time_s"] == new["estimate_time_s"]


def test_a_missing_file_is_said_to_be_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["roofline", *COPY, "--gpu", "h200", "--calibration", "nowhere.yaml"]) == 3
    said = capsys.readouterr().err
    assert "nowhere.yaml: no such file" in said
    assert "permissions" not in said
