"""Serving: worked by hand from the times of passes, and what must hold always."""

from __future__ import annotations

import json

import pytest

from memwall.cli import run
from memwall.reports.serve import START_S, ServeReport, serve
from memwall.reports.step import step

ASKED = "serve --model llama3-70b --gpu h100 --tp 8 --concurrency 64 --isl 1024 --osl 512"


def served(users: int = 64, **options: object) -> ServeReport:
    given = {"gpu": "h100", "tp": 8, "isl": 1024, "osl": 512, **options}
    return serve("llama3-70b", users=users, **given)  # type: ignore[arg-type]


def test_a_token_waits_for_the_others_prompts() -> None:
    report = served()
    decode = step("llama3-70b", gpu="h100", tp=8, phase="decode", batch=64, context=1024 + 256)
    eight = step("llama3-70b", gpu="h100", tp=8, seq=1024, batch=8)  # 8192 tokens a pass
    assert report.step_s == pytest.approx(decode.expected_time_s)
    assert report.prompt_s == pytest.approx(eight.expected_time_s / 8)
    assert report.tpot_s == pytest.approx(report.step_s + 64 * report.prompt_s / 512)
    alone = step("llama3-70b", gpu="h100", tp=8, seq=1024).expected_time_s
    wait = 64 * report.prompt_s / 20
    assert report.ttft_s == pytest.approx(START_S + alone + report.step_s + wait)


def test_throughput_is_users_over_request_time() -> None:
    report = served()
    assert report.request_s == pytest.approx(report.ttft_s + 511 * report.tpot_s)
    assert report.tokens_per_s == pytest.approx(64 * 512 / report.request_s)
    assert report.requests_per_s == pytest.approx(report.tokens_per_s / 512)


def test_more_users_wait_longer_and_get_more_done() -> None:
    reports = [served(users) for users in (1, 8, 64, 256)]
    assert [r.tpot_s for r in reports] == sorted(r.tpot_s for r in reports)
    assert [r.tokens_per_s for r in reports] == sorted(r.tokens_per_s for r in reports)


def test_two_replicas_serve_twice_the_users() -> None:
    one, two = served(32, tp=4), served(64, tp=4, dp=2)
    assert two.tpot_s == pytest.approx(one.tpot_s)
    assert two.ttft_s == pytest.approx(one.ttft_s)
    assert two.tokens_per_s == pytest.approx(2 * one.tokens_per_s)
    assert two.needed_bytes == one.needed_bytes


def test_the_json_has_what_is_promised(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*ASKED.split(), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["tpot_decode_s"] < document["tpot_s"] < document["ttft_s"] < document["request_s"]
    assert document["tokens_per_s_per_gpu"] == pytest.approx(document["tokens_per_s"] / 8)
    assert document["fits"] is True
    assert any("TPOT: time between two tokens" in note for note in document["notes"])


@pytest.mark.parametrize(
    ("options", "says"),
    [("--isl 1024", "--osl"), ("--isl 0 --osl 8", "--isl"), ("--isl 8 --osl 8 --tp 3", "--tp 2")],
)
def test_bad_input_gets_advice(capsys: pytest.CaptureFixture[str], options: str, says: str) -> None:
    assert run(f"serve --model llama3-70b --gpu h100 {options}".split()) == 2
    assert says in capsys.readouterr().err
