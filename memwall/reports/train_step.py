"""One optimizer step of a training run, at the bound.

    FLOPs        forward, and twice that backward: each product has two gradients. Flash attention's backward
                 computes its scores again: 5 products for 2. Layers computed again: the forward once more.
    model FLOPs  the same without what is computed again
    optimizer    reads gradients, writes parameters, reads and writes the fp32 copy and the averages
    bound        the largest of matrix time, optimizer's bytes and links, and the wait of a pipeline's stages

The bytes of activations in the backward pass are not counted, nor its vector work: so the bound holds, and a
real step takes longer. The estimate is that of memwall.reports.train_estimate.

Source: Narayanan et al. 2021, arXiv:2104.04473 (FLOPs, bubble); Dao 2023, arXiv:2307.08691 (backward).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memwall import nodes
from memwall.bound import Term
from memwall.errors import NotAvailable, UsageError
from memwall.hardware import Device
from memwall.memory.training import Needs, Setup
from memwall.models.model import Model
from memwall.models.passes import Tokens
from memwall.models.step.launch import Launch, Setting
from memwall.models.step.whole import kernels
from memwall.models.storage import storage_of
from memwall.parallel.exchanges import Exchange
from memwall.parallel.layout import Layout, check
from memwall.parallel.shard import shard
from memwall.parallel.training import training_exchanges
from memwall.reports.arguments import ModelLike, checked
from memwall.reports.case import DeviceLike, Formats
from memwall.reports.notebook import Report
from memwall.reports.step_layout import busiest_link
from memwall.reports.step_setting import setting_of
from memwall.reports.train_estimate import BACKWARD_ATTENTION, TrainEstimate, train_estimate
from memwall.reports.training import training_memory


@dataclass(frozen=True, slots=True, repr=False)
class TrainStepReport(Report):
    """One step; work and bytes are one GPU's, of the stage with most layers."""

    setup: Setup
    needs: Needs
    device: Device
    layout: Layout
    microbatches: int
    flops: int
    """Executed, what is computed again among them."""
    model_flops: int
    """Without that."""
    terms: tuple[Term, ...]
    """Largest time first."""
    exchanges: tuple[Exchange, ...]
    fits: bool | None
    usable_bytes: int | None
    defaults: tuple[str, ...]
    estimate: TrainEstimate | None = None
    """Of good kernels, one after the other; None where a link is unknown."""

    @property
    def model(self) -> Model:
        """The model."""
        return self.setup.model

    @property
    def bubble(self) -> float:
        """Part of a stage's time that it waits: (p - 1) / (m + p - 1)."""
        stages = self.setup.pipeline
        return (stages - 1) / (self.microbatches + stages - 1)

    @property
    def bound_time_s(self) -> float:
        """The least time of the step [s]: products wait for the pipeline to fill and drain."""
        return self._waiting[0][0]

    @property
    def limited_by(self) -> str:
        """matrix, hbm or link."""
        return self._waiting[0][1]

    @property
    def _waiting(self) -> list[tuple[float, str]]:
        """Times and names of the terms, the bubble in those of the products, largest first."""
        busy = {"matrix": 1 - self.bubble, "vector": 1 - self.bubble}
        return sorted(
            ((term.time_s / busy.get(term.limit, 1), term.limit) for term in self.terms), reverse=True
        )

    @property
    def tokens(self) -> int:
        """Of all replicas in a step."""
        return self.setup.run.tokens * self.microbatches * self.setup.data_parallel

    @property
    def tokens_per_s(self) -> float:
        """Of all GPUs, at the bound."""
        return self.tokens / self.bound_time_s

    @property
    def mfu(self) -> float:
        """Model FLOPs / peak, over the bound time."""
        return self.mfu_in(self.bound_time_s)

    def mfu_in(self, time_s: float) -> float:
        """Model FLOPs / peak, over such a time."""
        return self.model_flops / self.device.peak(half_of(self.device)).rate.value / time_s

    @property
    def communication_bound_time_s(self) -> float:
        """The sum of the exchanges' bounds [s]."""
        return sum(each.repeats * each.bound_time_s for each in self.exchanges)


