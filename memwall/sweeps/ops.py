"""The roofline of one operator at many points: the columns of its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from memwall import hardware
from memwall.bound import REGIMES, Term, busy_terms
from memwall.errors import NotAvailable
from memwall.estimate.constants import Fit
from memwall.estimate.estimate import estimate
from memwall.estimate.families import FEW_QUERIES
from memwall.estimate.library import Library
from memwall.estimate.own import own_fits
from memwall.hardware import Device
from memwall.ops import registry
from memwall.program import Program, Work
from memwall.reports.case import DEFAULT_DTYPE, Formats
from memwall.reports.estimates import UNMEASURED, library_of
from memwall.reports.roofline import check_formats
from memwall.sweeps.points import Array, Values
from memwall.sweeps.words import Words, changes_of

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


class Expects(NamedTuple):
    """Whose kernels are expected to run, and a user's own constants for them."""

    library: Library
    own: tuple[Fit, ...]


class Setting(NamedTuple):
    """What all points of a block have in common."""

    op: registry.Op
    device: Device
    formats: Formats
    causal: bool | None = None
    impl: str | None = None
    expects: Expects | None = None
    """Whose time is added to the bound, if any."""


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
    if setting.expects:
        columns["estimate_time_s"] = _estimate(setting.expects, setting, program, dims, causal)
    return columns


def _estimate(
    expects: Expects, setting: Setting, program: Program, dims: Mapping[str, Any], causal: Any
) -> Any:
    library, own = expects
    if setting.impl in UNMEASURED and not any(fit.library.kernel == setting.impl for fit in own):
        raise NotAvailable(f"no estimate: {UNMEASURED[setting.impl]}", "Leave out --estimate")
    _one_mechanism(dims)
    masked = bool(causal) and setting.impl == "standard"
    return estimate(program, setting.device, library, masked=masked, own=own).time_s


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


def bounded(work: Work, device: Device, links: Sequence[Term] = ()) -> dict[str, Any]:
    """What every bound says, as columns; `links` take time beside the work."""
    time_s, limited_by = slowest([*busy_terms(work, device), *links])
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


def slowest(terms: Sequence[Term]) -> tuple[Array, Array]:
    """The longest time [s] and the number of its limit at each point; of equals the first, as in `bound`."""
    first, *others = terms
    time_s = np.asarray(first.time_s)
    limited_by: Array = np.int8(LIMITS.index(first.limit))  # type: ignore[assignment]
    for term in others:
        each = np.asarray(term.time_s)
        limited_by = np.where(each > time_s, np.int8(LIMITS.index(term.limit)), limited_by)
        time_s = np.maximum(time_s, each)
    return time_s, limited_by


def answers(name: str, settings: Mapping[str, Any]) -> Callable[[Words], Any]:
    """What answers for an operator on a GPU in given formats.

    Args:
        name: the operator's.
        settings: causal, impl, library, calibration, whether to estimate, and changes to the device.
    """
    op = registry.find(name)

    def of(words: Words) -> Callable[[Values], Mapping[str, Any]]:
        device = hardware.load(str(words["gpu"]), changes_of(words, settings))
        asked = {**settings, **words}
        formats = (asked.get(each) for each in ("weight_dtype", "kv_dtype", "out_dtype"))
        named = Formats.named(asked.get("dtype") or DEFAULT_DTYPE, *formats)
        given = Setting(op, device, named, asked.get("causal"), asked.get("impl"))
        if asked.get("estimate"):
            given = given._replace(expects=expects_of(device, asked))
        return partial(answer, given)

    return of


def expects_of(device: Device, asked: Mapping[str, Any]) -> Expects:
    """Whose kernels are estimated, by which constants.

    Raises:
        UnknownName, FileError, UsageError: as they say.
    """
    library = library_of(asked.get("library"), asked.get("impl"))
    return Expects(library, own_fits(asked.get("calibration"), device))
