"""memwall calibrate --from-device without a device: its plan, its rows, the command with a fake worker."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
import yaml

import memwall
from memwall import hardware
from memwall.cli import run
from memwall.errors import FileError
from memwall.estimate import measurements
from memwall.estimate.predict import Prediction, predict
from memwall.verify import host
from memwall.verify.case import Trial
from memwall.verify.estimates import estimator
from memwall.verify.kernels.table import KERNELS
from memwall.verify.outcome import Outcome
from memwall.verify.predict import predict as must_cost
from memwall.verify.survey import LIBRARIES, MOST_CACHE_BYTES, survey, surveyed, table_of

H200 = hardware.load("h200")
FAKE = str(Path(__file__).with_name("fake_worker.py"))
SURVEY = Path(__file__).parents[1] / "configs" / "measurements" / "h200" / "survey.csv"
PLAN = survey()
MACHINE = {"gpu_name": "NVIDIA H200", "l2_bytes": 62914560}
COPY = Trial("library.copy", "copy", {"rows": 1024, "cols": 4096})
SMALL = [
    COPY._replace(kernel=f"library.{op}", op=op, dims={"rows": rows, "cols": 4096})
    for op in ("copy", "rmsnorm")
    for rows in (64, 256, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)
]


def ran(trial: Trial, time_s: float, sets: int = 256) -> Outcome:
    time = {"p20_s": time_s, "p50_s": time_s, "p80_s": time_s, "sets": sets}
    return Outcome(trial, "ok", "", 0.001, 0.01, time)


def test_the_survey_spans_what_estimates_are_of() -> None:
    assert len({trial.name for trial in PLAN}) == len(PLAN)
    assert {trial.kernel for trial in PLAN} <= set(KERNELS)
    assert all(trial.kernel.startswith("library.") and not trial.warm for trial in PLAN)
    products = [trial for trial in PLAN if trial.op == "gemm"]
    for side in ("m", "n", "k"):
        sizes = {trial.dims[side] for trial in products}
        assert (min(sizes), max(sizes)) == (1, 8192)
    attention = [trial for trial in PLAN if trial.op == "attention"]
    assert {trial.dims["seq_q"] == 1 for trial in attention} == {True, False}
    for kernel in ("library.flash2", "library.cudnn"):
        assert {trial.causal for trial in attention if trial.kernel == kernel} == {True, False}
    assert {trial.op for trial in PLAN} >= {"copy", "add", "gelu", "rmsnorm", "layernorm", "softmax"}
    for op in {trial.op for trial in PLAN}:
        assert {trial.dtype for trial in PLAN if trial.op == op} == {"bf16", "fp16"}


def test_the_survey_is_small_enough_for_a_gpu_of_24_gb() -> None:
    for trial in PLAN:
        assert must_cost(trial, H200).footprint_bytes * 2 < 24e9 / 2  # two sets in half of the memory
        if trial.op == "attention" and trial.dims["seq_q"] == 1:
            d = trial.dims
            cache_bytes = 2 * 2 * d["batch"] * d["kv_heads"] * d["seq_kv"] * d["head_dim"]
            assert cache_bytes <= MOST_CACHE_BYTES


def test_every_trial_becomes_a_row_that_says_the_same() -> None:
    found = surveyed([ran(trial, 0.5) for trial in PLAN], H200, MACHINE)
    assert not found.left_out
    reading = measurements.parse("x", table_of(found.rows))
    assert not reading.left_out
    assert len(reading.measured) == len(PLAN)
    for trial, (row, time_s) in zip(PLAN, reading.measured, strict=True):
        assert (row.device.name, row.op.name, row.dtype) == ("h200", trial.op, trial.dtype)
        assert {name: dict(row.dims)[name] for name in trial.dims} == dict(trial.dims)
        assert row.causal == trial.causal
        assert str(row.library) == LIBRARIES.get(trial.kernel, "torch")
        assert time_s == pytest.approx(0.5)


def test_what_fails_leaves_its_rows_out_and_says_so() -> None:
    wide = COPY._replace(dims={"rows": 2048, "cols": 4096})
    outcomes = [
        ran(COPY, 10e-6),
        ran(wide, 1e-6),  # 33.6 MB at 4814 GB/s take 6.97 us
        Outcome(COPY._replace(kernel="library.rmsnorm", op="rmsnorm"), "wrong", "differs"),
        Outcome(COPY._replace(kernel="library.softmax", op="softmax"), "crashed", "ended by SIGSEGV"),
        Outcome(COPY._replace(kernel="library.softmax", op="softmax"), "crashed", "ended by SIGBUS"),
        Outcome(COPY._replace(kernel="library.add", op="add"), "out-of-memory", "its tensors take 9 bytes"),
    ]
    found = surveyed(outcomes, H200, MACHINE)
    assert [(row["rows"], row["time_us"]) for row in found.rows] == [(1024, "10")]
    assert found.left_out == {
        "library.copy: beats its bound by 597.0 %": 1,
        "library.rmsnorm: wrong: differs": 1,
        "library.softmax: crashed: ended by SIGSEGV": 2,
        "library.add: out-of-memory: its tensors take 9 bytes": 1,
    }


def test_a_format_that_the_gpu_lacks_is_left_out() -> None:
    v100 = hardware.load("v100")
    trial = Trial("library.gemm", "gemm", {"m": 8, "n": 8, "k": 8})
    found = surveyed([ran(trial, 1.0), ran(trial._replace(dtype="fp16"), 1.0)], v100, {})
    assert [row["dtype"] for row in found.rows] == ["fp16"]
    assert found.left_out == {"library.gemm: no peak for bf16 is known of this GPU": 1}


def test_rows_whose_buffers_all_stay_in_l2_are_warm() -> None:
    """16.8 MB a copy: three sets are 50.3 MB of the 62.9 that L2 has, four 67.1."""
    found = surveyed([ran(COPY, 1e-3, sets) for sets in (1, 3, 4)], H200, MACHINE)
    assert [row["warm"] for row in found.rows] == [1, 1, 0]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command with a few kernels, on a worker that only answers."""

    def use(**behaviour: Any) -> None:
        fates = {name.replace("__", "."): fate for name, fate in behaviour.items()}
        how = host.Settings(limit_s=20.0, worker=(sys.executable, FAKE, json.dumps(fates)))
        monkeypatch.setattr("memwall.verify.survey.survey", lambda: SMALL)
        monkeypatch.setattr("memwall.verify.host.check_libraries", lambda instead: None)
        monkeypatch.setattr("memwall.verify.host.Settings", lambda **given: how._replace(**given))

    return use


