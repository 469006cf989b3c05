"""The modelled bytes of a case: what prediction, rooflines by level and comparisons with counters share."""

from __future__ import annotations

from memwall.hardware import Device
from memwall.modelled import Modelled, Question, modelled
from memwall.reports.case import Case


def question_of(case: Case) -> Question:
    """The case as `memwall.modelled` takes it."""
    return Question(case.op.name, case.dims, case.formats.precision, case.program, case.causal, case.impl)


def modelled_case(case: Case, device: Device) -> Modelled:
    """Bytes through main memory and L2 of an operator's kernels on a device, L2 cold.

    `dram.read_bytes`, `dram.written_bytes` and `l2.total_bytes` are a prediction's `dram_read_bytes`,
    `dram_written_bytes` and `l2_bytes`.

    Args:
        case: the operator, its shape and formats; `impl` standard, fa1, fa2, fa3 or flash for attention.
        device: its L2 and compute units enter.

    Raises:
        NotPublished: the device's file has no L2, or no number of compute units.
    """
    return modelled(question_of(case), device)
