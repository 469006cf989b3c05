"""Where an operator's regime changes on a device, as one of its dimensions grows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from memwall.bound import Bound
from memwall.crossover import LARGEST, Crossing, crossings
from memwall.errors import MemwallError, UsageError, shown
from memwall.hardware import Device
from memwall.ops import registry
from memwall.reports.case import DEFAULT_DTYPE, DEFAULT_GPU, DeviceLike, device_of
from memwall.reports.roofline import roofline


class CrossoverReport(NamedTuple):
    """The changes of regime along one dimension."""

    device: Device
    op: str
    vary: str
    shape: Mapping[str, int]
    """The other dimensions."""
    dtype: str
    least: int
    most: int
    first: Bound
    """At the least value."""
    last: Bound
    """At the most."""
    crossings: tuple[Crossing, ...]
    defaults: tuple[str, ...]

    @property
    def crossing(self) -> Crossing | None:
        """The first change of regime; None if it stays what it is."""
        return next((each for each in self.crossings if each.changes_regime), None)


def crossover(
    op: str,
    vary: str,
    *,
    gpu: DeviceLike = DEFAULT_GPU,
    dtype: str = DEFAULT_DTYPE,
    least: int = 1,
    most: int | None = None,
    changes: Mapping[str, str | float] | None = None,
    defaults: tuple[str, ...] = (),
    **options: Any,
) -> CrossoverReport:
    """Where the regime changes as a dimension grows.

    Args:
        op: an operator's name.
        vary: the dimension: batch, m, seq ...
        gpu: a device, or its name or file.
        dtype: compute and storage format.
        least: the first value.
        most: the last value; 2^40 unless given, or as far as the operator allows.
        changes: what-ifs.
        defaults: what the caller assumed.
        options: the other dimensions, formats, impl and causal, as `roofline` takes them.

    Raises:
        UsageError, NotAvailable: as `roofline`; and a dimension that the operator does not have, or that is
        given.
    """
    device = device_of(gpu, changes)
    operator = registry.find(op)
    name = vary.strip().lower().replace("-", "_")
    if name not in (*operator.dims, *operator.shorthand):
        has = ", ".join((*operator.dims, *operator.shorthand))
        raise UsageError(f"{operator.name} has no dimension '{shown(vary)}'", f"Vary one of: {has}")
    if options.get(name) is not None:
        raise UsageError(f"--{registry.flag(name)} is what varies", f"Leave out --{registry.flag(name)}")
    if most is not None and most <= least:
        raise UsageError(f"from {least} to {most} there is nothing between", "Try --from 1 --to 65536")
    given = {key: value for key, value in options.items() if value is not None}
    given = _with_default_shape(operator, given, name)

    def bound_at(value: int) -> Bound:
        return roofline(operator.name, gpu=device, dtype=dtype, **{**given, name: value}).bound

    first = bound_at(least)
    end = most or _most(bound_at, least)
    found = tuple(crossings(bound_at, least, end))
    dims = {key: value for key, value in given.items() if key in (*operator.dims, *operator.shorthand)}
    last = bound_at(end)
    return CrossoverReport(device, operator.name, name, dims, dtype, least, end, first, last, found, defaults)


def _with_default_shape(operator: registry.Op, given: dict[str, Any], vary: str) -> dict[str, Any]:
    """The operator's default shape, if no dimension of it is given."""
    named = [name for name in given if name in operator.dims]
    if named or not operator.default_shape:
        return given
    return {**{name: size for name, size in operator.default_shape.items() if name != vary}, **given}


def _most(bound_at: Any, least: int) -> int:
    """As far as the operator allows: some dimensions are at most another."""
    most = LARGEST
    while most > least:
        try:
            bound_at(most)
        except MemwallError:
            most //= 2
        else:
            return most
    return least + 1
