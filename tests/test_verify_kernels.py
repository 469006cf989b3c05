"""The Triton kernels, run on the CPU by Triton's interpreter where torch and triton are installed.

The interpreter multiplies the raw bits of bf16, so products are checked in fp16 and fp32.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
MISSING = [name for name in ("torch", "triton") if importlib.util.find_spec(name) is None]

CHECKS = """
import json, sys
from memwall.verify.case import trial_of
from memwall.verify.worker import TOLERANCES, checked
for record in json.load(sys.stdin):
    trial = trial_of(record)
    errors, allowed = checked(trial, 3, "cpu"), TOLERANCES[trial.dtype]
    print(json.dumps({"name": trial.name, "errors": errors, "allowed": allowed}))
"""


def triton_trials() -> list[Any]:
    from memwall.verify.kernels.table import KERNELS
    from memwall.verify.plan import SIXTEEN_BITS, standard_plan

    plan = [trial for trial in standard_plan() if trial.kernel.startswith("triton.") and not trial.warm]
    vectors = next(trial for trial in plan if trial.kernel == "triton.gemv")
    plan.append(vectors._replace(dims={**vectors.dims, "batch": 3}))
    formats = {kernel: ["fp16"] if kernel in SIXTEEN_BITS else ["fp16", "fp32"] for kernel in KERNELS}
    return [trial._replace(dtype=dtype) for trial in plan for dtype in formats[trial.kernel]]


@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
def test_every_triton_kernel_is_right_under_the_interpreter() -> None:
    trials = triton_trials()
    run = subprocess.run(
        [sys.executable, "-c", CHECKS],
        input=json.dumps([trial.record for trial in trials]),
        env={**os.environ, "TRITON_INTERPRET": "1"},
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    checks = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(checks) == len(trials)
    wrong = [check for check in checks if not max(check["errors"].values()) <= check["allowed"]]
    assert wrong == []


def test_the_libraries_are_imported_by_the_kernels_alone() -> None:
    importers = {
        path.relative_to(ROOT / "memwall").as_posix()
        for path in (ROOT / "memwall").rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith(("import torch", "import triton", "import cupy", "from torch", "from triton"))
    }
    assert importers
    assert all(name.startswith("verify/kernels/") for name in importers)


def test_planning_and_judging_import_none_of_them() -> None:
    code = "import sys, memwall.cli.verify, memwall.verify.plan, memwall.verify.judge, memwall.verify.host;"
    code += "print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {"torch", "triton", "cupy", "numpy", "rich", "pydantic"} & set(run.stdout.split())
