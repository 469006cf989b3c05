"""A sweep gives the single answers, at every point and in every branch of their formulas."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memwall
from memwall.cli import run
from memwall.errors import UsageError
from memwall.ops.registry import ops
from memwall.render import roofline as roofline_view
from memwall.render import step_record
from memwall.sweeps import grid as grids
from memwall.sweeps.best import Best
from memwall.sweeps.grid import Grid
from memwall.sweeps.left_out import LeftOut
from memwall.sweeps.plan import plan
from memwall.sweeps.planned import Planned, Spec
from memwall.sweeps.points import Points, evaluate, points
from memwall.sweeps.ranges import parse_axis
from memwall.sweeps.table import sweep


def sweep_of(what: str, ranges: dict[str, str], where: str | None = None, **words: Any) -> Planned:
    settings = words.pop("settings", {})
    words = {"gpu": ("h100",), **words}
    return plan(Spec(what, words, ranges, settings, where))


def records(sweep: Planned, left_out: LeftOut | None = None) -> list[dict[str, Any]]:
    found = [sweep.rows(number, left_out) for number in range(sweep.grid.count)]
    return [record for rows in found if rows for record in rows.records()]


def same(row: dict[str, Any], single: dict[str, Any]) -> None:
    """To the last bit; estimates, in which there are powers, but for a few of the last bits of float64."""
    for name in set(row) & set(single) - {"op"}:
        if name.startswith("estimate"):
            assert row[name] == pytest.approx(single[name], rel=1e-14), name
        else:
            assert row[name] == single[name], name


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("4096", [4096]),
        ("4096,8192", [4096, 8192]),
        ("1:5", [1, 2, 3, 4, 5]),
        ("0:256:64", [64, 128, 192, 256]),
        ("10:30:8", [10, 18, 26]),
        ("1:8:log2", [1, 2, 4, 8]),
        ("3:13:log2", [3, 6, 12]),
        ("1:4:log2,100,7:9", [1, 2, 4, 100, 7, 8, 9]),
        ("2^10, 1e3", [1024, 1000]),
        ("5,5", [5]),
    ],
)
def test_ranges_mean_what_people_type(text: str, values: list[int]) -> None:
    axis = parse_axis(text, "m", "--m")
    assert axis.slice(0, len(axis)).tolist() == values


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty place"),
        ("1,,2", "empty place"),
        ("8:1", "runs backwards. Try --m 1:8"),
        ("8:1:2", "Try --m 1:8:2"),
        ("10:1:-2", "Try --m 1:10:2$"),
        ("1:0", "runs backwards. Try --m 1:1$"),
        ("0:0", "is empty"),
        ("0:8:log2", "doublings of 0"),
        ("0:8:64", "is empty"),
        ("1:2:3:4", "number or a range"),
        ("1:", "number or a range"),
        ("1:64:log3", "the last part is a step or log2, not 'log3'"),
        ("1:8:0", "a step or log2"),
        ("-4:8", "whole number"),
        ("0", "whole number"),
        ("a", "whole number"),
    ],
)
def test_ranges_that_mean_nothing_say_so(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_axis(text, "m", "--m")


def test_a_range_is_not_made_before_it_is_used() -> None:
    axis = parse_axis("1:1e15", "m", "--m")
    assert len(axis) == 10**15
    assert axis.slice(10**15 - 2, 10**15).tolist() == [10**15 - 1, 10**15]


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.integers(1, 40),
    st.integers(1, 7),
)
def test_blocks_are_every_combination_once_and_in_order(lengths: list[int], most: int, shards: int) -> None:
    axes = tuple(parse_axis(f"1:{n}", f"d{i}", "--d") for i, n in enumerate(lengths))
    grid = Grid({"gpu": ("a", "b")}, axes, most)
    blocks = [grid.block(i) for shard in range(shards) for i in grid.shard(shard + 1, shards)]
    found: list[tuple[Any, ...]] = []
    for number, block in enumerate(blocks):
        assert grid.begins(number) == len(found)
        assert block.points <= max(most, 1)
        columns = [np.broadcast_to(value, block.shape).ravel() for value in block.values.values()]
        found += [(block.words["gpu"], *map(int, row)) for row in zip(*columns, strict=True)]
    assert grid.begins(grid.count) == len(found)
    assert found == list(itertools.product("ab", *(range(1, n + 1) for n in lengths)))


def test_a_comparison_splits_the_points_it_divides() -> None:
    seen = []

    def answer(values: Any) -> dict[str, Any]:
        branch = "window" if values["n"] > 10 else "all"
        if values["n"] == 3:
            raise UsageError("three")
        seen.append(branch)
        return {"n": values["n"] * 2}

    parts = evaluate({"n": points([1, 20, 3, 30, 5])}, answer, (5,))
    answered = {int(i): float(v) for p in parts if p.columns for i, v in zip(p.where, p.columns["n"])}  # type: ignore[arg-type]  # noqa: B905
    assert answered == {0: 2, 1: 40, 3: 60, 4: 10}
    assert [list(part.where) for part in parts if part.refusal] == [[2]]  # type: ignore[arg-type]
    assert sorted(seen) == ["all", "window"]


def test_points_are_a_key_only_as_a_whole() -> None:
    assert {points([1, 2]): "x"}[points([1, 2])] == "x"
    assert hash(points([1, 2])) != hash(points([1, 3]))
    assert isinstance(points([1, 2]) * 2, Points)


CASES = {
    "gemm": {"m": "1:2048:log2", "n": "100:4100:1000", "k": "4096,64"},
    "gemv": {"m": "1:300:7", "k": "4096", "batch": "1:512:log2"},
    "attention": {
        "heads": "32",
        "kv_heads": "1:33",
        "head_dim": "64,128",
        "seq_q": "1:40:3",
        "seq_kv": "1:64:9",
    },
    "mla": {"heads": "16", "seq_kv": "1:8192:log2", "seq_q": "1,4", "batch": "1,8"},
}


@pytest.mark.parametrize("op", ops())
def test_every_operator_sweeps_to_its_single_answers(op: str) -> None:
    example = ops()[op].example
    ranges = CASES.get(op) or {
        name: f"{size},{2 * size},{max(size // 2, 1)}" for name, size in example.items()
    }
    for dtypes in (("bf16",), ("fp32",)):
        left_out = LeftOut()
        sweep = sweep_of(op, ranges, dtype=dtypes)
        rows = records(sweep, left_out)
        assert len(rows) + left_out.points == sweep.grid.points
        assert rows
        chosen = random.Random(op).sample(rows, min(len(rows), 40))
        for row in chosen:
            shape = {name: row[name] for name in ranges}
            report = memwall.roofline(op, gpu="h100", dtype=dtypes[0], **shape)
            same(row, roofline_view.record(report))


@pytest.mark.parametrize("op", ["gemm", "attention", "rmsnorm", "expert_gemm", "mla"])
def test_estimates_sweep_to_their_single_answers(op: str) -> None:
    example = ops()[op].example
    ranges = CASES.get(op) or {name: f"{size},{2 * size}" for name, size in example.items()}
    rows = records(sweep_of(op, ranges, dtype=("bf16",), settings={"estimate": True}))
    for row in random.Random(op).sample(rows, min(len(rows), 12)):
        report = memwall.roofline(op, gpu="h100", **{name: row[name] for name in ranges})
        same(row, roofline_view.record(report))
        assert row["estimate_time_s"] == pytest.approx(report.estimate_time_s, rel=1e-12)


def test_the_points_left_out_are_those_that_cannot_be() -> None:
    left_out = LeftOut()
    sweep = sweep_of("attention", CASES["attention"])
    given = {tuple(row[name] for name in CASES["attention"]) for row in records(sweep, left_out)}
    axes = [axis.slice(0, len(axis)).tolist() for axis in sweep.grid.axes]
    for point in itertools.product(*axes):
        shape = dict(zip(CASES["attention"], point, strict=True))
        possible = shape["heads"] % shape["kv_heads"] == 0 and shape["seq_q"] <= shape["seq_kv"]
        assert (point in given) == possible
    assert sum(left_out.counts.values()) == sweep.grid.points - len(given)
    assert len(left_out.lines) == 2


@pytest.mark.parametrize("settings", [{"causal": True}, {"causal": False}, {"impl": "standard"}], ids=str)
def test_settings_hold_at_every_point(settings: dict[str, Any]) -> None:
    ranges = {"heads": "8", "head_dim": "64", "seq": "1:64:3"}
    for row in records(sweep_of("attention", ranges, settings=settings)):
        report = memwall.roofline("attention", heads=8, head_dim=64, seq=row["seq"], **settings)
        same(row, roofline_view.record(report))


MODELS = ("llama3-70b", "gemma3-4b", "deepseek-v3", "glm-5", "gpt-oss-20b", "jamba-v0.1", "qwen3-32b-fp8")


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("ranges", "settings"),
    [
        ({"batch": "1:9:4,300", "context": "1:3,900:9000:1100"}, {}),
        ({"batch": "1:3", "seq": "1:3,512:6000:1500"}, {}),
        ({"batch": "1:9:4", "context": "2,900:9000:3100"}, {"eager": True}),
    ],
    ids=["decode", "prefill", "eager"],
)
def test_passes_sweep_to_their_single_answers(
    model: str, ranges: dict[str, str], settings: dict[str, Any]
) -> None:
    rows = records(sweep_of("step", ranges, model=(model,), kv_dtype=("fp8",), settings=settings))
    assert len(rows) == np.prod([len(parse_axis(text, "", "")) for text in ranges.values()])
    for row in random.Random(model).sample(rows, 5):
        report = memwall.step(model, kv_dtype="fp8", **{name: row[name] for name in ranges}, **settings)
        same(row, step_record.record(report))


def test_a_condition_keeps_the_rows_that_meet_it() -> None:
    ranges = {"m": "1:4096:log2", "n": "4096", "k": "4096"}
    every = records(sweep_of("gemm", ranges))
    conditions: dict[str, Callable[[dict[str, Any]], bool]] = {
        'regime == "compute-bound"': lambda row: row["regime"] == "compute-bound",
        'limited_by != "hbm" and m < 2000': lambda row: row["limited_by"] != "hbm" and row["m"] < 2000,
        "100 < arithmetic_intensity <= 1000 or m == 1": lambda r: (
            100 < r["arithmetic_intensity"] <= 1000 or r["m"] == 1
        ),
        'gpu == "h100" and not (m % 64 == 0)': lambda row: row["m"] % 64 != 0,
        "flops / traffic_bytes > 2 * 50 - -1": lambda row: row["flops"] / row["traffic_bytes"] > 101,
    }
    for where, meets in conditions.items():
        kept = records(sweep_of("gemm", ranges, where))
        assert kept == [row for row in every if meets(row)], where
        assert 0 < len(kept) < len(every)


@pytest.mark.parametrize(
    "where",
    [
        "regim == 1",
        "m",
        "m +",
        "__import__('os')",
        "m.real > 1",
        "regime > 'a'",
        "m == 'x'",
        "[1]",
        "m in (1, 2)",
        "m / 0 > 1",
        "m % 0 == 1",
        "bound < 1",
    ],
)
def test_no_condition_is_refused(where: str) -> None:
    with pytest.raises(UsageError, match="--where"):
        records(sweep_of("gemm", {"m": "1:8", "n": "8", "k": "8"}, where))


def test_what_is_unknown_or_divided_by_zero_meets_no_condition() -> None:
    """Nobody has measured every level's latency; what is not spilled divides nothing."""
    table = sweep("hierarchy", gpu="h100")
    unknown = [row["level"] for row in table.to_rows() if row["latency_s"] is None]
    assert unknown
    for where in ("latency_s > 0", "latency_s <= 0", "latency_s != 1", "1 / latency_s > 0"):
        kept = {row["level"] for row in sweep("hierarchy", gpu="h100", where=where).to_rows()}
        assert not kept & {*unknown}, where
    none = sweep(
        "occupancy", threads=64, registers=[32, 255], where="registers / spilled_bytes_per_thread > 0"
    )
    assert len(none) == 0


