"""The time of elementwise kernels, norms, softmax, gathers and plain streams.

    memory = (traffic + reread rows row_bytes [rows are not held]) / (bandwidth bandwidth_share stream_ratio),
             what is warm in L2 at warm_bytes_per_clock a unit
    work   = rows (row_clocks + cols (element_clocks + function_clocks)) / (units clock)
    serial = cols serial_clocks / clock
    time   = launch + first [not warm] + sqrt(serial^2 + smooth maximum(memory, work)^2)

Reductions run a row at a time in a CTA, so a short row costs its synchronisation and a long one its
elements: clocks a row and unit, the same from one generation to the next, not a fraction of the bandwidth;
and one row's own time even when there are few (serial). A kernel of two passes reads a row twice, from the
unit's cache the second time if the rows of all resident CTAs fit there (held), else from further away. Rows
of up to short_row elements may have a kernel that keeps one in the registers of a warp: no synchronisation,
short_clocks an element, short_serial_clocks of one row alone.

Source: fitted. Rows of 32 elements a lane, in newer versions of 64: PyTorch,
aten/src/ATen/native/cuda/PersistentSoftmax.cuh. That softmax is read once: Milakov and Gimelshein 2018,
arXiv:1805.02867. Held rows: PyTorch's layer_norm runs CTAs of 128 threads, 16 a unit
(aten/src/ATen/native/cuda/layer_norm_kernel.cu); on an H200 its rows of 16 KiB, a sixteenth of the cache,
take 1.5 times the bytes.
"""

from __future__ import annotations

from typing import NamedTuple

from memwall.estimate.chip import Chip
from memwall.maths import Count, maximum, minimum, smooth_maximum, where

SHORT_ROW = 32 * 32
"""Elements that a warp holds, 32 a lane."""


class RowwiseShape(NamedTuple):
    """One launch over a matrix of rows."""

    rows: Count
    cols: Count
    traffic_bytes: Count
    row_bytes: Count
    """Of a row that is reduced."""
    function_clocks: float
    """A unit's clocks an element, for the function that is computed, beside the family's."""


class RowwiseConstants(NamedTuple):
    """What differs between implementations, and next to nothing between generations."""

    launch_s: float
    bandwidth_share: float
    """On a device whose streams are as the usual one's."""
    row_clocks: float
    element_clocks: float
    serial_clocks: float
    sharpness: float
    first_s: float = 0.0
    """What the first bytes from memory take more than those from L2."""
    warm_bytes_per_clock: float = 32.0
    """Of a unit, from L2: measured plateaus are 32 to 36."""
    reread: float = 0.0
    """How often rows that are not held are read again."""
    resident_rows: float = 16.0
    """Rows that share a unit's cache: one for each CTA that it runs at once."""
    short_clocks: float = 0.0
    """An element, in the kernel for rows that a warp holds in registers; 0: there is none."""
    short_serial_clocks: float = 0.0
    """An element of one such row."""
    short_row: float = SHORT_ROW
    """The longest that it serves."""


def rowwise_time_s(shape: RowwiseShape, chip: Chip, c: RowwiseConstants, warm: Count = False) -> Count:
    """The time of the launch [s].

    Args:
        shape: the matrix.
        chip: the device.
        c: the constants.
        warm: whether its operands are in L2 already.
    """
    held = shape.row_bytes * c.resident_rows < chip.unit_cache_bytes
    again = where(held, 0, c.reread * shape.rows * shape.row_bytes)
    memory = (shape.traffic_bytes + again) * _s_per_byte(shape, chip, c, warm)
    clocks = shape.rows * (c.row_clocks + (c.element_clocks + shape.function_clocks) * shape.cols)
    serial = shape.cols * c.serial_clocks / chip.clock_hz
    per_s = chip.units * chip.clock_hz
    started_s = c.launch_s + where(warm, 0.0, c.first_s)
    streamed_s = smooth_maximum(memory, clocks / per_s, c.sharpness)
    time_s = started_s + (serial**2 + streamed_s**2) ** 0.5
    if not c.short_clocks:
        return time_s
    short = smooth_maximum(memory, shape.rows * shape.cols * c.short_clocks / per_s, c.sharpness)
    alone = shape.cols * c.short_serial_clocks / chip.clock_hz
    short_s = started_s + (alone**2 + short**2) ** 0.5
    return where(shape.cols <= c.short_row, short_s, time_s)


def _s_per_byte(shape: RowwiseShape, chip: Chip, c: RowwiseConstants, warm: Count) -> Count:
    """What a byte takes, from memory and, as far as the operands are warm and fit, from L2.

    A divided L2 keeps copies of a line in both of its parts, so that half of it may hold nothing new.
    """
    memory = 1 / (chip.bandwidth_bytes_per_s * min(1.0, c.bandwidth_share * chip.stream_ratio))
    cache = 1 / min(chip.units * chip.clock_hz * c.warm_bytes_per_clock, chip.l2_bytes_per_s)
    room = chip.l2_bytes / chip.l2_parts
    kept = minimum(1.0, maximum(0.0, 2 - shape.traffic_bytes / room)) if room else 0.0
    return where(warm, memory + kept * (minimum(cache, memory) - memory), memory)
