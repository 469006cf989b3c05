"""What a training run needs of each GPU, and what other stages of ZeRO and checkpointing would need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memwall import nodes
from memwall.constant import Constant
from memwall.errors import UsageError, shown
from memwall.hardware import Device
from memwall.memory.backward import ATTENTIONS, CHECKPOINTING, Run
from memwall.memory.budget import total_memory
from memwall.memory.training import OPTIMIZERS, Needs, Setup, needs
from memwall.models.model import Model
from memwall.models.parameters import count
from memwall.parallel.layout import Layout, faults
from memwall.reports.arguments import ModelLike, checked, model_of
from memwall.reports.case import DeviceLike, device_of
from memwall.reports.notebook import Report

DEFAULT_SEQ = 4096
ZERO_STAGES = (0, 1, 2, 3)
GRADIENTS = {"bf16": 2, "fp32": 4}


@dataclass(frozen=True, slots=True, repr=False)
class TrainingReport(Report):
    """A training run's memory; all bytes are of the fullest GPU."""

    setup: Setup
    needs: Needs
    given: Device | None
    """None: nobody asked whether it fits."""
    usable_bytes: int | None
    total: Constant | None
    defaults: tuple[str, ...]

    @property
    def device(self) -> Device:
        """The GPU that was named.

        Raises:
            UsageError: none was.
        """
        if self.given is None:
            raise UsageError("no GPU was named", "Add gpu='h100'")
        return self.given

    @property
    def model(self) -> Model:
        """The model."""
        return self.setup.model

    @property
    def parameters(self) -> int:
        """Of the whole model."""
        return count(self.model).total

    @property
    def total_bytes(self) -> int:
        """All of it."""
        return self.needs.total

    @property
    def fits(self) -> bool | None:
        """Whether the GPU holds it; None without a GPU."""
        return None if self.usable_bytes is None else self.total_bytes <= self.usable_bytes

    @property
    def shortfall_bytes(self) -> int | None:
        """What is missing; 0 if it fits; None without a GPU."""
        return None if self.usable_bytes is None else max(self.total_bytes - self.usable_bytes, 0)

    @property
    def choices(self) -> dict[int, dict[str, int]]:
        """Total bytes of the same run by ZeRO stage and checkpointing."""
        return {zero: {kind: self._at(zero, kind) for kind in CHECKPOINTING} for zero in ZERO_STAGES}

    def _at(self, zero: int, checkpointing: str) -> int:
        run = self.setup.run._replace(checkpointing=checkpointing)
        return needs(self.setup._replace(zero=zero, run=run)).total


@checked
def training_memory(
    model: ModelLike,
    *,
    gpus: int = 1,
    zero: int = 0,
    optimizer: str = "adam",
    seq: int | None = None,
    micro_batch: int = 1,
    checkpointing: str = "none",
    attention: str = "flash",
    tp: int = 1,
    pp: int = 1,
    ep: int = 1,
    sequence_parallel: bool = False,
    dropout: bool = False,
    grad_dtype: str = "bf16",
    gpu: DeviceLike | None = None,
    memory_fraction: float = 1.0,
    changes: Mapping[str, str | float] | None = None,
    defaults: tuple[str, ...] = (),
) -> TrainingReport:
    """What training a model in mixed precision needs of each GPU.

    Args:
        model: a model, or its name or file.
        gpus: all of them: tp x pp x data parallel.
        zero: stage, 0 to 3.
        optimizer: adam, adam-8bit, adafactor, sgd or sgd-momentum.
        seq: tokens of a sequence.
        micro_batch: sequences that one GPU's forward pass takes at once.
        checkpointing: none, selective (attention's probabilities are computed again) or full (whole layers).
        attention: flash or standard.
        tp: GPUs that share each layer.
        pp: pipeline stages; the first keeps pp micro-batches in flight.
        ep: GPUs of tp x dp that share the experts, each holding whole ones.
        sequence_parallel: split along the sequence what tensor parallelism leaves whole.
        dropout: whether masks are kept, as of GPT-2 and GPT-3.
        grad_dtype: bf16, or fp32 where gradients are summed so.
        gpu: whether it fits this one.
        memory_fraction: of its memory that may be used.
        changes: what-ifs on it.
        defaults: what the caller assumed on the user's behalf, for the report.

    Raises:
        UsageError: an unknown name, or parallelism that does not divide the GPUs.
        NotPublished: the GPU's memory is not known.
    """
    for what, name, known in (
        ("optimizer", optimizer, OPTIMIZERS),
        ("checkpointing", checkpointing, CHECKPOINTING),
        ("attention", attention, ATTENTIONS),
        ("grad-dtype", grad_dtype, GRADIENTS),
        ("zero", zero, ZERO_STAGES),
    ):
        if name not in known:
            raise UsageError(f"no {what} '{shown(name)}'", f"One of: {', '.join(map(str, known))}")
    loaded = model_of(model)
    if seq is None:
        defaults = (*defaults, f"sequences of {DEFAULT_SEQ} tokens")
    run = Run(seq or DEFAULT_SEQ, micro_batch, tp, sequence_parallel, attention, checkpointing, dropout)
    device = None if gpu is None else device_of(gpu, changes)
    node = None if device is None else nodes.node_of(device)
    fault = next(faults(Layout(tp=tp, pp=pp), loaded, node), None)
    if fault:
        raise fault
    setup = Setup(loaded, run, gpus, pp, zero, optimizer, GRADIENTS[grad_dtype], ep).checked()
    total = None if device is None else total_memory(device)
    usable = None if total is None else int(total.value * memory_fraction)
    return TrainingReport(setup, needs(setup), device, usable, total, defaults)
