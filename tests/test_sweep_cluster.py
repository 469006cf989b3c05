"""A sweep on a Dask cluster: the rows of one machine, and no loss with a worker."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from memwall.cli import run
from memwall.errors import NotAvailable
from memwall.sweeps import cluster
from memwall.sweeps import grid as grids
from memwall.sweeps.plan import plan
from memwall.sweeps.planned import Spec

COMMAND = ["sweep", "--op", "gemm", "--m", "1:300", "--n", "8:80:8", "--k", "64", "--gpu", "h100,v100"]
SPEC = Spec(
    "gemm", {"gpu": ("h100", "v100"), "dtype": ("bf16",)}, {"m": "1:300", "n": "8:80:8", "k": "64"}, {}
)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids, "BLOCK_POINTS", 130)
    monkeypatch.setattr(cluster, "PART_BLOCKS", 5)


def expected() -> list[dict[str, Any]]:
    sweep = plan(SPEC)
    every = [sweep.rows(number) for number in range(sweep.grid.count)]
    return [record for rows in every if rows for record in rows.records()]


def test_parts_are_the_blocks_once_each() -> None:
    parts = cluster.parts_of(range(3, 20))
    assert [number for part in parts for number in range(part.start, part.stop)] == list(range(3, 20))


def test_without_dask_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    monkeypatch.setattr(cluster, "arrow", lambda: None)
    assert run([*COMMAND, "--dask", "local", "-o", str(tmp_path / "out")]) == NotAvailable.exit_code
    assert "memwall[dask]" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("more", [[], ["-o", "-"], ["-o", "out", "--best", "m"]])
def test_a_cluster_needs_a_folder(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*COMMAND, "--dask", "local", *more]) == 2
    assert capsys.readouterr().err.startswith("error: --")


def test_a_part_is_written_whole(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
    sweep = plan(SPEC)
    for part in cluster.parts_of(range(sweep.grid.count)):
        cluster.write_part(SPEC, part, str(tmp_path))
    assert parquet.read_table(tmp_path).to_pylist() == expected()


def test_a_part_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("memwall.sweeps.files.Parquet.write", full)
    with pytest.raises(OSError, match="No space left"):
        cluster.write_part(SPEC, cluster.Part(0, 0, 5), str(tmp_path))
    assert os.listdir(tmp_path) == []


def test_a_worker_that_dies_costs_nothing_but_time(tmp_path: Path) -> None:
    """Every worker of a real cluster is killed once in the middle; the parts are all there, and right."""
    distributed = pytest.importorskip("distributed", reason="needs Dask")
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
    sweep, folder = plan(SPEC), tmp_path / "out"
    killed: list[int] = []
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as local:

        def seen(done: int) -> None:
            if not killed:
                worker = next(iter(local.workers.values()))
                killed.append(worker.pid)
                os.kill(worker.pid, 9)

        cluster.run(sweep, range(sweep.grid.count), local.scheduler_address, str(folder), seen)
    assert killed
    assert parquet.read_table(folder).to_pylist() == expected()
    assert (folder / cluster.SUCCESS).exists()
    assert not [name for name in os.listdir(folder) if name.endswith(".partial")]


def test_a_run_goes_on_with_the_parts_that_are_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("distributed", reason="needs Dask")
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
    folder = tmp_path / "out"
    assert run([*COMMAND, "--dask", "local", "-o", str(folder)]) == 0
    assert "points left out: NVIDIA V100" in capsys.readouterr().err
    first = folder / "part-000000.parquet"
    kept = {path.name: path.stat().st_mtime_ns for path in folder.glob("part-*") if path != first}
    first.unlink()
    assert run([*COMMAND, "--dask", "local", "-o", str(folder)]) == 0
    assert parquet.read_table(folder).to_pylist() == expected()
    assert {path.name: path.stat().st_mtime_ns for path in folder.glob("part-*") if path != first} == kept
    assert run([*COMMAND, "--where", "m > 3", "--dask", "local", "-o", str(folder)]) == 2
    assert "holds another sweep" in capsys.readouterr().err
