"""The worker: a process of its own that runs the kernels, so that a crash costs one row.

It reads one request as JSON from stdin and writes events as JSON lines to stdout: `machine`, then for
each trial `start` and `trial`, then `done`; or `cannot`. What libraries print goes to stderr.

    python -m memwall.verify.worker < request.json
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from math import ceil
from typing import Any

import memwall
from memwall.verify.case import Tensors, Trial, irregular, trial_of
from memwall.verify.kernels.table import place_of

COLD_TIMES_L2 = 6
"""Rotating sets of buffers hold at least so many times L2 together."""
MOST_SETS = 256
MOST_OF_MEMORY = 0.5
"""How much of the free memory the sets may take; the rest is for what a kernel keeps beside them."""
TOLERANCES = {"bf16": 2.0**-7, "fp16": 2.0**-10, "fp32": 2.0**-15}
"""|out - ref| / |ref| beyond which a kernel is wrong: a few roundings of its format."""

Emit = Callable[[Mapping[str, Any]], None]


def main() -> None:
    """Serve one request."""
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no event

    def emit(event: Mapping[str, Any]) -> None:
        events.write(json.dumps(event) + "\n")
        events.flush()

    request = json.load(sys.stdin)
    import torch

    if not torch.cuda.is_available():
        emit({"event": "cannot", "message": _no_gpu(torch.version.cuda)})
        return
    emit({"event": "machine", **machine()})
    l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
    run = _counter(l2_bytes) if request["mode"] == "count" else _timer(l2_bytes, request["budget_s"])
    for index, record in enumerate(request["trials"]):
        trial = trial_of(record)
        emit({"event": "start", "index": index})
        result = outcome(trial, request["seed"] + index, run)
        emit({"event": "trial", "index": index, **result})
        torch.cuda.empty_cache()
    emit({"event": "done"})


def machine() -> dict[str, Any]:
    """The GPU, its driver and the libraries that the kernels ran on."""
    import torch

    gpu = torch.cuda.get_device_properties(0)
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "memwall": memwall.__version__,
        "gpu_name": gpu.name,
        "units": gpu.multi_processor_count,
        "l2_bytes": gpu.L2_cache_size,
        "memory_bytes": gpu.total_memory,
        "driver": _driver(),
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "python": sys.version.split()[0],
        **{name: _version(name) for name in ("torch", "triton", "cupy-cuda13x", "cupy-cuda12x")},
    }


def outcome(trial: Trial, seed: int, run: Callable[[Trial, int], Mapping[str, Any]]) -> dict[str, Any]:
    """Check a trial's kernel, then run it; what went wrong is its status, never an exception."""
    import torch

    try:
        errors = checked(trial, seed, "cuda")
        wrong = max(errors.values()) > TOLERANCES[trial.dtype]
        checks = {"errors": errors, "tolerance": TOLERANCES[trial.dtype]}
        return {"status": "wrong", **checks} if wrong else {"status": "ok", **checks, **run(trial, seed)}
    except torch.OutOfMemoryError:
        return {"status": "out-of-memory", "message": f"its tensors take {footprint_bytes(trial)} bytes"}
    except ImportError as error:
        return {"status": "missing", "message": str(error)}
    except Exception as error:
        return {"status": "error", "message": f"{type(error).__name__}: {error}"[:500]}


def checked(trial: Trial, seed: int, device: str) -> dict[str, float]:
    """The errors of a trial's kernel on an irregular shape, fresh inputs and poisoned outputs."""
    from memwall.verify.kernels.problems import draw, errors

    small = irregular(trial)
    tensors = draw(small, device, seed)
    prepared(small, tensors)()
    return errors(small, tensors)


def prepared(trial: Trial, tensors: Tensors) -> Callable[[], None]:
    """The launch of a trial's kernel on those tensors."""
    module, function = place_of(trial)
    launch: Callable[[], None] = getattr(import_module(module), function)(trial, tensors)
    return launch


def footprint_bytes(trial: Trial) -> int:
    """Bytes of a trial's inputs and outputs."""
    from math import prod

    from memwall.verify.kernels.problems import DTYPES, problem

    of = problem(trial)
    elements = sum(prod(shape) for shape in (*of.inputs.values(), *of.outputs.values()))
    return int(elements * DTYPES[trial.dtype].itemsize)


def _timer(l2_bytes: int, budget_s: float) -> Callable[[Trial, int], Mapping[str, Any]]:
    import torch

    from memwall.verify.kernels.problems import draw
    from memwall.verify.kernels.timing import timed

    def run(trial: Trial, seed: int) -> Mapping[str, Any]:
        footprint = footprint_bytes(trial)
        cold = max(2, min(MOST_SETS, ceil(COLD_TIMES_L2 * l2_bytes / footprint)))
        room = int(torch.cuda.mem_get_info()[0] * MOST_OF_MEMORY / footprint)
        sets = [draw(trial, "cuda", seed + i) for i in range(1 if trial.warm else max(1, min(cold, room)))]
        return {"time": timed([prepared(trial, tensors) for tensors in sets], budget_s)}

    return run


def _counter(l2_bytes: int) -> Callable[[Trial, int], Mapping[str, Any]]:
    from memwall.verify.kernels.counting import Profiled
    from memwall.verify.kernels.problems import draw

    profiled = Profiled(l2_bytes)

    def run(trial: Trial, seed: int) -> Mapping[str, Any]:
        profiled.run(prepared(trial, draw(trial, "cuda", seed)))
        return {}

    return run


def _no_gpu(built_for: str | None) -> str:
    if built_for is None:
        return "the torch that is installed was built without CUDA"
    return f"torch, built for CUDA {built_for}, finds no GPU or no driver; nvidia-smi says more"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _driver() -> str | None:
    """The driver's version, as its own file has it."""
    try:
        with open("/proc/driver/nvidia/version", encoding="utf-8") as file:
            words = file.readline().split()
    except OSError:
        return None
    return next((word for word in words if word[0].isdigit() and "." in word), None)


if __name__ == "__main__":
    main()
