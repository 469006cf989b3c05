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
from memwall.models.passes import Tokens
from memwall.reports.expected import Passes, subject
from memwall.reports.serve import ServeReport, serve
from memwall.reports.serve_engines import ENGINES, HOST_STEP_S, HOST_TOKEN_S
from memwall.reports.serve_loop import Demand
from memwall.reports.serve_times import PassTimes
from memwall.reports.step import StepReport, step
from memwall.reports.step_layout import layout_of

ASKED = "serve --model llama3-70b --gpu h100 --tp 8 --concurrency 64 --isl 1024 --osl 512"


def served(users: int = 64, **options: object) -> ServeReport:
    given = {"gpu": "h100", "tp": 8, "isl": 1024, "osl": 512, "spread": 1, **options}
    return serve("llama3-70b", users=users, **given)  # type: ignore[arg-type]


def taken(report: StepReport) -> float:
    assert report.estimate is not None
    return float(report.estimate.time_s)


def test_a_user_alone_sees_a_prompts_pass_and_steps() -> None:
    report = served(users=1)
    prompt = step("llama3-70b", gpu="h100", tp=8, seq=1024)
    decode = step("llama3-70b", gpu="h100", tp=8, phase="decode", batch=1, context=1024 + 256)
    start_s = ENGINES["vllm"].start_s
    assert report.ttft_s == pytest.approx(start_s + HOST_STEP_S + taken(prompt))
    assert report.seen.ttft_p90_s == pytest.approx(report.ttft_s)
    assert report.tpot_s == pytest.approx(HOST_STEP_S + HOST_TOKEN_S + taken(decode), rel=0.002)
    assert report.tpot_s == pytest.approx(report.step_s, rel=0.001)
    assert report.alone_s == pytest.approx(report.ttft_s - start_s)


def test_prompts_that_fill_a_pass_and_go_first_have_a_closed_form() -> None:
    """Of u users who come at once each waits for half of the others' prompts, and sees the other half."""
    report = served(users=16, isl=8192, rounds=1, engine="sglang")
    pass_s = report.alone_s
    assert report.ttft_s == pytest.approx(ENGINES["sglang"].start_s + 17 / 2 * pass_s)
    assert report.tpot_s == pytest.approx(report.step_s + 15 / 2 * pass_s / 511, rel=0.001)


def test_times_between_the_batches_worked_out_are_those_of_the_passes() -> None:
    """48 users, between 32 and 64: a straight line is within a per cent of the step worked out in full."""
    loaded, device = load_model("llama3-70b"), load_gpu("h100")
    passes = Passes(subject(loaded, device)[0])
    layout = layout_of(loaded, device, {"tp": 8})
    times = PassTimes(passes, layout, Demand(64, 1024, 512, 1), 64, (0, 0))
    exact = passes.time(layout, Tokens(48, 1, 1280), prefill=False).time_s
    assert times.step_s(48, 1280) == pytest.approx(exact, rel=0.01)
    read = passes.time(layout, Tokens(3, 1024, 1024), prefill=True).time_s
    assert times.read_s(3 * 1024) == pytest.approx(read, rel=0.02)
    least = max(times.step_s(48, 1280), times.read_s(1024))
    assert least < times.mixed_s(48, 1280, 1024) < times.step_s(48, 1280) + times.read_s(1024)


def test_scheduling_says_who_waits() -> None:
    """Prompts first: longer until the first token, and less between two of those who come together."""
    mixed, first = served(engine="vllm"), served(engine="sglang")
    assert first.ttft_s > mixed.ttft_s
    assert first.tpot_s < mixed.tpot_s
    assert served(hold=20).ttft_s > mixed.ttft_s
    often, seldom = (served(engine="sglang", spread=0.8, osl=1024, poll=poll) for poll in (1, 30))
    assert seldom.ttft_s > often.ttft_s
    assert served(stream=10).tpot_s < mixed.tpot_s


def test_users_without_a_place_wait_for_others() -> None:
    all_at_once, half = served(64), served(64, max_batch=32)
    assert (all_at_once.slots, half.slots) == (64, 32)
    assert all_at_once.seen.queue_s == 0
    assert half.ttft_s > half.seen.queue_s > 0.8 * 32 / 64 * half.request_s
    assert half.tpot_s < all_at_once.tpot_s
    crowded = served(64, tp=2, isl=8192, osl=1024, spread=0.8)
    assert not crowded.fits
    assert 1 < crowded.slots < 64
    one = (crowded.needed_bytes - served(1, tp=2, isl=8192, osl=1024).needed_bytes) / 63
    assert crowded.slots == int((crowded.total_bytes - crowded.needed_bytes + 64 * one) / one)


