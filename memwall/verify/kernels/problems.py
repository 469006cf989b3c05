"""What each operator is: its tensors, random and fresh, and its result in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own custom

from memwall.verify.case import Tensors, Trial

EPSILON = 0.00001
MEAN = 0.25
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}

Reference = Callable[[Trial, Tensors], dict[str, Any]]


class Problem(NamedTuple):
    """An operator's tensors and its truth."""

    inputs: Mapping[str, tuple[int, ...]]
    """Shapes by name."""
    outputs: Mapping[str, tuple[int, ...]]
    reference: Reference
    """The outputs in float64."""


def problem(trial: Trial) -> Problem:
    """The tensors of a trial, and how to check them."""
    return _PROBLEMS[trial.op](trial.dims)


def draw(trial: Trial, device: str, seed: int) -> dict[str, Any]:
    """Fresh random inputs and poisoned outputs: what the kernel does not write stays NaN.

    Inputs have a mean, so that a norm that forgets to subtract it is found out.
    """
    of = problem(trial)
    generator = torch.Generator(device=device).manual_seed(seed)
    dtype = DTYPES[trial.dtype]
    tensors = {
        name: (torch.randn(shape, generator=generator, device=device) + MEAN).to(dtype)
        for name, shape in of.inputs.items()
    }
    poisoned = {
        name: torch.full(shape, float("nan"), device=device, dtype=dtype)
        for name, shape in of.outputs.items()
    }
    return {**tensors, **poisoned}


def errors(trial: Trial, tensors: Tensors) -> dict[str, float]:
    """|out - ref| / |ref| of each output in the 2-norm; infinite where something was not written."""
    found = {}
    for name, expected in problem(trial).reference(trial, tensors).items():
        got = tensors[name].double()
        distance = float(torch.linalg.vector_norm(got - expected) / torch.linalg.vector_norm(expected))
        found[name] = distance if distance == distance else float("inf")
    return found


def _f64(tensors: Tensors, *names: str) -> tuple[Any, ...]:
    return tuple(tensors[name].double() for name in names)


def _gemm(dims: Mapping[str, int]) -> Problem:
    m, n, k = dims["m"], dims["n"], dims["k"]

    def reference(trial: Trial, tensors: Tensors) -> dict[str, Any]:
        a, b = _f64(tensors, "a", "b")
        return {"c": a @ b.T}

    return Problem({"a": (m, k), "b": (n, k)}, {"c": (m, n)}, reference)


def _gemv(dims: Mapping[str, int]) -> Problem:
    m, k, batch = dims["m"], dims["k"], dims["batch"]

    def reference(trial: Trial, tensors: Tensors) -> dict[str, Any]:
        w, x = _f64(tensors, "w", "x")
        return {"y": x @ w.T}

    return Problem({"w": (m, k), "x": (batch, k)}, {"y": (batch, m)}, reference)


def _batched_gemm(dims: Mapping[str, int]) -> Problem:
    batch, m, n, k = (dims[name] for name in ("batch", "m", "n", "k"))

    def reference(trial: Trial, tensors: Tensors) -> dict[str, Any]:
        a, b = _f64(tensors, "a", "b")
        return {"c": a @ b.mT}

    return Problem({"a": (batch, m, k), "b": (batch, n, k)}, {"c": (batch, m, n)}, reference)


def _rows(*inputs: str, outputs: tuple[str, ...], vectors: tuple[str, ...] = ()) -> Any:
    """A problem on rows: full tensors, and vectors of one row."""

    def make(reference: Reference) -> Callable[[Mapping[str, int]], Problem]:
        def of(dims: Mapping[str, int]) -> Problem:
            full = (dims["rows"], dims["cols"])
            shapes = {**dict.fromkeys(inputs, full), **dict.fromkeys(vectors, (dims["cols"],))}
            return Problem(shapes, dict.fromkeys(outputs, full), reference)

        return of

    return make


@_rows("x", outputs=("y",), vectors=("weight",))
def _rmsnorm(trial: Trial, tensors: Tensors) -> dict[str, Any]:
    x, weight = _f64(tensors, "x", "weight")
    return {"y": F.rms_norm(x, x.shape[1:], weight, EPSILON)}


