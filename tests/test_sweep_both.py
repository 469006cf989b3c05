"""Flags asked both ways: each row is what the command says with the flag, or without it."""

from __future__ import annotations

import json
from typing import Any

import pytest

import memwall
from memwall.cli import run
from memwall.render import step_record


def swept(capsys: pytest.CaptureFixture[str], line: str) -> list[dict[str, Any]]:
    assert run(["sweep", *line.split(), "--json"]) == 0
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["results"]
    return rows


def test_attention_with_and_without_a_mask(capsys: pytest.CaptureFixture[str]) -> None:
    rows = swept(capsys, "--op attention --heads 8 --head-dim 64 --seq 512,2048 --both causal")
    assert [row["causal"] for row in rows] == [False, False, True, True]
    for row in rows:
        single = memwall.roofline(
            "attention", heads=8, head_dim=64, seq=row["seq"], causal=bool(row["causal"])
        )
        assert (row["flops"], row["bound_time_s"]) == (single.flops, single.bound_time_s)
    # 4 x heads x head_dim x pairs: all of 512 x 512, or those on and below the diagonal
    assert [rows[0]["flops"], rows[2]["flops"]] == [
        4 * 8 * 64 * pairs for pairs in (512 * 512, 512 * 513 // 2)
    ]


def test_two_flags_of_a_step(capsys: pytest.CaptureFixture[str]) -> None:
    line = "step --model llama3-8b --batch 4 --context 2048 --both eager,merged --estimate"
    rows = swept(capsys, line)
    assert [(row["eager"], row["merged"]) for row in rows] == [
        (False, False), (False, True), (True, False), (True, True),
    ]  # fmt: skip
    for row in rows:
        flags = {name: row[name] for name in ("eager", "merged")}
        single = step_record.record(memwall.step("llama3-8b", batch=4, context=2048, **flags))
        assert row["traffic_bytes"] == single["traffic_bytes"]
        assert row["estimate_time_s"] == pytest.approx(single["estimate_time_s"], rel=1e-12)


def test_a_report_and_its_page(capsys: pytest.CaptureFixture[str]) -> None:
    line = "attention --model llama3-8b --seq 1024 --both causal"
    off, on = swept(capsys, line)
    assert off["flash.bound_time_s"] > on["flash.bound_time_s"]
    assert run(["sweep", *line.split()]) == 0
    assert [each.split()[0] for each in capsys.readouterr().out.splitlines()[-2:]] == ["no", "yes"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--op gemm --m 8 --n 8 --k 8 --both dtype", "'dtype' is none. Choose: causal"),
        ("step --model llama3-8b --context 8 --both eager --eager", "Leave out --eager"),
        ("hierarchy --both causal", "It has no flag"),
    ],
)
def test_what_cannot_be_asked_both_ways(line: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sweep", *line.split()]) == 2
    assert said in capsys.readouterr().err
