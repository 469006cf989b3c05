"""The libraries beside our own kernels: cuBLAS, and the framework's norms and attention, through torch."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own custom
from torch.nn.attention import SDPBackend, sdpa_kernel

from memwall.verify.case import Launch, Tensors, Trial
from memwall.verify.kernels.problems import EPSILON


def gemm(trial: Trial, tensors: Tensors) -> Launch:
    """cuBLAS: c = a b^T."""
    a, b, c = (tensors[name] for name in ("a", "b", "c"))
    return lambda: torch.mm(a, b.T, out=c)


def gemv(trial: Trial, tensors: Tensors) -> Launch:
    """cuBLAS: y = x w^T."""
    w, x, y = (tensors[name] for name in ("w", "x", "y"))
    return lambda: torch.mm(x, w.T, out=y)


def batched_gemm(trial: Trial, tensors: Tensors) -> Launch:
    """cuBLAS, batched: c[i] = a[i] b[i]^T."""
    a, b, c = (tensors[name] for name in ("a", "b", "c"))
    return lambda: torch.bmm(a, b.mT, out=c)


def copy(trial: Trial, tensors: Tensors) -> Launch:
    """The driver's copy from device memory to device memory."""
    x, y = tensors["x"], tensors["y"]
    return lambda: y.copy_(x)


def add(trial: Trial, tensors: Tensors) -> Launch:
    """torch.add."""
    a, b, y = (tensors[name] for name in ("a", "b", "y"))
    return lambda: torch.add(a, b, out=y)


def gelu(trial: Trial, tensors: Tensors) -> Launch:
    """torch.nn.functional.gelu, by its tanh."""
    x = tensors["x"]
    return _into(tensors, "y", lambda: F.gelu(x, approximate="tanh"))


def softmax(trial: Trial, tensors: Tensors) -> Launch:
    """torch.softmax."""
    x, y = tensors["x"], tensors["y"]
    return lambda: torch.softmax(x, 1, out=y)


def rmsnorm(trial: Trial, tensors: Tensors) -> Launch:
    """torch.nn.functional.rms_norm."""
    x, weight = tensors["x"], tensors["weight"]
    return _into(tensors, "y", lambda: F.rms_norm(x, x.shape[1:], weight, EPSILON))


def layernorm(trial: Trial, tensors: Tensors) -> Launch:
    """torch.nn.functional.layer_norm."""
    x, weight, bias = tensors["x"], tensors["weight"], tensors["bias"]
    return _into(tensors, "y", lambda: F.layer_norm(x, x.shape[1:], weight, bias, EPSILON))


def cudnn(trial: Trial, tensors: Tensors) -> Launch:
    """Attention of cuDNN, through torch."""
    return _sdpa(trial, tensors, SDPBackend.CUDNN_ATTENTION)


def flash2(trial: Trial, tensors: Tensors) -> Launch:
    """FlashAttention-2, as torch ships it."""
    return _sdpa(trial, tensors, SDPBackend.FLASH_ATTENTION)


def _sdpa(trial: Trial, tensors: Tensors, backend: Any) -> Launch:
    q, k, v = (tensors[name] for name in ("Q", "K", "V"))
    grouped = q.shape[1] != k.shape[1]

    def attend() -> Any:
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v, is_causal=bool(trial.causal), enable_gqa=grouped)

    return _into(tensors, "O", attend)


def _into(tensors: Tensors, name: str, compute: Any) -> Launch:
    """A launch of what returns its result: the tensor of that name becomes the result, without a copy."""

    def launch() -> None:
        tensors[name].set_(compute())

    return launch
