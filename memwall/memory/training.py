"""The memory of a training run on each of its GPUs: states of the parameters, and activations.

    states       parameters 2 B, gradients 2 B, an fp32 copy 4 B and the optimizer's own: 16 B each with Adam.
                 Over the data-parallel GPUs ZeRO 1 divides what the optimizer keeps, 2 the gradients too, and
                 3 the parameters too.
    activations  what a micro-batch keeps for its backward pass, of every micro-batch in flight

Sources: Rajbhandari et al. 2020, arXiv:1910.02054, section 3.1 and figure 1 (K = 12 for Adam); of the
activations memwall/memory/backward.py; one forward, one backward: Narayanan et al. 2021, arXiv:2104.04473.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from memwall.errors import UsageError
from memwall.maths import ceil_div
from memwall.memory.backward import Run, layer_bytes, layer_tensors, outer_tensors
from memwall.models.inventory import layer_weights, norms, outer_weights, tower_items
from memwall.models.mlps import Experts
from memwall.models.model import Layers, Model
from memwall.models.weights import Weight, largest_share

PARAMETER_BYTES = 2
MASTER_BYTES = 4
"""An fp32 copy that the optimizer updates."""


class Optimizer(NamedTuple):
    """What an optimizer keeps of each parameter besides the fp32 copy."""

    title: str
    moments: int = 0
    """Averages as large as the parameters."""
    moment_bytes: float = 4.0
    factored: bool = False
    """Of a matrix one average a row and one a column instead."""
    source: str = ""


OPTIMIZERS = {
    "adam": Optimizer("Adam", 2, source="Kingma and Ba 2014, arXiv:1412.6980; two fp32 averages"),
    "adam-8bit": Optimizer(
        "8-bit Adam", 2, 1 + 4 / 2048, source="Dettmers et al. 2021, arXiv:2110.02861; an fp32 scale per 2048"
    ),
    "adafactor": Optimizer(
        "Adafactor", factored=True, source="Shazeer and Stern 2018, arXiv:1804.04235; without momentum"
    ),
    "sgd": Optimizer("SGD", source="no average"),
    "sgd-momentum": Optimizer("SGD with momentum", 1, source="one fp32 average"),
}


class Setup(NamedTuple):
    """A training run."""

    model: Model
    run: Run
    gpus: int = 1
    pipeline: int = 1
    zero: int = 0
    optimizer: str = "adam"
    gradient_bytes: int = 2
    expert_parallel: int = 1
    """GPUs, of those that are tensor and data parallel, that share the experts: each has whole ones."""

    @property
    def data_parallel(self) -> int:
        """GPUs that hold the same share of the model, or with ZeRO a part of it."""
        return self.gpus // (self.run.tensor_parallel * self.pipeline)

    def checked(self) -> Setup:
        """Itself.

        Raises:
            UsageError: GPUs that the parallelism does not divide, or a split of what is not there.
        """
        shared = self.run.tensor_parallel
        group = shared * self.pipeline
        if self.gpus % group:
            raise UsageError(
                f"{self.gpus} GPUs are not whole groups of tp {shared} x pp {self.pipeline}",
                f"Try --gpus {ceil_div(self.gpus, group) * group}",
            )
        beside = shared * self.data_parallel
        if self.expert_parallel > 1 and not _has_experts(self.model):
            raise UsageError(f"{self.model.name} has no experts that --ep would share out", "Leave out --ep")
        if self.run.sequence_parallel and shared == 1:
            raise UsageError(
                "--sequence-parallel splits what tensor parallelism leaves whole, and there is none",
                "Try --tp 8 with it",
            )
        if beside % self.expert_parallel:
            raise UsageError(
                f"ep {self.expert_parallel} does not divide the {beside} GPUs of tp x dp",
                f"Try --ep {_divisor(beside, self.expert_parallel)}",
            )
        return self

    def owners(self, weight: Weight) -> int:
        """GPUs with the same share of a weight, over which ZeRO divides its states."""
        if self._spread(weight):
            return self.run.tensor_parallel * self.data_parallel // self.expert_parallel
        return self.data_parallel

    def share(self, weight: Weight) -> int:
        """Elements of a weight on the fullest GPU."""
        if self._spread(weight):
            return largest_share(weight.elements, weight.copies, self.expert_parallel)
        return largest_share(weight.elements, weight.shards, self.run.tensor_parallel)

    def _spread(self, weight: Weight) -> bool:
        return weight.used is not None and self.expert_parallel > 1


def _divisor(number: int, most: int) -> int:
    """The largest divisor of a number that is not above `most`."""
    return max(each for each in range(1, min(number, most) + 1) if number % each == 0)


def _has_experts(model: Model) -> bool:
    return any(isinstance(mlp, Experts) for group in model.layers for mlp in group.mlps)


class Needs(NamedTuple):
    """The memory of the fullest GPU [B]."""

    parameters: int
    gradients: int
    optimizer: int
    """The fp32 copy among it."""
    activations: int
    working: int
    """What is there for a moment: a layer computed again, and layers that ZeRO gathers."""

    @property
    def states(self) -> int:
        """Parameters, gradients and the optimizer's."""
        return self.parameters + self.gradients + self.optimizer

    @property
    def total(self) -> int:
        """All of it."""
        return sum(self)


