"""Plans: every layout once, the best first, and a reason for each that fails."""

from __future__ import annotations

import json
import time

import pytest

from memwall.cli import run
from memwall.models.load import load
from memwall.reports.plan import PlanReport, layouts, plan
from memwall.reports.step import step

COMMAND = "plan --model llama3-70b --gpu h100 --gpus 8 --context 8192 --tpot 30ms --ttft 500ms"


@pytest.fixture(scope="module")
def seventy() -> PlanReport:
    return plan("llama3-70b", gpu="h100", gpus=8, context=8192, tpot_s=0.03, ttft_s=0.5)


def test_every_way_to_use_eight_gpus() -> None:
    dense = list(layouts(load("llama3-70b"), 8))
    assert len(dense) == len(set(dense)) == 10  # ordered factorisations of 8 = 2^3 in three: C(5, 2)
    assert all(layout.gpus == 8 for layout in dense)
    assert {layout.ep for layout in layouts(load("deepseek-v3"), 8)} == {1, 2, 4, 8}


def test_those_that_meet_the_targets_come_first_by_throughput(seventy: PlanReport) -> None:
    good = [each for each in seventy.candidates if each.meets]
    assert seventy.candidates[: len(good)] == tuple(good)
    rates = [each.tokens_per_s for each in good]
    assert rates == sorted(rates, reverse=True)
    for each in good:
        assert each.ttft_s is not None
        assert each.tpot_s is not None
        assert each.ttft_s <= 0.5
        assert each.tpot_s <= 0.03
        assert each.needed_bytes <= seventy.total_bytes


def test_each_other_one_has_its_reason(seventy: PlanReport) -> None:
    reasons = {each.layout.text: each.reason for each in seventy.candidates if not each.meets}
    assert "does not fit" in reasons["DP 8"]  # 141 GB of weights on one GPU of 85
    assert "TTFT" in reasons["PP 8"]
    assert all(reasons.values())


def test_a_plans_times_are_those_of_the_step(seventy: PlanReport) -> None:
    best = seventy.chosen
    assert best is not None
    report = step("llama3-70b", gpu="h100", tp=best.layout.tp, batch=best.batch, context=8192, phase="decode")
    assert report.estimate is not None
    assert best.tpot_s == pytest.approx(report.estimate.time_s)
    assert best.needed_bytes > report.resident_bytes


def test_a_thousand_layouts_in_under_a_second() -> None:
    """Ways to lay it out and batches to serve with, of the mixtures that have most of them."""
    started, looked_at = time.process_time(), 0
    for gpus in (8, 16, 32):
        looked_at += plan("deepseek-v3", gpu="h200", gpus=gpus, context=8192, prompt=2048).evaluated
    spent = time.process_time() - started
    assert looked_at > 1000
    assert spent / looked_at < 0.001 * 3  # three times the promise: shared machines


def test_many_replicas_serve_many_more_sequences() -> None:
    """The largest batch is a replica's, not the plan's: 64 nodes serve what each serves alone."""
    one, many = (plan("llama3-70b", gpus=gpus, context=8192).candidates[0] for gpus in (8, 512))
    assert many.batch > 4096
    assert many.tokens_per_s >= 0.9 * 64 * one.tokens_per_s


def test_a_price_makes_tokens_cost() -> None:
    report = plan("llama3-70b", gpu="h100", gpus=8, context=4096, price=2.5)
    best = report.chosen
    assert best is not None
    assert report.price_per_token(best) == pytest.approx(8 * 2.5 / 3600 / best.tokens_per_s)
    assert plan("llama3-8b", context=512, gpus=1).price_per_token(best) is None


def test_tighter_targets_never_find_more() -> None:
    found = []
    for tpot_s in (0.1, 0.03, 0.015, 0.001):
        report = plan("llama3-70b", gpu="h200", gpus=8, context=4096, tpot_s=tpot_s)
        found.append(sum(each.meets for each in report.candidates))
    assert found == sorted(found, reverse=True)
    assert found[-1] == 0


def test_what_fits_on_no_layout_names_how_many_gpus_would_do() -> None:
    """812 GB of weights: not on 8 x 85 GB, but on 16."""
    report = plan("llama3-405b", gpu="h100", gpus=8, context=4096)
    assert report.chosen is None
    assert report.enough_gpus == 16
    assert plan("llama3-405b", gpu="h100", gpus=16, context=4096).enough_gpus is None
    assert plan("llama3-70b", gpu="h100", gpus=8, context=4096, tpot_s=1e-6).enough_gpus is None


def test_degrees_that_cannot_be_are_named_and_not_listed() -> None:
    report = plan("gpt2", gpu="h100", gpus=16, context=512)  # 12 layers, 12 heads, 8 GPUs a node
    assert all(each.layout.tp in (1, 2, 4) and each.layout.pp <= 8 for each in report.candidates)
    assert any(text.startswith("pp 16: ") and "12 layers" in text for text in report.impossible)
    assert any(text.startswith("tp 8, tp 16: ") for text in report.impossible)


def test_the_command_says_what_is_best(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(COMMAND.split()) == 0
    printed = capsys.readouterr().out
    assert "Layouts that meet them" in printed
    assert "Why the others fail" in printed
    assert run([*COMMAND.split(), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["meets"] is True
    assert document["layouts"][0]["tp"] == 8
    assert all(each["meets"] or each["reason"] for each in document["layouts"])


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        ("--model llama3-70b --context 8192 --tpot 1us", 1, "0 of 10 meet them"),
        ("--model llama3-70b --context 8192 --tpot 30", 2, "30ms"),
        ("--model llama3-70b --context 8192 --tpot fastms", 2, "30ms"),
        ("--model llama3-70b --context 8192 --prompt 9000", 2, "--context 9000"),
        ("--model bert-base-uncased --context 512", 2, "not a decoder"),
        ("--model llama3-70b", 2, "--context"),
    ],
)
def test_bad_input_gets_advice(
    capsys: pytest.CaptureFixture[str], options: str, code: int, says: str
) -> None:
    assert run(["plan", *options.split()]) == code
    printed = capsys.readouterr()
    assert says in printed.out + printed.err
