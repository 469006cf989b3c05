"""Sweeps of reports, point by point: the rows are what the commands themselves say."""

from __future__ import annotations

import csv
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import memwall
from memwall.cli import cli, run
from memwall.cli import sweep as sweep_command
from memwall.cli.sweep_options import of_command
from memwall.errors import NotAvailable, UsageError
from memwall.sweeps.kinds import KINDS
from memwall.sweeps.plan import plan
from memwall.sweeps.planned import Planned, Spec
from memwall.sweeps.reports import scalars
from memwall.sweeps.stream import File, Stopped

OCCUPANCY = ["sweep", "occupancy", "--threads", "32:1024:32", "--registers", "32,64,255"]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Spec]:
    """The sweeps that are typed, in place of their runs."""
    specs: list[Spec] = []
    monkeypatch.setattr(sweep_command, "run", lambda spec, options: specs.append(spec))
    return specs


def planned(specs: list[Spec], line: str) -> Planned:
    cli.main(shlex.split(line)[1:], standalone_mode=False)
    return plan(specs[-1])


def single(kind: str, row: Mapping[str, Any], sweep: Planned) -> list[str]:
    """The command that asks one point of a sweep."""
    words: list[str] = [kind]
    for param in of_command(kind).params:
        name = str(param.name)
        if name not in sweep.asked:
            continue
        value = f"{row[name]}s" if name.endswith("_s") else str(row[name])
        words += [value] if param.param_type_name == "argument" else [max(param.opts, key=len), value]
    return words


