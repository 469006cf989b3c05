"""The kernels of an MLP: dense, gated or plain, or a mixture of experts with its routing."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.maths import ceil_div
from memwall.models.mlps import Experts, Mlp, PlainMlp
from memwall.models.step.gate import gated
from memwall.models.step.launch import Launch, Setting, launched, narrowed, reading
from memwall.models.step.linear import linear
from memwall.models.weights import Weight
from memwall.ops.elementwise import add, gelu, silu_mul
from memwall.ops.moe import moe_combine, moe_dispatch, route
from memwall.program import Tensor

PARTED = {"silu": "silu of a part", "mul": "mul by a part"}
"""The steps of an eager SwiGLU where gate and up are one product."""


def perceived(mlp: Mlp, weights: Sequence[Weight], hidden: int, setting: Setting) -> list[Launch]:
    """All kernels of one MLP; in a model whose MLPs differ in width, each names its own."""
    if isinstance(mlp, Experts):
        return _experts(mlp, weights, hidden, setting)
    launches = _dense("mlp", not isinstance(mlp, PlainMlp), mlp.width, setting.rows, weights, setting)
    if not setting.widths_differ:
        return launches
    return [launch._replace(name=f"{launch.name}, width {mlp.width}") for launch in launches]


def _dense(
    area: str, gated: bool, width: int, rows: int, weights: Sequence[Weight], setting: Setting
) -> list[Launch]:
    """Up, activation, down; of experts, `rows` pairs of a token and an expert."""
    if gated:
        program = silu_mul(rows, width, precision=setting.plain, impl=setting.steps)
        activation = launched(f"{area}.silu*mul", "elementwise", program)
        if setting.eager and setting.merged:
            activation = [_of_halves(launch) for launch in activation]
    else:
        activation = launched(f"{area}.activation", "elementwise", gelu(rows, width, precision=setting.plain))
    return [
        *linear(area, "gate_up" if gated else "up", weights, setting),
        *narrowed(activation, setting),
        *linear(area, "down", weights, setting),
    ]


def _of_halves(launch: Launch) -> Launch:
    """The same kernel on gate and up as halves of one product's rows."""
    return launch._replace(kernel=launch.kernel._replace(name=PARTED[launch.kernel.name]))


def _experts(mlp: Experts, weights: Sequence[Weight], hidden: int, setting: Setting) -> list[Launch]:
    s, k = setting, mlp.experts_per_token
    routed = [weight for weight in weights if weight.part == "mlp.experts"]
    cols = mlp.expert_hidden or hidden
    launches = [
        *linear("moe", "router", weights, s, kind="routing"),
        *launched("moe.route", "routing", route(s.rows, mlp.experts, k, precision=s.plain)),
        *linear("moe", "latent_down", weights, s),
    ]
    if s.eager:
        launches += launched("moe.dispatch", "routing", moe_dispatch(s.rows, cols, k, precision=s.plain))
    launches += _dense("experts", mlp.gated, mlp.width, s.pairs(k), routed, s)
    shared = _shared(mlp, weights, hidden, s)
    combine = launched("moe.combine", "routing", moe_combine(s.rows, cols, _added(k, s), precision=s.plain))
    if shared and not s.eager and mlp.expert_hidden is None:  # the sum of both in one kernel
        combine = reading(combine, Tensor("shared", (s.rows, hidden), s.plain.activation))
        return [*launches, *shared, *combine]
    launches += [*combine, *linear("moe", "latent_up", weights, s), *shared]
    if shared:
        launches += launched("moe.add", "elementwise", add(s.rows, hidden, precision=s.plain))
    return launches


def _added(k: int, setting: Setting) -> int:
    """Results of a token that its GPU adds: of all its experts where they come back, else of those it has."""
    return k if setting.expert_rows else ceil_div(k, setting.expert_gpus)


def _shared(mlp: Experts, weights: Sequence[Weight], hidden: int, setting: Setting) -> list[Launch]:
    """The shared experts, which every token meets, with their gate."""
    own = [weight for weight in weights if weight.part == "mlp.shared_experts"]
    if not own:
        return []
    launches = _dense("shared", mlp.gated, mlp.shared_width, setting.rows, own, setting)
    if mlp.shared_gate:
        launches += gated("shared.gate", hidden, 1, setting)
    return launches
