"""The README does what it says: its commands print what stands there, its Python gives its answers.

`MEMWALL_UPDATE_README=1 pytest tests/test_readme.py` writes what the commands print now into it.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
from pathlib import Path

import pytest

from memwall.cli import COMMANDS, run

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)
PYCON = re.compile(r"```pycon\n(.*?)```", re.DOTALL)

pytestmark = pytest.mark.usefixtures("plain_terminal")


@pytest.fixture
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("MEMWALL_PATH", raising=False)
    monkeypatch.chdir(ROOT)


def blocks() -> list[str]:
    return CONSOLE.findall(README.read_text())


def output_of(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    program, *args = shlex.split(command)
    assert program == "memwall"
    run(args)
    printed = capsys.readouterr()
    return printed.out + printed.err


def test_every_console_block_prints_what_stands_there(capsys: pytest.CaptureFixture[str]) -> None:
    text = README.read_text()
    fresh = text
    for block in blocks():
        command = block.splitlines()[0].removeprefix("$ ")
        fresh = fresh.replace(block, f"$ {command}\n{output_of(command, capsys)}")
    if os.environ.get("MEMWALL_UPDATE_README"):
        README.write_text(fresh)
    assert fresh == README.read_text()


def test_there_are_blocks_to_check() -> None:
    assert len(blocks()) >= 5


def test_the_python_examples_give_their_answers() -> None:
    examples = "\n".join(PYCON.findall(README.read_text()))
    test = doctest.DocTestParser().get_doctest(examples, {}, "README.md", "README.md", 0)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_in_the_readme(command: str) -> None:
    assert f"memwall {command}" in README.read_text()
