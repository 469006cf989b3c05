"""What is asked of a pass: its phase and tokens, its formats, and the form that its device runs fastest."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from memwall.bound import bound
from memwall.dtypes import precision
from memwall.errors import NotAvailable, NotPublished, UsageError
from memwall.hardware import Device
from memwall.models.model import Model, Storage
from memwall.models.passes import Tokens, forms
from memwall.models.step.launch import Launch, Setting
from memwall.models.step.sides import source_tokens
from memwall.models.step.whole import kernels
from memwall.models.storage import storage_of
from memwall.program import Work, kernel_work
from memwall.reports.case import DEFAULT_DTYPE, Formats

PHASES = ("prefill", "decode")


def phase_of(model: Model, phase: str | None, seq: int | None, context: int | None) -> str:
    """The phase that is asked for, or that --seq or --context means.

    Raises:
        UsageError: no such phase, or nothing that says which.
        NotAvailable: the model has no such phase.
    """
    if phase is not None and phase not in PHASES:
        raise UsageError(f"a pass is prefill or decode, not '{phase}'", "Try --phase decode")
    if phase is None and seq is None and context is None:
        raise UsageError(
            "which pass: --seq for a prefill, --context for a step of decoding",
            f"For example: memwall step --model {model.name} --phase decode --context 4096",
        )
    named = phase or ("prefill" if seq is not None else "decode")
    if named == "decode" and not model.decodes:
        raise NotAvailable(
            f"{model.title} is an encoder: it reads all tokens at once and generates none",
            "Try memwall step --phase prefill --seq 512",
        )
    return named


def tokens_of(
    model: Model,
    phase: str,
    batch: int,
    seq: int | None,
    context: int | None,
    encoded: int | None = None,
) -> tuple[Tokens, int]:
    """The pass's tokens, and those that the encoder has read.

    Raises:
        UsageError: a length that the phase lacks or does not have.
    """
    if phase == "decode":
        if context is None:
            raise UsageError(
                "decode needs --context: tokens in the cache, the new one counted", "Try --context 4096"
            )
        if seq is not None:
            raise UsageError(
                "a step of decoding adds one token a sequence: --seq is a prompt's",
                f"What an encoder has read is --source-tokens {seq}" if model.encoder else "Leave out --seq",
            )
        return Tokens(batch, 1, context), source_tokens(model, encoded, context)
    if seq is None:
        raise UsageError("prefill needs --seq: tokens of the prompt", "Try --seq 8192")
    if encoded:
        raise UsageError(
            "--source-tokens is of decoding: in a prefill --seq is what an encoder reads",
            f"Try --seq {encoded}" if model.encoder else "Leave it out",
        )
    if context is not None and (context < seq or not model.decodes or model.encoder):
        raise UsageError(
            f"--context {context}: in a prefill it counts a cached prefix and the {seq} new tokens",
            f"Leave it out, or try --context {2 * seq}" if model.decodes else "Leave it out",
        )
    return Tokens(batch, seq, context or seq), seq if model.encoder else 0


def computed_in(model: Model, device: Device, weight_dtype: str | None) -> str:
    """The format that linear layers compute in unless another is asked for.

    A checkpoint whose activations are quantised with its weights computes in that format where the
    device has it; others, and weights in a format asked for, are widened to 16 bits.
    """
    own = model.storage.compute if model.storage and weight_dtype is None else None
    return own if own is not None and own in device.dtypes() else DEFAULT_DTYPE


def formats_of(
    model: Model, device: Device, dtype: str | None, weight_dtype: str | None, kv_dtype: str | None
) -> tuple[Formats, Storage]:
    """The formats asked for, and how the weights are stored; without any, as the checkpoint computes.

    Raises:
        UnknownName: no such format.
    """
    computed = dtype or computed_in(model, device, weight_dtype)
    formats = Formats.named(computed, weight_dtype, kv_dtype)
    return formats, storage_of(model, formats.weight or (formats.dtype if dtype else None))


def setting_of(device: Device, formats: Formats, storage: Storage, tokens: Tokens, phase: str) -> Setting:
    """The formats: linear layers as asked, all else in 16 bits.

    Raises:
        NotPublished: the device computes in no 16-bit format that is known.
    """
    if not {"bf16", "fp16"} & set(device.dtypes()):
        raise NotPublished(
            f"{device.title}: beside its linear layers a pass computes in 16 bits, and no peak is published",
            "The GPUs that have one: memwall gpu list",
        )
    sixteen = "fp16" if formats.dtype == "fp16" or _only_fp16(device, formats) else "bf16"
    linear = precision(formats.dtype, None, None, sixteen)._replace(weight=storage.linear)
    return Setting(
        tokens, linear, precision(sixteen, None, formats.kv, None), storage, prefill=phase == "prefill"
    )


def _only_fp16(device: Device, formats: Formats) -> bool:
    """Beside narrow linear layers the other work takes whichever 16-bit format there is."""
    return formats.dtype != "bf16" and "bf16" not in device.dtypes() and "fp16" in device.dtypes()


def fastest(model: Model, setting: Setting, device: Device) -> Setting:
    """Latent attention in the form that takes this device least time; others have one form."""
    kinds = [group.attention for group in model.layers if group.attention is not None]
    ways = dict.fromkeys(way for kind in kinds for way in forms(kind, setting.tokens))
    ready = [setting._replace(absorbed=absorbed) for absorbed in ways or (False,)]
    if len(ready) == 1:
        return ready[0]
    return min(ready, key=lambda way: bound(work_of(kernels(model, way)), device).time_s)


def work_of(launches: Iterable[Launch]) -> Work:
    """Bytes and operations of a pass."""
    return total(kernel_work(launch.kernel).times(launch.repeats) for launch in launches)


def total(works: Iterable[Work]) -> Work:
    """The sum of works."""
    return reduce(Work.__add__, works, Work(0, 0, {}, 0, 0))
