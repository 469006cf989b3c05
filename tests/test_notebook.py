"""Reports in a notebook, and as rows of data frames."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

import pytest

import memwall
from memwall.cli import run

REPORTS: dict[str, tuple[Any, str]] = {
    "roofline": (lambda: memwall.roofline("gemv"), "roofline --op gemv"),
    "attention": (lambda: memwall.attention("llama3-8b", seq=4096), "attention --model llama3-8b --seq 4096"),
    "step": (lambda: memwall.step("llama3-8b", context=4096), "step --model llama3-8b --context 4096"),
    "capacity": (
        lambda: memwall.capacity("llama3-8b", context=4096),
        "capacity --model llama3-8b --context 4096",
    ),
    "quant": (lambda: memwall.quant("llama3-8b"), "quant --model llama3-8b"),
    "training": (
        lambda: memwall.training_memory("llama3-8b", gpus=8),
        "train-memory --model llama3-8b --gpus 8",
    ),
    "layout": (
        lambda: memwall.step("mixtral-8x7b", tp=2, ep=4, dp=4, pp=2, batch=64, context=4096),
        "step --model mixtral-8x7b --tp 2 --ep 4 --dp 4 --pp 2 --batch 64 --context 4096",
    ),
    "collective": (
        lambda: memwall.collective("all_reduce", size_bytes=1 << 24),
        "collective all_reduce --bytes 16777216",
    ),
    "plan": (
        lambda: memwall.plan("llama3-70b", context=8192),
        "plan --model llama3-70b --gpus 8 --context 8192",
    ),
    "serve": (
        lambda: memwall.serve("llama3-8b", users=8, isl=512, osl=128),
        "serve --model llama3-8b --concurrency 8 --isl 512 --osl 128",
    ),
    "cost": (
        lambda: memwall.cost("llama3-8b", price=2.0, context=4096),
        "cost --model llama3-8b --price 2 --context 4096",
    ),
    "train_step": (
        lambda: memwall.train_step("llama3-8b", gpu="h100", gpus=8),
        "train-step --model llama3-8b --gpus 8",
    ),
}


class Tags(HTMLParser):
    """Whether every element that opens closes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_shows_itself_as_html(name: str) -> None:
    html = REPORTS[name][0]()._repr_html_()
    tags = Tags(html)
    assert tags.open == []
    assert "table" in tags.seen
    assert "<script" not in html


@pytest.mark.parametrize("name", REPORTS)
def test_at_a_prompt_a_report_is_what_the_command_prints(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make, command = REPORTS[name]
    assert run(command.split()) in (0, 1)
    printed = capsys.readouterr().out.split("\nNotes")[0]  # which say what the command assumed for its user
    assert repr(make()).split("\nNotes")[0].rstrip() == printed.rstrip()


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_is_a_dict_with_the_keys_of_its_json(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    make, command = REPORTS[name]
    assert run([*command.split(), "--json"]) in (0, 1)
    expected = json.loads(capsys.readouterr().out)
    found = json.loads(json.dumps(make().to_dict(), allow_nan=False))
    said = ("schema", "defaults", "notes")  # what the command assumed for its user
    assert {k: v for k, v in found.items() if k not in said} == {
        k: v for k, v in expected.items() if k not in said
    }


@pytest.mark.parametrize("name", REPORTS)
def test_rows_are_flat(name: str) -> None:
    rows = REPORTS[name][0]().to_rows()
    assert rows
    for row in rows:
        assert row["gpu"] in ("h100", None)
        assert all(isinstance(value, str | int | float | bool | None) for value in row.values())


def test_a_pass_has_a_row_for_each_kernel() -> None:
    report = memwall.step("llama3-8b", context=4096)
    rows = report.to_rows()
    assert [row["name"] for row in rows] == [line.launch.name for line in report.lines]
    assert sum(row["share"] for row in rows) == pytest.approx(1)


def test_a_sweep_from_python_has_the_columns_of_its_rows() -> None:
    table = memwall.sweep(
        "gemm", m=range(1, 5), n=[4096, 8192], k="4096", gpu=["h100", "h200"], dtype="bf16,fp8"
    )
    assert len(table) == 4 * 2 * 2 * 2
    rows = table.to_rows()
    for name, column in table.columns.items():
        assert column.tolist() == [row[name] for row in rows]
    single = memwall.roofline("gemm", gpu="h200", dtype="fp8", m=4, n=8192, k=4096)
    assert rows[-1]["bound_time_s"] == single.bound_time_s
    best = table.best("bound_time_s", 2)
    assert [row["bound_time_s"] for row in best] == sorted(row["bound_time_s"] for row in rows)[:2]


def test_a_plan_has_a_row_for_each_layout() -> None:
    report = memwall.plan("llama3-70b", context=8192)
    assert [(row["tp"], row["pp"], row["dp"]) for row in report.to_rows()] == [
        (row["tp"], row["pp"], row["dp"]) for row in report.to_dict()["layouts"]
    ]


def test_a_sweeps_table_shows_its_first_rows() -> None:
    table = memwall.sweep("gemm", m="1:50", n=4096, k=4096)
    html = table._repr_html_()
    assert Tags(html).open == []
    assert html.count("<tr>") == 21
    assert "the first 20 of 50 rows" in html
    assert len(json.loads(json.dumps(table.to_dict()))["rows"]) == 50


def test_a_sweep_of_passes_from_python() -> None:
    table = memwall.sweep("step", model="llama3-8b", batch="1:64:log2", context=4096, where="fits")
    assert table.columns["batch"].tolist() == [1, 2, 4, 8, 16, 32, 64]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_take_them(library: str) -> None:
    frames = pytest.importorskip(library, reason=f"needs {library}")
    table = memwall.sweep("gemm", m="1:8", n=8, k=8)
    assert len(frames.DataFrame(table.columns)) == 8
    assert len(frames.DataFrame(memwall.step("llama3-8b", context=4096).to_rows())) > 5
