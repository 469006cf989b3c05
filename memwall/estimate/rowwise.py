"""The time of elementwise kernels, norms, softmax, gathers and plain streams.

    memory = passes bytes / (bandwidth bandwidth_share), in L2's bandwidth when warm
    rows   = rows (row_clocks + element_clocks cols) / (units clock)
    serial = cols serial_clocks / clock
    time   = launch + serial + max(memory, rows)

Reductions run a row at a time in a CTA, so a short row costs its synchronisation and a long one its
elements: time a row and unit, not a fraction of the bandwidth, and one row's own time even when there are
few (serial). `passes` counts re-reads of rows that a
kernel does not keep on chip. For elementwise kernels row_clocks is zero, and element_clocks the
arithmetic of one element (tanh in GELU).

Source: fitted; that softmax is read once is Milakov and Gimelshein 2018, arXiv:1805.02867.
"""

from __future__ import annotations

from typing import NamedTuple

from memwall.estimate.chip import Chip
from memwall.maths import Count, smooth_maximum, where


class RowwiseShape(NamedTuple):
    """One launch over a matrix of rows."""

    rows: Count
    cols: Count
    traffic_bytes: Count


class RowwiseConstants(NamedTuple):
    """What differs between architectures and implementations."""

    launch_s: float
    bandwidth_share: float
    warm_gain: float
    passes: float
    row_clocks: float
    element_clocks: float
    serial_clocks: float
    short_share: float
    """Of the bandwidth, in the kernel for rows that a warp holds in registers; 0: there is none."""
    sharpness: float


SHORT_ROW = 32 * 32
"""Elements that a warp holds, 32 a lane: PyTorch, aten/src/ATen/native/cuda/PersistentSoftmax.cuh."""


def rowwise_time_s(shape: RowwiseShape, chip: Chip, c: RowwiseConstants, warm: Count = False) -> Count:
    """The time of the launch [s].

    Args:
        shape: the matrix.
        chip: the device.
        c: the constants.
        warm: whether its operands are in L2 already.
    """
    stream = chip.stream_bytes_per_s(c.bandwidth_share, c.warm_gain, warm)
    memory = c.passes * shape.traffic_bytes / stream
    clocks = shape.rows * (c.row_clocks + c.element_clocks * shape.cols)
    serial = shape.cols * c.serial_clocks / chip.clock_hz
    time_s = c.launch_s + serial + smooth_maximum(memory, clocks / (chip.units * chip.clock_hz), c.sharpness)
    if not c.short_share:
        return time_s
    short = c.launch_s + shape.traffic_bytes / (chip.bandwidth_bytes_per_s * c.short_share)
    return where(shape.cols <= SHORT_ROW, short, time_s)
