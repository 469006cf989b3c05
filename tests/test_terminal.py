"""What a terminal shows: the plain text, coloured; folded where the window is narrower."""

from __future__ import annotations

import re

import pytest

from memwall.cli import run
from memwall.render import fit, markdown, terminal, text
from memwall.render.page import LaidOut, Lines, Section, Table

CODES = re.compile(r"\x1b\[[0-9;]*m")
BOLD, CYAN = "\x1b[1m", "\x1b[36m"

CALLS = [
    "roofline --gpu h100 --op gemv",
    "roofline --gpu v100,a100,h100,h200,b200,gb300,mi300x --op gemv --batch 32",
    "roofline --gpu h100 --op attention --impl standard --heads 8 --head-dim 64 --seq 1024",
    "attention --model llama3-70b --seq 8192",
    "attention --model gemma2-27b --seq 8192 --gpu h100,b200",
    "gpu list",
    "gpu show h100",
    "gpu show rtx-4090",
    "gpu compare h100 h200 mi300x rtx-4090 t4",
    "hbm",
    "op list",
    "op show attention",
    "op show gemm",
    "model list",
    "model show deepseek-v3",
    "verify --replay h200 --op attention",
]
NUMBERS = re.compile(r"(?<![\w.])\d[\d.,]* [kMGTP]?i?(?:B|FLOP|OP|op)(?:/s|/B)?\b(?: [*^]+)?")


