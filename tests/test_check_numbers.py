"""Numbers of a document as they are written: what --fix makes of them, and forms that are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from memwall.cli import run


def fix(path: Path, text: str) -> tuple[int, str]:
    """What --fix makes of a page."""
    path.write_text(text, encoding="utf-8")
    return run(["check", str(path), "--fix"]), path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("printed", "expression", "written"),
    [
        ("12 ms", "40*us", "0.04 ms"),
        ("0.5 ms", "134250496*B / (3.35*TB/s)", "0.04 ms"),
        ("1,200 ms", "0*us", "0 ms"),
        ("~4,500", "34", "~34"),
        ("~4,500", "4449", "~4,400"),
    ],
)
def test_fix_keeps_a_digit_that_counts(printed: str, expression: str, written: str, tmp_path: Path) -> None:
    end = f"<!-- memwall: {expression} -->\n"
    assert fix(tmp_path / "a.md", printed + end) == (0, written + end)
    assert run(["check", str(tmp_path / "a.md")]) == 0


def test_a_value_far_too_small_for_its_unit_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = "3 s <!-- memwall: 1*ns / 1000 -->\n"
    assert fix(tmp_path / "a.md", page) == (1, page)
    assert "a.md:1: 3 s is a range, a limit, or in too large a unit" in capsys.readouterr().err


def test_a_number_of_two_directives_that_disagree_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = '<!-- memwall after "is": 7 -->\nIt is 9 <!-- memwall: 5 --> there\n'
    assert fix(tmp_path / "a.md", page) == (3, page)
    assert "which does not hold" in capsys.readouterr().err


def test_each_directive_of_a_number_is_judged(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text('<!-- memwall after "is": 9 -->\nIt is 9 <!-- memwall: 5 --> there\n')
    assert run(["check", str(path)]) == 1
