"""A model's weights in every format: bytes, whether a GPU holds them, and how fast they can decode."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from memwall.bound import Bound, bound
from memwall.dtypes import find
from memwall.errors import NotAvailable
from memwall.hardware import Device
from memwall.memory.question import Question
from memwall.memory.streams import streamed_cache_bytes, streamed_items, streamed_weight_bytes
from memwall.models.model import Model, Storage
from memwall.models.parameters import count
from memwall.models.step.sides import source_default
from memwall.models.step.sides import source_tokens as read_by_encoder
from memwall.models.storage import PLAIN, storage_of, weight_bytes
from memwall.parallel.layout import check_tp
from memwall.program import Work
from memwall.reports.arguments import ModelLike, checked, model_of
from memwall.reports.capacity import DEFAULT_CONTEXT, CapacityReport, solve
from memwall.reports.case import DEFAULT_GPU, DeviceLike, device_of
from memwall.reports.notebook import Report

FORMATS = ("fp32", "bf16", "fp8", "int8", "int4-g128", "nvfp4", "mxfp4")
OWN = "own"
"""The row of a checkpoint that is quantised already, in its own format."""
SIXTEEN_BITS = ("bf16", "fp16")


class Row(NamedTuple):
    """One format of the linear layers. All bytes are of one GPU."""

    storage: Storage
    weight_bytes: int
    """Scales included."""
    scale_bytes: int
    streamed_bytes: float
    """Weights that a step reads."""
    cache_bytes: int
    """What it reads of all sequences' caches."""
    engine: str | None
    """What its products are computed in: its own format where the device can, else 16 bits."""
    step: Bound
    """A decode step's bound."""
    capacity: CapacityReport

    @property
    def native(self) -> bool:
        """Whether the device computes in the format itself."""
        return self.engine is not None and self.engine in (self.storage.linear.engine, self.storage.compute)


@dataclass(frozen=True, slots=True, repr=False)
class QuantReport(Report):
    """A model's formats on one device."""

    device: Device
    model: Model
    question: Question
    rows: Mapping[str, Row]
    defaults: tuple[str, ...]

    @property
    def parameters(self) -> int:
        """All of them, those of towers included."""
        return count(self.model).total

    def bits_per_parameter(self, row: Row) -> float:
        """Of all weights together, on one GPU or on all that share the model [bit]."""
        return 8 * weight_bytes(self.model, row.storage).total / self.parameters


@checked
def quant(
    model: ModelLike,
    *,
    gpu: DeviceLike = DEFAULT_GPU,
    context: int | None = None,
    batch: int = 1,
    tp: int = 1,
    kv_dtype: str | None = None,
    source_tokens: int | None = None,
    changes: Mapping[str, str | float] | None = None,
    defaults: tuple[str, ...] = (),
) -> QuantReport:
    """A model's linear layers in each format: bytes, scales, fit, and the bound of a decode step.

        time = max((weights streamed + caches) / bandwidth, 2 x active parameters x batch / peak)

    Args:
        model: a model, or its name or file.
        gpu: a device, or its name or file.
        context: tokens of each sequence that a step sees.
        batch: sequences.
        tp: GPUs that share the model; what they send each other is not counted.
        kv_dtype: the cache's format.
        source_tokens: what an encoder has read for each sequence; by default all that its table has
            positions for, else as many as `context`.
        changes: what-ifs on the device.
        defaults: what the caller assumed on the user's behalf, for the report.

    Raises:
        UsageError: an unknown name, or a tp that the model or the node does not have.
        NotAvailable: the device's memory is not published, or the model does not generate.
    """
    device = device_of(gpu, changes)
    loaded = model_of(model)
    if not loaded.decodes:
        raise NotAvailable(f"{loaded.name} does not generate, token by token", "See memwall capacity")
    check_tp(tp, loaded, device)
    if context is None:
        defaults = (*defaults, f"context {DEFAULT_CONTEXT}")
    length, kv = context or DEFAULT_CONTEXT, find(kv_dtype or PLAIN.name).name
    encoded = read_by_encoder(loaded, source_tokens, length)
    defaults = (*defaults, *source_default(source_tokens, encoded))
    question = Question(loaded, length, batch, tp, kv_dtype=kv, source_tokens=encoded)
    names = {name: storage_of(loaded, name) for name in FORMATS}
    own = {OWN: loaded.storage} if loaded.storage else {}
    rows = {name: _row(question, name, storage, device) for name, storage in {**own, **names}.items()}
    return QuantReport(device, loaded, question, rows, defaults)


def _row(question: Question, name: str, storage: Storage, device: Device) -> Row:
    model, tp = question.model, question.tensor_parallel
    counted = weight_bytes(model, storage, tp).total
    # A checkpoint's own bytes are those of its files, where they are there.
    stored = weight_bytes(model, None, tp).total if name == OWN else counted
    bare = storage._replace(linear=storage.linear._replace(scale_bits=0))
    streamed = streamed_weight_bytes(model, storage, question.batch, tp)
    kv = find(question.kv_dtype)
    each = streamed_cache_bytes(model, question.context, kv, tp, question.source_tokens)
    engine = _engine(storage.compute if name == OWN else storage.linear.engine, device)
    flops = 2 * sum(item.active_parameters for item in streamed_items(model)) * question.batch / tp
    work = Work(streamed + question.batch * each, 0, {engine: flops} if engine else {}, 0, 0)
    return Row(
        storage,
        stored,
        counted - weight_bytes(model, bare, tp).total,
        streamed,
        question.batch * each,
        engine,
        bound(work, device),
        solve(question._replace(weight_dtype=None if name == OWN else name), device),
    )


def _engine(own: str | None, device: Device) -> str | None:
    """The format itself where the device computes in it, else 16 bits, else none that is known."""
    for engine in (own, *SIXTEEN_BITS):
        if engine is not None:
            with suppress(NotAvailable):
                device.peak(engine)
                return engine
    return None
