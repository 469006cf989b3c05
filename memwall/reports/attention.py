"""Attention of a shape or a whole model: standard beside flash, per head, layer and pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from memwall.bound import Bound, bound, kernel_bounds
from memwall.errors import UsageError
from memwall.estimate.constants import Fit
from memwall.estimate.estimate import Estimate, estimate, together
from memwall.estimate.library import UNKNOWN, Library, library_named
from memwall.estimate.own import own_fits
from memwall.hardware import Device
from memwall.models.attentions import LatentAttention
from memwall.models.model import Model
from memwall.models.passes import AttentionLayers, Tokens, attention_layers, attention_program, forms
from memwall.ops import registry
from memwall.ops.attention import settled_mask
from memwall.program import Program, Work
from memwall.reports.arguments import ModelLike, checked, model_of
from memwall.reports.case import DEFAULT_DTYPE, DEFAULT_GPU, Case, DeviceLike, Formats, device_of
from memwall.reports.notebook import Report

if TYPE_CHECKING:
    from memwall.reports.steps import Step

IMPLS = ("standard", "flash")


class Cost(NamedTuple):
    """One implementation's cost at three sizes."""

    whole: Bound
    """The pass: all layers, all sequences."""
    per_layer: Bound
    """One layer of the first kind, all sequences."""
    per_head: Bound
    """One query head of one sequence in that layer, with its share of K and V."""
    kernels_bound_time_s: float
    """The sum of the kernels' own bounds over the pass [s]."""
    estimate: Estimate | None
    """The time that good kernels take over the pass; None when only the bound is wanted."""

    @property
    def flops(self) -> int:
        """Matrix FLOPs of the pass."""
        return self.whole.work.flops  # type: ignore[no-any-return]

    @property
    def traffic_bytes(self) -> int:
        """Compulsory bytes of the pass."""
        return self.whole.work.traffic_bytes  # type: ignore[no-any-return]

    @property
    def bound_time_s(self) -> float:
        """The least time that the pass can take [s]."""
        return self.whole.time_s

    @property
    def regime(self) -> str:
        """memory-bound or compute-bound."""
        return self.whole.regime


class LayerKind(NamedTuple):
    """Layers whose attention is the same, and what one of them computes."""

    repeats: int
    heads: int
    kv_heads: int
    head_dim: int
    head_dim_v: int
    window: int | None
    absorbed: bool
    """Latent attention computed on the latent cache itself."""
    programs: Mapping[str, Program]
    """By implementation."""


@dataclass(frozen=True, slots=True, repr=False)
class AttentionReport(Report):
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
    def wholes(self) -> tuple[Bound, Bound]:
        """The pass's bounds, standard's and flash's."""
        return self.standard.whole, self.flash.whole

    @property
    def traffic_reduction(self) -> float:
        """How many times fewer bytes flash moves."""
        return self.standard.traffic_bytes / self.flash.traffic_bytes

    @property
    def cache_bytes(self) -> int:
        """K and V, or the latent, of every layer [B]."""
        return int(
            sum(
                kind.repeats * tensor.bytes
                for kind in self.kinds
                for tensor in kind.programs["flash"].inputs
                if tensor.role == "cache"
            )
        )

    @property
    def advice(self) -> tuple[Step, ...]:
        """What to do next, in order, each with its number."""
        from memwall.reports.attention_advice import next_steps

        return next_steps(self)

    @property
    def layers(self) -> int:
        """Layers in the pass."""
        return sum(kind.repeats for kind in self.kinds)