@checked
def train_step(
    model: ModelLike,
    *,
    gpu: DeviceLike,
    microbatches: int | None = None,
    dp: int | None = None,
    gpus: int | None = None,
    changes: Mapping[str, str | float] | None = None,
    **options: object,
) -> TrainStepReport:
    """What one step of training must cost.

    Args:
        model: a model, or its name or file.
        gpu: a device, or its name or file.
        microbatches: micro-batches of each replica in a step; by default one a pipeline stage.
        dp: replicas; or `gpus`, all of them.
        gpus: all GPUs; by default tp x pp x dp.
        changes: what-ifs on the device.
        options: as memwall.training_memory takes them.

    Raises:
        UsageError: a layout that the model or the node does not have.
        NotAvailable: no such engine, or no link is published.
    """
    shared = _whole(options.get("tp")) * _whole(options.get("pp"))
    memory = training_memory(model, gpu=gpu, gpus=gpus or shared * (dp or 1), changes=changes, **options)  # type: ignore[arg-type]
    setup, device, run = memory.setup, memory.device, memory.setup.run
    layout = Layout(
        run.tensor_parallel, setup.pipeline, setup.expert_parallel, setup.data_parallel, run.sequence_parallel
    )
    check(layout, setup.model, device)
    if setup.model.encoder:
        raise UsageError(
            f"{setup.model.title} has an encoder: steps are for decoders", "memwall train-memory"
        )
    count = microbatches or setup.pipeline
    setting = _setting(setup, layout, device)
    launches = _forward(setup, layout, setting)
    home = nodes.node_of(device)
    passed = training_exchanges(setup, layout, setting, device, home, count)
    executed = count * sum(_flops(each, setup) for each in launches) / setup.pipeline
    useful = count * sum(3 * each.repeats * each.kernel.matrix_flops for each in launches) / setup.pipeline
    terms = _terms(device, executed, memory.needs, passed)
    given = (setup, memory.needs, device, layout, count, round(executed), round(useful), terms, passed)
    busy = (count + setup.pipeline - 1) / setup.pipeline
    optimizer = next(term for term in terms if term.limit == "hbm")
    expected = train_estimate(
        kernels(shard(setup.model, layout), setting), run, device, passed, optimizer, busy
    )
    return TrainStepReport(*given, memory.fits, memory.usable_bytes, memory.defaults, expected)


def half_of(device: Device) -> str:
    """What it trains in: bf16, or fp16 where it has no unit for that."""
    return "fp16" if "bf16" not in device.dtypes() and "fp16" in device.dtypes() else "bf16"


def _whole(degree: object) -> int:
    return degree if isinstance(degree, int) else 1


def _setting(setup: Setup, layout: Layout, device: Device) -> Setting:
    """One GPU's forward pass over a micro-batch, in 16 bits."""
    half, tokens = half_of(device), Tokens(setup.run.batch, setup.run.seq, setup.run.seq)
    plain = setting_of(device, Formats.named(half), storage_of(setup.model, half), tokens, "prefill")
    return plain._replace(
        spread=layout.tp if layout.sequence_parallel else 1,
        expert_gpus=layout.ep,
        expert_rows=tokens.batch * tokens.seq_q * layout.expert_dp if layout.expert_dp > 1 else 0,
        impl="standard" if setup.run.attention == "standard" else "flash",
    )


def _forward(setup: Setup, layout: Layout, setting: Setting) -> list[Launch]:
    """The kernels of a forward pass; every token has a loss, so the head multiplies all of them."""
    launches = kernels(shard(setup.model, layout), setting)
    return [_every_token(launch, setting.rows) if launch.kind == "head" else launch for launch in launches]


def _every_token(head: Launch, rows: int) -> Launch:
    """The head of a prefill has one row of each sequence, that of an encoder has them all already."""
    kernel = head.kernel
    times = rows // kernel.reads[0].shape[0]
    return head._replace(kernel=kernel._replace(matrix_flops=times * kernel.matrix_flops))


def _flops(launch: Launch, setup: Setup) -> float:
    """Executed, forward and backward, of all repeats."""
    flash = launch.kind == "attention" and setup.run.attention == "flash"
    backward = BACKWARD_ATTENTION if flash else 2
    once_more = setup.run.checkpointing == "full" and launch.kind not in ("head", "embedding")
    return float((1 + backward + once_more) * launch.repeats * launch.kernel.matrix_flops)


def _terms(device: Device, executed: float, needs: Needs, passed: tuple[Exchange, ...]) -> tuple[Term, ...]:
    peak, bandwidth = device.peak(half_of(device)), device.bandwidth
    terms = [
        Term(peak.engine, executed, peak.rate.value, (peak.rate,)),
        Term("hbm", 2 * needs.optimizer + needs.parameters + needs.gradients, bandwidth.value, (bandwidth,)),
    ]
    link = busiest_link(each.term for each in passed)
    terms += [link] if link else []
    if not executed:
        raise NotAvailable("this model has no matrix products to train", "Try another model")
    return tuple(sorted(terms, key=lambda term: term.time_s, reverse=True))
