"""Numbers inside Markdown: found, compared, put right, and nothing else touched."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from memwall.cli import run

RIDGE = 'gpu("h100").ridge_points.bf16'

PAGE = f"""\
# A page  \r
\r
The ridge is **300 FLOP/byte**<!-- memwall: {RIDGE} -->, at 8192 tokens.\r
| GPU | TB/s | GB |
|---|---:|---|
| H100 | 3.36 <!-- memwall: gpu("h100").bandwidth_bytes_per_s in TB/s --> | 80 |
[300 in all](http://x.org/2024) <!-- memwall: 300 --> [see](http://x.org/2025)
Two: 988 TFLOPS <!--memwall: gpu("h100").peak_flops_per_s.bf16--> and ~4 TB/s <!-- memwall: 4.4*TB/s -->.

<!-- memwall after "AI =": roofline("gemm", m=4096, n=4096, k=4096).arithmetic_intensity -->
<!-- memwall after "bytes": roofline("gemm", m=4096, n=4096, k=4096).traffic_bytes in MB -->

```text
AI = 1,355 FLOP/byte   4096 x 4096
bytes 100.6
```

In `<!-- memwall: code -->` it is only shown. $7.13/hr <!-- memwall: 2.85 * 2.5 * USD/hour -->
No newline at the end: 0.5 ms <!-- memwall: 134250496*B / gpu("h100").bandwidth_bytes_per_s -->"""

FIXED = (
    PAGE.replace("300 FLOP", "295 FLOP")
    .replace("3.36 ", "3.35 ")
    .replace("988 TF", "989 TF")
    .replace("1,355", "1,365")
    .replace("100.6", "100.7")
    .replace("0.5 ms", "0.04 ms")
)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.md"
    path.write_bytes(PAGE.encode())
    return path


def test_wrong_numbers_are_found_at_their_line_and_column(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import json

    assert run(["check", str(page), "--json"]) == 1
    claims = json.loads(capsys.readouterr().out)["claims"]
    places = [(claim["line"], claim["column"], claim["printed"], claim["verdict"]) for claim in claims]
    assert places == [
        (3, 16, "300 FLOP/byte", "differs"),
        (6, 10, "3.36 TB/s", "differs"),
        (7, 2, "300", "holds"),
        (8, 6, "988 TFLOPS", "differs"),
        (8, 72, "4 TB/s", "holds"),
        (14, 6, "1,355 FLOP/byte", "differs"),
        (15, 7, "100.6 MB", "differs"),
        (18, 48, "7.13 $/hr", "holds"),
        (19, 24, "0.5 ms", "differs"),
    ]
    assert all(claim["file"] == str(page) for claim in claims)


def test_the_page_for_people_says_how_to_put_them_right(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["check", str(page)])
    text = capsys.readouterr().out
    assert f"memwall check {page} --fix puts them right" in text
    assert "recorded" not in text


def test_fix_rewrites_the_numbers_and_nothing_else(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page.chmod(0o640)
    assert run(["check", str(page), "--fix"]) == 0
    assert page.read_bytes().decode() == FIXED
    assert stat.S_IMODE(page.stat().st_mode) == 0o640
    assert os.listdir(page.parent) == ["page.md"]
    assert run(["check", str(page)]) == 0


def test_fixing_a_page_that_is_right_does_not_write_it(page: Path) -> None:
    page.write_bytes(FIXED.encode())
    before = page.stat().st_mtime_ns, page.stat().st_ino
    assert run(["check", str(page), "--fix"]) == 0
    assert (page.stat().st_mtime_ns, page.stat().st_ino) == before


def test_a_symbolic_link_stays_one(page: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.md"
    link.symlink_to(page)
    assert run(["check", str(link), "--fix"]) == 0
    assert link.is_symlink()
    assert page.read_bytes().decode() == FIXED


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("one\n3 GB <!-- memwall: 3*GB\n", 2, "not closed"),
        ("3 GB <!-- memwall: 3*GB <!-- other -->\n", 1, "not closed"),
        ("\n\nno number <!-- memwall: 3*GB -->\n", 3, "no number beside"),
        ("| 3 | x <!-- memwall: 3 --> |\n", 1, "no number beside"),
        ("3 GB <!-- memwall: 3*GBs -->\n", 1, "neither a claim nor an input"),
        ("3 GB <!-- memwall: import os -->\n", 1, "not an expression"),
        ("3 GB <!-- memwall: 3*s -->\n", 1, "the unit does not fit"),
        ("3 <!-- memwall: 3*GB -->\n", 1, "the unit does not fit"),
        ("3 <!-- memwall: 3*GB in parsec -->\n", 1, "unit 'parsec' is not known"),
        ("3 <!-- memwall: 3/0 -->\n", 1, "division by zero"),
        ('3 <!-- memwall: gpu("h1000").year -->\n', 1, "unknown GPU"),
        ("3 <!-- memwall -->\n", 1, "not a directive"),
        ('<!-- memwall after "AI": 3 -->\n\nno such words 3\n', 1, "not in the block"),
        ('<!-- memwall after "AI": 3 -->\nAI is large\n', 1, "no number after"),
        (b"fine\ncaf\xe9 3 <!-- memwall: 4 -->\n", 2, "not UTF-8"),
    ],
)
def test_a_faulty_page_is_named_by_line_and_left_as_it_is(
    text: str | bytes, line: int, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = b"300 FLOP/byte <!-- memwall: " + RIDGE.encode() + b" -->\n"
    good, bad = tmp_path / "good.md", tmp_path / "bad.md"
    good.write_bytes(wrong)
    data = text.encode() if isinstance(text, str) else text
    bad.write_bytes(data + (b"" if b"not closed" in why.encode() else b"\n" + wrong))
    before = bad.read_bytes()
    for args in ([str(bad)], [str(bad), "--fix"], [str(good), str(bad), "--fix"]):
        assert run(["check", *args]) == 3
        err = capsys.readouterr().err
        assert f"bad.md:{line}: " in err
        assert why in err
    assert bad.read_bytes() == before
    assert good.read_bytes() == wrong


def test_a_range_is_left_to_its_author(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "page.md"
    path.write_text("80-100 TB/s <!-- memwall: 33.5*TB/s -->\n300 <!-- memwall: 295 -->\n")
    assert run(["check", str(path), "--fix"]) == 1
    assert "page.md:1" in capsys.readouterr().err
    assert path.read_text() == "80-100 TB/s <!-- memwall: 33.5*TB/s -->\n295 <!-- memwall: 295 -->\n"


def test_a_directive_may_stand_before_its_number(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("| 1 | <!-- memwall: 5*GB --> 4 GB | 7 |\n<!-- memwall: 3*GB -->2 GB, 9\n")
    assert run(["check", str(path), "--fix"]) == 0
    assert path.read_text() == "| 1 | <!-- memwall: 5*GB --> 5 GB | 7 |\n<!-- memwall: 3*GB -->3 GB, 9\n"


def test_a_number_with_two_directives_is_written_once(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text('<!-- memwall after "is": 12345 -->\nIt is 9 <!-- memwall: 12345 --> there\n')
    assert run(["check", str(path), "--fix"]) == 0
    assert "It is 12345 <!-- memwall: 12345 --> there" in path.read_text()


def test_fix_is_for_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("text: a\n")
    assert run(["check", str(path), "--fix"]) == 2
    assert path.read_text() == "text: a\n"


def test_a_page_without_directives_has_nothing_to_say(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("Nothing here: 42.\n")
    assert run(["check", str(path)]) == 0
