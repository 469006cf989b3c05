"""The matrix products of a pass, from the weights that its parts list.

Weights that read the same input are one product (QKV, gate and up), unless the pass keeps them apart. A bias
is added by the product that it belongs to.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from memwall.dtypes import Precision
from memwall.models.mlps import expected_distinct
from memwall.models.step.launch import Kind, Launch, Setting
from memwall.models.weights import Weight
from memwall.program import Kernel, Tensor

MATRICES = ("linear", "router")
"""Roles of weights that tokens are multiplied with."""


def gemms(weights: Sequence[Weight]) -> list[str]:
    """The products that a part's weights are multiplied in, in their order."""
    return list(dict.fromkeys(weight.gemm for weight in weights if weight.role in MATRICES))


def linear(
    area: str,
    gemm: str,
    weights: Sequence[Weight],
    setting: Setting,
    rows: int | None = None,
    kind: Kind = "linear",
    columns: int | None = None,
) -> list[Launch]:
    """The product of that name; several kernels where its weights have several formats, or are not merged.

    Args:
        area: the part's name in the pass.
        gemm: the product.
        weights: all of the part's, biases among them.
        setting: formats and tokens.
        rows: tokens; those of the pass unless given.
        kind: what the pass counts it as.
        columns: elements of an input row; those that each output reads unless given (block-diagonal weights).
    """
    tokens = setting.rows if rows is None else rows
    launches = []
    for name, group in _products(gemm, weights, setting):
        biases = _biases(group, weights, setting)
        kernel = _product(group, biases, tokens, setting, columns)
        launches.append(Launch(f"{area}.{name}", kind, kernel))
    return launches


def covered(weight: Weight, setting: Setting) -> bool:
    """Whether quantisation covers a weight."""
    if weight.role == "head":
        return setting.storage.head
    return weight.role == "linear" and f"{weight.part}.{weight.name}" not in setting.unquantised


def precision_of(weight: Weight, setting: Setting) -> Precision:
    """The formats of the product with a weight."""
    if not covered(weight, setting):
        return setting.plain
    if weight.role == "head" and setting.storage.head_in:
        return setting.linear._replace(weight=setting.storage.head_in)
    return setting.linear


def parameters(weights: Sequence[Weight], setting: Setting) -> tuple[Tensor, ...]:
    """Vectors as the tensors that a kernel reads, 16 bits an element."""
    return tuple(
        Tensor(
            f"{w.part}.{w.name}",
            w.shape if w.copies == 1 else (w.copies, *w.shape),
            setting.plain.activation,
            "parameter",
        )
        for w in weights
    )


def touched(weight: Weight, tokens: int) -> float:
    """How many of a weight's copies so many tokens meet: on average N (1 - (1 - k/N)^B), whole if it is."""
    if weight.used is None or weight.copies == 1:
        return weight.copies
    distinct = expected_distinct(weight.copies, weight.used, tokens)
    return round(distinct) if abs(distinct - round(distinct)) < _ROUNDING * distinct else distinct


_ROUNDING = 0.000_000_000_001


def _products(gemm: str, weights: Sequence[Weight], setting: Setting) -> list[tuple[str, list[Weight]]]:
    chosen = [weight for weight in weights if weight.role in MATRICES and weight.gemm == gemm]
    if not setting.merged:
        return [(weight.name, [weight]) for weight in chosen]
    groups: dict[tuple[bool, int], list[Weight]] = {}
    for weight in chosen:
        groups.setdefault((covered(weight, setting), weight.shape[1]), []).append(weight)
    several = len(groups) > 1
    return [("+".join(w.name for w in group) if several else gemm, group) for group in groups.values()]


def _biases(group: Sequence[Weight], weights: Sequence[Weight], setting: Setting) -> list[Weight]:
    names = {(weight.part, f"{weight.name}.bias") for weight in group}
    return [weight for weight in weights if (weight.part, weight.name) in names]


def _product(
    group: Sequence[Weight],
    biases: Sequence[Weight],
    tokens: int,
    setting: Setting,
    columns: int | None,
) -> Kernel:
    """One product; of experts with the rows of all pairs of a token and an expert."""
    first, formats = group[0], precision_of(group[0], setting)
    experts = first.copies > 1
    used = (first.copies if first.used is None else first.used) if experts else 1
    rows, k = setting.pairs(used) if experts else tokens, first.shape[1]
    gathered = experts and not setting.eager and first.name != "down_proj"  # each token once
    a = Tensor("a", (min(setting.met, rows) if gathered else rows, columns or k), formats.activation)
    read = [_stored(weight, setting, formats) for weight in group]
    read += [_part(each, setting) for each in biases]
    outputs = sum(weight.shape[0] for weight in group)
    c = Tensor("c", (rows, outputs), formats.result)
    return Kernel(
        "grouped_gemm" if experts else "gemm",
        (a, *read),
        (c,),
        2 * rows * sum(prod(weight.shape) for weight in group),
        vector_flops=rows * sum(each.shape[0] for each in biases),
        compute=formats.compute,
    )


def _stored(weight: Weight, setting: Setting, formats: Precision) -> Tensor:
    shape = weight.shape if weight.copies == 1 else (_met(weight, setting), *weight.shape)
    return Tensor(weight.name, shape, formats.weight, "weight")


def _part(bias: Weight, setting: Setting) -> Tensor:
    """A bias; of experts those that are met."""
    tensor = parameters([bias], setting)[0]
    return tensor if bias.copies == 1 else tensor._replace(shape=(_met(bias, setting), *bias.shape))


def _met(weight: Weight, setting: Setting) -> float:
    """Copies of experts that the tokens meet on one GPU."""
    met = touched(weight, setting.met)
    return met if setting.expert_gpus == 1 else met / setting.expert_gpus
