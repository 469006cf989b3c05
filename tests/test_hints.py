"""Every command refuses the same layouts, and what a refusal says to type is taken by that very command."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import cast

import click
import pytest

import memwall
from memwall.cli import cli, run
from memwall.cli.amounts import Bytes, Number, Seconds
from memwall.cli.options import Count, Fraction, Size
from memwall.errors import UsageError

COMMANDS = {
    "step": "--context 4096",
    "capacity": "--context 4096",
    "quant": "--context 4096",
    "plot memory": "--context 4096",
    "cost": "--context 4096 --price 2",
    "serve": "--isl 128 --osl 8",
    "train-memory": "",
    "train-step": "",
}
TRAINING = ("train-memory", "train-step")
COMMANDS_OF_SEVERAL = [*(name for name in COMMANDS if " " not in name), "plan", "collective"]
NUMBERS = (Bytes, Count, Fraction, Number, Seconds, Size)
CTX = click.Context(click.Command("memwall"))


def asked(command: str, options: str, tmp_path: Path) -> list[str]:
    words = f"{command} --model llama3-70b --gpu h100 {COMMANDS[command]} {options}"
    if command in TRAINING:
        degrees = [int(found) for found in re.findall(r"--[tp]p (\d+)", options)]
        gpus = degrees[0] * (degrees[1] if len(degrees) > 1 else 1)
        words += f" --gpus {gpus}"
    if command.startswith("plot"):
        words += f" -o {tmp_path / 'memory.svg'}"
    return words.split()


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("tp", [3, 16, 48, 128, 1_000_000])
def test_a_tp_is_refused_by_all_and_what_is_named_instead_is_taken(
    command: str, tp: int, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(asked(command, f"--tp {tp}", tmp_path)) == 2
    error = capsys.readouterr().err
    assert f"--tp {tp}" in error
    for named in error.rpartition("Try ")[2].strip().split(" or "):
        assert run(asked(command, named, tmp_path)) in (0, 1), named  # 1: it does not fit
        capsys.readouterr()


OPTIONS = [
    (name, option)
    for name in COMMANDS_OF_SEVERAL
    for option in cast(click.Command, cli.get_command(CTX, name)).params
    if isinstance(option, click.Option) and isinstance(option.type, NUMBERS)
]


@pytest.mark.parametrize("ask", [memwall.capacity, memwall.quant])
def test_no_gpus_at_all_are_refused_from_python_too(ask: Callable[..., object]) -> None:
    with pytest.raises(UsageError, match="from 1 to"):
        ask("llama3-8b", gpu="h100", tp=0)


def test_plots_take_counts_as_other_commands_do(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["plot", "memory", "--model", "llama3-8b", "-o", str(tmp_path / "x.svg"), "--tp"]
    assert run([*words, "0"]) == 2
    assert "Try --tp 8" in capsys.readouterr().err
    assert run([*words, "2^1"]) == 0


@pytest.mark.parametrize(("name", "option"), OPTIONS, ids=lambda each: getattr(each, "name", each))
@pytest.mark.parametrize("typed", ["x", "0", "-1", "nan", "1e99", "7%"])
def test_a_value_that_is_refused_names_one_that_the_option_takes(
    name: str, option: click.Option, typed: str
) -> None:
    flag, refused = option.opts[0], None
    try:
        option.type.convert(typed, option, None)
    except UsageError as error:
        refused = error
    if refused:
        assert flag in refused.message
        named = re.findall(rf"{flag} ([^\s,]+)", refused.hint)
        assert named, refused.hint
        for value in named:
            option.type.convert(value, option, None)


@pytest.mark.parametrize(
    ("typed", "size"), [("64MiB", 2**26), ("2^26", 2**26), ("67108864", 2**26), ("64 MB", 64_000_000)]
)
def test_bytes_are_taken_with_their_unit(typed: str, size: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["collective", "all_reduce", "--bytes", typed, "--gpu", "h100", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bytes"] == size
    assert run(["roofline", "--flops", "1e9", "--bytes", typed, "--gpu", "h100", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["traffic_bytes"] == size


def test_a_gpu_without_16_bits_is_not_told_to_try_what_it_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    for dtype in ([], ["--dtype", "fp32"]):
        assert run(["step", "--model", "llama3-8b", "--gpu", "m5-max", "--context", "4096", *dtype]) == 4
        error = capsys.readouterr().err
        assert "16 bits" in error
        assert "--dtype" not in error


def test_a_missing_link_is_given_in_the_gpus_own_file(capsys: pytest.CaptureFixture[str]) -> None:
    words = "collective all_reduce --bytes 1MiB --gpus 2 --gpu"
    assert run([*words.split(), "m1"]) == 4
    assert "memwall gpu show m1 --yaml" in capsys.readouterr().err


def test_the_busiest_gpu_has_at_most_all_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    words = "step --model mixtral-8x7b --gpu h100 --dp 8 --ep 8 --batch 8 --context 4096 --imbalance"
    assert run([*words.split(), "9"]) == 2
    assert "Try --imbalance 8" in capsys.readouterr().err
    assert run([*words.split(), "8"]) == 0


def test_very_many_replicas_are_answered(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["step", "--model", "llama3-8b", "--gpu", "h100", "--dp", "1000000", "--context", "4096"]) == 0
    assert "a batch of 1 over 1000000 replicas" in capsys.readouterr().out


def test_a_time_without_a_unit_is_asked_for_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "--model", "llama3-8b", "--context", "4096", "--tpot", "30"]) == 2
    assert "--tpot 30 has no unit. Try --tpot 30ms" in capsys.readouterr().err
