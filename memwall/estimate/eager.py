"""What a framework launches for an operator that has no kernel of its own: a chain of elementwise kernels.

A Hugging Face model's norm is such a chain, in fp32 and back:

    h = x.to(fp32)            upcast         read x,        write h
    s = h.pow(2)              square         read h,        write s
    v = s.mean(-1)            mean           read s,        write a number a row
    r = rsqrt(v + eps)        rsqrt          read v,        write r     (and the sum, as small)
    n = h * r                 scale_rows     read h, r,     write n
    c = n.to(x.dtype)         downcast       read n,        write c
    y = weight * c            scale_columns  read c,        write y

36 bytes an element of bf16 where a fused kernel moves 4. Casts are left out where x is fp32 already.

Source: huggingface/transformers, models/llama/modeling_llama.py, LlamaRMSNorm.forward. Each kernel is
estimated as any elementwise one is; nothing is fitted to the chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from memwall.dtypes import find
from memwall.estimate.library import EAGER, HUGGING_FACE, TORCH, Library
from memwall.program import Kernel, Tensor

CHAINED = (EAGER, HUGGING_FACE)
"""Libraries that launch norms as chains."""
FP32 = "fp32"


class Launch(NamedTuple):
    """One kernel of a chain, or one that stands alone."""

    kernel: Kernel
    follows: bool
    """Whether it reads what the kernel before it has just written: from L2 as far as that fits there."""


def launched(kernels: Sequence[Kernel], library: Library) -> list[Launch]:
    """The kernels that a library launches: chains for those that it has not fused.

    Args:
        kernels: of the operator, fused.
        library: whose implementation.
    """
    return [
        Launch(each, place > 0) for kernel in kernels for place, each in enumerate(_chain(kernel, library))
    ]


def _chain(kernel: Kernel, library: Library) -> Sequence[Kernel]:
    if kernel.name == "relu_squared" and (library.kernel in CHAINED or library == TORCH):
        return _relu_squared(kernel)
    if library.kernel not in CHAINED:
        return (kernel,)
    if kernel.name == "rmsnorm":
        return _rmsnorm(kernel.reads[0], kernel.reads[1], kernel.writes[0])
    if kernel.name == "residual_rmsnorm":
        first, residual, weight = kernel.reads[:3]
        total, y = kernel.writes[0], kernel.writes[-1]
        add = Kernel("add", (first, residual), (total,))
        return (add, *_rmsnorm(total, weight, y))
    return (kernel,)


def _rmsnorm(x: Tensor, weight: Tensor, y: Tensor) -> list[Kernel]:
    """The chain of the docstring above."""
    fp32 = find(FP32)
    wide = x.dtype.name == FP32
    h = x if wide else Tensor("h", x.shape, fp32)
    s, n = (Tensor(name, x.shape, fp32) for name in ("s", "n"))
    v, e, r = (Tensor(name, (*x.shape[:-1], 1), fp32) for name in ("v", "e", "r"))
    c = n if wide else Tensor("c", x.shape, x.dtype)
    chain = [
        Kernel("square", (h,), (s,)),
        Kernel("mean", (s,), (v,)),
        Kernel("add_epsilon", (v,), (e,)),
        Kernel("rsqrt", (e,), (r,)),
        Kernel("scale_rows", (h, r), (n,)),
        Kernel("scale_columns", (c, weight), (y,)),
    ]
    if not wide:
        chain.insert(0, Kernel("upcast", (x,), (h,)))
        chain.insert(-1, Kernel("downcast", (n,), (c,)))
    return chain


def _relu_squared(kernel: Kernel) -> Sequence[Kernel]:
    """relu(x)^2 in two kernels."""
    (x,), (y,) = kernel.reads, kernel.writes
    middle = Tensor("relu(x)", x.shape, x.dtype)
    return (Kernel("relu", (x,), (middle,)), Kernel("square", (middle,), (y,)))
