"""Timing launches: CUDA-graph replays over rotating buffers, after a warm-up, as percentiles."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import ceil
from time import perf_counter
from typing import Any

import torch

from memwall.units import KILO, MEGA
from memwall.verify.case import Launch

WARM_UP_S = 0.1
SHORTEST_MS = 0.002
REPLAY_S = 0.004
"""A replay lasts at least so long, so that starting it does not count."""
MOST_LAUNCHES, FEWEST_REPLAYS, MOST_REPLAYS = 2000, 5, 200


def timed(launches: Sequence[Launch], budget_s: float) -> dict[str, Any]:
    """Time one launch, from replays of a graph that holds many.

    Args:
        launches: the same kernel on one set of buffers each; a replay goes round them in turn.
        budget_s: how long to measure, warm-up not counted; a slow kernel takes longer.
    """
    for launch in launches:
        launch()  # compiles, and finds what cannot run
    torch.cuda.synchronize()
    once_s = _elapsed_s(lambda: [launch() for launch in launches]) / len(launches)
    rounds = max(1, min(ceil(REPLAY_S / (once_s * len(launches))), MOST_LAUNCHES // len(launches)))
    replay, method = _replayed([*launches] * rounds)
    count = rounds * len(launches)
    until = perf_counter() + WARM_UP_S
    while perf_counter() < until:
        replay()
        torch.cuda.synchronize()
    replays = max(FEWEST_REPLAYS, min(int(budget_s / (once_s * count)), MOST_REPLAYS))
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(replays + 1)]
    marks[0].record()
    for mark in marks[1:]:
        replay()
        mark.record()
    state = _state()  # read while the queue is still running
    torch.cuda.synchronize()
    each = sorted(a.elapsed_time(b) / count for a, b in pairwise(marks))
    percentiles = {f"p{p}_s": each[min(len(each) - 1, len(each) * p // 100)] / KILO for p in (20, 50, 80)}
    return {
        **percentiles,
        "launches": count,
        "replays": replays,
        "sets": len(launches),
        "by": method,
        **state,
    }


def _replayed(launches: Sequence[Launch]) -> tuple[Launch, str]:
    """The launches as one CUDA graph; one after the other where they cannot be captured."""
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            for launch in launches:
                launch()
    except RuntimeError:
        torch.cuda.synchronize()

        def plainly() -> None:
            for launch in launches:
                launch()

        return plainly, "events"
    return graph.replay, "graph"


def _elapsed_s(run: Any) -> float:
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    run()
    stop.record()
    torch.cuda.synchronize()
    return max(float(start.elapsed_time(stop)), SHORTEST_MS) / KILO


def _state() -> dict[str, Any]:
    """Clock, power and temperature, where the driver's library is there to tell them."""
    try:
        return {
            "sm_hz": torch.cuda.clock_rate() * MEGA,
            "power_w": torch.cuda.power_draw() / KILO,
            "celsius": torch.cuda.temperature(),
        }
    except (RuntimeError, ImportError, AttributeError):
        return {}
