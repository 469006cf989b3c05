"""A chip of round numbers, to work with by hand."""

from __future__ import annotations

from typing import Any

from memwall.estimate.chip import Chip


def chip(**changes: Any) -> Chip:
    """100 units at 1 GHz, 100 TFLOP/s, 1 TB/s, 4 TB/s from L2, no power limit."""
    plain = Chip(
        peak_flops_per_s=100e12,
        bandwidth_bytes_per_s=1e12,
        units=100,
        least_unit_bytes_per_s=0,
        clock_hz=1e9,
        boost=1,
        tdp_w=0,
        l2_bytes=50e6,
        l2_bytes_per_s=4e12,
        exp_per_clock_per_unit=16,
    )
    return plain._replace(**changes)