class Row(NamedTuple):
    report: ServeReport
    dtype: str | None
    kv_dtype: str | None
    ttft_s: float
    tpot_s: float


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """The measured rows, each asked as its campaign asked, if that is what was measured."""
    campaigns = {each["campaign"]: each for each in table("serving_campaigns.csv")}
    return [
        measured(row, campaigns[row["campaign"]])
        for row in table("serving.csv")
        if campaigns[row["campaign"]]["judged"] == "yes"
    ]


def table(name: str) -> list[dict[str, str]]:
    path = Path(__file__).parents[1] / "configs/measurements" / name
    return list(csv.DictReader(line for line in path.read_text().splitlines() if not line.startswith("#")))


def measured(row: dict[str, str], campaign: dict[str, str]) -> Row:
    milli = 1e-3
    users = int(row["users"])
    said = {key: int(campaign[key]) for key in ("rounds", "ahead", "poll", "hold", "stream") if campaign[key]}
    if campaign["free_slots"]:
        said["max_batch"] = users + int(campaign["free_slots"])
    report = serve(
        _model(row["model"]),
        gpu=_gpu(row["gpu"]),
        dtype=row["dtype"] or None,
        kv_dtype=campaign["kv_dtype"] or None,
        users=users,
        isl=int(row["isl"]),
        osl=int(row["osl"]),
        tp=int(row["tp"]),
        ep=int(row["ep"]),
        engine=row["engine"],
        spread=float(campaign["spread"]),
        **said,  # type: ignore[arg-type]
    )
    dtypes = row["dtype"] or None, campaign["kv_dtype"] or None
    return Row(report, *dtypes, float(row["ttft_ms"]) * milli, float(row["tpot_ms"]) * milli)


_model, _gpu = cache(load_model), cache(load_gpu)


def test_half_of_the_times_are_within_fifteen_per_cent(rows: list[Row]) -> None:
    """Three engines, two GPUs, dense models and mixtures, 1 to 8 GPUs, 4 to 512 users; five constants fitted.

    TTFT 14.8 %, bias -2.6 %, TPOT 7.8 %, bias +0.9 %.
    """
    assert len(rows) == 1294
    first = [row.report.ttft_s / row.ttft_s - 1 for row in rows]
    between = [row.report.tpot_s / row.tpot_s - 1 for row in rows]
    assert median(map(abs, first)) <= 0.15
    assert abs(median(first)) <= 0.05
    assert median(map(abs, between)) <= 0.08
    assert abs(median(between)) <= 0.02


def test_no_engine_is_faster_than_a_steps_bound(rows: list[Row]) -> None:
    """With the cache in 8 bits, as some run it, and as many users as have a place."""
    checked = 0
    for report, dtype, _, _, tpot_s in rows[::3]:
        demand, layout = report.demand, report.layout
        if report.slots < demand.users - 1:
            continue
        length = round((demand.isl + demand.osl / 2) * demand.spread)
        least = step(
            report.model, gpu=report.device, dtype=dtype, kv_dtype="fp8", bound_only=True,
            batch=demand.users, context=length, tp=layout.tp, ep=layout.ep,
        )  # fmt: skip
        assert least.bound_time_s <= tpot_s, report
        checked += 1
    assert checked > 50


def test_every_row_has_a_campaign_that_says_what_was_asked() -> None:
    campaigns = {each["campaign"]: each for each in table("serving_campaigns.csv")}
    used = {row["campaign"] for row in table("serving.csv")}
    assert used == set(campaigns)
    assert all(each["source"] and each["judged"] in ("yes", "no") for each in campaigns.values())


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
    assert any("TPOT: (a request's time - its TTFT)" in note for note in document["notes"])


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
    [
        ("--isl 1024", "--osl"),
        ("--isl 0 --osl 8", "--isl"),
        ("--isl 8 --osl 8 --tp 3", "--tp 2"),
        ("--isl 8 --osl 8 --concurrency 1e6", "fewer"),
        ("--isl 1e15 --osl 8", "fewer"),
        ("--isl 8 --osl 8 --spread 2", "--spread 0.8"),
        ("--isl 8 --osl 8 --hold -1", "--hold 1"),
        ("--isl 8 --osl 8 --engine x", "sglang"),
    ],
)
def test_bad_input_gets_advice(capsys: pytest.CaptureFixture[str], options: str, says: str) -> None:
    assert run(f"serve --model llama3-70b --gpu h100 {options}".split()) == 2
    assert says in capsys.readouterr().err