@pytest.fixture
def window(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> int:
    """A window so many columns wide."""
    width: int = request.param
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.delenv("NO_COLOR", raising=False)
    return width


def printed(capsys: pytest.CaptureFixture[str], line: str) -> str:
    assert run(line.split()) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("window", [400], indirect=True)
@pytest.mark.parametrize("line", CALLS)
def test_a_wide_window_shows_the_plain_text(
    line: str, window: int, capsys: pytest.CaptureFixture[str]
) -> None:
    coloured = printed(capsys, f"{line} --color always")
    assert BOLD in coloured or "Notes" not in coloured
    assert CODES.sub("", coloured) == printed(capsys, line)


@pytest.mark.parametrize("window", [80, 100, 120], indirect=True)
@pytest.mark.parametrize("line", CALLS)
def test_a_narrow_window_splits_no_number_from_its_unit(
    line: str, window: int, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = CODES.sub("", printed(capsys, f"{line} --color always"))
    plain = printed(capsys, line)
    assert all(len(row) <= window or row.startswith("  memwall ") for row in shown.splitlines())
    assert "\n\n\n" not in shown
    assert not any(row.endswith(" ") for row in shown.splitlines())
    for number in set(NUMBERS.findall(plain)):
        assert number in shown, number
    assert set(shown.split()) >= {word for word in plain.split() if len(word) < 20 and "-" * 5 not in word}


@pytest.mark.parametrize("window", [200], indirect=True)
def test_headings_are_bold_and_first_columns_cyan(window: int, capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, "roofline --gpu h100,h200 --op gemv --color always").splitlines()
    assert lines[0].startswith(f"{BOLD}gemv")
    assert lines[1].startswith(f"{CYAN}  FLOPs")
    header = next(line for line in lines if "attainable" in line)
    assert header.startswith(f"{BOLD}  GPU")
    assert f"{BOLD}Notes" in "\n".join(lines)


@pytest.mark.parametrize("window", [80], indirect=True)
def test_always_means_always_and_never_never(
    window: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    assert CYAN in printed(capsys, "roofline --op gemv --color always")
    assert "\x1b" not in printed(capsys, "roofline --op gemv --color never")


STEP = "12. tiles: so wide a tile that its 128 rows and columns stay within 227 KiB of shared memory"


@pytest.mark.parametrize(
    ("line", "hanging"),
    [(STEP, "      "), (f"* {STEP[4:]}", "    "), (STEP[4:], "    ")],
)
def test_sentences_hang_under_their_beginning(line: str, hanging: str) -> None:
    first, *rest = fit.sentence(line, 40)
    assert first.startswith("  " + line[:10])
    assert rest
    for folded in rest:
        assert folded.startswith(hanging)
        assert folded[len(hanging)] != " "
    assert " ".join(part.strip() for part in (first, *rest)) == line.strip()


TABLE = Table(
    [("a-name", "12.5 GB/s *", "words that go on and on until they are wider than any window")],
    ("name", "rate", "what it is"),
    frozenset({1}),
)


def test_a_table_that_fits_stays_itself() -> None:
    assert list(fit.tables(TABLE, 200)) == [TABLE]


def test_the_last_column_of_words_is_folded_and_numbers_are_not() -> None:
    (folded,) = fit.tables(TABLE, 50)
    assert [row[1] for row in folded.rows] == ["12.5 GB/s *", "", ""]
    assert " ".join(row[2] for row in folded.rows) == TABLE.rows[0][2]
    assert max(len("".join(line)) for line in text.aligned(folded)) <= 50


def test_columns_that_cannot_fold_are_dealt_out_with_the_first_before_each() -> None:
    names = [f"gpu-{number}" for number in range(6)]
    table = Table([("peak", *["989.4 TFLOP/s"] * 6)], ("", *names), frozenset(range(1, 7)))
    parts = list(fit.tables(table, 60))
    assert [part.rows[0][0] for part in parts] == ["peak"] * len(parts)
    assert [name for part in parts for name in part.header[1:]] == names
    assert all(len("".join(line)) <= 60 for part in parts for line in text.aligned(part))


def test_all_columns_that_name_a_row_stand_in_each_part() -> None:
    header = ("gpu", "m", *(f"rate {number}" for number in range(6)))
    table = Table([("h100", "64", *["989.4 TFLOP/s"] * 6)], header, frozenset(range(1, 8)), names=2)
    parts = list(fit.tables(table, 60))
    assert len(parts) > 1
    assert [list(part.rows[0][:2]) for part in parts] == [["h100", "64"]] * len(parts)
    assert [name for part in parts for name in part.header[2:]] == list(header[2:])


@pytest.mark.parametrize("width", [1, 5, 12])
def test_a_window_of_hardly_any_width_still_shows_everything(width: int) -> None:
    shown = "".join(cell for part in fit.tables(TABLE, width) for row in part.rows for cell in row)
    assert "12.5 GB/s *" in shown
    assert "".join(TABLE.rows[0][2].split()) in shown.replace(" ", "")


def test_an_empty_page_and_an_empty_table_are_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.render([])
    terminal.render([Section("", Table([]))])
    assert capsys.readouterr().out == ""


def test_the_layout_of_a_formula_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    formula = "    flops = 2 m n k" + " " * 20 + "of one product"
    command = "memwall roofline --op gemm " + "--m 4096 " * 20  # to be copied whole
    terminal.render([Section("gemm", LaidOut(["Words.", "", formula, command.strip()]))])
    assert capsys.readouterr().out == f"gemm\n  Words.\n\n  {formula}\n  {command.strip()}\n"


def test_paragraphs_of_documentation_flow_anew_and_long_formulas_hang() -> None:
    words = ["one two three four five six", "seven eight. nine", "Source: ten."]
    assert list(fit.laid_out(words, 22)) == [
        "  one two three four",
        "  five six seven",
        "  eight. nine Source:",
        "  ten.",
    ]
    assert list(fit.laid_out(["    flops = 2 batch m n k"], 22)) == [
        "      flops = 2 batch",
        "          m n k",
    ]
    assert list(fit.laid_out(words, 80)) == [f"  {line}" for line in words]


def test_names_in_the_first_column_stay_whole() -> None:
    table = Table([("fp64 ridge, FLOP/B", "19.96", "4.8")], ("of what", "a", "b"), frozenset({1, 2}))
    for part in fit.tables(table, 26):
        assert part.rows[0][0] == "fp64 ridge, FLOP/B"


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        (["1. one", "2. two"], "1. one\n2. two\n"),
        (["1. one", "two"], "- 1\\. one\n- two\n"),
        (["* recalled"], "- \\* recalled\n"),
        (["- a", "+ b", "# c", "> d"], "- \\- a\n- \\+ b\n- \\# c\n- \\> d\n"),
        (["a | b", "2.5 GB", "-"], "- a \\| b\n- 2.5 GB\n- \\-\n"),
    ],
)
def test_markdown_lists(lines: list[str], shown: str) -> None:
    assert markdown.render([Section("", Lines(lines))]) == shown