@checked
def attention(
    model: ModelLike | None = None,
    *,
    gpu: DeviceLike = DEFAULT_GPU,
    dtype: str = DEFAULT_DTYPE,
    kv_dtype: str | None = None,
    causal: bool | None = None,
    changes: Mapping[str, str | float] | None = None,
    defaults: tuple[str, ...] = (),
    library: str | None = None,
    calibration: str | None = None,
    bound_only: bool = False,
    **shape: int | None,
) -> AttentionReport:
    """Standard and flash attention side by side, for a model's pass or one layer of a shape.

    Args:
        model: a model, or its name or file; it brings heads and layers.
        gpu: a device, or its name or file.
        dtype: format of Q and O, and of the computation.
        kv_dtype: storage format of K and V.
        causal: mask the keys after each query; by default a model's prefill, and a square, has a mask.
        changes: what-ifs on the device.
        defaults: what the caller assumed on the user's behalf, for the report.
        library: whose flash kernel the estimate is for: fa2, fa3, cudnn, trtllm, vllm ...
        calibration: a file of constants for the estimate, as `memwall calibrate` makes.
        bound_only: leave out the estimate.
        shape: seq, or seq_q and seq_kv; batch; without a model also heads, head_dim and so on.

    Raises:
        UsageError: an unknown name, or a shape that cannot be.
        NotAvailable: the device has no peak for that format.
    """
    device = device_of(gpu, changes)
    formats = Formats.named(dtype, kv=kv_dtype)
    given = {name: value for name, value in shape.items() if value is not None}
    loaded = None if model is None else model_of(model)
    if loaded is None:
        tokens, kinds, masked = _of_shape(given, formats, causal)
    else:
        tokens = _tokens(loaded, given)
        masked = (not tokens.decoding) if causal is None else causal
        kinds = tuple(
            _of_layers(layers, tokens, formats, masked, device) for layers in attention_layers(loaded)
        )
    if causal is None and not tokens.decoding:
        defaults = (*defaults, "causal mask" if masked else "no mask")
    own = () if bound_only else own_fits(calibration, device)
    flash_library = library_named(library)
    estimates = [
        None if bound_only else _estimate(impl, kinds, device, masked, named, own)
        for impl, named in zip(IMPLS, (UNKNOWN, flash_library), strict=True)
    ]
    standard, flash = (
        _cost(impl, kinds, tokens, device, each) for impl, each in zip(IMPLS, estimates, strict=True)
    )
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
    masked = settled_mask(dims, causal)
    case = Case(operator, dims, formats, masked)
    programs = {impl: case._replace(impl=impl).program for impl in IMPLS}
    sizes = (dims["heads"], dims["kv_heads"], dims["head_dim"], dims["head_dim_v"], dims.get("window"))
    kind = LayerKind(1, *sizes, absorbed=False, programs=programs)
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


def _of_layers(
    layers: AttentionLayers, tokens: Tokens, formats: Formats, causal: bool, device: Device
) -> LayerKind:
    """A kind of layer, in the form that takes this device least time."""
    kind = layers.attention
    masked = causal or tokens.decoding
    settled_mask({"seq_q": tokens.seq_q, "seq_kv": tokens.seq_kv, "window": kind.window or 0}, masked)

    programs = {
        absorbed: {
            impl: attention_program(kind, tokens, formats.precision, masked, impl, absorbed) for impl in IMPLS
        }
        for absorbed in forms(kind, tokens)
    }
    absorbed = min(programs, key=lambda form: bound(programs[form]["flash"].work, device).time_s)
    if absorbed and isinstance(kind, LatentAttention):
        sizes = (kind.heads, 1, kind.cached_elements, kind.kv_lora_rank, kind.window)
    else:
        sizes = (kind.heads, kind.kv_heads, kind.head_dim, kind.head_dim_v, kind.window)
    return LayerKind(layers.repeats, *sizes, absorbed=absorbed, programs=programs[absorbed])


def _estimate(
    impl: str,
    kinds: tuple[LayerKind, ...],
    device: Device,
    masked: bool,
    library: Library,
    own: tuple[Fit, ...],
) -> Estimate:
    """The pass, layer after layer; unfused, causal scores are masked in a pass of their own."""
    return together(
        (estimate(kind.programs[impl], device, library, False, masked, own) for kind in kinds),
        [kind.repeats for kind in kinds],
    )


def _cost(
    impl: str, kinds: tuple[LayerKind, ...], tokens: Tokens, device: Device, estimated: Estimate | None
) -> Cost:
    whole = Work(0, 0, {}, 0, 0)
    kernels_bound_time_s = 0.0
    for kind in kinds:
        program = kind.programs[impl]
        whole = whole + program.work.times(kind.repeats)
        kernels_bound_time_s += kind.repeats * sum(each.time_s for _, each in kernel_bounds(program, device))
    layer = kinds[0].programs[impl].work
    head = layer.share(kinds[0].heads * tokens.batch)
    return Cost(
        bound(whole, device), bound(layer, device), bound(head, device), kernels_bound_time_s, estimated
    )
