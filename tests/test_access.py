"""Bank conflicts and coalescing: hand-worked cases, brute force, and what is refused."""

from __future__ import annotations

import json
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwall.access import ACCESSES, conflict, least_pad, request
from memwall.cli import run
from memwall.errors import UsageError
from memwall.reports.access import access, banks


@pytest.mark.parametrize(
    ("rows", "cols", "how", "element", "pad", "degree"),
    [
        (32, 32, "column", 4, 0, 32),
        (32, 32, "column", 4, 1, 1),
        (32, 32, "row", 4, 0, 1),
        (32, 32, "broadcast", 4, 0, 1),
        (32, 32, "diagonal", 4, 0, 1),
        (32, 32, "diagonal", 4, 31, 32),  # rows of 63: thread i in word 64 i, bank 0
        (32, 64, "column", 4, 0, 32),
        (32, 33, "column", 4, 0, 1),
        (32, 16, "column", 4, 0, 16),  # rows of 16 words: two banks, 16 threads in each
        (32, 32, "column", 2, 0, 16),  # rows of 16 words
        (32, 32, "column", 2, 2, 1),  # rows of 17 words
        (16, 32, "column", 4, 0, 16),  # 16 rows, then the next column: two banks
        (32, 32, "column", 8, 0, 16),  # 16 threads together, all in banks 0 and 1
        (32, 32, "row", 16, 0, 1),  # 8 threads together, 32 banks
    ],
)
def test_conflicts_by_hand(rows: int, cols: int, how: str, element: int, pad: int, degree: int) -> None:
    assert conflict(rows, cols, how, element, pad).degree == degree


def test_wide_elements_take_several_passes_without_conflict() -> None:
    assert [conflict(32, 32, "row", size).least_passes for size in (1, 2, 4, 8, 16)] == [1, 1, 1, 2, 4]


@given(st.integers(1, 100), st.integers(1, 100), st.sampled_from(ACCESSES), st.integers(0, 8))
def test_words_of_four_bytes_by_brute_force(rows: int, cols: int, how: str, pad: int) -> None:
    """Bank by bank: the distinct words that the 32 threads want in it."""
    wanted: dict[int, set[int]] = {}
    for i in range(32):
        row, col = {
            "row": (i // cols % rows, i % cols),
            "column": (i % rows, i // rows % cols),
            "diagonal": (i % rows, i % cols),
            "broadcast": (0, 0),
        }[how]
        word = row * (cols + pad) + col
        wanted.setdefault(word % 32, set()).add(word)
    assert conflict(rows, cols, how, 4, pad).degree == max(map(len, wanted.values()))


def test_the_least_padding_leaves_no_conflict() -> None:
    for cols in (8, 16, 32, 48, 64, 128):
        pad = least_pad(32, cols, "column")
        assert pad is not None
        assert conflict(32, cols, "column", 4, pad).degree == 1
        assert all(conflict(32, cols, "column", 4, fewer).degree > 1 for fewer in range(pad))


@pytest.mark.parametrize(
    ("pattern", "element", "stride", "offset", "sectors", "lines", "efficiency"),
    [
        ("coalesced", 4, 1, 0, 4, 1, 1.0),
        ("coalesced", 4, 1, 1, 5, 2, 128 / 160),  # shifted by one element: one sector and line more
        ("coalesced", 2, 1, 0, 2, 1, 1.0),
        ("coalesced", 16, 1, 0, 16, 4, 1.0),
        ("strided", 4, 2, 0, 8, 2, 0.5),
        ("strided", 4, 4, 0, 16, 4, 0.25),
        ("strided", 4, 8, 0, 32, 8, 0.125),
        ("strided", 4, 32, 0, 32, 32, 0.125),
        ("random", 4, 1, 0, 32, 32, 0.125),
        ("random", 1, 1, 0, 32, 32, 1 / 32),
    ],
)
def test_requests_by_hand(
    pattern: str, element: int, stride: int, offset: int, sectors: int, lines: int, efficiency: float
) -> None:
    found = request(pattern, element, stride, offset)
    assert (found.sectors, found.lines) == (sectors, lines)
    assert found.sector_efficiency == pytest.approx(efficiency)
    assert found.line_efficiency == pytest.approx(32 * element / (lines * 128))


@given(st.sampled_from([1, 2, 4, 8, 16]), st.integers(1, 200), st.integers(0, 64))
def test_a_request_touches_at_least_what_it_uses(element: int, stride: int, offset: int) -> None:
    found = request("strided", element, stride, offset)
    assert found.useful_bytes <= found.sectors * 32 <= found.atoms * 64 <= found.lines * 128


def test_effective_bandwidth_is_a_share_of_the_device_s() -> None:
    report = access("strided", 4, 4, gpu="h100")
    assert report.effective_bytes_per_s == pytest.approx(3352.32e9 / 4)


def test_shared_bandwidth_is_shared_by_the_passes() -> None:
    free, conflicting = banks(32, 32, "row", gpu="h200"), banks(32, 32, "column", gpu="h200")
    assert free.peak_bytes_per_s == pytest.approx(33.1e12, rel=0.02)  # 33.12 TB/s measured on an H200
    assert conflicting.found.efficiency == 1 / 32


def test_json_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shlex.split("banks --shape 32x32 --access column --pad 1 --json")) == 0
    assert json.loads(capsys.readouterr().out)["conflict_degree"] == 1
    assert run(shlex.split("access --pattern strided --stride 4 --element 4 --json")) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["sectors"], document["lines"], document["efficiency"]) == (16, 4, 0.25)


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        ("banks --shape 32 --access column", 2, "32x32"),
        ("banks --shape 32x0 --access column", 2, "--shape"),
        ("banks --shape 32x32 --access sideways", 2, "--access"),
        ("banks --shape 32x32 --access row --element 3", 2, "1, 2, 4, 8, 16"),
        ("banks --shape 32x32 --access row --pad -1", 2, "--pad"),
        ("banks --shape 32x32 --access row --gpu mi300x", 4, "CUDA"),
        ("access --pattern zigzag", 2, "--pattern"),
        ("access --pattern coalesced --stride 4", 2, "--stride"),
        ("access --pattern strided --stride 0", 2, "--stride"),
        ("access --pattern random --gpu tpu-v5e", 4, "CUDA"),
    ],
)
def test_mistakes_are_answered(
    command: str, code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(shlex.split(command)) == code
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("command", ["banks --shape 32x32 --access column", "access --pattern random"])
@pytest.mark.parametrize("form", ["text", "csv", "markdown", "json"])
def test_every_format_and_several_gpus(command: str, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*shlex.split(command), "--gpu", "a100,h100,mi300x", "--format", form]) == 0
    assert "mi300x" in capsys.readouterr().out


def test_bad_calls_from_python() -> None:
    with pytest.raises(UsageError, match="no access"):
        conflict(32, 32, "sideways")
    with pytest.raises(UsageError, match="no pattern"):
        request("zigzag")
