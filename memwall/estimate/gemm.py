"""The time of a matrix product: tiles, waves over the units, split-K, and the power limit.

A library picks, among its tiles and splits of k, what takes least time; so does this, over a few:

    tiles   = products ceil(m / tm) ceil(n / tn)        ctas = tiles splits
    waves   = ceil(ctas / units)
    compute = waves 2 tm tn (k / splits) / (peak boost matrix_share / units) (1 + edge 128^2 / (tm tn))
    memory  = (bytes + splits' partial sums) / min(bandwidth bandwidth_share, busy units x unit_rate)
    power   = FLOPs x energy / TDP
    convert = max(bytes / bandwidth, rows (row_clocks + element_clocks k) / (units clock))
    busy    = max(compute, memory) + waves wave tm tn / 128^2
    time    = launch + max(busy, power) + [splits > 1] split + convert

with maxima smoothed (`maths.smooth_maximum`): stages hinder each other where they are close. Small tiles
re-load their operands more often for each FLOP (edge). A few units cannot draw the whole bandwidth
(unit_rate: what one keeps in flight, Little's law). Partial sums are 32-bit, written and read. Quantised
products may first quantise their activations in a pass of its own (convert), a row at a time like a norm: in
clocks it is the same on Hopper and Blackwell, in parts of the bandwidth it is not.

Some libraries do not look for the best tile, but take it by the number of rows (tall_above), and some run
tiles in pairs (cluster), so that an odd one costs two.

Source: the tile and wave model is that of NVIDIA's "Matrix Multiplication Background User's Guide"; the
energy of a FLOP is fitted, because a clock that falls under load (an H200 runs large bf16 products at
1.3 to 1.6 GHz of 1.98) is TDP / energy, whatever the chip's peak. Tiles by rows: vLLM's
csrc/quantization/w8a8/cutlass (sm89, sm90, sm100 and sm120 fp8 dispatch).
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from memwall.estimate.chip import Chip
from memwall.maths import Count, ceil_div, least, minimum, smooth_maximum, where

TILES = (
    *((16, 64), (16, 128), (32, 64), (32, 128)),  # few rows: no more are computed than are there
    *((64, 64), (64, 128), (128, 64), (64, 256), (128, 128), (128, 256), (256, 128), (256, 256)),
)
SPLITS = (1, 2, 4, 8, 16)
LEAST_K = 256
"""Elements of k that a split keeps at least."""
K_STEP = 64
SUM_BYTES = 4
AREA = 128 * 128


class GemmShape(NamedTuple):
    """One launch of a product, or of several of one shape."""

    m: Count
    n: Count
    k: Count
    products: Count
    traffic_bytes: Count
    activation_bytes: Count
    """Of the operand that a quantising pass reads in 16 bits and writes so."""


class GemmConstants(NamedTuple):
    """What differs between architectures, formats and libraries."""

    launch_s: float
    """From launch to the first tile, and the tail."""
    bandwidth_share: float
    """Of the memory's bandwidth, that streams reach."""
    unit_bytes_per_clock: float
    """What one unit draws from memory at most."""
    matrix_share: float
    """Of the matrix peak at maximum clock, in the inner loop."""
    edge: float
    """Cost of a 128 x 128 tile's re-loads, in parts of its compute."""
    wave_s: float
    """Prologue and epilogue of a wave of 128 x 128 tiles."""
    split_s: float
    """Adding up partial sums."""
    most_splits: float
    """1: the library does not split k."""
    energy_per_flop_j: float
    """0: no power limit."""
    convert: float
    """Passes over 16-bit and quantised activations before the product; 0: none."""
    convert_row_clocks: float
    """Of that pass, for each row: its own scale."""
    warm_gain: float
    """Times the memory's stream, where the operands stay in L2."""
    sharpness: float
    convert_element_clocks: float = 0
    """Of that pass, for each element."""
    tall_above: float = 0
    """Rows above which the library takes tiles of 128 rows, whatever else; 0: it takes the best tile."""
    cluster: float = 1
    """Tiles below each other that run as one: their number is a multiple of it."""
    gemv: float = 0
    """1: a single row has a kernel of its own, which streams the matrix into all units."""


