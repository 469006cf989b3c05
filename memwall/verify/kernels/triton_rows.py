"""Kernels that keep a row on chip, in Triton: norms, softmax, residual add and norm in one."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from memwall.verify.case import Launch, Tensors, Trial

EPSILON = 0.00001
ELEMENTS_A_WARP = 16 * 64
"""32 a thread, up to 8 warps: enough loads in flight, and few partial sums to join."""


@triton.jit
def rmsnorm_kernel(x, weight, y, cols, epsilon, block: tl.constexpr):
    """One row a program: y = x / sqrt(mean(x^2) + epsilon) weight."""
    row, place = tl.program_id(0).to(tl.int64) * cols, tl.arange(0, block)
    inside = place < cols
    # read x: cols elements, once
    values = tl.load(x + row + place, mask=inside, other=0.0).to(tl.float32)
    # read weight: cols elements, from L2 after the first rows
    scale = tl.load(weight + place, mask=inside, other=0.0).to(tl.float32)
    factor = tl.rsqrt(tl.sum(values * values, 0) / cols + epsilon)
    # write y: cols elements
    tl.store(y + row + place, (values * factor * scale).to(y.dtype.element_ty), mask=inside)


@triton.jit
def layernorm_kernel(x, weight, bias, y, cols, epsilon, block: tl.constexpr):
    """One row a program: y = (x - mean) / sqrt(var + epsilon) weight + bias."""
    row, place = tl.program_id(0).to(tl.int64) * cols, tl.arange(0, block)
    inside = place < cols
    # read x: cols elements, once
    values = tl.load(x + row + place, mask=inside, other=0.0).to(tl.float32)
    # read weight and bias: 2 cols elements, from L2 after the first rows
    scale = tl.load(weight + place, mask=inside, other=0.0).to(tl.float32)
    shift = tl.load(bias + place, mask=inside, other=0.0).to(tl.float32)
    centred = tl.where(inside, values - tl.sum(values, 0) / cols, 0.0)
    factor = tl.rsqrt(tl.sum(centred * centred, 0) / cols + epsilon)
    # write y: cols elements
    tl.store(y + row + place, (centred * factor * scale + shift).to(y.dtype.element_ty), mask=inside)


@triton.jit
def softmax_kernel(x, y, cols, block: tl.constexpr):
    """One row a program: y = exp(x - max) / sum(exp(x - max))."""
    row, place = tl.program_id(0).to(tl.int64) * cols, tl.arange(0, block)
    inside = place < cols
    # read x: cols elements, once
    values = tl.load(x + row + place, mask=inside, other=float("-inf")).to(tl.float32)
    powers = tl.exp(values - tl.max(values, 0))
    # write y: cols elements
    tl.store(y + row + place, (powers / tl.sum(powers, 0)).to(y.dtype.element_ty), mask=inside)


@triton.jit
def residual_rmsnorm_kernel(x, residual, weight, h, y, cols, epsilon, block: tl.constexpr):
    """One row a program: h = x + residual, y = rmsnorm(h); the norm finds h on chip."""
    row, place = tl.program_id(0).to(tl.int64) * cols, tl.arange(0, block)
    inside = place < cols
    # read x and residual: 2 cols elements, once
    values = tl.load(x + row + place, mask=inside, other=0.0).to(tl.float32)
    values += tl.load(residual + row + place, mask=inside, other=0.0).to(tl.float32)
    # read weight: cols elements, from L2 after the first rows
    scale = tl.load(weight + place, mask=inside, other=0.0).to(tl.float32)
    # write h: cols elements, and no kernel reads them back
    tl.store(h + row + place, values.to(h.dtype.element_ty), mask=inside)
    factor = tl.rsqrt(tl.sum(values * values, 0) / cols + epsilon)
    # write y: cols elements
    tl.store(y + row + place, (values * factor * scale).to(y.dtype.element_ty), mask=inside)


def rmsnorm(trial: Trial, tensors: Tensors) -> Launch:
    """The root-mean-square norm of each row."""
    return _a_program_a_row(trial, rmsnorm_kernel, tensors, ("x", "weight", "y"), EPSILON)


def layernorm(trial: Trial, tensors: Tensors) -> Launch:
    """The layer norm of each row."""
    return _a_program_a_row(trial, layernorm_kernel, tensors, ("x", "weight", "bias", "y"), EPSILON)


def softmax(trial: Trial, tensors: Tensors) -> Launch:
    """The softmax of each row."""
    return _a_program_a_row(trial, softmax_kernel, tensors, ("x", "y"))


def residual_rmsnorm(trial: Trial, tensors: Tensors) -> Launch:
    """Residual add and norm, fused."""
    return _a_program_a_row(
        trial, residual_rmsnorm_kernel, tensors, ("x", "residual", "weight", "h", "y"), EPSILON
    )


def _a_program_a_row(
    trial: Trial, kernel: Any, tensors: Tensors, names: tuple[str, ...], *settings: float
) -> Launch:
    rows, cols = trial.dims["rows"], trial.dims["cols"]
    block = triton.next_power_of_2(cols)
    warps = max(1, min(8, block // ELEMENTS_A_WARP))
    pointers = [tensors[name] for name in names]

    def launch() -> None:
        kernel[(rows,)](*pointers, cols, *settings, block=block, num_warps=warps)

    return launch
