"""Faults in claims files: file, line, and what is wrong; never a traceback."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memwall.cli import run

GOOD = """\
text: demo
title: A demonstration
claims:
  - id: a
    where: "4.1"
    label: a
    printed: 3.35 TB/s
    compute: gpu("h100").bandwidth_bytes_per_s
"""


def fails(tmp_path: Path, text: str | bytes, capsys: pytest.CaptureFixture[str], *args: str) -> str:
    path = tmp_path / "c.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    code = run(["check", str(path), *args])
    out, err = capsys.readouterr()
    assert code == 3, out + err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err.replace(str(path), "c.yaml")


@pytest.mark.parametrize(
    ("old", "new", "line", "why"),
    [
        ("bandwidth_bytes_per_s", "bandwith", 8, "no metric 'bandwith'"),
        ('gpu("h100").bandwidth_bytes_per_s', "b", 4, "'b' is neither a claim nor an input"),
        ('gpu("h100").bandwidth_bytes_per_s', "a * 2", 4, "circle: a -> a"),
        ('gpu("h100").bandwidth_bytes_per_s', "1*TB/s / (2 - 2)", 8, "division by zero"),
        ('gpu("h100").bandwidth_bytes_per_s', "3*GB", 8, "the unit does not fit"),
        (
            'gpu("h100").bandwidth_bytes_per_s',
            "__import__('os').getcwd()",
            8,
            "not arithmetic|none of memwall",
        ),
        ('gpu("h100").bandwidth_bytes_per_s', "import os", 8, "not an expression"),
        ('gpu("h100").bandwidth_bytes_per_s', "'[i for i in (1, 2)]'", 8, "not arithmetic"),
        ('gpu("h100").bandwidth_bytes_per_s', 'gpu("h1000").year', 8, "unknown GPU"),
        ("3.35 TB/s", "3.35 TBs", 7, "the unit 'TBs' is not known"),
        ("3.35 TB/s", "fast", 7, "not a number"),
        ("printed: 3.35 TB/s", "printd: 3.35 TB/s", 7, "unknown key|printd"),
        ("label: a", "label: a\n    verdict: wrong", 7, "verdict"),
        ("label: a", "label: a\n    verdict: differs", 4, "without a reason"),
        ("id: a", "id: ms", 4, "a unit's"),
        ("id: a", "id: a-b", 4, "id"),
        ("title: A demonstration", "", 1, "title"),
        ("claims:", "aside: [{match: '(', reason: r}]\nclaims:", 3, "not a regular expression"),
        ("claims:", "inputs: {a: {value: 1, source: {seen: s}}}\nclaims:", 5, "stands at line 3, too"),
        ("claims:", "inputs: {b: {value: 1, unit: parsec, source: {seen: s}}}\nclaims:", 3, "unit 'parsec'"),
    ],
)
def test_a_fault_names_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, line: int, why: str
) -> None:
    message = fails(tmp_path, GOOD.replace(old, new), capsys)
    assert f"c.yaml:{line}:" in message
    assert re.search(why, message)


@pytest.mark.parametrize(
    "text", ["- a list\n", "a: [1\n", "a: &x 1\nb: *x\n", "\tx: 1\n", "a: 1\n---\nb: 2\n", ""]
)
def test_what_is_not_a_mapping_gets_a_claim_to_copy(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    message = fails(tmp_path, text, capsys)
    assert "c.yaml:" in message
    assert "GPU" not in message


def test_two_claims_in_a_circle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = '  - {id: b, where: "1", label: b, printed: 3 TB/s, compute: a}\n'
    message = fails(tmp_path, GOOD.replace('gpu("h100").bandwidth_bytes_per_s', "b") + other, capsys)
    assert "a -> b -> a" in message


def test_bytes_that_are_not_utf8_name_their_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = fails(tmp_path, GOOD.encode() + b"# caf\xe9\n", capsys)
    assert "c.yaml:9: not UTF-8" in message


def test_another_text_that_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = GOOD.replace("claims:", "texts: {other: nowhere.yaml}\nclaims:") + "    contradicts: other.x\n"
    assert "nowhere.yaml: no such file" in fails(tmp_path, text, capsys)


@pytest.mark.parametrize(
    ("args", "code", "why"),
    [
        (["nowhere.yaml"], 3, "no such file"),
        (["."], 3, "is a folder"),
        (["--where", "99.9"], 2, "no claim stands at"),
        (["--verdict", "fine"], 2, "no verdict"),
        (["--new", "nothing here"], 2, "no number"),
        (["--fix"], 2, "no file is named"),
        (["--fix", "--new", "3 GB"], 2, "different things"),
        (["--coverage", "nowhere.txt"], 3, "no such file"),
        (["--format", "xml"], 2, "--format takes"),
    ],
)
def test_usage(
    args: list[str],
    code: int,
    why: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["check", *args]) == code
    assert why in capsys.readouterr().err