def gemm_time_s(shape: GemmShape, chip: Chip, c: GemmConstants, warm: Count = False) -> Count:
    """The time of the best tile and split [s].

    Args:
        shape: what is multiplied.
        chip: the device, with the peak of the format that computes.
        c: the constants.
        warm: whether the operands are in L2 already.
    """
    stream_bytes_per_s = chip.stream_bytes_per_s(c.bandwidth_share, c.warm_gain, warm)
    flops = 2 * shape.products * shape.m * shape.n * shape.k
    power_s = flops * c.energy_per_flop_j / chip.tdp_w if chip.tdp_w else 0 * flops

    def time_s(rows: Count, cols: Count, splits: Count) -> Count:
        busy_s = _busy_s(shape, rows, cols, splits, stream_bytes_per_s, chip, c)
        limited_s = smooth_maximum(busy_s, power_s, c.sharpness) + where(splits > 1, c.split_s, 0.0)
        deep = (splits == 1) | (shape.k >= splits * LEAST_K)
        return where(deep & _offered(shape.m, rows, cols, c.tall_above), limited_s, inf)

    candidates = [(*tile, splits) for tile in TILES for splits in SPLITS if splits <= c.most_splits]
    best_s = least(time_s, candidates, shape.m * shape.n * shape.k)
    if c.gemv:
        best_s = where(shape.m == 1, shape.traffic_bytes / stream_bytes_per_s, best_s)
    return c.launch_s + best_s + (_convert_s(shape, chip, c) if c.convert else 0)


SHORT = 64
"""Rows up to which no tile is shorter than the product: two below each other would read the same columns."""


def _offered(m: Count, rows: Count, cols: Count, tall_above: float) -> Count:
    """Whether the library has the tile for so many rows."""
    if not tall_above:
        return (rows >= m) | (rows >= SHORT)
    height = where(m <= 16, 16, where(m <= 32, 32, where(m <= tall_above, 64, 128)))
    return (rows == height) & (cols == where(m <= 64, 64, 128))


def _convert_s(shape: GemmShape, chip: Chip, c: GemmConstants) -> Count:
    """The pass that quantises the activations: their bytes, or a row's scale and its elements."""
    rows = shape.products * shape.m
    bytes_s = c.convert * (2 * rows * shape.k + shape.activation_bytes) / chip.bandwidth_bytes_per_s
    clocks = rows * (c.convert_row_clocks + c.convert_element_clocks * shape.k)
    return smooth_maximum(bytes_s / c.bandwidth_share, clocks / (chip.units * chip.clock_hz), c.sharpness)


def _busy_s(
    shape: GemmShape,
    rows: Count,
    cols: Count,
    splits: Count,
    stream_bytes_per_s: Count,
    chip: Chip,
    c: GemmConstants,
) -> Count:
    """With tiles of rows x cols and so many splits of k, before launch and power."""
    high = ceil_div(shape.m, rows * c.cluster) * c.cluster
    ctas = shape.products * high * ceil_div(shape.n, cols) * splits
    waves = ceil_div(ctas, chip.units)
    steps = ceil_div(shape.k, splits * K_STEP) * K_STEP
    unit_flops_per_s = chip.peak_flops_per_s * chip.boost * c.matrix_share / chip.units
    compute_s = waves * 2 * rows * cols * steps / unit_flops_per_s * (1 + c.edge * AREA / (rows * cols))
    partial_bytes = where(splits > 1, 2 * SUM_BYTES * splits, 0) * shape.products * shape.m * shape.n
    unit_bytes_per_s = max(chip.clock_hz * c.unit_bytes_per_clock, chip.least_unit_bytes_per_s)
    drawn_bytes_per_s = minimum(ctas, chip.units) * unit_bytes_per_s
    memory_s = (shape.traffic_bytes + partial_bytes) / minimum(stream_bytes_per_s, drawn_bytes_per_s)
    return smooth_maximum(compute_s, memory_s, c.sharpness) + waves * c.wave_s * rows * cols / AREA
