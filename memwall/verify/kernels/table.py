"""Which kernels there are and where each stands; nothing is imported until one is wanted."""

from __future__ import annotations

from memwall.verify.case import Trial

_ROOM = "memwall.verify.kernels."

KERNELS = {
    "triton.gemv": ("triton_gemv", "gemv"),
    "triton.batched_gemv": ("triton_gemv", "batched_gemv"),
    "triton.rmsnorm": ("triton_rows", "rmsnorm"),
    "triton.layernorm": ("triton_rows", "layernorm"),
    "triton.softmax": ("triton_rows", "softmax"),
    "triton.residual_rmsnorm": ("triton_rows", "residual_rmsnorm"),
    "triton.flash": ("triton_attention", "flash"),
    "triton.standard": ("standard", "standard"),
    "triton.decode": ("triton_decode", "decode"),
    "triton.gemm": ("triton_gemm", "gemm"),
    "cupy.copy": ("cupy_streams", "copy"),
    "cupy.add": ("cupy_streams", "add"),
    "cupy.read_sum": ("cupy_streams", "read_sum"),
    "cupy.access": ("cupy_streams", "access"),
    "cupy.gemv": ("cupy_products", "gemv"),
    "cupy.naive_gemm": ("cupy_products", "naive_gemm"),
    "cupy.tiled_gemm": ("cupy_products", "tiled_gemm"),
    "cupy.standard": ("cupy_attention", "standard"),
    "cupy.conflicting": ("cupy_banks", "conflicting"),
    "cupy.padded": ("cupy_banks", "padded"),
    "library.gemm": ("library", "gemm"),
    "library.gemv": ("library", "gemv"),
    "library.batched_gemm": ("library", "batched_gemm"),
    "library.copy": ("library", "copy"),
    "library.add": ("library", "add"),
    "library.gelu": ("library", "gelu"),
    "library.softmax": ("library", "softmax"),
    "library.rmsnorm": ("library", "rmsnorm"),
    "library.layernorm": ("library", "layernorm"),
    "library.cudnn": ("library", "cudnn"),
    "library.flash2": ("library", "flash2"),
}
"""A kernel's name to its file and its `prepare` function."""


def place_of(trial: Trial) -> tuple[str, str]:
    """The module and the function that prepares a trial's kernel."""
    file, function = KERNELS[trial.kernel]
    return _ROOM + file, function
