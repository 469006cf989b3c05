"""Nodes: every file by schema, and what leaving a node costs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memwall.cli import run
from memwall.hardware import load as load_gpu
from memwall.nodes import NODES, from_entry, load, node_of
from memwall.reports.node import node_report
from memwall.schema.base import validate
from memwall.schema.nodes import NodeFile

FILES = sorted((Path(__file__).parents[1] / "hardware/nodes").glob("*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_file_is_sound(path: Path) -> None:
    node = validate(NodeFile, path.read_text(), path.name)
    assert node.name == path.stem
    report = node_report(load(node.name), load_gpu(node.gpu))
    assert report.traffic[0].size_bytes == 8192 * 2  # one token of 8192 elements of 16 bits
    assert report.traffic[0].repeats == 160  # two a layer, 80 layers


def test_aliases_are_nobody_elses() -> None:
    names = [
        name for path in FILES for name in (path.stem, *validate(NodeFile, path.read_text(), "").aliases)
    ]
    assert len(names) == len(set(names))


def test_a_gpu_knows_its_node() -> None:
    home = node_of(load_gpu("h100"))
    assert home
    assert home.name == "dgx-h100"
    assert home.network
    assert home.network.rate.value == 50e9
    assert node_of(load_gpu("rtx-4090")) is None


def test_tensor_parallelism_stays_in_the_node(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["node", "dgx-h100", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    decode = document["all_reduces"][0]
    assert decode["two_nodes_time_s"] > 2 * decode["inside_time_s"]
    assert document["link_bytes_per_s"] / document["network_bytes_per_s_per_gpu"] == 9
    assert any("tensor parallelism stays" in note for note in document["notes"])


def test_the_list_and_a_file_of_ones_own(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["node", "dgx-a100", "--yaml"]) == 0
    own = tmp_path / "mine.yaml"
    own.write_text(capsys.readouterr().out.replace("name: dgx-a100", "name: mine"))
    assert run(["node", str(own)]) == 0
    assert "(mine)" in capsys.readouterr().out
    own.write_text(own.read_text().replace("gpus: 8", "gpus: many"))
    assert run(["node", str(own)]) == 3
    assert "mine.yaml:5" in capsys.readouterr().err


def test_every_name_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["node"]) == 0
    listed = capsys.readouterr().out
    assert all(entry.name in listed for entry in NODES.entries())
    assert all(from_entry(entry).gpus >= 1 for entry in NODES.entries())


def test_an_unknown_node_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["node", "dgx-h10"]) == 2
    assert "dgx-h100" in capsys.readouterr().err
