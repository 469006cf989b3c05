"""What the GPUs of a training run exchange in one optimizer step.

    tensor parallel   the forward pass' sums, as many in the backward pass, and once more where layers are
                      computed again; with sequence parallelism a reduce-scatter and an all-gather for each
    experts           tokens there and back, and their gradients
    stages            activations to the next stage, their gradients back
    data parallel     gradients: ZeRO 0 an all-reduce; 1 and 2 a reduce-scatter, and an all-gather of the new
                      parameters; 3 (FSDP) parameters gathered for every forward and backward pass, gradients
                      scattered after each

Bytes of the data-parallel exchanges are those of the fullest stage's share of the model.

Source: Rajbhandari et al. 2020, arXiv:1910.02054, section 7 (communication); Shoeybi et al. 2019,
arXiv:1909.08053 (two sums a layer forward, two backward).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from memwall.collectives import Collective
from memwall.hardware import Device
from memwall.maths import ceil_div
from memwall.memory.training import PARAMETER_BYTES, Setup, stage_weights
from memwall.models.step.launch import Setting
from memwall.nodes import Group, Node, group
from memwall.parallel.exchanges import Exchange, exchanges, groups_of
from memwall.parallel.layout import Layout

BACKWARD = 2
"""Passes that the forward pass' exchanges occur in: forward and backward."""


def training_exchanges(
    setup: Setup, layout: Layout, setting: Setting, device: Device, node: Node | None, microbatches: int
) -> tuple[Exchange, ...]:
    """Every exchange of a step of so many micro-batches.

    Args:
        setup: the run.
        layout: the same as degrees.
        setting: of one GPU's forward pass over a micro-batch.
        device: the GPU.
        node: what it stands in.
        microbatches: micro-batches of each replica in a step.

    Raises:
        UsageError, NotPublished: such GPUs cannot stand so, or no link is known.
    """
    forward = exchanges(setup.model, layout, setting, groups_of(device, layout, node))
    found = [*_of_passes(forward, setup, layout, device, node, microbatches)]
    found += _of_replicas(setup, layout, device, node, microbatches)
    return tuple(found)


def _of_passes(
    forward: tuple[Exchange, ...],
    setup: Setup,
    layout: Layout,
    device: Device,
    node: Node | None,
    microbatches: int,
) -> Iterator[Exchange]:
    """Those of the forward pass, on one stage, and of the passes that follow it; experts' among ep GPUs."""
    among = group(device, layout.ep, ceil_div(layout.ep, node.gpus) if node else 1, node)
    again = 1 if setup.run.checkpointing == "full" else 0
    for each in forward:
        if each.name == "logits":  # the loss needs a number a token, not the logits
            continue
        if each.name == "stages":
            yield each._replace(repeats=BACKWARD * microbatches)
            continue
        if each.what.op == "all_to_all":
            each = each._replace(what=each.what._replace(gpus=layout.ep), group=among)
        passes = BACKWARD + (again if not each.name.startswith("embedding") else 0)
        yield each._replace(repeats=ceil_div(each.repeats, layout.pp) * passes * microbatches)


def _of_replicas(
    setup: Setup, layout: Layout, device: Device, node: Node | None, microbatches: int
) -> Iterator[Exchange]:
    """Gradients and parameters of weights that several GPUs have, by how many have them."""
    shares: dict[int, int] = {}
    for weight in stage_weights(setup):
        owners = setup.owners(weight)
        shares[owners] = shares.get(owners, 0) + setup.share(weight)
    for owners, elements in shares.items():
        if owners == 1:
            continue
        among = replicas_of(device, owners, layout.tp, node)
        gradients, parameters = elements * setup.gradient_bytes, elements * PARAMETER_BYTES
        if setup.zero == 0:
            yield Exchange("gradients", Collective("all_reduce", gradients, owners), among, 1)
            continue
        times = microbatches if setup.zero == 3 else 1
        gathers = BACKWARD * microbatches if setup.zero == 3 else 1
        yield Exchange("gradients", Collective("reduce_scatter", gradients, owners), among, times)
        yield Exchange("parameters", Collective("all_gather", parameters, owners), among, gathers)


def replicas_of(device: Device, gpus: int, tp: int, node: Node | None) -> Group:
    """GPUs with the same part of the model: beside the tp groups in a node, then on other nodes."""
    room = max(node.gpus // tp, 1) if node else gpus
    return group(device, gpus, gpus // gcd(gpus, room) if gpus > room else 1, node)
