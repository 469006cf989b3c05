"""Serving: worked by hand from the times of passes, and what must hold always."""

from __future__ import annotations

import csv
import json
from functools import cache
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pytest

from memwall.cli import run
from memwall.hardware import load as load_gpu
from memwall.models.load import load as load_model
from memwall.reports.serve import START_S, ServeReport, serve
from memwall.reports.step import StepReport, step

ASKED = "serve --model llama3-70b --gpu h100 --tp 8 --concurrency 64 --isl 1024 --osl 512"


def served(users: int = 64, **options: object) -> ServeReport:
    given = {"gpu": "h100", "tp": 8, "isl": 1024, "osl": 512, **options}
    return serve("llama3-70b", users=users, **given)  # type: ignore[arg-type]


def taken(report: StepReport) -> float:
    assert report.estimate is not None
    return float(report.estimate.time_s)


def test_a_token_waits_for_the_others_prompts() -> None:
    report = served()
    decode = step("llama3-70b", gpu="h100", tp=8, phase="decode", batch=64, context=1024 + 256)
    eight = step("llama3-70b", gpu="h100", tp=8, seq=1024, batch=8)  # 8192 tokens a pass
    assert report.step_s == pytest.approx(taken(decode))
    assert report.prompt_s == pytest.approx(taken(eight) / 8)
    assert report.tpot_s == pytest.approx(report.step_s + 0.95 * 64 * report.prompt_s / 512)
    alone = taken(step("llama3-70b", gpu="h100", tp=8, seq=1024))
    wait = 64 * report.prompt_s / 20
    assert report.ttft_s == pytest.approx(START_S + alone + report.step_s + wait)


def test_all_at_once_wait_for_each_other() -> None:
    once, often = served(rounds=1), served(rounds=1000)
    assert once.ttft_s - often.ttft_s == pytest.approx(64 * once.prompt_s / 2, rel=0.01)
    assert often.tpot_s - once.tpot_s == pytest.approx(64 * once.prompt_s / 512 / 2, rel=0.01)


class Row(NamedTuple):
    report: ServeReport
    dtype: str | None
    ttft_s: float
    tpot_s: float


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """Every seventh of the measured rows."""
    path = Path(__file__).parents[1] / "configs/measurements/serving.csv"
    table = csv.DictReader(line for line in path.read_text().splitlines() if not line.startswith("#"))
    milli = 1e-3
    return [
        Row(
            serve(
                _model(row["model"]),
                gpu=_gpu(row["gpu"]),
                dtype=row["dtype"] or None,
                users=int(row["users"]),
                isl=int(row["isl"]),
                osl=int(row["osl"]),
                tp=int(row["tp"]),
                ep=int(row["ep"]),
            ),
            row["dtype"] or None,
            float(row["ttft_ms"]) * milli,
            float(row["tpot_ms"]) * milli,
        )
        for number, row in enumerate(table)
        if number % 7 == 0
    ]


_model, _gpu = cache(load_model), cache(load_gpu)


def test_half_of_the_times_between_tokens_are_within_fifteen_per_cent(rows: list[Row]) -> None:
    """Three engines, two GPUs, dense models and mixtures, 1 to 8 GPUs, 4 to 256 users; none fitted."""
    errors = [row.report.tpot_s / row.tpot_s - 1 for row in rows]
    assert len(errors) == 199
    assert median(map(abs, errors)) <= 0.15
    assert abs(median(errors)) <= 0.05


def test_no_engine_is_faster_than_a_steps_bound(rows: list[Row]) -> None:
    """With the cache in 8 bits, as some run it; but for rows in which most users queue: TTFT of 10 s."""
    checked = 0
    for report, dtype, ttft_s, tpot_s in rows[::3]:
        if ttft_s > 10:
            continue
        demand, layout = report.demand, report.layout
        least = step(
            report.model, gpu=report.device, dtype=dtype, kv_dtype="fp8", bound_only=True,
            batch=demand.users, context=demand.isl + demand.osl // 2, tp=layout.tp, ep=layout.ep,
        )  # fmt: skip
        assert least.bound_time_s <= tpot_s, report
        checked += 1
    assert checked > 50


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


def test_what_does_not_fit_names_a_layout_that_does() -> None:
    report = served(tp=1, users=1)
    assert not report.fits
    assert report.roomier[0].tp == 2  # 141 GB on two of 85 GB
    assert served(tp=2, users=1).fits
    assert report.instead == "--tp 2, or --pp 2"
    crowded = served(100_000)
    assert served(crowded.most_users).fits
    assert not served(crowded.most_users + 1).fits


def test_what_does_not_fit_says_so_first_and_is_a_no(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "--model", "llama3-70b", "--gpu", "h100", "--isl", "1024", "--osl", "512"]) == 1
    first, then, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("Does not fit, ")
    assert first.endswith("it would with --tp 2, or --pp 2")
    assert "as if it did" in then
    assert (
        run(
            [
                "serve",
                "--model",
                "llama3-70b",
                "--gpu",
                "h100,h200",
                "--tp",
                "2",
                "--isl",
                "1024",
                "--osl",
                "512",
            ]
        )
        == 0
    )
    assert not capsys.readouterr().out.startswith("Does not fit")


def test_an_answer_of_one_token_has_no_time_between_two(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["serve", "--model", "llama3-8b", "--gpu", "h100", "--isl", "1024", "--osl", "1"]
    assert run([*asked, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["tpot_s"] is document["tpot_decode_s"] is document["tokens_per_s_per_user"] is None
    assert document["request_s"] == document["ttft_s"]
    assert run(asked) == 0
    assert "there is no second to wait for" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "says"),
    [("--isl 1024", "--osl"), ("--isl 0 --osl 8", "--isl"), ("--isl 8 --osl 8 --tp 3", "--tp 2")],
)
def test_bad_input_gets_advice(capsys: pytest.CaptureFixture[str], options: str, says: str) -> None:
    assert run(f"serve --model llama3-70b --gpu h100 {options}".split()) == 2
    assert says in capsys.readouterr().err
