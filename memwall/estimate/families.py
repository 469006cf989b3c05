"""Which mechanism a kernel runs by, read from its tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from memwall.estimate.decode import DecodeConstants, DecodeShape, decode_time_s
from memwall.estimate.gemm import GemmConstants, GemmShape, gemm_time_s
from memwall.estimate.prefill import PrefillConstants, PrefillShape, prefill_time_s
from memwall.estimate.rowwise import RowwiseConstants, RowwiseShape, rowwise_time_s
from memwall.maths import Count
from memwall.program import Kernel, Tensor, kernel_work

FEW_QUERIES = 8
"""Up to so many new tokens a sequence run in the decode kernels: speculation."""


class Family(NamedTuple):
    """A mechanism: its formula and what the formula's constants are called."""

    constants: Callable[..., Any]
    fields: tuple[str, ...]
    time_s: Callable[..., Count]
    """Of a shape, a chip, constants and whether it is warm."""


_GEMM = Family(GemmConstants, GemmConstants._fields, gemm_time_s)
_PREFILL = Family(PrefillConstants, PrefillConstants._fields, prefill_time_s)
_DECODE = Family(DecodeConstants, DecodeConstants._fields, decode_time_s)
_ROWWISE = Family(RowwiseConstants, RowwiseConstants._fields, rowwise_time_s)

FAMILIES: Mapping[str, Family] = {
    "gemm": _GEMM,
    "grouped_gemm": _GEMM,
    "prefill": _PREFILL,
    "mla_prefill": _PREFILL,
    "decode": _DECODE,
    "mla_decode": _DECODE,
    "elementwise": _ROWWISE,
    "strided": _ROWWISE,
    "concatenate": _ROWWISE,
    "scatter": _ROWWISE,
    "activation": _ROWWISE,
    "power": _ROWWISE,
    "cast": _ROWWISE,
    "gated": _ROWWISE,
    "rmsnorm": _ROWWISE,
    "layernorm": _ROWWISE,
    "mask": _ROWWISE,
    "softmax": _ROWWISE,
    "read": _ROWWISE,
    "gather": _ROWWISE,
}
"""Mechanisms by name; a calibration has constants for each that it has measured."""

ROWWISE = frozenset(name for name, family in FAMILIES.items() if family is _ROWWISE)
"""What passes between products and attention: norms, elementwise steps, gathers. Their constants are of
implementations, and carry between generations: they are fitted together."""

_ROWWISE_KERNELS = {
    "rmsnorm": "rmsnorm",
    "layernorm": "layernorm",
    "residual_rmsnorm": "rmsnorm",
    "residual_layernorm": "layernorm",
    "mask": "mask",
    "softmax": "softmax",
    "gelu": "activation",
    "pow": "power",
    "silu_mul": "gated",
    "read_sum": "read",
    "mean": "read",
    "gather": "gather",
    "negate": "strided",
    "times cos": "strided",
    "times sin": "strided",
    "add turned": "strided",
    "silu of a part": "strided",
    "mul by a part": "strided",
    "concatenate": "concatenate",
    "write K": "scatter",
    "write V": "scatter",
}
"""Eager steps on part of a row, or on transposed heads, are strided: no vector load serves them."""
FUNCTION_CLOCKS = {
    "upcast": 0.78,  # 16-bit to fp32
    "scale_rows": 0.79,  # fp32 times one number a row
    "scale_columns": 0.65,  # 16-bit times one number a column
}
"""A unit's clocks an element of PyTorch's kernels that are not vectorised, since their operands differ in
format or in shape. Source: measured on an H200, torch 2.11, 67M elements."""
_CLASSES = {"bf16": "16-bit", "fp16": "16-bit"}


class Run(NamedTuple):
    """One launch as its mechanism sees it."""

    family: str
    shape: Any
    """The family's shape."""
    format: str
    """The class of number formats that constants are kept by."""
    compute: str | None
    """The format of the matrix work, whose peak counts."""


