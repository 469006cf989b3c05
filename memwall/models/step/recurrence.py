"""The kernels of layers that keep a state: projections, convolution, the recurrence, gate, output."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch

from memwall.models.recurrences import (
    GatedDelta,
    GatedLinearRecurrence,
    LightningAttention,
    Mamba,
    Mamba2,
    Recurrence,
    ShortConvolution,
)
from memwall.models.step.gate import gated
from memwall.models.step.launch import Launch, Setting, launched, narrowed, reading
from memwall.models.step.linear import gemms, linear, parameters
from memwall.models.weights import Weight
from memwall.ops.elementwise import silu_mul
from memwall.ops.norm import rmsnorm
from memwall.ops.scan import causal_conv, gated_recurrence, matrix_recurrence, selective_scan
from memwall.program import Program

AREA = "recurrence"


def recurred(kind: Recurrence, weights: Sequence[Weight], setting: Setting) -> list[Launch]:
    """All kernels of a layer's recurrence; a pass from nothing has no state to read."""
    core = _core(kind, weights, setting)
    into = [
        launch
        for gemm in gemms(weights)
        if gemm not in ("output", "gates")
        for launch in linear(AREA, gemm, weights, setting)
    ]
    launches = [*into, *narrowed(core, setting), *linear(AREA, "output", weights, setting)]
    return (
        launches
        if setting.tokens.cached or not setting.prefill
        else [_from_nothing(launch) for launch in launches]
    )


def _from_nothing(launch: Launch) -> Launch:
    reads = tuple(tensor for tensor in launch.kernel.reads if tensor.role != "state")
    return launch._replace(kernel=launch.kernel._replace(reads=reads))


@singledispatch
def _core(kind: Recurrence, weights: Sequence[Weight], setting: Setting) -> list[Launch]:
    """What stands between a recurrence's projections."""
    raise NotImplementedError(type(kind).__name__)


@_core.register
def _(kind: GatedDelta, weights: Sequence[Weight], setting: Setting) -> list[Launch]:
    s, values = setting, kind.value_heads * kind.value_dim
    decays = values if kind.channel_gate_rank else kind.value_heads
    shape = (kind.key_heads, kind.value_heads, kind.key_dim, kind.value_dim)
    program = matrix_recurrence("delta_rule", 6, _tokens(s), shape, decays + kind.value_heads, s.plain)
    return [
        *_convolution(kind.mixed, kind.convolution, weights, s),
        *_scan(program, weights, s),
        *_normed(s.rows * kind.value_heads, kind.value_dim, weights, s),
        *_silu_gate(values, s),
    ]


@_core.register
def _(kind: Mamba, weights: Sequence[Weight], setting: Setting) -> list[Launch]:
    s = setting
    batch, seq = _tokens(s)
    program = selective_scan(kind.inner, kind.state, seq, batch, precision=s.plain)
    norms = [
        launch
        for name, elements in (("dt", kind.time_step_rank), ("bc", 2 * kind.state))
        if kind.norms
        for launch in launched(f"{AREA}.{name}_norm", "norm", rmsnorm(s.rows, elements, precision=s.plain))
    ]
    return [
        *_convolution(kind.inner, kind.convolution, weights, s),
        *norms,
        *_scan(program, weights, s),
        *_silu_gate(kind.inner, s),
    ]


@_core.register
def _(kind: Mamba2, weights: Sequence[Weight], setting: Setting) -> list[Launch]:
    s = setting
    shape = (kind.groups, kind.heads, kind.state, kind.head_dim)
    program = matrix_recurrence("linear_attention", 4, _tokens(s), shape, kind.heads, s.plain)
    return [
        *_convolution(kind.mixed, kind.convolution, weights, s),
        *_scan(program, weights, s),
        *(_normed(s.rows, kind.inner, weights, s) if kind.norm else []),
        *_silu_gate(kind.inner, s),
    ]


@_core.register
def _(kind: LightningAttention, weights: Sequence[Weight], setting: Setting) -> list[Launch]:
    s, width = setting, kind.heads * kind.head_dim
    shape = (kind.heads, kind.heads, kind.head_dim, kind.head_dim)
    program = matrix_recurrence("linear_attention", 4, _tokens(s), shape, 0, s.plain)
    return [
        *_scan(program, weights, s),
        *_normed(s.rows, width, weights, s),
        *gated(f"{AREA}.gate", width, width, s),
    ]


@_core.register
def _(kind: ShortConvolution, weights: Sequence[Weight], setting: Setting) -> list[Launch]:
    """Both gates are the convolution's own: before it and after."""
    s = setting
    [launch] = _convolution(kind.width, kind.convolution, weights, s)
    x = launch.kernel.reads[0]
    kernel = launch.kernel._replace(
        reads=(*launch.kernel.reads, x._replace(name="B"), x._replace(name="C")),
        vector_flops=launch.kernel.vector_flops + 2 * s.rows * kind.width,
    )
    return [launch._replace(kernel=kernel)]


@_core.register
def _(kind: GatedLinearRecurrence, weights: Sequence[Weight], setting: Setting) -> list[Launch]:
    s = setting
    batch, seq = _tokens(s)
    return [
        *_convolution(kind.width, kind.convolution, weights, s),
        *linear(AREA, "gates", weights, s, columns=kind.width),
        *_scan(gated_recurrence(kind.width, seq, batch, precision=s.plain), [], s),
        *_silu_gate(kind.width, s),
    ]


def _tokens(setting: Setting) -> tuple[int, int]:
    return setting.tokens.batch, setting.tokens.seq_q


def _convolution(channels: int, taps: int, weights: Sequence[Weight], setting: Setting) -> list[Launch]:
    batch, seq = _tokens(setting)
    program = causal_conv(channels, taps, seq, batch, precision=setting.plain)
    biases = [w for w in weights if w.role == "vector" and w.name.startswith("conv")]
    return reading(launched(f"{AREA}.conv", "recurrence", program), *parameters(biases, setting))


def _scan(program: Program, weights: Sequence[Weight], setting: Setting) -> list[Launch]:
    """The recurrence itself, with its decays and the like."""
    products = {f"{w.name}.bias" for w in weights if w.role == "linear"}
    own = [
        w
        for w in weights
        if w.role == "vector"
        and w.name not in products
        and not w.name.startswith("conv")
        and "norm" not in w.name
    ]
    return reading(launched(f"{AREA}.scan", "recurrence", program), *parameters(own, setting))


def _normed(rows: int, cols: int, weights: Sequence[Weight], setting: Setting) -> list[Launch]:
    return launched(f"{AREA}.norm", "norm", rmsnorm(rows, cols, precision=setting.plain))


def _silu_gate(cols: int, setting: Setting) -> list[Launch]:
    program = silu_mul(setting.rows, cols, precision=setting.plain, impl=setting.steps)
    return launched(f"{AREA}.silu gate", "elementwise", program)
