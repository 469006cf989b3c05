"""Attention of a shape or a whole model: standard beside flash, per head, layer and pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from memwall import hardware
from memwall.bound import Bound, bound, kernel_bounds
from memwall.errors import UsageError
from memwall.hardware import Device
from memwall.models.model import Attention, LatentAttention, Model
from memwall.models.model import load as load_model
from memwall.models.passes import Tokens, attention_layers, attention_program
from memwall.ops import registry
from memwall.program import Program, Work
from memwall.reports.case import DEFAULT_DTYPE, DEFAULT_GPU, Case, Formats, attention_is_causal

if TYPE_CHECKING:
    from memwall.reports.steps import Step

IMPLS = ("standard", "flash")


class Cost(NamedTuple):
    """One implementation's cost at three sizes."""

    whole: Bound
    """The pass: all layers, all sequences."""
    layer: Bound
    """One layer of the first kind, all sequences."""
    head: Bound
    """One query head of one sequence in that layer, with its share of K and V."""
    kernels_time_s: float
    """The sum of the kernels' own bounds over the pass [s]."""


class LayerKind(NamedTuple):
    """Layers whose attention is the same, and what one of them costs."""

    repeats: int
    heads: int
    kv_heads: int
    head_dim: int
    head_dim_v: int
    window: int | None
    latent: bool
    """Decoded on the latent cache."""
    programs: Mapping[str, Program]
    """By implementation."""


class AttentionReport(NamedTuple):
    """What attention must cost on one device, unfused and fused."""

    device: Device
    model: Model | None
    given: Mapping[str, int]
    """The shape as it was asked for."""
    tokens: Tokens
    kinds: tuple[LayerKind, ...]
    formats: Formats
    causal: bool
    standard: Cost
    flash: Cost
    defaults: tuple[str, ...]

    @property
    def traffic_reduction(self) -> float:
        """How many times fewer bytes flash moves."""
        return self.standard.whole.work.traffic_bytes / self.flash.whole.work.traffic_bytes  # type: ignore[no-any-return]

    @property
    def advice(self) -> tuple[Step, ...]:
        """What to do next, in order, each with its number."""
        from memwall.reports.attention_advice import next_steps

        return next_steps(self)

    @property
    def layers(self) -> int:
        """Layers in the pass."""
        return sum(kind.repeats for kind in self.kinds)


def attention(
    model: str | Model | None = None,
    *,
    gpu: str | Device = DEFAULT_GPU,
    dtype: str = DEFAULT_DTYPE,
    kv_dtype: str | None = None,
    causal: bool | None = None,
    changes: Mapping[str, str] | None = None,
    defaults: tuple[str, ...] = (),
    **shape: int | None,
) -> AttentionReport:
    """Standard and flash attention side by side, for a model's pass or one layer of a shape.

    Args:
        model: a model, or its name or file; it brings heads and layers.
        gpu: a device, or its name or file.
        dtype: format of Q and O, and of the computation.
        kv_dtype: storage format of K and V.
        causal: mask the keys after each query; the default for prefill.
        changes: what-ifs on the device.
        defaults: what the caller assumed on the user's behalf, for the report.
        shape: seq, or seq_q and seq_kv; batch; without a model also heads, head_dim and so on.

    Raises:
        UsageError: an unknown name, or a shape that cannot be.
        NotAvailable: the device has no peak for that format.
    """
    device = gpu if isinstance(gpu, Device) else hardware.load(gpu, changes)
    formats = Formats.named(dtype, kv=kv_dtype)
    given = {name: value for name, value in shape.items() if value is not None}
    if model is None:
        tokens, kinds, masked = _of_shape(given, formats, causal)
        loaded = None
    else:
        loaded = load_model(model) if isinstance(model, str) else model
        tokens = _tokens(loaded, given)
        masked = (not tokens.decoding) if causal is None else causal
        kinds = _of_model(loaded, tokens, formats, masked)
    standard, flash = (_cost(impl, kinds, tokens, device) for impl in IMPLS)
    return AttentionReport(device, loaded, given, tokens, kinds, formats, masked, standard, flash, defaults)


