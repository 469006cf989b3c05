"""Fusion of chains: hand-worked bytes, what is legal, the named examples, invariants."""

from __future__ import annotations

import json
import shlex

import pytest

from memwall.cli import run
from memwall.reports.fuse import EXAMPLES, FuseReport, fuse

T, H = 4096, 8192
X = T * H * 2


def ways(report: FuseReport) -> dict[tuple[str, ...], int]:
    return {way.kernels: way.traffic_bytes for way in report.ways}


def test_residual_and_norm_by_hand() -> None:
    """Add: 2 read, 1 written; norm: 1 and the weights read, 1 written. Joined: the sum is not read back."""
    report = fuse("residual-norm", tokens=T, hidden=H)
    assert report.unfused.traffic_bytes == 5 * X + 2 * H
    assert report.best.traffic_bytes == 4 * X + 2 * H
    assert report.best.fusion.vanishing == ()  # the sum is still written


@pytest.mark.parametrize("name", ["residual+norm", "Residual_Norm", " residual-norm "])
def test_names_in_other_spellings(name: str) -> None:
    assert fuse(name, tokens=4, hidden=8).chain.name == "residual-norm"


def test_a_chain_that_keeps_nothing() -> None:
    report = fuse("add,rmsnorm", tokens=T, hidden=H)
    assert report.best.traffic_bytes == 3 * X + 2 * H
    assert [tensor.name for tensor in report.best.fusion.vanishing] == ["add 1's result"]


def test_linear_gelu_layernorm_by_hand() -> None:
    hidden = 1024
    x, w = T * hidden * 2, hidden * hidden * 2
    found = ways(fuse("linear,gelu,layernorm", tokens=T, hidden=hidden))
    assert found["linear 1", "gelu 2", "layernorm 3"] == 6 * x + w + 4 * hidden
    assert found["linear 1 + gelu 2", "layernorm 3"] == 4 * x + w + 4 * hidden
    assert found["linear 1 + gelu 2 + layernorm 3",] == 2 * x + w + 4 * hidden


def test_a_norm_needs_whole_rows_of_a_product() -> None:
    """1024 columns fit a cluster's tiles on an H100, not a block's on an A100; 4096 fit neither."""
    assert len(fuse("linear,layernorm", tokens=T, hidden=1024, gpu="h100").best.kernels) == 1
    assert len(fuse("linear,layernorm", tokens=T, hidden=1024, gpu="a100").best.kernels) == 2
    report = fuse("linear,gelu,layernorm", tokens=T, hidden=4096, gpu="h100")
    assert not report.all_fused.legal
    assert "whole rows of 4096" in report.all_fused.fusion.obstacles[0]


def test_a_product_after_a_norm_is_not_one_kernel() -> None:
    report = fuse("rmsnorm,linear", tokens=T, hidden=1024)
    assert not report.all_fused.legal
    assert "statistics" in report.all_fused.fusion.obstacles[0]


def test_two_products_fit_if_the_rows_between_do() -> None:
    assert fuse("linear:512,gelu,linear", tokens=T, hidden=512).all_fused.legal
    assert not fuse("linear:14336,gelu,linear:4096", tokens=T, hidden=4096).all_fused.legal


def test_qkv_reads_its_input_once() -> None:
    report = fuse("qkv", tokens=T, hidden=H, kv_width=1024)
    assert report.unfused.traffic_bytes - report.all_fused.traffic_bytes == 2 * X
    assert report.best is report.all_fused


def test_the_mlp_keeps_gate_and_up_on_chip() -> None:
    report = fuse("mlp", tokens=T, hidden=4096, width=14336)
    assert {tensor.name for tensor in report.best.fusion.vanishing} == {"gate", "up"}
    middle = T * 14336 * 2
    x = T * 4096 * 2
    assert report.unfused.traffic_bytes - report.best.traffic_bytes == 4 * middle + x


@pytest.mark.parametrize(
    "steps", ["linear,gelu,layernorm", "add,rmsnorm,linear,gelu,linear", "softmax,copy", *EXAMPLES]
)
@pytest.mark.parametrize("gpu", ["a100", "h100", "mi300x"])
def test_joining_more_never_adds_bytes_or_time(steps: str, gpu: str) -> None:
    report = fuse(steps, tokens=512, hidden=1024, gpu=gpu)
    assert len({way.kernels for way in report.ways}) == len(report.ways) == 2 ** (len(report.chain.steps) - 1)
    for way in report.ways:
        assert way.traffic_bytes <= report.unfused.traffic_bytes
        assert way.time_s <= report.unfused.time_s * (1 + 1e-12)
        assert report.all_fused.traffic_bytes <= way.traffic_bytes
    assert report.best.legal
    assert report.unfused.legal


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shlex.split("fuse linear,gelu,layernorm --tokens 16384 --hidden 8192 --json")) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["fusions"]) == 4
    assert document["best"]["legal"]
    assert (
        document["best"]["saved_bytes"]
        == document["unfused"]["traffic_bytes"] - document["best"]["traffic_bytes"]
    )


@pytest.mark.parametrize("form", ["text", "csv", "markdown", "json"])
def test_every_format(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    line = "fuse mlp --tokens 64 --hidden 1024 --gpu h100,a100"
    assert run([*shlex.split(line), "--format", form]) == 0
    assert "a100" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ("fuse linear,gelo --tokens 4 --hidden 4", 2, "gelu"),
        ("fuse , --tokens 4 --hidden 4", 2, "1 to 8 steps"),
        ("fuse linear:x --tokens 4 --hidden 4", 2, "linear:14336"),
        ("fuse gelu:12 --tokens 4 --hidden 4", 2, "no step"),
        ("fuse gelu --hidden 4", 2, "--tokens"),
        ("fuse gelu --tokens 0 --hidden 4", 2, "--tokens"),
        ("fuse mlp --tokens 4 --hidden 4 --kv-width 8", 2, "--kv-width"),
        ("fuse linear --tokens 4 --hidden 4 --dtype fp8 --gpu a100", 4, "fp8"),
    ],
)
def test_mistakes_are_answered(line: str, code: int, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shlex.split(line)) == code
    assert says in capsys.readouterr().err