def answered(kind: str, document: dict[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    """Of a command's JSON, what a row of its sweep is made of."""
    if kind == "quant":
        return dict(document["formats"][row["format"]])
    if kind == "hierarchy":
        return next(scalars(each) for each in document["levels"] if each["level"] == row["level"])
    if kind == "plan":
        return scalars({**document, "layout": document["layouts"][0]})
    return scalars(document)


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_is_what_the_command_says(
    kind: str, asked: list[Spec], capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = planned(asked, KINDS[kind].example)
    rows = sweep.rows(sweep.grid.count // 2)
    assert rows is not None
    row = rows.records()[-1]
    run([*single(kind, row, sweep), "--json"])
    expected = answered(kind, json.loads(capsys.readouterr().out), row)
    together = {name for name in expected if name in row and name not in sweep.asked}
    assert len(together) > 3
    assert {name for name in expected if name not in row and expected[name] is not None} <= {"sources"}
    for name in together:
        value = expected[name]
        exact = float(value) if isinstance(value, int) and not isinstance(value, bool) else value
        assert row[name] == exact, name
    assert len(sweep.shown) >= 3


@pytest.mark.parametrize(
    "line",
    [
        "attention --heads 8 --head-dim 64 --seq 512 --impl all,fa2",
        "tile --op attention --head-dim 64 --tile 64x64",
    ],
)
def test_another_report_of_a_command_has_results_to_show(line: str, asked: list[Spec]) -> None:
    sweep = planned(asked, f"memwall sweep {line}")
    rows = sweep.rows(0)
    assert rows is not None
    assert len(sweep.shown) >= 2
    assert all(rows.records()[0][name] is not None for name in sweep.shown)


def test_every_report_of_a_value_has_a_sweep() -> None:
    """Those that have none check, list, or run something; or their answer is a text."""
    from memwall.cli import COMMANDS

    assert set(COMMANDS) - {"step", "sweep", *KINDS} == {
        "node", "plot", "report", "predict", "accuracy", "calibrate", "explain", "diagnose", "gpu", "hbm",
        "op", "model", "check", "verify",
    }  # fmt: skip


def test_what_a_command_has_by_default_its_sweep_has(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["--model", "llama3-8b", "--gpu", "h100", "--gpus", "8"]
    assert run(["sweep", "train-memory", *line, "--json"]) == 0
    row = json.loads(capsys.readouterr().out)["results"][0]
    run(["train-memory", *line, "--json"])
    document = scalars(json.loads(capsys.readouterr().out))
    assert {name: row[name] for name in document} == document


def test_a_point_that_is_refused_leaves_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["sweep", "serve", "--model", "llama3-70b", "--isl", "64", "--osl", "8", "--json", "--tp"]
    assert run([*line, "2,3,5,8"]) == 0
    printed = capsys.readouterr()
    assert [row["tp"] for row in json.loads(printed.out)["results"]] == [2, 8]
    assert printed.err == ("2 points left out: --tp 3: the heads of Llama 3 70B (64, 8 KV) do not split so\n")


def test_where_no_point_remains_it_says_what_the_command_says(capsys: pytest.CaptureFixture[str]) -> None:
    for what in (["serve", "--isl", "64", "--osl", "8"], ["step", "--context", "64"]):
        line = [*what, "--model", "llama3-70b", "--tp"]
        assert run([*line, "3"]) == 2
        expected = capsys.readouterr().err
        assert run(["sweep", *line, "3,3"]) == 2
        assert capsys.readouterr().err == expected


def test_a_report_that_fails_at_some_points_has_the_columns_of_the_others() -> None:
    """The first blocks are all refused: the columns are found further on."""
    table = memwall.sweep("occupancy", threads="1000:2000,64", registers="16,32")
    assert [row["threads"] for row in table.to_rows()] == [*(1000 + n // 2 for n in range(50)), 64, 64]
    assert table.left_out.points == 2 * 1002 - 52


def test_numbers_of_the_gpu_are_an_axis(capsys: pytest.CaptureFixture[str]) -> None:
    key = "memory.bandwidth_gb_per_s"
    varied = ["--set", f"{key}=2000:4000:1000", "--set", "l2.capacity_mib=64", "--json"]
    lines = {
        "roofline": ["--op", "gemv", "--m", "4096", "--k", "4096"],
        "step": ["--model", "llama3-8b", "--context", "512"],
        "quant": ["--model", "llama3-8b"],
    }
    for what, line in lines.items():
        assert run(["sweep", *([] if what == "roofline" else [what]), *line, *varied]) == 0
        rows = json.loads(capsys.readouterr().out)["results"]
        assert sorted({row[key] for row in rows}) == [2000, 3000, 4000]
        assert run([what, *line, "--set", f"{key}=3000", "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        expected = document["formats"]["bf16"] if what == "quant" else document
        found = next(row for row in rows if row[key] == 3000 and row.get("format", "bf16") == "bf16")
        assert found["bound_time_s"] == pytest.approx(expected["bound_time_s"], rel=1e-14)
    where = ["--where", f"{key} > 2500", "--best", "tokens_per_s"]
    assert run(["sweep", "step", *lines["step"], *varied, *where]) == 0
    assert [row[key] for row in json.loads(capsys.readouterr().out)["results"]] == [4000]


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_shards_of_reports_are_the_whole(form: str, tmp_path: Path) -> None:
    parts: list[str] = []
    for index in range(1, 4):
        path = tmp_path / f"part-{index}.{form}"
        assert run([*OCCUPANCY, "-o", str(path), "--shard", f"{index}/3"]) == 0
        parts += path.read_text().splitlines()[1 if form == "csv" and index > 1 else 0 :]
    whole = tmp_path / f"all.{form}"
    assert run([*OCCUPANCY, "-o", str(whole)]) == 0
    assert parts == whole.read_text().splitlines()
    refused = 32 - 8  # more than 8 warps of 255 registers are more than the 65536 of an SM
    assert len(parts) == 32 * 3 - refused + (form == "csv")


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_reports_are_gone_on_with_after_a_stop(form: str, tmp_path: Path) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
    words: dict[str, Any] = {"gpu": ("h100", "mi300x")}
    spec = Spec("occupancy", words, {"threads": "1:64", "registers": "32,64"}, {}, report=True)

    def interrupt(done: int) -> None:
        import os
        import signal

        if done > 50:
            os.kill(os.getpid(), signal.SIGINT)

    path, whole = tmp_path / f"out.{form}", tmp_path / f"all.{form}"
    with pytest.raises(Stopped):
        File(plan(spec), range(plan(spec).grid.count), str(path), form).run(interrupt)
    assert not path.exists()
    done = File(plan(spec), range(plan(spec).grid.count), str(path), form).run(lambda _: None, resume=True)
    assert (done.points, done.rows) == (256, 128)
    File(plan(spec), range(plan(spec).grid.count), str(whole), form).run(lambda _: None)
    if form == "csv":
        assert path.read_text() == whole.read_text()
        with path.open(newline="") as file:
            assert [int(row["threads"]) for row in csv.DictReader(file)] == [1 + n // 2 for n in range(128)]
    else:
        import pyarrow.parquet

        assert pyarrow.parquet.read_table(path).to_pylist() == pyarrow.parquet.read_table(whole).to_pylist()


def test_reports_go_to_a_cluster(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="needs Dask")
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
    capacity = ["sweep", "capacity", "--model", "llama3-8b", "--tp", "1,2", "--context", "1000:9000:1000"]
    assert run([*capacity, "--dask", "local", "-o", str(tmp_path / "out")]) == 0
    rows = parquet.read_table(tmp_path / "out").to_pylist()
    assert len(rows) == 18
    expected = memwall.sweep("capacity", model="llama3-8b", tp="1,2", context="1000:9000:1000").to_rows()
    key = ("tp", "context", "max_sequences", "fits")
    assert {tuple(row[name] for name in key) for row in rows} == {
        tuple(row[name] for name in key) for row in expected
    }


def test_a_sweep_of_reports_that_takes_years_is_not_begun(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["sweep", "occupancy", "--threads", "1:1024", "--registers", "1:1e12", "--format", "csv"]
    assert run(line) == 2
    said = capsys.readouterr()
    assert "1,024,000,000,000,000 points take about" in said.err
    assert said.out == ""


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("check", 2, "check cannot be swept"),
        ("verify gemm", 2, "One of: step, capacity"),
        ("srve --isl 1", 2, "Did you mean serve?"),
        ("--gpu h100 serve --isl 1", 2, "--gpu stands before serve"),
        ("serve --model llama3-8b --isl 1", 2, "memwall sweep serve needs --osl RANGE"),
        ("serve --model nope --isl 1 --osl 1", 2, "unknown model 'nope'"),
        ("serve --model llama3-8b --isl 8:1 --osl 1", 2, "--isl 8:1 runs backwards"),
        (
            "serve --model llama3-8b --concurrency 0 --isl 1 --osl 1",
            2,
            "--concurrency must be a whole number",
        ),
        ("train-memory --model llama3-8b --zero 1,7", 2, "--zero takes 0, 1, 2, 3, not '7'"),
        ("quant --model llama3-8b --kv-dtype fp8,fp9", 2, "unknown dtype 'fp9'"),
        ("plan --model llama3-8b --context 64 --tpot 3", 2, "--tpot 3 has no unit"),
        ("occupancy --threads 2000:3000", 2, "1024"),
        ("occupancy --threads 64 --gpu mi300x", 4, "CUDA"),
        ("occupancy --threads 64 --best blocks_per_s", 2, "Did you mean blocks_per_sm?"),
        ("step --model llama3-8b --context 64 --tp 1:8:x", 2, "--tp"),
        ("step --model llama3-8b --context 64 --set l2.capacity_mib=", 2, "--set"),
        ("quant --model llama3-8b --set power=1,2", 2, "--set"),
        ("quant --model llama3-8b --set l2.capacity_mib=9:1:2", 2, "9:1:2 runs backwards. Try 1:9:2"),
        ("quant --model llama3-8b --set l2.capacity_mib=0:8:log2", 2, "0:8:log2 never ends"),
        ("quant --model llama3-8b --set l2.capacity_mib=1:1e9", 2, "more than 10,000 values"),
        ("quant --model llama3-8b --set l2.capacity_mb=1,2", 2, "Did you mean l2.capacity_mib?"),
    ],
)
def test_what_cannot_be_meant_is_said(
    line: str, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sweep", *line.split()]) == code
    assert said in capsys.readouterr().err


def test_what_is_typed_as_a_number_is_compared_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    lines = {
        "cost --context 512 --price 2,2.5:3:0.5": ("price > 2", "price", [2.5, 3]),
        "train-memory --gpus 8 --zero 1,2,3": ("zero > 1", "zero", [2, 3]),
        "plan --context 512 --gpus 1 --tpot 10ms,1s": ("tpot_s < 0.5", "tpot_s", [0.01]),
    }
    for line, (where, column, values) in lines.items():
        words = ["sweep", *line.split(), "--model", "llama3-8b", "--where", where, "--json"]
        assert run(words) == 0
        assert [row[column] for row in json.loads(capsys.readouterr().out)["results"]] == values


def test_one_call_from_python_asks_reports() -> None:
    table = memwall.sweep("serve", model="llama3-8b", users="1:4:log2", isl=128, osl=[8, 16])
    assert len(table) == 6
    assert table.columns["fits"].all()
    assert table.best("tpot_s")[0]["users"] == 1
    with pytest.raises(UsageError, match="unknown op"):
        memwall.sweep("served", users=1)
    with pytest.raises(NotAvailable):
        memwall.sweep("banks", shape=[(32, 32)], access="row", gpu="mi300x")