@_rows("x", outputs=("y",), vectors=("weight", "bias"))
def _layernorm(trial: Trial, tensors: Tensors) -> dict[str, Any]:
    x, weight, bias = _f64(tensors, "x", "weight", "bias")
    return {"y": F.layer_norm(x, x.shape[1:], weight, bias, EPSILON)}


@_rows("x", "residual", outputs=("h", "y"), vectors=("weight",))
def _residual_rmsnorm(trial: Trial, tensors: Tensors) -> dict[str, Any]:
    x, residual, weight = _f64(tensors, "x", "residual", "weight")
    return {"h": x + residual, "y": F.rms_norm(x + residual, x.shape[1:], weight, EPSILON)}


@_rows("x", outputs=("y",))
def _softmax(trial: Trial, tensors: Tensors) -> dict[str, Any]:
    return {"y": torch.softmax(tensors["x"].double(), dim=1)}


@_rows("x", outputs=("y",))
def _copy(trial: Trial, tensors: Tensors) -> dict[str, Any]:
    return {"y": tensors["x"].double()}


@_rows("a", "b", outputs=("y",))
def _add(trial: Trial, tensors: Tensors) -> dict[str, Any]:
    a, b = _f64(tensors, "a", "b")
    return {"y": a + b}


@_rows("x", outputs=("y",))
def _gelu(trial: Trial, tensors: Tensors) -> dict[str, Any]:
    return {"y": F.gelu(tensors["x"].double(), approximate="tanh")}


def _read_sum(dims: Mapping[str, int]) -> Problem:
    def reference(trial: Trial, tensors: Tensors) -> dict[str, Any]:
        return {"y": tensors["x"].double().sum().reshape(1)}

    return Problem({"x": (dims["rows"], dims["cols"])}, {"y": (1,)}, reference)


def _transpose(dims: Mapping[str, int]) -> Problem:
    rows, cols = dims["rows"], dims["cols"]

    def reference(trial: Trial, tensors: Tensors) -> dict[str, Any]:
        return {"y": tensors["x"].double().T}

    return Problem({"x": (rows, cols)}, {"y": (cols, rows)}, reference)


def _access(dims: Mapping[str, int]) -> Problem:
    """Single elements, `step` apart and around the end."""

    def reference(trial: Trial, tensors: Tensors) -> dict[str, Any]:
        x = tensors["x"].double()
        return {"y": x[torch.arange(dims["count"], device=x.device) * dims["step"] % dims["elements"]]}

    return Problem({"x": (dims["elements"],)}, {"y": (dims["count"],)}, reference)


def _attention(dims: Mapping[str, int]) -> Problem:
    queries = (dims["batch"], dims["heads"], dims["seq_q"], dims["head_dim"])
    keys = (dims["batch"], dims["kv_heads"], dims["seq_kv"], dims["head_dim"])

    def reference(trial: Trial, tensors: Tensors) -> dict[str, Any]:
        q, k, v = _f64(tensors, "Q", "K", "V")
        group = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if trial.causal:
            seq_q, seq_kv = scores.shape[-2:]
            seen = torch.ones_like(scores, dtype=torch.bool).tril(seq_kv - seq_q)
            scores = scores.masked_fill(~seen, float("-inf"))
        return {"O": torch.softmax(scores, -1) @ v}

    return Problem({"Q": queries, "K": keys, "V": keys}, {"O": queries}, reference)


_PROBLEMS: dict[str, Callable[[Mapping[str, int]], Problem]] = {
    "gemm": _gemm,
    "gemv": _gemv,
    "batched_gemm": _batched_gemm,
    "rmsnorm": _rmsnorm,
    "layernorm": _layernorm,
    "residual_rmsnorm": _residual_rmsnorm,
    "softmax": _softmax,
    "copy": _copy,
    "add": _add,
    "gelu": _gelu,
    "read_sum": _read_sum,
    "transpose": _transpose,
    "access": _access,
    "attention": _attention,
}
