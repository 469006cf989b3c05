"""The verifier without a GPU: its host with a worker that only answers, its judge, records and pages."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from memwall import hardware
from memwall.cli import run
from memwall.errors import CannotVerify, FileError
from memwall.render import text
from memwall.render.verify import page
from memwall.verify import host, record
from memwall.verify.case import Trial
from memwall.verify.judge import verify
from memwall.verify.outcome import Counters, Outcome, outcome_of
from memwall.verify.predict import predict

ROOT = Path(__file__).parents[1]
FAKE = str(Path(__file__).with_name("fake_worker.py"))
RECORDS = sorted((ROOT / "configs" / "measurements").glob("*/verify*.json"))
H200 = hardware.load("h200")
GEMV = Trial("triton.gemv", "gemv", {"m": 8192, "k": 8192, "batch": 1})
COPY = Trial("cupy.copy", "copy", {"rows": 16384, "cols": 4096}, "fp32")
SOFTMAX = Trial("triton.softmax", "softmax", {"rows": 64, "cols": 64})


def settings(**behaviour: str) -> host.Settings:
    """Kernels' fates by name, a dot as two underscores."""
    fates = {name.replace("__", "."): fate for name, fate in behaviour.items()}
    return host.Settings(limit_s=20.0, worker=(sys.executable, FAKE, json.dumps(fates)))


def outcomes(trials: list[Trial], how: host.Settings) -> list[Outcome]:
    machine, *rest = host.timed(trials, how)
    assert isinstance(machine, Mapping)
    assert machine["gpu_name"] == "NVIDIA H200"
    assert [each.trial for each in rest if isinstance(each, Outcome)] == trials
    return [each for each in rest if isinstance(each, Outcome)]


def measured(trial: Trial, time_s: float, read: float | None = None, written: float | None = None) -> Outcome:
    """An outcome with counters so many times the predicted ones."""
    dram = predict(trial, H200).dram
    counters = None
    if read is not None:
        numbers = (round(dram.read_bytes * read), round(dram.written_bytes * (written or 1)))
        counters = Counters(*numbers, 0, ("k",))
    return Outcome(
        trial, "ok", "", 0.001, 0.01, {"p20_s": time_s, "p50_s": time_s, "p80_s": time_s}, counters
    )


@pytest.mark.parametrize("fate", ["crash", "die", "wrong", "out-of-memory"])
def test_what_befalls_one_trial_costs_its_row_only(fate: str) -> None:
    first, second, third = outcomes([COPY, GEMV, SOFTMAX], settings(triton__gemv=fate))
    assert first.ok
    assert third.ok
    expected = {"crash": "crashed", "die": "error"}.get(fate, fate)
    assert second.status == expected
    assert second.message
    assert (fate != "crash") or "SIGSEGV" in second.message


def test_a_silent_worker_is_stopped() -> None:
    first, second = outcomes([GEMV, COPY], settings(triton__gemv="hang")._replace(limit_s=1.0))
    assert (first.status, first.message) == ("timed-out", "silent for 1 s")
    assert second.ok


@pytest.mark.parametrize(("machine", "says"), [("cannot", "finds no GPU"), ("die", "libcuda")])
def test_without_a_gpu_it_cannot_verify(machine: str, says: str) -> None:
    with pytest.raises(CannotVerify, match=says) as refused:
        list(host.timed([GEMV], settings(machine=machine)))
    assert refused.value.exit_code == 5
    assert "memwall[verify]" in refused.value.hint


def test_counters_are_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memwall.verify.ncu.find", lambda: None)
    counters, missing = host.counted([GEMV], settings())
    assert counters == [None]
    assert "ncu is not on the PATH" in missing
    monkeypatch.setattr("memwall.verify.ncu.find", lambda: sys.executable)  # ends with an error
    counters, missing = host.counted([GEMV], settings())
    assert counters == [None]
    assert missing.startswith("bytes are not counted")


