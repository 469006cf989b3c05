"""What Python callers hand over: checked before anything is computed, in one kind of error."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import memwall

Call = Callable[..., Any]
MODELS: dict[str, tuple[Call, dict[str, Any]]] = {
    "step": (memwall.step, {"context": 4096}),
    "capacity": (memwall.capacity, {"context": 4096}),
    "quant": (memwall.quant, {"context": 4096}),
    "plan": (memwall.plan, {"gpus": 2, "context": 4096}),
    "cost": (memwall.cost, {"price": 2.0, "context": 4096}),
    "serve": (memwall.serve, {"users": 2, "isl": 64, "osl": 8}),
    "training_memory": (memwall.training_memory, {"gpus": 8}),
    "train_step": (memwall.train_step, {"gpu": "h100", "gpus": 8}),
    "attention": (memwall.attention, {"seq": 4096}),
}
COUNTS = [
    ("step", "context"), ("step", "batch"), ("step", "seq"), ("step", "tp"), ("step", "dp"),
    ("capacity", "context"), ("capacity", "batch"), ("capacity", "block"), ("capacity", "tp"),
    ("quant", "batch"), ("plan", "gpus"), ("plan", "context"), ("cost", "batch"), ("serve", "users"),
    ("serve", "osl"), ("serve", "poll"), ("training_memory", "gpus"), ("training_memory", "micro_batch"),
    ("train_step", "gpus"), ("train_step", "tp"), ("attention", "seq"),
]  # fmt: skip


@pytest.mark.parametrize("value", [0, -1, 2.5, float("nan"), True, "4e3", "x", 10**16], ids=repr)
@pytest.mark.parametrize(("report", "name"), COUNTS)
def test_counts_are_whole_numbers_from_one_on(report: str, name: str, value: Any) -> None:
    call, given = MODELS[report]
    with pytest.raises(memwall.MemwallError, match=f"{name} must be a whole number from 1"):
        call("llama3-8b", **{**given, name: value})


def test_some_may_be_none_at_all() -> None:
    call, given = MODELS["serve"]
    assert call("llama3-8b", **given, hold=0, ahead=0).ttft_s > 0
    with pytest.raises(memwall.MemwallError, match="ahead must be a whole number from 0"):
        call("llama3-8b", **given, ahead=-1)
    with pytest.raises(memwall.MemwallError, match="size_bytes must be"):
        memwall.collective("all_reduce", size_bytes=0)


@pytest.mark.parametrize("report", [name for name in MODELS if name != "attention"])
def test_a_model_is_a_name_a_path_or_a_model(report: str, tmp_path: Path) -> None:
    call, given = MODELS[report]
    for wrong in (5, None, ["llama3-8b"]):
        with pytest.raises(memwall.MemwallError, match="model must be a name, a file or"):
            call(wrong, **given)


def test_paths_are_names_of_files(tmp_path: Path) -> None:
    gpu = tmp_path / "chip.yaml"
    gpu.write_text((Path(__file__).parent.parent / "hardware" / "h100.yaml").read_text())
    config = Path(__file__).parent.parent / "configs" / "models" / "llama3-8b.yaml"
    assert memwall.step(config, gpu=gpu, context=4096).bound_time_s == pytest.approx(
        memwall.step("llama3-8b", gpu="h100", context=4096).bound_time_s
    )
    with pytest.raises(memwall.MemwallError, match="gpu must be a name, a file or"):
        memwall.roofline("gemv", gpu=5)  # type: ignore[arg-type]


def test_numbers_of_numpy_are_numbers() -> None:
    report = memwall.step("llama3-8b", context=np.int64(4096), batch=np.int32(2))  # type: ignore[arg-type]
    assert report.bound_time_s == memwall.step("llama3-8b", context=4096, batch=2).bound_time_s
    assert json.loads(json.dumps(report.to_dict()))["batch"] == 2


NUMBERS = [("cost", "price"), ("cost", "utilisation"), ("capacity", "memory_fraction"), ("serve", "spread")]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "x", True, Path("x")], ids=repr)
@pytest.mark.parametrize(("report", "name"), [*NUMBERS, ("step", "imbalance")])
def test_numbers_are_finite(report: str, name: str, value: Any) -> None:
    call, given = MODELS[report]
    with pytest.raises(memwall.MemwallError, match=f"{name} must be a finite number"):
        call("llama3-8b", **{**given, name: value})


@pytest.mark.parametrize("value", [0, 2.5, "", [], ()], ids=repr)
@pytest.mark.parametrize(
    ("report", "name"),
    [("step", "dtype"), ("step", "engine"), ("step", "library"), ("capacity", "kv_dtype"), ("plan", "dtype")],
)
def test_names_are_texts(report: str, name: str, value: Any) -> None:
    call, given = MODELS[report]
    with pytest.raises(memwall.MemwallError, match=f"{name} must be a text"):
        call("llama3-8b", **{**given, name: value})


@pytest.mark.parametrize("value", ["no", 0, None], ids=repr)
@pytest.mark.parametrize("name", ["sequence_parallel", "eager", "bound_only"])
def test_flags_are_true_or_false(name: str, value: Any) -> None:
    asked: dict[str, Any] = {"context": 4096, name: value}
    with pytest.raises(memwall.MemwallError, match=f"{name} is True or False"):
        memwall.step("llama3-8b", **asked)


@pytest.mark.parametrize(
    ("report", "name"), [("step", "batch"), ("step", "tp"), ("plan", "context"), ("quant", "batch")]
)
def test_what_cannot_be_left_out_is_not_none(report: str, name: str) -> None:
    call, given = MODELS[report]
    with pytest.raises(memwall.MemwallError, match=f"{name} must be a whole number"):
        call("llama3-8b", **{**given, name: None})


@pytest.mark.parametrize("wrong", [0, 2.5, [], True], ids=repr)
def test_what_stands_in_its_place_is_looked_at_too(wrong: Any) -> None:
    with pytest.raises(memwall.MemwallError, match="op must be a text"):
        memwall.roofline(wrong)
    with pytest.raises(memwall.MemwallError, match="op must be a text"):
        memwall.collective(wrong, size_bytes=8)


@pytest.mark.parametrize(
    "given",
    [{"gpu": []}, {"dtype": []}, {"dtype": None}, {"gpu": True}, {"gpu": 0}, {"dtype": 5}, {"m": None}],
    ids=repr,
)
def test_sweeps_take_values(given: dict[str, Any]) -> None:
    with pytest.raises(memwall.MemwallError):
        memwall.sweep("gemm", **{"m": 8, "n": 8, "k": 8, **given})


@pytest.mark.parametrize("what", [None, 0, Path("gemm")], ids=repr)
def test_sweeps_are_of_something(what: Any) -> None:
    with pytest.raises(memwall.MemwallError, match="a sweep is of"):
        memwall.sweep(what, m=8)
