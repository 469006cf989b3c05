"""The expected time of a trial, for the judge to show beside its bound."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.errors import NotAvailable
from memwall.estimate import constants
from memwall.estimate.estimate import estimate
from memwall.estimate.library import UNKNOWN, Library
from memwall.estimate.own import check_named, own_fits
from memwall.hardware import Device
from memwall.ops import registry
from memwall.reports.case import Case, Formats
from memwall.verify.case import Trial
from memwall.verify.judge import Estimate
from memwall.verify.predict import predict

_MODELLED_ALONE = ("access", "transpose")
"""Patterns of loads, for which no mechanism stands."""
_LIBRARIES = {"library.flash2": Library("fa2"), "library.cudnn": Library("cudnn")}
"""Where a trial says which of several implementations it is; else the estimate is of a good kernel."""


def estimator(calibration: str | None = None) -> Estimate:
    """What estimates a trial's time [s], None where no mechanism stands for it.

    Args:
        calibration: a user's calibration file, which comes before the shipped ones.

    Raises:
        FileError: the calibration is not one.
    """
    own = own_fits(calibration)

    def estimate_s(trial: Trial, device: Device) -> float | None:
        check_named(calibration, own, (device,))
        return _time_s(trial, device, own)

    return estimate_s


def _time_s(trial: Trial, device: Device, own: Sequence[constants.Fit]) -> float | None:
    if trial.op in _MODELLED_ALONE:
        return None
    case = Case(registry.find(trial.op), trial.dims, Formats(trial.dtype), trial.causal, trial.impl)
    masked = bool(trial.causal) and trial.impl == "standard"
    try:
        warm = predict(trial, device).in_l2
        made = estimate(case.program, device, _LIBRARIES.get(trial.kernel, UNKNOWN), warm, masked, own)
    except NotAvailable:
        return None
    return float(made.time_s)