def run_of(kernel: Kernel) -> Run:
    """The mechanism of a kernel of `memwall.ops`, or of one that fusion made of them.

    Its dimensions may be arrays; then they are all of one mechanism.
    """
    tensors = {tensor.name: tensor for tensor in kernel.reads}
    compute = kernel.compute if _some(kernel.matrix_flops) else None
    if {"Q", "K", "V"} <= tensors.keys():
        return _attention(kernel, tensors["Q"], tensors["K"], tensors["V"])
    if {"q", "latent"} <= tensors.keys() and len(kernel.writes[0].shape) == len(tensors["q"].shape):
        return _latent(kernel, tensors["q"], tensors["latent"])
    if compute:
        return _product(kernel)
    largest = kernel.writes[0] if len(kernel.writes[0].shape) > 1 else kernel.reads[0]
    rows, cols = _rows(largest), largest.shape[-1]
    family = _ROWWISE_KERNELS.get(kernel.name.rpartition(": ")[2], "elementwise")
    if family == "elementwise" and largest.dtype.bits < kernel.reads[0].dtype.bits <= 16:
        family = "cast"
    traffic_bytes = kernel_work(kernel).traffic_bytes
    clocks = FUNCTION_CLOCKS.get(kernel.name, 0.0)
    return Run(family, RowwiseShape(rows, cols, traffic_bytes, largest.bytes / rows, clocks), "any", None)


def number_class(name: str) -> str:
    """The class of formats that one set of constants serves: bf16 and fp16 are one."""
    return _CLASSES.get(name, name)


def _product(kernel: Kernel) -> Run:
    a, b, c = kernel.reads[0], kernel.reads[1], kernel.writes[0]
    if a.role == "weight":  # gemv: the matrix stands first
        a, b = b, a
    m, n = c.shape[-2:]
    products: Count = 1
    for dimension in c.shape[:-2]:
        products = products * dimension
    if kernel.name == "grouped_gemm" and len(b.shape) == len(c.shape) + 1:
        products, m = b.shape[0], c.shape[0] / b.shape[0]  # rows sorted by expert: the mean of each met
    shape = GemmShape(m, n, a.shape[-1], products, kernel_work(kernel).traffic_bytes, a.bytes)
    narrow = b.role == "weight" and b.dtype.bits < a.dtype.bits
    number = f"w{b.dtype.bits}a{a.dtype.bits}" if narrow else number_class(kernel.compute)
    return Run("grouped_gemm" if kernel.name == "grouped_gemm" else "gemm", shape, number, kernel.compute)


def _attention(kernel: Kernel, q: Tensor, k: Tensor, v: Tensor) -> Run:
    batch, heads, seq_q, head_dim = q.shape
    kv_heads, seq_kv, head_dim_v = k.shape[1], k.shape[2], v.shape[3]
    traffic = kernel_work(kernel).traffic_bytes
    if _few(seq_q):
        per_token = (k.bytes + v.bytes) / (
            batch * kv_heads * seq_kv
        )  # packed bits may leave a part of a byte
        narrow = k.dtype.bits < q.dtype.bits
        decode = DecodeShape(
            batch, heads * seq_q, kv_heads, seq_kv, head_dim, head_dim_v, per_token, traffic, narrow
        )
        return Run("decode", decode, number_class(k.dtype.name), kernel.compute)
    pairs = kernel.matrix_flops / (2 * batch * heads * (head_dim + head_dim_v))
    shape = PrefillShape(batch, heads, kv_heads, seq_q, seq_kv, head_dim, head_dim_v, pairs, traffic)
    family = "prefill" if _same(head_dim, head_dim_v) else "mla_prefill"
    latent = family == "mla_prefill"  # with K and V in fp8 engines quantise first and run another kernel
    number = number_class(k.dtype.name if latent else kernel.compute)
    return Run(family, shape, number, kernel.compute)


def _latent(kernel: Kernel, q: Tensor, latent: Tensor) -> Run:
    batch, heads, seq_q, head_dim = q.shape
    seq_kv, head_dim_v = latent.shape[1], kernel.writes[0].shape[-1]
    per_token = latent.bytes / (batch * seq_kv)
    traffic = kernel_work(kernel).traffic_bytes
    narrow = latent.dtype.bits < q.dtype.bits
    shape = DecodeShape(batch, heads * seq_q, 1, seq_kv, head_dim, head_dim_v, per_token, traffic, narrow)
    return Run("mla_decode", shape, number_class(latent.dtype.name), kernel.compute)


def _rows(tensor: Tensor) -> Count:
    rows: Count = 1
    for dimension in tensor.shape[:-1]:
        rows = rows * dimension
    return rows


def _some(flops: Count) -> bool:
    return not (isinstance(flops, int) and flops == 0)


def _few(seq_q: Count) -> bool:
    return bool((seq_q <= FEW_QUERIES).all() if hasattr(seq_q, "all") else seq_q <= FEW_QUERIES)


def _same(left: Count, right: Count) -> bool:
    same = left == right
    return bool(same.all() if hasattr(same, "all") else same)
