"""Every command refuses the same layouts, and what a refusal says to type is taken by that very command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memwall.cli import run

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
