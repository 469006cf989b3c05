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


COMPILES = """
import sys, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from memwall.verify.kernels import (
    counting, standard, triton_attention, triton_decode, triton_gemm, triton_gemv, triton_rows
)
HALVES = {"w", "x", "y", "q", "k", "v", "o", "a", "b", "c", "s", "p", "h", "weight", "bias", "residual"}
SUMS = {"partial", "log_sums"}
CONSTANTS = {"block_m": 16, "block_k": 64, "block": 2048, "block_q": 128, "head_dim": 64, "causal": True,
             "padded": 16, "tile_m": 128, "tile_n": 128, "tile_k": 64, "group": 8}
found = 0
for module in (counting, standard, triton_attention, triton_decode, triton_gemm, triton_gemv, triton_rows):
    for name, kernel in vars(module).items():
        if not name.endswith("kernel") and name != "memwall_flush":
            continue
        constant = {p.name for p in kernel.params if p.is_constexpr}
        integers = {"k"} if "gemm" in name or "gemv" in name else set()
        def kind(arg):
            if arg in constant:
                return "constexpr"
            if arg in HALVES - integers:
                return "*bf16"
            return "*fp32" if arg in SUMS else "fp32" if arg in ("scale", "epsilon") else "i32"
        signature = {arg: kind(arg) for arg in kernel.arg_names}
        constants = {(kernel.arg_names.index(arg),): CONSTANTS[arg] for arg in constant}
        source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
        triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 8})
        found += 1
print(found)
"""


@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
def test_every_triton_kernel_compiles_for_a_gpu_that_is_not_here(tmp_path: Path) -> None:
    """The interpreter runs Python that the compiler refuses."""
    path = tmp_path / "compiles.py"
    path.write_text(COMPILES, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TRITON_CACHE_DIR": str(tmp_path)}
    environment.pop("TRITON_INTERPRET", None)
    run = subprocess.run(
        [sys.executable, str(path)], env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) == 12


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