def test_a_column_is_meant_by_its_heading(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["sweep", "--op", "gemm", "--m", "1:4", "--n", "8", "--k", "8"]
    for wrong in (["--best", "bound"], ["--where", "bound > 1"], ["--best", "boundtime"]):
        assert run([*line, *wrong]) == 2
        assert "Did you mean bound_time_s? gpu, op, m" in capsys.readouterr().err


def test_the_best_row_is_the_best_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids, "BLOCK_POINTS", 7)
    sweep = sweep_of("gemm", {"m": "1:40", "n": "64:512:64", "k": "4096"})
    every = records(sweep)
    for column, least in (("attainable_flops_per_s", False), ("bound_time_s", True), ("traffic_bytes", True)):
        best = Best(column, 5)
        for number in range(sweep.grid.count):
            rows = sweep.rows(number)
            assert rows is not None
            best.add(rows)
        assert best.rows is not None
        ordered = sorted(every, key=lambda row: row[column], reverse=not least)
        assert best.rows.records() == ordered[:5]


def test_the_best_of_what_is_no_number_is_refused() -> None:
    rows = sweep_of("gemm", {"m": "1:8", "n": "8", "k": "8"}).rows(0)
    assert rows is not None
    for column in ("regime", "gpu", "bound_tim_s"):
        with pytest.raises(UsageError, match="there is no number"):
            Best(column).add(rows)
