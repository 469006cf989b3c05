"""A training step: FLOPs by hand, exchanges by stage of ZeRO, and what must hold always."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memwall.cli import run
from memwall.models.load import load
from memwall.models.parameters import count
from memwall.reports.train_step import TrainStepReport, train_step
from memwall.units import format_bytes

EIGHT = count(load("llama3-8b"))
ASKED = "train-step --model llama3-8b --gpu h100 --gpus 8 --zero 3 --seq 8192"


def trained(model: str = "llama3-8b", **options: object) -> TrainStepReport:
    return train_step(model, **{"gpu": "h100", "gpus": 8, "seq": 4096, **options})  # type: ignore[arg-type]


def named(report: TrainStepReport) -> dict[str, tuple[str, int, int]]:
    return {each.name: (each.what.op, each.what.bytes, each.repeats) for each in report.exchanges}


def test_six_flops_a_parameter_and_token() -> None:
    """6 N T of the matrices, the head among them, and 3 x 2 s(s+1) h d a layer of causal attention."""
    report = trained(gpus=1)
    norms, table = 65 * 4096, 128_256 * 4096
    products = 6 * (EIGHT.total - table - norms) * 4096
    attention = 3 * 32 * 2 * 4096 * 4097 * 32 * 128
    assert report.model_flops == products + attention
    assert report.flops == products + attention * 3.5 / 3  # flash attention's backward: 5 products for 2
    assert report.bound_time_s == pytest.approx(report.flops / 989.4e12)
    again = trained(gpus=1, checkpointing="full")
    assert again.model_flops == report.model_flops
    assert again.flops > 1.25 * report.flops


def test_gradients_are_summed_once_a_step() -> None:
    bytes_of_all = 2 * EIGHT.total
    assert named(trained(zero=0)) == {"gradients": ("all_reduce", bytes_of_all, 1)}
    assert trained(gpus=1).exchanges == ()
    report = trained(zero=2, microbatches=4)
    assert named(report) == {
        "gradients": ("reduce_scatter", bytes_of_all, 1),
        "parameters": ("all_gather", bytes_of_all, 1),
    }


def test_fsdp_gathers_parameters_twice_a_micro_batch() -> None:
    found = named(trained(zero=3, microbatches=4))
    assert found["parameters"][2] == 8
    assert found["gradients"][2] == 4


def test_tensor_parallel_sums_two_a_layer_and_pass() -> None:
    found = named(trained(tp=8, microbatches=3))
    assert found["layers.all_reduce"] == ("all_reduce", 4096 * 4096 * 2, 2 * 32 * 2 * 3)
    again = named(trained(tp=8, microbatches=3, checkpointing="full"))
    assert again["layers.all_reduce"][2] == 2 * 32 * 3 * 3
    assert "gradients" not in found  # one replica


def test_shards_do_the_same_work() -> None:
    one, eight = trained(gpus=1), trained(tp=8)
    assert 8 * eight.model_flops >= one.model_flops
    assert 8 * eight.model_flops == pytest.approx(one.model_flops, rel=1e-3)
    replicas = trained(gpus=8)
    assert replicas.flops == one.flops
    assert replicas.tokens == 8 * one.tokens


def test_a_pipeline_waits_to_fill_and_drain() -> None:
    report = trained("llama3-70b", gpus=32, tp=8, pp=4, microbatches=12)
    assert report.bubble == pytest.approx(3 / 15)
    matrix = next(term.time_s for term in report.terms if term.limit == "matrix")
    assert report.bound_time_s == pytest.approx(matrix * 15 / 12)
    assert named(report)["stages"][2] == 2 * 12


def test_spread_experts_have_their_own_replicas() -> None:
    report = trained("mixtral-8x7b", gpus=64, tp=2, ep=8, zero=1)
    groups = {(each.name, each.what.gpus) for each in report.exchanges}
    assert ("gradients", 32) in groups  # everything else: 64 / tp
    assert ("gradients", 8) in groups  # experts: 64 / ep
    assert ("experts.dispatch", 8) in groups


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(ASKED.split()) == 0
    assert "all_gather of 8" in capsys.readouterr().out
    assert run([*ASKED.split(), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["zero"] == 3
    assert document["tokens"] == 8 * 8192
    parts = sum(each["repeats"] * each["bound_time_s"] for each in document["exchanges"])
    assert document["communication_bound_time_s"] == pytest.approx(parts)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--model llama3-8b --gpus 8 --tp 3", "--tp 2 or --tp 4"),  # no GPUs make 32 heads split in three
        ("--model llama3-8b --gpus 6 --tp 4", "--gpus 8"),
        ("--model llama3-8b --gpus 3 --tp 3", "--tp 2"),
        ("--model llama3-8b --gpus 8 --ep 8", "no experts"),
        ("--model whisper-large-v3 --gpus 8", "model list"),
    ],
)
def test_bad_input_gets_advice(capsys: pytest.CaptureFixture[str], options: str, says: str) -> None:
    assert run(f"train-step --gpu h100 {options}".split()) == 2
    assert says in capsys.readouterr().err


def test_what_does_not_fit_is_a_warning_as_of_a_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train-step", "--model", "llama3-70b", "--gpu", "h100", "--gpus", "8", "--tp", "8"]) == 0
    report = trained("llama3-70b", gpus=8, tp=8)
    assert report.usable_bytes is not None
    over = format_bytes(report.needs.total - report.usable_bytes)
    assert "warning: llama3-70b does not fit: each h100 needs" in (said := capsys.readouterr().err)
    assert f"{over} more than its" in said
    assert run(["train-step", "--model", "llama3-8b", "--gpu", "h100", "--gpus", "8", "--zero", "3"]) == 0
    assert capsys.readouterr().err == ""


RUNS = [
    {"model": "llama3-8b", "gpu": "h100", "gpus": 8, "zero": 3, "seq": 8192},
    {"model": "llama3-70b", "gpu": "h100", "gpus": 64, "tp": 8, "zero": 1},
    {"model": "llama3-70b", "gpu": "b200", "gpus": 64, "tp": 8, "pp": 4, "microbatches": 16},
    {"model": "mixtral-8x7b", "gpu": "h100", "gpus": 64, "tp": 8, "ep": 8, "zero": 1},
    {"model": "gpt2", "gpu": "a100", "gpus": 1, "seq": 1024, "attention": "standard"},
    {"model": "bert-base", "gpu": "h100", "seq": 512},
    {"model": "llama3-8b", "gpu": "v100", "gpus": 8, "zero": 3, "seq": 1024},
    {"model": "llama3-8b", "gpu": "l40s", "gpus": 8, "zero": 2, "checkpointing": "full"},
]


@pytest.mark.parametrize("run_", RUNS, ids=lambda each: f"{each['model']}-{each['gpu']}")
def test_no_estimate_is_below_the_bound(run_: dict[str, Any]) -> None:
    report = train_step(**run_)
    assert report.estimate is not None
    assert report.bound_time_s < report.estimate.time_s <= report.estimate.in_turn_s
    assert report.mfu_in(report.estimate.time_s) < report.mfu


def test_layers_computed_again_take_one_more_forward() -> None:
    """All but the head and the table: of 8192 tokens of 8B the head is 5 % of the products."""
    kept, again = (
        train_step("llama3-8b", gpu="h100", gpus=8, zero=3, seq=8192, checkpointing=how).estimate
        for how in ("none", "full")
    )
    assert kept is not None
    assert again is not None
    assert 1.25 < again.kernels_s / kept.kernels_s < 1.34


def test_an_estimate_is_near_a_published_run() -> None:
    """Llama 3 405B, 8192 H100, tp 8, pp 16, 8192 tokens, 32 sequences a replica: 43 % of the peak
    (arXiv:2407.21783, table 4, with an interleaved schedule)."""
    report = train_step(
        "llama3-405b", gpu="h100", gpus=8192, tp=8, pp=16, zero=1, seq=8192, microbatches=32,
        sequence_parallel=True,
    )  # fmt: skip
    assert report.estimate is not None
    assert report.mfu_in(report.estimate.in_turn_s) == pytest.approx(0.43, rel=0.15)


def test_the_estimate_says_that_nothing_measured_stands_behind_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = "train-step --model llama3-8b --gpu h100 --gpus 8 --zero 3"
    assert run([*words.split(), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["bound_time_s"] < document["estimate_time_s"] <= document["estimate_in_turn_time_s"]
    assert document["estimate_basis"] == "architecture default"
    assert any("no measured training step stands behind it" in note for note in document["notes"])


def test_an_encoders_head_has_all_tokens_once() -> None:
    """6 N T of BERT base without its tables: 12 layers of 12 x 768^2 and the head's 30522 x 768, 512 tokens;
    scores and values are 12 x 3 x 4 x 512^2 x 768 more."""
    report = train_step("bert-base", gpu="h100", seq=512)
    products = 6 * (12 * 12 * 768**2 + 30522 * 768) * 512
    attention = 12 * 3 * 4 * 512**2 * 768
    assert report.model_flops == pytest.approx(products + attention, rel=0.01)


def test_without_bf16_it_is_fp16(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run(
            [
                "train-step",
                "--model",
                "llama3-8b",
                "--gpu",
                "v100",
                "--gpus",
                "8",
                "--zero",
                "3",
                "--seq",
                "1024",
            ]
        )
        == 0
    )
    assert "fp16 stands in" in capsys.readouterr().out
