"""Crossovers are exact: one less is on the other side; by hand, by brute force, and by the advice's own
search."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from memwall import hardware
from memwall.cli import run
from memwall.ops import registry
from memwall.reports.advice import crossover as advised
from memwall.reports.case import Case, Formats
from memwall.reports.crossover import crossover
from memwall.reports.roofline import roofline


def test_gemv_on_an_h100_by_hand() -> None:
    """2 m k b / P > 2 (m k + b (m + k)) / beta with m = k = 8192: b > k r / (k - 2 r), r = P / beta =
    295.1."""
    ridge = 989.4e12 / 3352.32e9
    by_hand = 8192 * ridge / (8192 - 2 * ridge)
    found = crossover("gemv", "batch", gpu="h100").crossing
    assert found is not None
    assert found.at == int(by_hand) + 1 == 319
    assert (found.below.regime, found.above.regime) == ("memory-bound", "compute-bound")


@pytest.mark.parametrize("gpu", ["a100", "h100", "h200", "b200", "mi300x", "rtx-4090"])
def test_the_advice_finds_the_same(gpu: str) -> None:
    device = hardware.load(gpu)
    case = Case(registry.find("gemm"), {"m": 1, "n": 8192, "k": 8192}, Formats("bf16"))
    found = crossover("gemm", "m", gpu=gpu, n=8192, k=8192).crossing
    assert found is not None
    assert found.at == advised(case, device, "m")


@pytest.mark.parametrize(
    ("op", "vary", "shape"),
    [
        ("gemm", "m", {"n": 4096, "k": 4096}),
        ("gemm", "k", {"m": 768, "n": 768}),
        ("attention", "seq", {"heads": 8, "head_dim": 64}),
        ("attention", "head_dim", {"heads": 8, "seq": 512}),
        ("attention", "seq_q", {"heads": 8, "head_dim": 128, "seq_kv": 1024}),
        ("gelu", "rows", {"cols": 512}),
    ],
)
def test_brute_force(op: str, vary: str, shape: dict[str, Any]) -> None:
    """Every value from 1 to 400, each by its own roofline."""
    report = crossover(op, vary, gpu="h200", most=400, **shape)
    limits = [roofline(op, gpu="h200", **{**shape, vary: value}).bound.limited_by for value in range(1, 401)]
    changes = [value + 1 for value in range(1, 400) if limits[value] != limits[value - 1]]
    assert [each.at for each in report.crossings] == changes


def test_one_that_never_crosses() -> None:
    report = crossover("rmsnorm", "rows", gpu="h100", cols=8192)
    assert report.crossing is None
    assert report.crossings == ()


def test_a_dimension_that_another_limits() -> None:
    """Queries are at most the keys."""
    report = crossover("attention", "seq_q", heads=8, head_dim=128, seq_kv=4096)
    assert report.most <= 4096


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shlex.split("crossover --op gemv --gpu h100 --vary batch --json")) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["at"] == 319
    assert (document["regime_below"], document["regime_above"]) == ("memory-bound", "compute-bound")
    assert run(shlex.split("crossover --op gemv --gpu a100,h100,v100 --vary batch --json")) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    assert results[0]["at"] == 159
    assert results[2]["error"]["code"] == "unsupported-dtype"


@pytest.mark.parametrize("form", ["text", "csv", "markdown", "json"])
def test_every_format(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shlex.split(f"crossover --op gemv --vary batch --gpu a100,h100 --format {form}")) == 0
    assert "a100" in capsys.readouterr().out
    assert run(shlex.split(f"crossover --op copy --vary rows --cols 64 --format {form}")) == 0


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ("--op gemv", 2, "--vary"),
        ("--op gemv --vary bach", 2, "batch"),
        ("--op gemv --vary batch --batch 4", 2, "--batch is what varies"),
        ("--op gemm --vary m --n 4", 2, "--k"),
        ("--op gemv --vary batch --from 8 --to 4", 2, "nothing between"),
        ("--op gemv --vary batch --gpu v100", 4, "bf16"),
        ("--op gemq --vary batch", 2, "gem"),
    ],
)
def test_mistakes_are_answered(line: str, code: int, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["crossover", *shlex.split(line)]) == code
    assert says in capsys.readouterr().err
