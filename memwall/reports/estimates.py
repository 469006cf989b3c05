"""The estimate of a case: which implementation it is for, and whose constants it takes."""

from __future__ import annotations

from memwall.estimate.estimate import Estimate, estimate
from memwall.estimate.library import Library, library_named
from memwall.estimate.own import UNMEASURED, own_fits, unmeasured
from memwall.hardware import Device
from memwall.program import Program
from memwall.reports.case import Case

__all__ = ["UNMEASURED", "estimate_case", "library_of"]
GENERATIONS = ("fa1", "fa2", "fa3")


def estimate_case(
    case: Case, device: Device, program: Program, library: str | None, calibration: str | None
) -> Estimate | None:
    """The estimate of a case on a device; arguments as `roofline`. None for what nobody has measured.

    Raises:
        FileError: the calibration is not one.
        UsageError: it is of other GPUs.
    """
    masked = bool(case.causal) and case.impl == "standard"
    own = own_fits(calibration, device)
    named = library_of(library, case.impl)
    if unmeasured(case.impl, own):
        return None
    return estimate(program, device, named, False, masked, own)


def library_of(name: str | None, impl: str | None) -> Library:
    """The library that a user named, or that the implementation is."""
    if name is None and impl in GENERATIONS:
        return Library(impl)
    return library_named(name)
