"""What good kernels would take for a training step. No measured training step stands behind it.

    a product's backward     two products more: of the gradients with the weights, and with the input
    flash attention's        5 products for 2: 2.5 times its forward
    everything else          twice its forward: it reads what came in and the gradient, and writes another
    step                     (m + p - 1) / p x kernels of a micro-batch + what passes between tensor
                             parallel GPUs, experts and stages + the optimizer's bytes / (0.88 bandwidth);
                             the replicas' exchanges beside the kernels, or after them: both are given

Kernels are estimated as those of inference are, and the schedule of stages is not interleaved. Left out: the
loss, what frameworks do not fuse, jitter between GPUs, and that attention's backward reaches less of the peak
than its forward. Llama 3 405B on 8192 H100 is published at 43 % of the peak (arXiv:2407.21783, table 4): this
gives 39 to 40 %.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from memwall.bound import Term
from memwall.dtypes import precision
from memwall.estimate.estimate import Estimate, together
from memwall.hardware import Device
from memwall.memory.backward import Run
from memwall.models.step.launch import Launch
from memwall.ops.gemm import gemm
from memwall.parallel.exchanges import Exchange
from memwall.program import Kernel
from memwall.reports.expected import kernel_estimate

BACKWARD_ATTENTION = 2.5
"""Products of flash attention's backward over those of its forward: 5 / 2."""
BACKWARD = 2
OPTIMIZER_SHARE = 0.88
"""Of the bandwidth that kernels reach that stream: hardware/calibrations."""
OF_REPLICAS = ("gradients", "parameters")
"""Exchanges that other kernels can hide."""


class TrainEstimate(NamedTuple):
    """A step's expected time, by its parts."""

    kernels: Estimate
    """Of one micro-batch through all stages, forward and backward."""
    kernels_s: float
    """Of all micro-batches on a stage, its waiting counted [s]."""
    inside_s: float
    """What passes within a micro-batch [s]."""
    replicas_s: float
    """What passes between replicas [s]."""
    optimizer_s: float

    @property
    def time_s(self) -> float:
        """The replicas' exchanges hidden behind the kernels as far as these go [s]."""
        return max(self.kernels_s + self.inside_s, self.replicas_s) + self.optimizer_s

    @property
    def in_turn_s(self) -> float:
        """Nothing hidden [s]."""
        return self.kernels_s + self.inside_s + self.replicas_s + self.optimizer_s


def train_estimate(
    launches: Iterable[Launch],
    run: Run,
    device: Device,
    exchanges: Iterable[Exchange],
    optimizer: Term,
    busy: float,
) -> TrainEstimate | None:
    """The expected time of a step; None where a link of it is unknown.

    Args:
        launches: the kernels of one forward pass of a micro-batch.
        run: the run.
        device: the GPU.
        exchanges: all of the step.
        optimizer: the term of its bytes.
        busy: time of a stage, its waiting counted, over that of one micro-batch through all stages.
    """
    timed = [each for launch in launches for each in _passes(launch, run, device)]
    kernels = together([estimate for estimate, _ in timed], [count for _, count in timed])
    known = [(each, each.group.estimate_s(each.what)) for each in exchanges]
    if any(time_s is None for _, time_s in known):
        return None
    spent = [(each.name, each.repeats * (time_s or 0)) for each, time_s in known]
    return TrainEstimate(
        kernels,
        busy * float(kernels.time_s),
        sum(time_s for name, time_s in spent if name not in OF_REPLICAS),
        sum(time_s for name, time_s in spent if name in OF_REPLICAS),
        optimizer.time_s / OPTIMIZER_SHARE,
    )


def _passes(launch: Launch, run: Run, device: Device) -> list[tuple[Estimate, float]]:
    """Forward, backward, and the forward once more where it is computed again; each with its count."""
    again = 1 if run.checkpointing == "full" and launch.kind not in ("head", "embedding") else 0
    if launch.kernel.name == "gemm":
        forward, *backward = (kernel_estimate(kernel, device) for kernel in _products(launch, run))
        return [(forward, launch.repeats * (1 + again)), *((each, launch.repeats) for each in backward)]
    if launch.kind == "sampling":
        return []
    flash = launch.kind == "attention" and run.attention == "flash"
    times = 1 + again + (BACKWARD_ATTENTION if flash else BACKWARD)
    return [(kernel_estimate(launch.kernel, device), launch.repeats * times)]


def _products(launch: Launch, run: Run) -> list[Kernel]:
    """c[m,n] = a[m,k] b[n,k]^T, then a's gradient and b's; the head too has all tokens."""
    a, c = launch.kernel.reads[0], launch.kernel.writes[0]
    m, k, n = run.tokens if launch.kind == "head" else a.shape[0], a.shape[-1], c.shape[-1]
    half = launch.kernel.compute
    formats = precision(half, None, None, None)
    return [gemm(*shape, precision=formats).kernels[0] for shape in ((m, n, k), (m, k, n), (n, k, m))]
