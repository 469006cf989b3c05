"""Conditions that were meant otherwise are answered with what to type; several of them hold together."""

from __future__ import annotations

import json
import re
import shlex

import pytest

import memwall
from memwall.cli import run
from memwall.cli.sweep import EXAMPLES, wrapped
from memwall.errors import UsageError
from memwall.render import step_record
from memwall.sweeps.kinds import KINDS
from memwall.sweeps.table import sweep

GEMM = ["sweep", "--op", "gemm", "--m", "1:2048:log2", "--n", "4096", "--k", "4096"]


@pytest.mark.parametrize(
    ("where", "meant"),
    [
        ("m = 8", "m == 8"),
        ("m => 8 and m =< 16", "m >= 8 and m <= 16"),
        ("m == 8 && n == 4096", "m == 8 and n == 4096"),
        ("m == 8 || m == 16", "m == 8 or m == 16"),
        ("m == 8 OR m == 16 AND n > 1", "m == 8 or m == 16 and n > 1"),
        ("NOT m <> 8", "not m != 8"),
        ("traffic_bytes > 33.6MB", "traffic_bytes > 33600000"),
        ("traffic_bytes > 32 MiB", "traffic_bytes > 33554432"),
        ("bound_time_s < 12us", "bound_time_s < 1.2e-05"),
        ("attainable_flops_per_s > 900TFLOP/s", "attainable_flops_per_s > 900000000000000"),
        ("regime == memory-bound", 'regime == "memory-bound"'),
        ('regime = "memory-bound"', 'regime == "memory-bound"'),
        ("gpu == h100", 'gpu == "h100"'),
    ],
)
def test_what_was_meant_is_what_to_type(where: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*GEMM, "--where", where]) == 2
    said = re.search(r"Did you mean (--where .*)\?$", capsys.readouterr().err.strip())
    assert said
    typed = shlex.split(said[1])
    assert typed == ["--where", meant]
    assert run([*GEMM, *typed, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["results"]


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("", "--where is empty"),
        ('regime == "memory_bound"', "regime is never 'memory_bound' here. It is \"memory-bound\" or"),
        ('regime != "memory_bound"', "regime is never"),
        ('limited_by == "dram"', '"hbm"'),
        ('gpu == "h20"', "gpu is never 'h20' here. It is \"h100\""),
        ("estimate_time_s < 1", "Add --estimate"),
    ],
)
def test_what_never_holds_is_refused(where: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*GEMM, "--where", where]) == 2
    assert said in capsys.readouterr().err


def test_the_best_by_an_estimate_asks_for_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*GEMM, "--best", "estimate_time_s"]) == 2
    assert "Add --estimate" in capsys.readouterr().err


def test_a_text_that_other_sweeps_have_may_be_excluded() -> None:
    assert len(sweep("gemm", m="1:4", n=8, k=8, where='gpu != "b200" and "hbm" == limited_by')) == 4


def test_quoted_texts_are_left_alone() -> None:
    with pytest.raises(UsageError, match=re.escape('gpu == "a && b"\' is')) as refused:
        sweep("gemm", m="1:4", n=8, k=8, where='m = 1 and gpu == "a && b"')
    assert 'm == 1 and gpu == "a && b"' in refused.value.hint


def test_a_range_from_zero_says_where_it_begins(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["sweep", "--op", "gemm", "--n", "8", "--k", "8", "--json", "--m"]
    assert run([*line, "0:3"]) == 0
    printed = capsys.readouterr()
    assert [row["m"] for row in json.loads(printed.out)["results"]] == [1, 2, 3]
    assert "--m 0:3 begins with 1" in printed.err
    assert run([*line, "0:128:64"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("under", [[], *([name] for name in ("step", *KINDS))], ids=str)
def test_examples_fit_a_terminal(under: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sweep", *under, "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    example = next(place for place, line in enumerate(lines) if "xample" in line and line.endswith(":"))
    assert max(map(len, lines[example:])) <= 80


def test_an_example_is_pasted_as_it_was() -> None:
    for example in (*EXAMPLES, *(kind.example for kind in KINDS.values())):
        assert shlex.split(wrapped(example).replace("\\\n", " ")) == shlex.split(example)


def test_conditions_hold_together(capsys: pytest.CaptureFixture[str]) -> None:
    conditions = ["m > 4", 'm < 32 or regime == "compute-bound"', "m < 1000"]
    assert run([*GEMM, *(arg for each in conditions for arg in ("--where", each)), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["results"]
    assert [row["m"] for row in rows] == [8, 16, 512]
    assert sweep("gemm", m="1:2048:log2", n=4096, k=4096, where=conditions).columns["m"].tolist() == [
        8,
        16,
        512,
    ]


def test_flags_are_asked_both_ways_from_python() -> None:
    table = sweep("attention", heads=8, head_dim=64, seq=[512, 2048], causal=[False, True])
    for row in table.to_rows():
        single = memwall.roofline("attention", heads=8, head_dim=64, seq=row["seq"], causal=row["causal"])
        assert (row["flops"], row["bound_time_s"]) == (single.flops, single.bound_time_s)
    assert [row["causal"] for row in table.to_rows()] == [False, False, True, True]
    steps = sweep("step", model="llama3-8b", batch=[1, 2], context=2048, eager=[False, True], estimate=True)
    assert [(row["eager"], row["batch"]) for row in steps.to_rows()] == [
        (False, 1), (False, 2), (True, 1), (True, 2),
    ]  # fmt: skip
    for row in steps.to_rows():
        one = memwall.step("llama3-8b", batch=row["batch"], context=2048, eager=row["eager"])
        expected = step_record.record(one)["estimate_time_s"]
        assert row["estimate_time_s"] == pytest.approx(expected, rel=1e-12)
    reports = sweep("attention", model="llama3-8b", seq=1024, causal=(False, True))
    assert len(reports) == 2
    assert "causal" not in sweep("attention", heads=8, head_dim=64, seq=512, causal=[True]).columns