def test_from_a_device_to_an_estimate(fake: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A copy at 3 TB/s of the H200's 4.8143 comes back as what it is."""
    fake(bytes_per_s=3e12, library__rmsnorm="wrong")
    out, kept = tmp_path / "my.yaml", tmp_path / "rows.csv"
    assert run(["calibrate", "--from-device", "-o", str(out), "--keep", str(kept)]) == 0
    said = capsys.readouterr()
    assert "10 rows, 1 fits" in said.out
    assert "held out: half within" in said.out
    assert "left out: 10 rows: library.rmsnorm: wrong: differs from float64" in said.err
    data = yaml.safe_load(out.read_text())
    assert (data["name"], data["rows"], data["held_out"]["rows"]) == ("h200", 10, 10)
    assert data["held_out"]["p50"] < 0.05
    assert data["machine"]["gpu"] == "NVIDIA H200"
    assert data["machine"]["torch"] == "2.11.0"
    assert data["source"] == "libraries' kernels, run on NVIDIA H200"
    assert "# Made by: memwall calibrate --from-device" in out.read_text()
    own = memwall.roofline("copy", calibration=str(out), gpu="h200", rows=60000, cols=8192).estimate
    assert own is not None
    assert own.basis == "calibrated: h200"
    assert own.time_s == pytest.approx(2e-6 + 60000 * 8192 * 4 / 3e12, rel=0.03)
    again = tmp_path / "again.yaml"
    assert run(["calibrate", str(kept), "--gpu", "h200", "-o", str(again)]) == 0
    assert yaml.safe_load(again.read_text())["fits"] == data["fits"]
    wanted = COPY._replace(dims={"rows": 60000, "cols": 8192})
    assert estimator(str(out))(wanted, H200) == pytest.approx(own.time_s)


def test_the_gpu_may_be_named(fake: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fake(machine="NVIDIA Unheard Of")
    assert run(["calibrate", "--from-device", "-o", str(tmp_path / "x.yaml")]) == 2
    assert "--gpu my-gpu.yaml" in capsys.readouterr().err
    assert run(["calibrate", "--from-device", "--gpu", "a100", "-o", str(tmp_path / "x.yaml")]) == 0
    assert yaml.safe_load((tmp_path / "x.yaml").read_text())["name"] == hardware.load("a100").name


def test_interrupted_it_keeps_the_rows_so_far(
    fake: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake(bytes_per_s=3e12)
    real = host.timed

    def broken_off(*args: Any) -> Iterator[Any]:
        events = real(*args)
        yield from (next(events) for _ in range(4))
        raise KeyboardInterrupt

    monkeypatch.setattr("memwall.verify.host.timed", broken_off)
    kept = tmp_path / "rows.csv"
    assert run(["calibrate", "--from-device", "--keep", str(kept)]) == 130
    assert len(measurements.read(str(kept)).measured) == 3


@pytest.mark.parametrize(
    ("behaviour", "says"),
    [
        ({"machine": "cannot"}, "torch finds no GPU"),
        ({"machine": "die"}, "libcuda"),
        ({"library__copy": "wrong", "library__rmsnorm": "wrong"}, "0 of 20 kernels ran and were right"),
    ],
)
def test_where_it_cannot_run(
    fake: Any, behaviour: dict[str, str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fake(**behaviour)
    assert run(["calibrate", "--from-device"]) == 5
    said = capsys.readouterr()
    assert says in said.err
    assert "memwall[verify]" in said.err
    assert not said.out


def test_without_the_libraries_it_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("memwall.verify.host.find_spec", lambda name: None)
    assert run(["calibrate", "--from-device"]) == 5
    assert "pip install 'memwall[verify]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("calibrate x.csv --gpu h200 --keep y.csv", "Add --from-device"),
        ("calibrate x.csv --from-device", "Leave out one of them"),
        ("calibrate --from-device --rebuild hardware/calibrations", "Leave out the table, --from-device"),
        ("calibrate --from-device -o nowhere/x.yaml", "-o nowhere/x.yaml: cannot be written"),
        ("calibrate --from-device --keep nowhere/x.csv", "--keep nowhere/x.csv: cannot be written"),
        ("verify --backend numpy --calibration x.yaml", "takes no --calibration"),
    ],
)
def test_mistakes_are_answered_before_anything_runs(
    line: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(line.split()) == 2
    assert says in capsys.readouterr().err


def test_an_estimate_of_a_trial_is_that_of_roofline() -> None:
    estimate = estimator()
    gemv = Trial("triton.gemv", "gemv", {"m": 8192, "k": 8192, "batch": 1})
    same = memwall.roofline("gemv", gpu="h200", m=8192, k=8192).estimate
    assert same is not None
    assert estimate(gemv, H200) == pytest.approx(same.time_s)
    access = Trial("cupy.access", "access", {"count": 64, "step": 2, "elements": 256}, "fp32")
    assert estimate(access, H200) is None
    assert estimate(gemv, hardware.load("v100")) is None  # no bf16 there
    with pytest.raises(FileError):
        estimator("nowhere.yaml")


def test_the_shipped_survey_against_estimates_that_never_saw_it() -> None:
    """An H200's 317 kernels, from a run of the command: half within 15 %, and none faster than its bound."""
    reading = measurements.read(str(SURVEY))
    assert len(reading.measured) == len(PLAN)
    assert not reading.left_out
    rows = [each.row for each in reading.measured]
    answers = [each for each in predict(rows) if isinstance(each, Prediction)]
    time_s = numpy.array([each.time_s for each in reading.measured])
    off = numpy.array([each.estimate_time_s for each in answers]) / time_s - 1
    assert numpy.median(numpy.abs(off)) < 0.15
    assert (numpy.array([each.bound_time_s for each in answers]) <= 1.02 * time_s).all()
