"""The kernels of weights that belong to no kind of part: tables, projections, norms, scales, convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from memwall.models.model import Model
from memwall.models.step.launch import Launch, Setting, launched, reading
from memwall.models.step.linear import gemms, linear, parameters
from memwall.models.weights import Weight
from memwall.ops.gather import gather
from memwall.ops.norm import rmsnorm
from memwall.program import Kernel, Tensor

TABLES = ("table", "embedding")


def has_rotary(model: Model) -> bool:
    """Whether positions turn Q and K: taken to be so unless there is a table of positions or distances."""
    extras = chain(model.extras, *(group.extras for group in (*model.encoder, *model.layers)))
    return not any(w.role == "table" and any(word in w.name for word in _POSITIONS) for w in extras)


_POSITIONS = ("position", "wpe", "relative_attention")


def extras(area: str, weights: Sequence[Weight], setting: Setting) -> list[Launch]:
    """A row of each table for every token, matrices as products, norms as norms; scales are read by the last.

    Convolutions stand in front of an encoder and run once, in its prefill, over as many frames as it reads;
    where they halve the frames, the first has twice as many to read, so that this is the least.
    """
    launches = [launch for weight in weights if weight.role in TABLES for launch in _rows(weight, setting)]
    for gemm in gemms(weights):
        launches += linear(area, gemm, weights, setting)
    if setting.prefill and setting.source:
        launches += [_frames(area, w, weights, setting) for w in weights if w.role == "convolution"]
    vectors = [weight for weight in weights if weight.role == "vector" and not _is_bias_of(weight, weights)]
    norms = [weight for weight in vectors if "norm" in weight.name.lower()]
    for weight in norms:
        launches += _norm(area, weight, weights, setting)
    scales = parameters([weight for weight in vectors if weight not in norms], setting)
    if not scales:
        return launches
    return reading(launches, *scales) if launches else [_scaled(area, scales, setting)]


def _is_bias_of(weight: Weight, weights: Sequence[Weight]) -> bool:
    return any(weight.name == f"{other.name}.bias" for other in weights)


def _rows(table: Weight, setting: Setting) -> list[Launch]:
    program = gather(setting.rows, table.shape[1], table.shape[0], precision=setting.plain)
    return launched(table.name, "embedding", program)


def _norm(area: str, weight: Weight, weights: Sequence[Weight], setting: Setting) -> list[Launch]:
    own = [w for w in weights if w.name in (weight.name, f"{weight.name}.bias")]
    program = rmsnorm(setting.rows, weight.shape[0], precision=setting.plain)
    kernel = program.kernels[0]
    kernel = kernel._replace(reads=(kernel.reads[0], *parameters(own, setting)))
    return launched(f"{area}.{weight.name}", "norm", program._replace(kernels=(kernel,)))


def _frames(area: str, weight: Weight, weights: Sequence[Weight], setting: Setting) -> Launch:
    """A convolution as a product with each frame's neighbourhood."""
    rows, (n, k) = setting.tokens.batch * setting.source, weight.shape
    plain = setting.plain
    x = Tensor("a", (rows, k), plain.activation)
    table = Tensor("b", (n, k), plain.activation, "weight")
    bias = parameters([w for w in weights if w.name == f"{weight.name}.bias"], setting)
    y = Tensor("c", (rows, n), plain.result)
    kernel = Kernel("gemm", (x, table, *bias), (y,), 2 * rows * n * k, compute=plain.compute)
    return Launch(f"{area}.{weight.name}", "linear", kernel)


def _scaled(area: str, scales: tuple[Tensor, ...], setting: Setting) -> Launch:
    """A few learned numbers that other kernels use: only they are counted."""
    total = sum(tensor.shape[-1] for tensor in scales)
    y = Tensor("y", (1, total), setting.plain.activation)
    return Launch(f"{area}.scales", "elementwise", Kernel("scales", scales, (y,), vector_flops=total))
