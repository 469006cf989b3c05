"""Pipeline stages as engines cut them: layers dealt out evenly, the head of the vocabulary on the last stage.

Equations, for L layers on p stages, of which the head takes a share h of a microbatch's time:
    a stage in the middle   ceil(L / p) / L x (1 - h)
    the last stage          floor(L / p) / L x (1 - h) + h
    m microbatches          1 + (m - 1) x slowest, of a prefill, which fills and drains the pipeline
                            max(1, m x slowest), of decoding, which does neither

A bound takes the stages as alike, since an engine may be told to cut them so; an estimate does not.
Source: vLLM, vllm/distributed/utils.py, get_pp_indices: layers that are left over go to stages before the
last, since that has the head. SGLang gives them to the last ones.
"""

from __future__ import annotations

from collections.abc import Iterable

from memwall.maths import Count, ceil_div, maximum
from memwall.models.step.launch import Launch

ON_THE_LAST = ("head", "sampling")
"""Kinds of launches."""


def slowest_share(layers: int, stages: int, head_share: Count) -> Count:
    """The slowest stage's part of a microbatch's time through all stages; 1 / stages if they are alike.

    Args:
        layers: of the model.
        stages: 1 to layers.
        head_share: of that time the head's part, 0 to 1.

    >>> slowest_share(32, 4, 0.0), slowest_share(32, 4, 0.2), slowest_share(61, 4, 0.0)
    (0.25, 0.4, 0.26229508196721313)
    """
    rest = 1 - head_share
    middle = ceil_div(layers, stages) / layers * rest
    return maximum(middle, layers // stages / layers * rest + head_share)


def filled(microbatches: Count, slowest: Count, decoding: bool) -> Count:
    """Time of all microbatches over that of one through all stages.

    >>> filled(4, 0.25, decoding=True), filled(4, 0.4, decoding=True), filled(4, 0.25, decoding=False)
    (1, 1.6, 1.75)
    """
    return maximum(1, microbatches * slowest) if decoding else 1 + (microbatches - 1) * slowest


def waiting_share(microbatches: Count, stages: int, stretch: Count) -> Count:
    """The part of a pass in which a stage waits, on the mean of all stages.

    Args:
        microbatches: of the pass.
        stages: of the pipeline.
        stretch: as `filled` has it; (m + p - 1) / p and 1 where stages are alike.

    >>> waiting_share(2, 4, 1.25), waiting_share(4, 4, 1), waiting_share(4, 4, 1.6)
    (0.6, 0.0, 0.375)
    """
    return 1 - microbatches / (stages * stretch)


def head_share(launches: Iterable[Launch], times_s: Iterable[Count]) -> Count:
    """The head's part of the time of all launches, each of which takes so long once."""
    each = [(launch, launch.repeats * time_s) for launch, time_s in zip(launches, times_s, strict=True)]
    head_s = sum(time_s for launch, time_s in each if launch.kind in ON_THE_LAST)
    return head_s / sum(time_s for _, time_s in each)
