"""A worker that runs nothing: it answers as the real one does, or dies where it is told to.

    python fake_worker.py BEHAVIOUR < request

BEHAVIOUR: a JSON object from a kernel's name to what becomes of it: a status, or crash, hang, or die
(after its event, as when the GPU's context is lost). `bytes_per_s`: kernels take the time that 16-bit rows
take to be read and written at that rate, and LAUNCH_S.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

LAUNCH_S = 2e-6


def main() -> None:
    behaviour = json.loads(sys.argv[1])
    request = json.load(sys.stdin)
    if behaviour.get("machine") == "cannot":
        say({"event": "cannot", "message": "torch finds no GPU"})
        return
    if behaviour.get("machine") == "die":
        sys.exit("ImportError: libcuda.so.1")
    say({"event": "machine", "gpu_name": behaviour.get("machine", "NVIDIA H200"), "torch": "2.11.0"})
    for index, trial in enumerate(request["trials"]):
        fate = behaviour.get(trial["kernel"], "ok")
        say({"event": "start", "index": index})
        if fate == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if fate == "hang":
            time.sleep(60)
        say({"event": "trial", "index": index, **outcome(fate, time_s(trial, behaviour))})
        if fate == "die":
            sys.exit("CUDA error: an illegal memory access was encountered")
    say({"event": "done"})


def time_s(trial: dict[str, Any], behaviour: dict[str, Any]) -> float:
    rate = behaviour.get("bytes_per_s")
    return LAUNCH_S + 4 * trial["dims"]["rows"] * trial["dims"]["cols"] / rate if rate else 1e-3


def outcome(fate: str, p50_s: float) -> dict[str, object]:
    if fate == "wrong":
        return {"status": "wrong", "errors": {"y": float("inf")}, "tolerance": 0.01}
    if fate == "out-of-memory":
        return {"status": fate, "message": "its tensors take 999 bytes"}
    if fate == "die":
        return {"status": "error", "message": "AcceleratorError"}
    times = {"p20_s": 0.9 * p50_s, "p50_s": p50_s, "p80_s": 1.1 * p50_s, "by": "graph"}
    return {"status": "ok", "errors": {"y": 0.001}, "tolerance": 0.01, "time": times}


def say(event: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
