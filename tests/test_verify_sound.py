"""Records whose values cannot be: refused as they are read, or judged as what they say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from memwall.cli import run
from memwall.errors import FileError
from memwall.verify.record import read

ROOT = Path(__file__).parents[1]


def _changed(tmp_path: Path, **changes: Any) -> Path:
    """The shipped record's first outcome alone, with values changed."""
    data = json.loads((ROOT / "configs/measurements/h200/verify.json").read_text())
    first = data["outcomes"][0]
    for key, value in changes.items():
        place, _, name = key.rpartition("__")
        (first[place] if place else first)[name] = value
    path = tmp_path / "changed.json"
    path.write_text(json.dumps({**data, "outcomes": [first]}))
    return path


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"status": "great"}, "status 'great' is none"),
        ({"error": -1}, "error of -1 cannot be"),
        ({"tolerance": float("nan")}, "tolerance of nan cannot be"),
        ({"time": None}, "ok, but without a time"),
        ({"time__p50_s": -1}, "cannot be"),
        ({"time__p50_s": "1"}, "cannot be"),
        ({"time__p50_s": 1}, "percentiles out of order"),
        ({"counters__dram_read_bytes": "x"}, "dram_read_bytes of 'x' cannot be"),
        ({"trial__dims": {}}, "has other dimensions"),
        ({"trial__dims": {"rows": -4, "cols": 4}}, "rows of -4 cannot be"),
        ({"trial__dims": {"rows": 10**40, "cols": 4}}, "cannot be"),
        ({"trial__op": "zzz"}, "zzz"),
        ({"trial__warm": "no"}, "warm is neither"),
    ],
)
def test_a_record_that_cannot_be_is_refused(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=re.escape(said)):
        read(str(_changed(tmp_path, **changes)))


def test_a_result_is_judged_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", "--replay", str(_changed(tmp_path))]) == 0
    assert run(["verify", "--replay", str(_changed(tmp_path, error=5.0))]) == 1
    assert "differs from float64 by 5" in capsys.readouterr().out


def test_where_nothing_ran_nothing_is_as_predicted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _changed(tmp_path, status="missing", time=None, error=None, counters=None)
    assert run(["verify", "--replay", str(path)]) == 1
    assert "nothing was judged: 1 skipped" in capsys.readouterr().out