def _of_shape(
    given: Mapping[str, int], formats: Formats, causal: bool | None
) -> tuple[Tokens, tuple[LayerKind, ...], bool]:
    operator = registry.find("attention")
    if not given.keys() - {"batch"}:
        raise UsageError(
            "attention of what: a model, or a shape",
            "Try --model llama3-70b --seq 8192, or --heads 64 --kv-heads 8 --head-dim 128 --seq 8192",
        )
    dims, _ = registry.resolve(operator, given)
    masked = attention_is_causal(dims, causal)
    _check_window(dims.get("window"), masked)
    case = Case(operator, dims, formats, masked)
    programs = {impl: case._replace(impl=impl).program for impl in IMPLS}
    kind = LayerKind(
        1,
        dims["heads"],
        dims["kv_heads"],
        dims["head_dim"],
        dims["head_dim_v"],
        dims.get("window"),
        False,
        programs,
    )
    return Tokens(dims["batch"], dims["seq_q"], dims["seq_kv"]), (kind,), masked


def _tokens(model: Model, given: Mapping[str, int]) -> Tokens:
    """The pass's tokens; a model brings every other dimension itself."""
    allowed = {"batch", "seq", "seq_q", "seq_kv"}
    extra = next((name for name in given if name not in allowed), None)
    if extra:
        raise UsageError(
            f"--{registry.flag(extra)} comes from the model {model.name}",
            "Leave it out, or leave out --model",
        )
    if not given.keys() - {"batch"}:
        raise UsageError(
            "attention needs --seq", f"For example: memwall attention --model {model.name} --seq 8192"
        )
    probe = {"heads": 1, "head_dim": 1, **given}  # the lengths follow the operator's own rules
    dims, _ = registry.resolve(registry.find("attention"), probe)
    return Tokens(dims["batch"], dims["seq_q"], dims["seq_kv"])


def _of_model(model: Model, tokens: Tokens, formats: Formats, causal: bool) -> tuple[LayerKind, ...]:
    kinds = []
    masked = causal or tokens.decoding  # one token sees all before it, masked or not
    for repeats, kind in attention_layers(model):
        _check_window(kind.window, masked)
        programs = {impl: attention_program(kind, tokens, formats.precision, masked, impl) for impl in IMPLS}
        kinds.append(_kind(repeats, kind, tokens, programs))
    return tuple(kinds)


def _kind(repeats: int, kind: Attention, tokens: Tokens, programs: Mapping[str, Program]) -> LayerKind:
    if isinstance(kind, LatentAttention) and tokens.decoding:
        return LayerKind(
            repeats, kind.heads, 1, kind.cached_elements, kind.kv_lora_rank, kind.window, True, programs
        )
    return LayerKind(
        repeats, kind.heads, kind.kv_heads, kind.head_dim, kind.head_dim_v, kind.window, False, programs
    )


def _check_window(window: int | None, masked: bool) -> None:
    if window is not None and not masked:
        raise UsageError(
            f"attention: a window of {window} counts back from each query, so it needs a causal mask",
            "Leave out --non-causal",
        )


def _cost(impl: str, kinds: tuple[LayerKind, ...], tokens: Tokens, device: Device) -> Cost:
    whole = Work(0, 0, {}, 0, 0)
    kernels_time_s = 0.0
    for kind in kinds:
        program = kind.programs[impl]
        whole = whole + program.work.times(kind.repeats)
        kernels_time_s += kind.repeats * sum(each.time_s for _, each in kernel_bounds(program, device))
    layer = kinds[0].programs[impl].work
    head = layer.share(kinds[0].heads * tokens.batch)
    return Cost(bound(whole, device), bound(layer, device), bound(head, device), kernels_time_s)
