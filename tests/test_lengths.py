"""A sequence longer than a model was made for is remarked on by every command that takes one."""

from __future__ import annotations

import json

import pytest

from memwall.cli import run

LONG = 200_000  # Llama 3.1 was made for 131,072
COMMANDS = [
    f"step --context {LONG}",
    f"step --seq {LONG}",
    f"cost --price 2 --context {LONG}",
    f"cost --price 2 --context 4096 --prompt {LONG}",
    f"serve --isl {LONG} --osl 8",
    f"plan --context {LONG}",
    f"capacity --context {LONG}",
    f"quant --context {LONG}",
    f"train-memory --gpus 8 --seq {LONG}",
    f"train-step --gpus 8 --seq {LONG}",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_sequence_that_is_too_long_is_remarked_on(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = f"{command} --model llama3-8b --gpu h100 --json"
    run(words.split())
    said = [note for note in json.loads(capsys.readouterr().out)["notes"] if "was made for" in note]
    assert len(said) == 1
    assert said[0].startswith("200,0")
    assert "131,072" in said[0]
    run(words.replace(str(LONG), "131000").split())
    assert not any("was made for" in note for note in json.loads(capsys.readouterr().out)["notes"])
