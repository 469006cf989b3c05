"""A pipeline whose stages are not alike: the formulas against a pipeline that is played out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import memwall
from memwall.parallel.stages import filled, slowest_share, waiting_share


def stages_s(layers: int, stages: int, layer_s: float, head_s: float) -> list[float]:
    """Each stage's time: what is left over goes to those before the last, backwards."""
    counts = [layers // stages] * stages
    for place in range(layers % stages):
        counts[-2 - place] += 1
    return [count * layer_s + (head_s if place == stages - 1 else 0) for place, count in enumerate(counts)]


def prefill_s(times: list[float], microbatches: int) -> float:
    """When the last microbatch leaves the last stage, each stage working on one at a time."""
    free = [0.0] * len(times)
    for _ in range(microbatches):
        ready = 0.0
        for stage, time_s in enumerate(times):
            ready = max(ready, free[stage]) + time_s
            free[stage] = ready
    return free[-1]


def decode_s(times: list[float], microbatches: int, rounds: int = 200) -> float:
    """Between two tokens of a microbatch, which begins again when it has left: the mean of many rounds."""
    free = [0.0] * len(times)
    back = [0.0] * microbatches
    for _ in range(rounds):
        for each in range(microbatches):
            ready = back[each]
            for stage, time_s in enumerate(times):
                ready = max(ready, free[stage]) + time_s
                free[stage] = ready
            back[each] = ready
    return back[-1] / rounds


@given(st.integers(1, 8), st.integers(1, 100), st.integers(1, 8), st.floats(0.1, 3.0), st.floats(0.0, 30.0))
def test_the_formulas_are_a_pipeline_played_out(
    stages: int, more: int, microbatches: int, layer_s: float, head_s: float
) -> None:
    layers = stages + more
    times = stages_s(layers, stages, layer_s, head_s)
    whole_s = layers * layer_s + head_s
    slowest = slowest_share(layers, stages, head_s / whole_s)
    assert slowest * whole_s == pytest.approx(max(times))
    m = min(microbatches, stages)
    assert filled(m, slowest, False) * whole_s == pytest.approx(prefill_s(times, m))
    assert filled(m, slowest, True) * whole_s == pytest.approx(decode_s(times, m), rel=0.05)  # it has to fill
    idle = 1 - m * whole_s / stages / prefill_s(times, m)
    assert waiting_share(m, stages, filled(m, slowest, False)) == pytest.approx(idle, abs=1e-9)


def test_stages_that_are_alike_are_as_the_bound_has_them() -> None:
    for p in (1, 2, 4, 8):
        for m in range(1, p + 1):
            assert filled(m, slowest_share(80, p, 0.0), False) == pytest.approx((m + p - 1) / p)
            assert filled(m, slowest_share(80, p, 0.0), True) == pytest.approx(1)


def test_a_large_head_makes_decoding_wait() -> None:
    report = memwall.step("llama3-8b", gpu="h100", context=4096, batch=64, pp=4)
    one = memwall.step("llama3-8b", gpu="h100", context=4096, batch=16)
    assert report.estimate is not None
    assert one.estimate is not None
    head_s = sum(line.estimate.time_s for line in one.lines if line.launch.kind == "head" and line.estimate)
    last_s = (one.estimate.time_s - head_s) / 4 + head_s  # 8 of 32 layers, and the head
    between_s = report.spread.estimate_time_s
    assert between_s is not None
    share = last_s / one.estimate.time_s
    assert report.estimate.time_s == pytest.approx(4 * share * (one.estimate.time_s + between_s), rel=1e-3)
    assert report.estimate.time_s > 1.1 * (one.estimate.time_s + between_s)
    assert report.bound_time_s == report.whole.time_s


def test_a_layer_a_stage_is_the_slowest_stage_as_often_as_there_are_stages() -> None:
    """80 stages of one layer: each token waits for 80 of the last stage, which has the head besides."""
    report = memwall.step("llama3-70b", gpu="h100", context=4096, batch=80, pp=80)
    assert report.estimate is not None
    assert report.kernels_estimate is not None
    alike_s = report.kernels_estimate.time_s + (report.spread.estimate_time_s or 0)
    assert report.estimate.time_s > 1.5 * alike_s
