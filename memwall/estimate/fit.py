"""Fitting the few constants of a mechanism to measured launches, and how it fares on launches held out.

The loss is the mean of |log(predicted / measured)|, cut off where a launch must have run by another
mechanism, plus a small pull towards the start, so that a constant the data say nothing about stays there; and
one that gains less than WORTH by moving is put back and not counted. Where choices are many, each that is not
the plan's must gain as much. A library starts from the fit of all, so that it has only the constants
in which it differs. Each library of each device weighs by the square root of its launches.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from math import log
from typing import Any, NamedTuple

import numpy

from memwall.estimate.families import ROWWISE
from memwall.estimate.minimise import TOLERANCE, Vector, minimise
from memwall.estimate.plans import Plan, plan_of
from memwall.estimate.samples import Array, Sample, rows_in

CUT = 0.7
PULL = 0.0015
WORTH = 0.0015
WARM_WEIGHT = 0.5
LIMITS = {"bandwidth_share": 1.0, "matrix_share": 1.0, "l2_share": 1.0}
"""What no kernel exceeds: the memory's bandwidth, the matrix peak at maximum clock, the ports of L2."""
WARM = ("warm_gain", "warm_bytes_per_clock", "l2_share")
"""What only launches that find their operands in L2 feel."""
FOLDS = 4
SWEEPS = 3
FAR = 3
FEW = 16
"""So many combinations of choices are all tried; of more, one choice is changed at a time."""
LEAST_ROWS_A_CONSTANT = 2
LEAST_ROWS_A_CLOCK = 4
"""Of norms and their like, whose few sets are of one kernel on many GPUs: more constants do not carry."""
ROUGH = 1 / (32 * 32)
"""How well the simplex settles while choices are compared, less than WORTH."""
DRAWN, DEEPENED = 40, 2
"""Of many combinations: how many are tried besides the start, and how many of them start a sweep."""


class Fitted(NamedTuple):
    """Constants and how they were found."""

    constants: Any
    fitted: tuple[str, ...]
    rows: int
    errors: Array
    """Of each launch while its fold was held out: predicted / measured - 1."""


def fit(samples: Sequence[Sample], start: Any = None) -> Fitted:
    """The constants of one family and format from its samples, cross-validated over launches.

    Args:
        samples: measured launches.
        start: where to begin and what to stay near; the plan's own start if not given.
    """
    plan, constants, names = _settled(samples, start)
    errors = [_held_out(samples, plan, constants, names, fold) for fold in range(FOLDS)]
    return Fitted(constants, names, rows_in(samples), numpy.concatenate(errors))


def _plan(samples: Sequence[Sample]) -> Plan:
    """The plan of the launches; what is known of a kernel counts where all are of it."""
    kernels = {sample.library.kernel for sample in samples}
    return plan_of(samples[0].family, samples[0].format, kernels.pop() if len(kernels) == 1 else None)


def refit(samples: Sequence[Sample], constants: Any) -> Any:
    """Constants fitted to other samples, the choices kept as they are."""
    plan = _plan(samples)
    return _fit_from(samples, plan, constants, _names(samples, plan, constants), restarts=0)


def _settled(samples: Sequence[Sample], start: Any) -> tuple[Plan, Any, tuple[str, ...]]:
    """The plan, the constants, and the names of those that were fitted."""
    plan = _plan(samples)
    if start is not None:
        plan = plan._replace(start=_switched_on(plan.start, start))
    best = _chosen(samples, plan)
    names = _names(samples, plan, best)
    constants = _fit_from(samples, plan, best, names, restarts=2)
    names, constants = _earned(samples, plan, constants, names)
    return plan, _fit_from(samples, plan, constants, names, restarts=1), names


def _chosen(samples: Sequence[Sample], plan: Plan) -> Any:
    """The best choices, one after the other, with the other constants fitted to each."""
    combinations = list(itertools.product(*plan.choices.values()))
    restarts = 1 if len(combinations) <= FEW else 0
    own = _plan(samples).start

    def fitted(start: Any) -> tuple[float, Any]:
        many = len(combinations) > FEW
        tolerance = ROUGH if many else TOLERANCE
        constants = _fit_from(samples, plan, start, _names(samples, plan, start), restarts, tolerance)
        moved = sum(getattr(constants, name) != getattr(own, name) for name in plan.choices) if many else 0
        return loss(samples, constants) + WORTH * moved, constants

    soonest = min(float(sample.time_s.min()) for sample in samples)
    starts = [plan.start, *([own] if own != plan.start else [])]
    if soonest > FAR * plan.start.launch_s:
        starts.append(own._replace(launch_s=soonest / 2))
    if len(combinations) <= FEW:
        named = [dict(zip(plan.choices, values, strict=True)) for values in combinations]
        settled = [fitted(start._replace(**values)) for start in starts for values in named]
    else:
        settled = [_swept(plan.choices, fitted(start), fitted) for start in starts]
        drawn = numpy.random.default_rng(0).permutation(len(combinations))[:DRAWN]
        named = [dict(zip(plan.choices, combinations[each], strict=True)) for each in drawn]
        tried = sorted((fitted(starts[-1]._replace(**values)) for values in named), key=lambda each: each[0])
        settled += [_swept(plan.choices, each, fitted) for each in tried[:DEEPENED]]
    return min(settled, key=lambda each: each[0])[1]


