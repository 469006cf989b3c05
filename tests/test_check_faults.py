"""Files that are not read, in the formats for CI: named there, and no other file hidden."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from memwall.cli import run

WRONG = "300 GB <!-- memwall: 295*GB -->\n"


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One that is not read, one that is not computed, one with a wrong number, one that is not there."""
    monkeypatch.chdir(tmp_path)
    Path("open.md").write_text("fine\n3 GB <!-- memwall: 3*GB\n")
    Path("unit.md").write_text("3 GB <!-- memwall: 3*s -->\n")
    Path("wrong.md").write_text(WRONG)
    return ["open.md", "unit.md", "wrong.md", "none.md"]


def test_github(pages: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", *pages, "--format", "github"]) == 3
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0].startswith("::error file=open.md,line=2,title=memwall%3A not read::the directive is not")
    assert lines[1].startswith("::error file=none.md,line=1,")
    assert lines[2].startswith("::error file=unit.md,line=1,")
    assert lines[3].startswith("::error file=wrong.md,line=1,col=1,")
    assert "error: open.md:2: the directive is not closed" in err


def test_junit(pages: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", *pages, "--format", "junit"]) == 3
    suites = ElementTree.fromstring(capsys.readouterr().out.encode())
    assert (suites.attrib["failures"], suites.attrib["errors"], suites.attrib["tests"]) == ("1", "3", "4")
    cases = {case.attrib["file"]: case for case in suites.iter("testcase")}
    assert set(cases) == set(pages)
    assert cases["open.md"].attrib["line"] == "2"
    fault = cases["open.md"].find("error")
    assert fault is not None
    assert "not closed" in fault.attrib["message"]
    assert cases["wrong.md"].find("failure") is not None


@pytest.mark.parametrize("form", ["text", "json", "csv", "markdown"])
def test_the_others_are_judged(form: str, pages: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", *pages, "--format", form]) == 3
    out, err = capsys.readouterr()
    assert "wrong.md" in out
    assert [line.partition(":")[0] for line in err.splitlines()] == ["error"] * 3


def test_nothing_that_can_be_judged(pages: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "open.md", "unit.md", "none.md"]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert all(name in err for name in ("open.md:2", "unit.md:1", "none.md"))


def test_an_unclosed_page_alone(pages: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "open.md", "--format", "github"]) == 3
    assert "::error file=open.md,line=2," in capsys.readouterr().out


def test_lines_and_columns_of_many(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As many as a generated page has: found in one pass over its lines, each in its place."""
    page = tmp_path / "many.md"
    page.write_text("".join(f"{'x' * (each % 7)}\n| 3 GB <!-- memwall: 3*GB --> |\n" for each in range(300)))
    assert run(["check", str(page), "--json"]) == 0
    claims = json.loads(capsys.readouterr().out)["claims"]
    assert [claim["line"] for claim in claims] == list(range(2, 601, 2))
    assert {claim["column"] for claim in claims} == {3}
