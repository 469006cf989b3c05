"""The roofline of one operator at many points: the columns of its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from memwall import hardware
from memwall.bound import REGIMES, busy_terms
from memwall.errors import NotAvailable
from memwall.estimate.estimate import estimate
from memwall.estimate.families import FEW_QUERIES
from memwall.hardware import Device
from memwall.ops import registry
from memwall.program import Work
from memwall.reports.case import DEFAULT_DTYPE, Formats
from memwall.reports.estimates import UNMEASURED, library_of
from memwall.reports.roofline import check_formats
from memwall.sweeps.points import Array, Values

LIMITS = tuple(REGIMES)
"""What `limited_by` numbers."""

RESULTS = (
    "flops",
    "read_bytes",
    "written_bytes",
    "traffic_bytes",
    "arithmetic_intensity",
    "limited_by",
    "attainable_flops_per_s",
    "bound_time_s",
)
"""Columns, under the names that `memwall roofline --json` gives them; `regime` follows from `limited_by`."""


class Setting(NamedTuple):
    """What all points of a block have in common."""

    op: registry.Op
    device: Device
    formats: Formats
    causal: bool | None = None
    impl: str | None = None
    estimate: bool = False
    """Whether to add the time that a good kernel is expected to take."""


def answer(setting: Setting, values: Values) -> Mapping[str, Any]:
    """The columns of points, or of one.

    Raises:
        Mixed: a formula takes different branches at different points.
        UsageError, NotAvailable: there is no answer at any of them.
    """
    op = setting.op
    dims = registry.settle(op, {**op.default_shape, **values})
    causal = op.mask(dims, setting.causal) if op.mask else setting.causal
    program = registry.build(op, dims, setting.formats.precision, causal, setting.impl)
    check_formats(op, program, setting.formats)
    columns = bounded(program.work, setting.device)
    if setting.estimate:
        if setting.impl in UNMEASURED:
            raise NotAvailable(f"no estimate: {UNMEASURED[setting.impl]}", "Leave out --estimate")
        _one_mechanism(dims)
        masked = bool(causal) and setting.impl == "standard"
        library = library_of(None, setting.impl)
        columns["estimate_time_s"] = estimate(program, setting.device, library, masked=masked).time_s
    return columns


def _one_mechanism(dims: Mapping[str, Any]) -> None:
    """Divide points of which some decode and some prefill: their estimates have different formulas.

    Raises:
        Mixed: they differ.
    """
    for differs in (
        dims.get("seq_q", 1) <= FEW_QUERIES,
        dims.get("head_dim", 1) == dims.get("head_dim_v", 1),
    ):
        bool(differs)


def bounded(work: Work, device: Device) -> dict[str, Any]:
    """What every bound says, as columns."""
    time_s, limited_by = slowest(work, device)
    traffic, flops = work.traffic_bytes, work.flops
    return {
        "flops": flops,
        "read_bytes": work.read_bytes,
        "written_bytes": work.written_bytes,
        "traffic_bytes": traffic,
        "arithmetic_intensity": flops / traffic,
        "limited_by": limited_by,
        "attainable_flops_per_s": flops / time_s,
        "bound_time_s": time_s,
    }


def slowest(work: Work, device: Device) -> tuple[Array, Array]:
    """The bound's time [s] and the number of its limit at each point; of equals the first, as in `bound`."""
    first, *others = busy_terms(work, device)
    time_s = np.asarray(first.time_s)
    limited_by: Array = np.int8(LIMITS.index(first.limit))  # type: ignore[assignment]
    for term in others:
        each = np.asarray(term.time_s)
        limited_by = np.where(each > time_s, np.int8(LIMITS.index(term.limit)), limited_by)
        time_s = np.maximum(time_s, each)
    return time_s, limited_by


def answers(name: str, settings: Mapping[str, Any]) -> Callable[[Mapping[str, str | None]], Any]:
    """What answers for an operator on a GPU in given formats.

    Args:
        name: the operator's.
        settings: causal, impl, whether to estimate, and changes to the device.
    """
    op = registry.find(name)

    def of(words: Mapping[str, str | None]) -> Callable[[Values], Mapping[str, Any]]:
        device = hardware.load(str(words["gpu"]), settings.get("changes"))
        named = Formats.named(
            words.get("dtype") or DEFAULT_DTYPE,
            words.get("weight_dtype"),
            words.get("kv_dtype"),
            words.get("out_dtype"),
        )
        given = Setting(op, device, named, settings.get("causal"), settings.get("impl"))
        return partial(answer, given._replace(estimate=bool(settings.get("estimate"))))

    return of
