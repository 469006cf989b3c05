"""One layer: its parts, the norms and residual sums around them."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.models.model import Layers, Model
from memwall.models.step.attention import attended, crossed
from memwall.models.step.extras import extras
from memwall.models.step.launch import Launch, Setting, launched, narrowed, repeated
from memwall.models.step.mlp import perceived
from memwall.models.step.recurrence import recurred
from memwall.ops.elementwise import add
from memwall.ops.norm import layernorm, residual_layernorm, residual_rmsnorm, rmsnorm


def layers(group: Layers, model: Model, setting: Setting) -> list[Launch]:
    """The kernels of a group of equal layers.

    A part of a layer has a norm before it and its result is added to the residual stream. Where there are
    fewer norms than parts (GPT-J, Falcon), the parts stand beside each other; where there are more (Gemma 2),
    the others norm the parts' results. Fused, each sum is one kernel with the norm that follows it: the
    first layer's norm has no sum before it, and the last sum has the final norm.
    """
    covered = setting.storage.every  # a format asked for leaves no linear layer out
    s = setting._replace(unquantised=frozenset() if covered else group.unquantised)
    parts = _parts(group, model, s)
    sums = min(len(parts), max(group.norms, 1))
    joined = 0 if s.eager else min(sums, group.norms)
    hidden = model.hidden_size
    launches = [launch for part in parts for launch in part]
    launches += extras("extra", group.extras, s)
    around = [
        *repeated(residual_norm(hidden, model.norm_bias, s), joined),
        *repeated(norm(hidden, model.norm_bias, s), group.norms - joined),
        *repeated(residual(hidden, s), len(parts) - joined),
    ]
    return repeated([*around, *launches], group.repeats)


def norm(cols: int, biased: bool, setting: Setting, name: str = "norm") -> list[Launch]:
    """A norm of each token."""
    build = layernorm if biased else rmsnorm
    return narrowed(launched(name, "norm", build(setting.norm_rows, cols, precision=setting.plain)), setting)


def residual_norm(cols: int, biased: bool, setting: Setting) -> list[Launch]:
    """The residual sum and the norm that follows it, in one kernel."""
    build = residual_layernorm if biased else residual_rmsnorm
    return narrowed(
        launched("residual+norm", "norm", build(setting.norm_rows, cols, precision=setting.plain)), setting
    )


def residual(cols: int, setting: Setting) -> list[Launch]:
    """A residual sum by itself."""
    return launched("residual", "elementwise", add(setting.norm_rows, cols, precision=setting.plain))


def _parts(group: Layers, model: Model, setting: Setting) -> list[list[Launch]]:
    """The parts whose results are added to the residual stream, one after the other or together."""
    s, hidden = setting, model.hidden_size
    mixers = []
    if group.attention is not None:
        mixers.append(attended(group.attention, group.attention.weights(hidden), s))
    if group.recurrence is not None:
        mixers.append(recurred(group.recurrence, group.recurrence.weights(hidden), s))
    parts = _together(mixers, hidden, s)
    if group.cross is not None:
        weights = [weight._replace(part="cross_attn") for weight in group.cross.weights(hidden)]
        parts.append(crossed(group.cross, weights, s))
    mlps = [perceived(mlp, mlp.weights(hidden), hidden, s) for mlp in group.mlps]
    return [*parts, *_together(mlps, hidden, s)]


def _together(parts: Sequence[list[Launch]], hidden: int, setting: Setting) -> list[list[Launch]]:
    """Parts beside each other as one, whose results are added."""
    if not parts:
        return []
    launches = [launch for part in parts for launch in part]
    return [[*launches, *repeated(residual(hidden, setting), len(parts) - 1)]]