def needs(setup: Setup) -> Needs:
    """What the fullest stage's GPUs need."""
    return max((_stage(setup, index) for index in range(setup.pipeline)), key=lambda stage: stage.total)


def _stage(setup: Setup, index: int) -> Needs:
    """One pipeline stage: its layers, the embedding in the first, the head in the last."""
    model, run, first, last = setup.model, setup.run, index == 0, index == setup.pipeline - 1
    layers = _layers_of(setup, index)
    weights = stage_weights(setup, index)
    states = [_states(setup, weight) for weight in weights]
    parameters, gradients, optimizer = (ceil(sum(kind)) for kind in zip(*states, strict=True))
    each = sum(layer_bytes(group, model, run) for group in layers)
    each += outer_tensors(model, run, first, last).bytes(run)
    in_flight = setup.pipeline - index
    working = _recomputed(setup, layers) + _gathered(setup, layers)
    return Needs(parameters, gradients, optimizer, in_flight * each, working)


def stage_weights(setup: Setup, index: int = 0) -> list[Weight]:
    """The weights of a pipeline stage: its layers', the embedding in the first, the head in the last."""
    model, first, last = setup.model, index == 0, index == setup.pipeline - 1
    weights = [weight for group in _layers_of(setup, index) for weight in _weights(group, model)]
    weights += [weight for weight in _outside(model) if _is_here(weight, model, first, last)]
    return weights + (_of_towers(model) if first else [])


def _states(setup: Setup, weight: Weight) -> tuple[float, float, float]:
    """Parameters, gradients and the optimizer's of one weight."""
    local, owners, optimizer = setup.share(weight), setup.owners(weight), OPTIMIZERS[setup.optimizer]
    moments = optimizer.moments * optimizer.moment_bytes * local
    if optimizer.factored:  # of rows and columns, whole on every tensor-parallel GPU; of a vector, all
        moments = MASTER_BYTES * weight.copies * sum(weight.shape)
    return (
        PARAMETER_BYTES * local / (owners if setup.zero >= 3 else 1),
        setup.gradient_bytes * local / (owners if setup.zero >= 2 else 1),
        (MASTER_BYTES * local + moments) / (owners if setup.zero >= 1 else 1),
    )


def _layers_of(setup: Setup, index: int) -> list[Layers]:
    """The stage's layers, one by one; the first stages have one more where they do not divide."""
    one_by_one = [g for g in (*setup.model.encoder, *setup.model.layers) for _ in range(g.repeats)]
    each, more = divmod(len(one_by_one), setup.pipeline)
    start = index * each + min(index, more)
    return one_by_one[start : start + each + (index < more)]


def _weights(group: Layers, model: Model) -> list[Weight]:
    return layer_weights(group, model.hidden_size, model.norm_bias)


def _outside(model: Model) -> list[Weight]:
    encoder = norms(1, model.hidden_size, model.norm_bias) if model.encoder and model.final_norm else []
    return [*outer_weights(model), *encoder]


def _of_towers(model: Model) -> list[Weight]:
    items = [item for tower in model.towers for item in tower_items(tower)]
    return [item.weight for item in items for _ in range(item.repeats)]


def _is_here(weight: Weight, model: Model, first: bool, last: bool) -> bool:
    """Tables are in the first stage, the rest in the last, which has a copy of a tied table."""
    if weight.role in ("embedding", "table"):
        return first or (last and model.tied_embeddings and weight.role == "embedding")
    return last


def _recomputed(setup: Setup, layers: list[Layers]) -> int:
    """One layer's activations while it is computed again."""
    run = setup.run
    if run.checkpointing == "none":
        return 0
    every = max(layer_tensors(group, setup.model, run).bytes(run) for group in layers)
    kept = min(layer_bytes(group, setup.model, run) for group in layers)
    return every - kept


def _gathered(setup: Setup, layers: list[Layers]) -> int:
    """With ZeRO 3 the parameters of the layer computed and of the next; with 2 and 3 a layer's gradients."""
    if setup.data_parallel == 1 or setup.zero < 2:
        return 0
    largest = max(sum(setup.share(w) for w in _weights(group, setup.model)) for group in layers)
    gathered = 2 * PARAMETER_BYTES if setup.zero == 3 else 0
    return largest * (gathered + setup.gradient_bytes)
