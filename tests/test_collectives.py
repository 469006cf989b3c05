"""Collectives: counts by hand, the estimate against measured rows, and what must hold always."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memwall import yamlfile
from memwall.catalog import shipped_text
from memwall.cli import run
from memwall.collectives import FILE, OPS, Collective, bound_term, collective, engine_estimate, estimate
from memwall.constant import KINDS
from memwall.errors import NotPublished, UsageError
from memwall.hardware import load
from memwall.links import link_between
from memwall.nodes import group
from memwall.reports.collective import collective_time
from memwall.units import GIGA

ROOT = Path(__file__).parents[1]
QUICK = settings(max_examples=40, deadline=None, derandomize=True)


class Row(NamedTuple):
    gpu: str
    what: Collective
    measured_s: float

    @property
    def estimate_s(self) -> float:
        known = estimate(self.what, link_between(load(self.gpu), self.what.gpus))
        assert known
        return known.time_s

    @property
    def error(self) -> float:
        return abs(self.estimate_s / self.measured_s - 1)


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    text = (ROOT / "configs/measurements/collectives.csv").read_text().splitlines()
    table = csv.DictReader(line for line in text if not line.startswith("#"))
    micro = 1e-6
    return [
        Row(r["gpu"], Collective(r["op"], int(r["bytes"]), int(r["gpus"])), float(r["time_us"]) * micro)
        for r in table
    ]


def test_no_measured_collective_beats_its_bound(rows: list[Row]) -> None:
    assert len(rows) == 1400
    for row in rows:
        link = link_between(load(row.gpu), row.what.gpus)
        assert bound_term(row.what, link).time_s <= min(row.measured_s, row.estimate_s), row


def test_half_of_the_estimates_are_within_twelve_per_cent(rows: list[Row]) -> None:
    errors = [row.error for row in rows]
    assert median(errors) <= 0.12
    assert sum(error <= 0.3 for error in errors) >= 0.85 * len(errors)


@pytest.mark.parametrize("gpu", ["a100", "h100", "h200", "b200", "l40s", "arc-pro-b60"])
def test_no_gpu_is_left_behind(rows: list[Row], gpu: str) -> None:
    errors = [row.error for row in rows if row.gpu == gpu]
    assert median(errors) <= 0.15
    assert sum(error <= 0.3 for error in errors) >= 0.8 * len(errors)


@pytest.mark.parametrize(
    ("op", "wire"),
    [
        ("all_reduce", 1400),  # 2 x 7/8 of 800: scatter, then gather
        ("all_gather", 700),
        ("reduce_scatter", 700),
        ("all_to_all", 700),
        ("broadcast", 800),
        ("send_recv", 800),
    ],
)
def test_what_crosses_the_link(op: str, wire: float) -> None:
    assert Collective(op, 800, 8).wire_bytes() == wire
    assert Collective(op, 800, 1).wire_bytes() == 0


def test_an_all_reduce_of_64_mib_on_eight_h100() -> None:
    report = collective_time("all-reduce", size_bytes=2**26, gpus=8, gpu="h100")
    assert report.bound_time_s == pytest.approx(2**26 / 450e9)  # the switch adds up: once over the link
    assert report.estimate_time_s == pytest.approx(324.5e-6, rel=0.1)  # measured: NCCL 2.29
    assert report.algbw_bytes_per_s
    assert report.busbw_bytes_per_s
    assert report.estimate_time_s
    assert report.busbw_bytes_per_s == pytest.approx(report.algbw_bytes_per_s * 7 / 4)
    assert report.algbw_bytes_per_s == pytest.approx(2**26 / report.estimate_time_s)
    assert report.bound_time_s <= report.estimate_time_s


@QUICK
@given(
    st.sampled_from(OPS), st.integers(1, 2**34), st.sampled_from(["a100", "h100", "b200", "l40s", "mi300x"])
)
def test_more_bytes_never_take_less_time(op: str, size: int, gpu: str) -> None:
    link = link_between(load(gpu), 8)
    small, large = Collective(op, size, 8), Collective(op, 2 * size, 8)
    assert bound_term(small, link).time_s <= bound_term(large, link).time_s
    first, second = estimate(small, link), estimate(large, link)
    assert first
    assert second
    assert bound_term(small, link).time_s <= first.time_s <= second.time_s
    own = engine_estimate(small, link)
    assert own
    assert bound_term(small, link).time_s <= own.time_s <= first.time_s


@QUICK
@given(st.sampled_from(OPS), st.integers(1, 2**30), st.sampled_from([2, 4, 8]))
def test_a_faster_link_never_takes_more_time(op: str, size: int, gpus: int) -> None:
    times = []
    for rate in (225, 450, 900):
        device = load("h100", {"links.nvlink.gb_per_s_per_direction": rate})
        link = link_between(device, gpus)
        known = estimate(Collective(op, size, gpus), link)
        assert known
        times.append((bound_term(Collective(op, size, gpus), link).time_s, known.time_s))
    assert times == sorted(times, reverse=True)


def test_a_bridge_joins_two_and_a_mesh_needs_all_peers() -> None:
    assert link_between(load("h100-pcie"), 2).kind == "nvlink"
    assert link_between(load("h100-pcie"), 4).kind == "pcie"
    assert link_between(load("h200-nvl"), 4).kind == "nvlink"
    assert link_between(load("mi300x"), 2).rate.value == pytest.approx(64e9)
    assert link_between(load("mi300x"), 8).rate.value == pytest.approx(448e9)
    with pytest.raises(NotPublished, match=r"links\.pcie"):
        link_between(load("m1"), 2)


def test_two_nodes_do_it_in_three_steps() -> None:
    what = Collective("all_reduce", 2**24, 16)
    both = group(load("h100"), 16, 2)
    parts = both.stages(what)
    assert [(part.op, part.gpus, link.kind) for part, link in parts] == [
        ("reduce_scatter", 8, "nvlink"),
        ("all_reduce", 2, "network"),
        ("all_gather", 8, "nvlink"),
    ]
    assert both.bound_s(what) == pytest.approx(2**21 / 50e9)  # an eighth of it through each GPU's card
    estimated = both.estimate_s(what)
    assert estimated
    assert estimated > both.bound_s(what)


@pytest.mark.parametrize("op", OPS)
def test_over_nodes_too_the_estimate_is_above_the_bound(op: str) -> None:
    for size in (1, 2**12, 2**20, 2**30):
        both = group(load("h100"), 16, 2)
        estimated = both.estimate_s(Collective(op, size, 16))
        assert estimated
        assert estimated >= both.bound_s(Collective(op, size, 16))


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("collective all_reduce --bytes 1024 --gpus 16 --gpu h100", "--nodes 2"),
        ("collective all_reduce --bytes 1024 --gpus 9 --nodes 2 --gpu h100", "8, 10"),
        ("collective all_sum --bytes 1024", "all_reduce"),
        ("collective all_reduce --bytes -1", "--bytes"),
        ("collective all_reduce", "--bytes"),
    ],
)
def test_bad_input_gets_advice(capsys: pytest.CaptureFixture[str], command: str, says: str) -> None:
    assert run(command.split()) == 2
    assert says in capsys.readouterr().err


def test_the_json_has_what_is_promised(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run(
            ["collective", "all_reduce", "--bytes", "67108864", "--gpus", "8", "--gpu", "h100,b200", "--json"]
        )
        == 0
    )
    document = json.loads(capsys.readouterr().out)
    for result in document["results"]:
        assert result["bound_time_s"] < result["estimate_time_s"]
        assert result["algbw_bytes_per_s"] < result["busbw_bytes_per_s"]
        assert result["limited_by"] == "link"


@pytest.mark.parametrize(
    ("gpu", "gpus", "least", "most"),
    [
        ("rtx-5090", 8, 25, 31),  # busbw 28 GB/s: NVIDIA/nccl issue 1639
        ("rtx-5090", 4, 31, 38),  # 35, the same
        ("rtx-pro-6000", 8, 22, 41),  # 22.2 to 41.1 on five servers: voipmonitor/rtx6kpro
    ],
)
def test_over_pcie_eight_gpus_are_near_what_servers_reach(
    gpu: str, gpus: int, least: float, most: float
) -> None:
    report = collective_time("all_reduce", size_bytes=2**30, gpus=gpus, gpu=gpu)
    assert report.busbw_bytes_per_s
    assert least * GIGA <= report.busbw_bytes_per_s <= most * GIGA


def test_the_rate_over_pcie_falls_slowly_but_on_the_server_that_was_measured() -> None:
    def rate(gpu: str, gpus: int) -> float:
        report = collective_time("all_reduce", size_bytes=2**30, gpus=gpus, gpu=gpu)
        return report.busbw_bytes_per_s or 0

    assert 0.6 < rate("rtx-4090", 8) / rate("rtx-4090", 2) < 0.8
    assert rate("l40s", 8) / rate("l40s", 2) == pytest.approx(1 / 16, rel=0.05)
    assert rate("l40s", 2) == pytest.approx(rate("rtx-4090", 2))


def test_whose_all_reduce_it_is_stands_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    """One number in both: what collective calls an engine's is what step reckons with."""
    asked = "collective all_reduce --bytes 512KiB --gpus 8 --gpu h100"
    assert run([*asked.split(), "--json"]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert (alone["library"], alone["engine_algorithm"]) == ("NCCL", "two shots")
    assert alone["engine_estimate_time_s"] < alone["estimate_time_s"]
    assert (
        run(
            [
                *[
                    "step",
                    "--model",
                    "llama3-70b",
                    "--gpu",
                    "h100",
                    "--tp",
                    "8",
                    "--batch",
                    "32",
                    "--context",
                    "4096",
                    "--json",
                ]
            ]
        )
        == 0
    )
    step = json.loads(capsys.readouterr().out)
    [layers] = [each for each in step["exchanges"] if each["name"] == "layers.all_reduce"]
    assert layers["by"] == "engine"
    assert layers["estimate_time_s"] == alone["engine_estimate_time_s"]
    assert any("a kernel of their own" in note and "NCCL" in note for note in step["notes"])
    assert run(["node", "dgx-h100", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)["all_reduces"][1]  # 32 sequences
    assert row["inside_engine_time_s"] == pytest.approx(160 * alone["engine_estimate_time_s"])
    assert row["inside_time_s"] == pytest.approx(160 * alone["estimate_time_s"])
    long = collective_time("all_reduce", size_bytes=2**30, gpus=8, gpu="h100")
    assert long.engine is None  # NCCL is as fast
    assert run(asked.split()) == 0
    printed = capsys.readouterr().out
    assert "NCCL: ring" in printed
    assert "its own kernel: two shots" in printed


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("collective all_reduce --bytes 1MiB --gpu mi300x", "rests on collectives.xgmi, assumed"),
        ("collective all_reduce --bytes 1MiB --gpu h100 --gpus 16 --nodes 2", "collectives.network, assumed"),
        ("step --model llama3-70b --gpu h100 --tp 8 --pp 2 --context 4096", "collectives.network, assumed"),
        ("plan --model llama3-70b --gpu h100 --gpus 16 --context 4096", "collectives.network, assumed"),
        ("cost --model llama3-70b --gpu mi300x --tp 8 --context 4096 --price 2", "collectives.xgmi, assumed"),
        ("serve --model llama3-70b --gpu mi300x --tp 8 --isl 128 --osl 8", "collectives.xgmi, assumed"),
        ("plan --model llama3-8b --gpu rtx-4090 --gpus 8 --context 4096", "servers differ"),
        ("step --model llama3-8b --gpu l40s --tp 8 --context 4096", "the one server that was measured"),
        ("step --model llama3-8b --gpu rtx-4090 --tp 2 --context 4096", "no node with a rtx-4090"),
        (
            "step --model llama3-8b --gpu b200 --tp 8 --context 4096",
            "over NVLink 5: start and share are assumed",
        ),
        ("collective all_reduce --bytes 512KiB --gpu a100", "over NVLink 3: start and share are assumed"),
        ("node l40s-server", "the one server that was measured"),
        ("train-step --model llama3-8b --gpu h100 --gpus 16 --zero 1", "collectives.network, assumed"),
    ],
)
def test_what_is_assumed_of_links_is_said(
    command: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(command.split())
    assert says in capsys.readouterr().out


def test_one_gpu_has_nobody_to_send_to(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["collective", "all_reduce", "--bytes", "1KiB", "--gpus", "1"]) == 0
    assert "nobody to send to" in capsys.readouterr().out
    report = collective_time("all_reduce", size_bytes=1, gpus=1)
    assert (report.bound_time_s, report.estimate_time_s) == (0, 0)


def test_every_constant_has_a_source() -> None:
    data = yamlfile.parse(shipped_text(FILE), FILE)
    for kind in [*data["kinds"], data["common"]]:
        assert all(sum(known in entry for known in KINDS) == 1 for entry in kind["source"])


def test_no_such_collective() -> None:
    assert collective("AllReduce", 8, 2).op == "all_reduce"
    with pytest.raises(UsageError, match="all_gather"):
        collective("allsum", 8, 2)