def _swept(
    choices: Mapping[str, tuple[float, ...]],
    best: tuple[float, Any],
    fitted: Callable[[Any], tuple[float, Any]],
) -> tuple[float, Any]:
    """The best choices that changing one at a time finds."""
    for _ in range(SWEEPS if choices else 0):
        before = best[0]
        for name, values in choices.items():
            others = [value for value in values if value != getattr(best[1], name)]
            tried = [fitted(best[1]._replace(**{name: value})) for value in others]
            best = min([best, *tried], key=lambda each: each[0])
        if best[0] > before - WORTH:
            break
    return best


def _switched_on(plan: Any, start: Any) -> Any:
    """A start, with the plan's value where a mechanism is off in it and a choice may switch it on."""
    zeros = {name: getattr(plan, name) for name in start._fields if not getattr(start, name)}
    return start._replace(**zeros)


def _earned(
    samples: Sequence[Sample], plan: Plan, constants: Any, names: tuple[str, ...]
) -> tuple[tuple[str, ...], Any]:
    """Without the constants that gain next to nothing by being away from the start."""
    kept = list(names)
    least = loss(samples, constants)
    for name in sorted(names, key=lambda n: abs(log(getattr(constants, n) / _origin(plan, constants, n)))):
        without = constants._replace(**{name: _origin(plan, constants, name)})
        value = loss(samples, without)
        if value < least + WORTH:
            kept.remove(name)
            constants, least = without, min(least, value)
    return tuple(name for name in names if name in kept), constants


def _origin(plan: Plan, constants: Any, name: str) -> float:
    return float(getattr(plan.start, name) or getattr(constants, name))


def loss(samples: Sequence[Sample], constants: Any) -> float:
    """The weighted mean of |log(predicted / measured)|, cut off."""
    total = weights = 0.0
    for sample in samples:
        weight = len(sample.time_s) ** 0.5
        off = numpy.minimum(numpy.abs(numpy.log(sample.predicted_s(constants) / sample.time_s)), CUT)
        each = numpy.where(sample.warm, WARM_WEIGHT, 1.0)
        total += weight * float((off * each).sum() / each.sum())
        weights += weight
    return total / weights


def errors_of(samples: Sequence[Sample], constants: Any) -> Array:
    """Predicted / measured - 1, launch by launch."""
    parts = [sample.predicted_s(constants) / sample.time_s - 1 for sample in samples]
    return numpy.concatenate(parts) if parts else numpy.array([])


def _fit_from(
    samples: Sequence[Sample],
    plan: Plan,
    start: Any,
    names: tuple[str, ...],
    restarts: int,
    tolerance: float = TOLERANCE,
) -> Any:
    origin = numpy.array([_origin(plan, start, name) for name in names])
    limits = numpy.array([LIMITS.get(name, numpy.inf) for name in names])

    def at(point: Vector) -> Any:
        values = numpy.minimum(origin * numpy.exp(point), limits)
        return start._replace(**{name: float(value) for name, value in zip(names, values, strict=True)})

    def value(point: Vector) -> float:
        return loss(samples, at(point)) + PULL * float(numpy.square(point).sum())

    begin = numpy.log(numpy.array([getattr(start, name) for name in names]) / origin)
    return at(minimise(value, begin, restarts, tolerance))


def _names(samples: Sequence[Sample], plan: Plan, constants: Any) -> tuple[str, ...]:
    """The constants that the data can say something about: switched on, and with rows that feel them."""
    names = [name for name in plan.fitted if getattr(constants, name)]
    if not any(sample.warm.any() for sample in samples):
        names = [name for name in names if name not in WARM]
    each = LEAST_ROWS_A_CLOCK if samples[0].family in ROWWISE else LEAST_ROWS_A_CONSTANT
    return tuple(names[: max(1, rows_in(samples) // each)])


def _held_out(
    samples: Sequence[Sample], plan: Plan, constants: Any, names: tuple[str, ...], fold: int
) -> Array:
    """The errors of every FOLDS-th launch with the constants refitted on the others."""
    kept: list[Sample] = []
    left: list[Sample] = []
    for sample in samples:
        out = numpy.arange(len(sample.time_s)) % FOLDS == fold
        if out.all() or not out.any():
            (left if out.any() else kept).append(sample)
            continue
        kept.append(sample.where(~out))
        left.append(sample.where(out))
    if not left:
        return numpy.array([])
    refitted = _fit_from(kept, plan, constants, names, restarts=0) if kept else constants
    return errors_of(left, refitted)