@pytest.mark.parametrize(
    ("outcome", "verdict", "fault"),
    [
        (measured(COPY, 130e-6), "time only", ""),
        (measured(COPY, 130e-6, 1.04), "within", ""),
        (measured(COPY, 130e-6, 1.06), "outside", "reads 1.060"),
        (measured(COPY, 130e-6, 1.0, 0.9), "outside", "writes 0.900"),
        (measured(COPY, 100e-6), "outside", "beats its bound by 11.5 %"),  # 111.5 us at 4814.3 GB/s
        (measured(COPY, 110e-6), "time only", ""),  # 1.4 % under: a clock is known no better
        (measured(GEMV, 35e-6, 1.0, 30.0), "within", ""),  # 16 kB of writes drown in what else is written
        (measured(GEMV._replace(kernel="library.gemv"), 35e-6, 2.0), "reference", ""),
        (Outcome(COPY, "wrong", "differs"), "wrong", "wrong: differs"),
        (Outcome(COPY, "crashed", "SIGSEGV"), "crashed", "crashed: SIGSEGV"),
        (Outcome(COPY, "out-of-memory", "too large"), "skipped", ""),
    ],
)
def test_the_verdict_by_hand(outcome: Outcome, verdict: str, fault: str) -> None:
    report = verify(H200, {}, [outcome])
    (row,) = report.rows
    assert row.verdict == verdict
    assert report.passed == (not fault and verdict != "skipped")  # what did not run shows nothing
    assert fault in "".join(row.faults)


def test_reads_between_the_least_and_the_most_are_as_predicted() -> None:
    dims = {
        "heads": 16, "head_dim": 256, "seq_q": 4096, "seq_kv": 4096,
        "kv_heads": 16, "head_dim_v": 256, "batch": 2,
    }  # fmt: skip
    trial = Trial("triton.flash", "attention", dims, causal=False, impl="flash")
    prediction = predict(trial, H200)
    assert prediction.most_read_bytes > prediction.dram.read_bytes
    most = prediction.most_read_bytes / prediction.dram.read_bytes
    for read, verdict in ((0.94, "outside"), (1.0, "within"), (1.1, "within"), (most * 1.06, "outside")):
        assert verify(H200, {}, [measured(trial, 1e-3, read)]).rows[0].verdict == verdict


def test_an_estimate_is_shown_where_there_is_one() -> None:
    outcome = measured(COPY, 130e-6)
    assert not verify(H200, {}, [outcome]).estimated
    report = verify(H200, {}, [outcome], estimate=lambda trial, device: 125e-6)
    assert report.estimated
    assert report.rows[0].estimate_time_s == 125e-6
    assert report.rows[0].estimate_error == pytest.approx(-5 / 130)
    assert "-3.8 %" in text.render(page(report))


