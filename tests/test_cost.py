"""Costs: worked by hand from times and prices; linear in the price; nothing assumed."""

from __future__ import annotations

import json

import pytest

from memwall.cli import run
from memwall.reports.cost import CostReport, cost
from memwall.reports.step import StepReport, step

ASKED = "cost --model llama3-70b --gpu h100 --tp 8 --price 2.50 --batch 32 --context 4096"


def priced(price: float = 2.5, **options: object) -> CostReport:
    given = {"gpu": "h100", "tp": 8, "batch": 32, "context": 4096, **options}
    return cost("llama3-70b", price=price, **given)  # type: ignore[arg-type]


def taken(report: StepReport) -> float:
    assert report.estimate is not None
    return float(report.estimate.time_s)


def test_a_million_tokens_by_hand() -> None:
    report = priced()
    decode = step("llama3-70b", gpu="h100", tp=8, phase="decode", batch=32, context=4096)
    prefill = step("llama3-70b", gpu="h100", tp=8, phase="prefill", seq=4096)
    out = 8 * 2.5 / 3600 * taken(decode) / 32
    into = 8 * 2.5 / 3600 * taken(prefill) / 4096
    assert report.price(report.gpu_s_per_token_out) == pytest.approx(out)
    assert report.price(report.gpu_s_per_token_in) == pytest.approx(into)
    assert report.joules(report.gpu_s_per_token_out) == pytest.approx(8 * 700 * taken(decode) / 32)


def test_half_the_utilisation_doubles_the_price_and_not_the_energy() -> None:
    full, half = priced(), priced(utilisation=0.5)
    token = full.gpu_s_per_token_out
    assert half.price(token) == pytest.approx(2 * full.price(token))
    assert half.joules(token) == full.joules(token)
    assert priced(5.0).price(token) == pytest.approx(2 * full.price(token))


def test_a_year_of_requests() -> None:
    report = priced(prompt=1024, output_tokens=256, requests_per_s=10, utilisation=0.5)
    each = 1024 * report.gpu_s_per_token_in + 256 * report.gpu_s_per_token_out
    assert report.gpu_s_per_request == pytest.approx(each)
    assert report.gpu_equivalents == pytest.approx(10 * each / 0.5)
    assert report.price_per_year == pytest.approx(10 * each / 0.5 * 2.5 * 8760)


def test_replicas_cost_a_token_as_much_as_one() -> None:
    one, two = priced(tp=4, batch=16), priced(tp=4, dp=2, batch=32)
    assert two.gpu_s_per_token_out == pytest.approx(one.gpu_s_per_token_out)
    assert two.gpu_s_per_token_in == pytest.approx(one.gpu_s_per_token_in)


def test_the_command_prints_its_assumptions(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(ASKED.split()) == 0
    printed = capsys.readouterr().out
    for words in ("2.5 a GPU-hour", "700 W", "100 % of the hours", "a million tokens out"):
        assert words in printed
    assert run([*ASKED.split(), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["price_per_gpu_hour"] == 2.5
    assert document["price_per_million_tokens_in"] < document["price_per_million_tokens_out"]
    assert document["price_per_year"] is None


def test_what_does_not_fit_says_so_first_and_is_a_no(capsys: pytest.CaptureFixture[str]) -> None:
    asked = "cost --model llama3-70b --price 2 --context 4096 --gpu"
    assert run([*asked.split(), "h100"]) == 1
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("Does not fit, ")
    assert first.endswith("it would with --tp 2, or --pp 2")
    assert run([*asked.split(), "h100", "--tp", "2"]) == 0
    assert run([*asked.split(), "h100", "--pp", "2"]) == 0
    assert run([*asked.split(), "h100,a100"]) == 1
    assert capsys.readouterr().out.splitlines()[-1]
    assert run([*asked.split(), "h100,h200"]) == 0  # the h200 holds it


def test_the_largest_batch_that_fits_is_named() -> None:
    crowded = priced(batch=4096)
    assert not crowded.fits
    named = int(crowded.instead.rpartition("--batch ")[2])
    assert priced(batch=named).fits
    assert not priced(batch=named + 1).fits


def test_one_choice_saves_over_another(capsys: pytest.CaptureFixture[str]) -> None:
    command = "cost --model llama3-70b --gpu h100,h200 --tp 8 --price 2.5,3 --batch 32 --context 4096"
    assert run([*command.split(), *["--output-tokens", "256", "--rate", "10"]]) == 0
    assert "a year over" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("", "--price"),
        ("--price 0", "above 0"),
        ("--price 1,2,3", "3 prices for 1 GPU"),
        ("--price two", "--price"),
        ("--price 2 --rate 10", "--output-tokens"),
        ("--price 2 --utilisation 1.5", "--utilisation"),
        ("--price 2 --tp 3", "--tp 2"),
    ],
)
def test_bad_input_gets_advice(capsys: pytest.CaptureFixture[str], options: str, says: str) -> None:
    assert run(f"cost --model llama3-70b --gpu h100 --context 4096 {options}".split()) == 2
    assert says in capsys.readouterr().err
