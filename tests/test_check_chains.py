"""Claims that each compute from the next, however many: values, or an error with its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memwall.cli import run

LONG = 600


def chain(path: Path, last: str, key: str = "compute: {}") -> Path:
    """Claims that each rest on the next; the last on what is given."""
    lines = ["text: demo", "title: A demonstration", "claims:"]
    for index in range(LONG):
        following = f"c{index + 1}" if index + 1 < LONG else last
        lines += [f"  - id: c{index}", '    where: "1"', f"    label: number {index}", "    printed: 7 GB"]
        lines.append(f"    {key.format(following)}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(("last", "verdict"), [("7*GB", "holds"), ("9*GB", "differs")])
def test_a_long_chain_has_a_value(
    last: str, verdict: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = chain(tmp_path / "demo.yaml", last)
    for more in ([], ["--explain"]):
        assert run(["check", str(path), "--json", *more]) == (verdict != "holds")
        claims = json.loads(capsys.readouterr().out)["claims"]
        assert len(claims) == LONG
        assert claims[-1]["verdict"] == verdict
        assert claims[0]["value"] == int(last[0])


def test_a_long_circle_is_named_by_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = chain(tmp_path / "demo.yaml", "c0")
    assert run(["check", str(path)]) == 3
    err = capsys.readouterr().err
    assert "demo.yaml:" in err
    assert "in a circle: c0 -> c1" in err


def test_a_long_chain_of_repeats_is_named_by_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = chain(tmp_path / "demo.yaml", "c0", "compute: 9*GB\n    repeats: {}")
    assert run(["check", str(path)]) == 3
    assert "demo.yaml:" in capsys.readouterr().err