def test_a_record_reads_back_as_it_was_written(tmp_path: Path) -> None:
    kept = record.Record(
        "h200", {"driver": "580"}, [measured(COPY, 1e-4, 1.0), Outcome(GEMV, "wrong")], ["n"]
    )
    path = tmp_path / "r.json"
    record.write(str(path), kept)
    assert record.read(str(path)) == kept
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"]
    assert all(outcome_of(each.record) == each for each in kept.outcomes)
    empty = record.Record("h200", {}, [], [])
    record.write(str(path), empty)
    assert record.read(str(path)) == empty


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", ":1: not JSON"),
        ("{}", "no 'outcomes'"),
        ("[]", "not a record"),
        ('{"outcomes": [1]}', "not a record"),
        ('{"outcomes": [{"trial": {"kernel": 1}}]}', "not a record"),
    ],
)
def test_what_is_no_record_is_refused(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FileError, match=says):
        record.read(str(path))
    assert run(["verify", "--replay", str(path)]) == 3


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command, with a worker that only answers."""

    def use(**behaviour: str) -> None:
        monkeypatch.setattr("memwall.verify.host.check_libraries", lambda instead: None)
        how = settings(**behaviour)
        monkeypatch.setattr("memwall.verify.host.Settings", lambda **given: how._replace(**given))

    return use


GEMV_RUN = ["verify", "--op", "gemv", "--m", "64", "--k", "64"]


def test_the_command_from_plan_to_json(fake: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    fake()
    path = str(tmp_path / "kept.json")
    assert run([*GEMV_RUN, "--json", "--record", path]) == 0
    out = json.loads(capsys.readouterr().out)
    assert out["schema"] == 1
    assert out["gpu"] == "h200"
    assert out["passed"]
    assert [trial["kernel"] for trial in out["trials"]] == ["triton.gemv", "cupy.gemv", "library.gemv"]
    assert out["trials"][0]["time_s"] == 1e-3
    first = out["trials"][0]
    assert first["estimate_error"] == pytest.approx(first["estimate_time_s"] / 1e-3 - 1)
    assert 0 < first["estimate_time_s"] < 1e-4
    assert run(["verify", "--replay", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == out
    for form in ("text", "csv", "markdown"):
        assert run(["verify", "--replay", path, "--format", form]) == 0
        assert "triton.gemv" in capsys.readouterr().out


def test_a_wrong_kernel_is_exit_code_one(fake: Any, capsys: pytest.CaptureFixture[str]) -> None:
    fake(triton__gemv="wrong")
    assert run(GEMV_RUN) == 1
    out = capsys.readouterr().out
    assert "not as predicted: 1 wrong, 2 time only" in out
    assert "triton.gemv: wrong: differs from float64" in out


def test_a_gpu_that_the_catalogue_lacks(fake: Any, capsys: pytest.CaptureFixture[str]) -> None:
    fake(machine="NVIDIA Unheard Of")
    assert run(GEMV_RUN) == 2
    assert "--gpu my-gpu.yaml" in capsys.readouterr().err
    assert run([*GEMV_RUN, "--gpu", "a100"]) == 0


def test_interrupted_it_leaves_whole_records(
    fake: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake()
    real = host.timed

    def broken_off(*args: Any) -> Any:
        events = real(*args)
        yield next(events)
        yield next(events)
        raise KeyboardInterrupt

    monkeypatch.setattr("memwall.verify.host.timed", broken_off)
    path = tmp_path / "kept.json"
    assert run([*GEMV_RUN, "--record", str(path)]) == 130
    assert [each.trial.kernel for each in record.read(str(path)).outcomes] == ["triton.gemv"]


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ("verify --m 8", 2, "Add --op"),
        ("verify --op gemv --m 8 --k 8 --impl tirton", 2, "Did you mean triton"),
        ("verify --op silu_mul --rows 8 --cols 8", 4, "no kernel for silu_mul"),
        ("verify --backend numpy --counters", 2, "takes no --counters"),
        ("verify --backend numpy --op gemv", 2, "takes no --op"),
        ("verify --l2-bytes 4096", 2, "Add --backend numpy"),
        ("verify --replay x.json --counters", 2, "--replay runs nothing"),
        ("verify --replay h200 --seed 7", 2, "--replay runs nothing, so --seed"),
        ("verify --replay h200 --ms 5", 2, "--replay runs nothing, so --ms"),
        ("verify --replay nowhere.json", 3, "nowhere.json"),
        ("verify --op gemv -o nowhere/x.json", 2, "-o nowhere/x.json: cannot be written"),
        ("verify --op gemv --record nowhere/x.json", 2, "--record nowhere/x.json: cannot be written"),
        ("verify --replay a100", 3, "no record of 'a100' is shipped"),
        ("verify --replay no-such-gpu", 3, "--replay h200"),
    ],
)
def test_mistakes_are_answered_before_anything_runs(
    line: str, code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(line.split()) == code
    assert says in capsys.readouterr().err


def test_without_the_libraries_it_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("memwall.verify.host.find_spec", lambda name: None)
    assert run(GEMV_RUN) == 5
    assert "pip install 'memwall[verify]'" in capsys.readouterr().err


def test_the_counting_run_by_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", "--backend", "numpy", "--json"]) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    assert all(each["exact"] for each in results)
    figure = [each for each in results if "figure" in each["algorithm"]]
    totals = [each["read_bytes"] + each["written_bytes"] for each in figure]
    assert totals == pytest.approx([6.578e9, 3.356e9, 1.744e9, 0.939e9], abs=0.005e9)  # as the paper draws it


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_shipped_record_is_as_predicted(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Bytes, bounds and bands, on what a real GPU did."""
    kept = record.read(str(path))
    assert kept.gpu == path.parent.name
    assert run(["verify", "--replay", str(path), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["passed"]
    assert all(trial["of_bound"] is None or trial["of_bound"] <= 1.02 for trial in report["trials"])
    assert sum(trial["verdict"] == "within" for trial in report["trials"]) >= 30


def test_a_record_judged_as_another_gpu_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    run(["verify", "--replay", "h200", "--gpu", "h100", "--op", "gemv", "--json"])
    told = json.loads(capsys.readouterr().out)["notes"]
    assert "measured on h200, and judged as if it were h100" in told
    run(["verify", "--replay", "h200", "--gpu", "h200", "--op", "gemv", "--json"])
    assert not any("as if" in note for note in json.loads(capsys.readouterr().out)["notes"])


def test_a_record_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    shipped = RECORDS[0].read_text(encoding="utf-8")
    path = tmp_path / "marked.json"
    path.write_text(shipped, encoding="utf-8-sig")
    assert record.read(str(path)) == record.read(str(RECORDS[0]))
