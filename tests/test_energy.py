"""Energy of a token by its parts: worked by hand from published energies of a bit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memwall import yamlfile
from memwall.catalog import shipped_text
from memwall.cli import run
from memwall.constant import KINDS
from memwall.reports.cost import CostReport, cost
from memwall.reports.energy import FILE


def priced(gpu: str = "h200", model: str = "llama3-8b", **options: object) -> CostReport:
    given = {"batch": 32, "context": 4096, **options}
    return cost(model, price=2.5, gpu=gpu, **given)  # type: ignore[arg-type]


def test_the_memorys_part_by_hand() -> None:
    """HBM3e, 3.9 pJ/bit: 16.06 GB of weights without the table, and 32 caches of 32 x 4096 x 2 x 8 x 128 x 2
    bytes, a step of 32 tokens; activations are a hundredth."""
    weights = 2 * (8_030_261_248 - 128_256 * 4096)
    caches = 32 * 32 * 4096 * 2 * 8 * 128 * 2
    split = priced().energy_out
    assert split.memory_j == pytest.approx((weights + caches) * 8 * 3.9e-12 / 32, rel=0.02)
    assert split.links_j == 0
    assert split.memory_j is not None
    assert split.rest_j == pytest.approx(split.total_j - split.memory_j)


def test_the_links_part_by_hand() -> None:
    """PCIe 5, 6.5 pJ/bit: 65 all-reduces of 32 x 4096 x 2 bytes, of which each of 4 GPUs sends 3/2, and the
    logits, 3/4 of 32 x 128256 x 2."""
    split = priced("h100-pcie", tp=4).energy_out
    sent = 4 * (65 * 32 * 4096 * 2 * 3 / 2 + 32 * 128_256 * 2 * 3 / 4)
    assert split.links_j == pytest.approx(sent * 8 * 6.5e-12 / 32)


@pytest.mark.parametrize("options", [{"dp": 2}, {"tp": 2}, {"pp": 2}])
def test_layouts_move_what_one_gpu_moves_or_more(options: dict[str, Any]) -> None:
    """Two replicas with half of the batch each read the weights twice; parts read them once."""
    one, two = priced().energy_out, priced(**options).energy_out
    assert one.memory_j
    assert two.memory_j
    assert 0.99 * one.memory_j <= two.memory_j < 2 * one.memory_j


def test_what_is_not_published_is_left_out_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["cost", "--model", "llama3-8b", "--price", "2", "--context", "4096", "--gpu"]
    assert run([*asked, "h100", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["memory_joules_per_token_out"] is document["other_joules_per_token_out"] is None
    assert any("energy of a bit of HBM3 was found" in note for note in document["notes"])
    assert run([*asked, "h200", "--tp", "2", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["link_joules_per_token_out"] is None
    parts = document["memory_joules_per_token_out"] + document["other_joules_per_token_out"]
    assert parts == pytest.approx(document["joules_per_token_out"])
    assert any("NVLink 4" in note and "was found" in note for note in document["notes"])
    assert any("3.9 pJ/bit of HBM3e" in note and "Samsung" in note for note in document["notes"])


def test_watts_below_the_memorys_leave_no_rest() -> None:
    split = priced(watts=1).energy_out
    assert split.memory_j
    assert split.rest_j is None


def test_every_energy_has_a_source_with_its_address() -> None:
    data = yamlfile.parse(shipped_text(FILE), FILE)
    for entry in [*data["memory"], *data["links"]]:
        for source in entry["source"]:
            assert sum(kind in source for kind in KINDS) == 1
            assert "https://" in str(source)
