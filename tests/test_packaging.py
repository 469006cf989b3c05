"""What a user installs: the wheel finds its data from any folder, unpacked or as a zip file."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built through the sdist as a release is."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return next(folder.glob("*.whl"))


def memwall_from(path: Path, folder: Path, *args: str) -> str:
    """Run memwall with the wheel's code alone, from another folder."""
    code = f"import sys; sys.path.insert(0, {str(path)!r}); import memwall.cli; "
    code += "print(memwall.__file__, file=sys.stderr); raise SystemExit(memwall.cli.run(sys.argv[1:]))"
    run = subprocess.run(
        [sys.executable, "-P", "-c", code, *args], cwd=folder, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert str(path) in run.stderr
    return run.stdout


def test_the_wheel_holds_every_catalogue_file(wheel: Path) -> None:
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if "/_data/" in name}
    listed = subprocess.run(
        ["git", "ls-files", "hardware", "configs"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert packed == {f"memwall/_data/{name}" for name in listed}


@pytest.mark.parametrize("unpacked", [True, False], ids=["unpacked", "as a zip file"])
def test_the_wheel_runs_from_any_folder(wheel: Path, tmp_path: Path, unpacked: bool) -> None:
    path = wheel
    if unpacked:
        path = tmp_path / "site"
        zipfile.ZipFile(wheel).extractall(path)
    roofline = json.loads(
        memwall_from(path, tmp_path, "roofline", "--gpu", "H100-SXM5-80GB", "--op", "gemv", "--json")
    )
    assert roofline["gpu"] == "h100"
    assert roofline["traffic_bytes"] == 134250496  # 2 (8192^2 + 2 x 8192)
    attention = json.loads(
        memwall_from(path, tmp_path, "attention", "--model", "llama3-70b", "--seq", "4096", "--json")
    )
    assert attention["flash"]["traffic_bytes"] == 12079595520  # 80 x 2 x 4096 x 128 x (2 x 64 + 2 x 8)
    assert "h200" in memwall_from(path, tmp_path, "gpu", "list")
    claims = json.loads(memwall_from(path, tmp_path, "check", "article", "--json"))["claims"]
    assert all(claim["as_recorded"] for claim in claims)


def test_a_checkout_has_no_copy_of_the_data() -> None:
    assert not (ROOT / "memwall" / "_data").exists()
