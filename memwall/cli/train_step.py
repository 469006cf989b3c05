"""memwall train-step."""

from __future__ import annotations

from typing import Any

import click

from memwall.cli.devices import on_each, show, warn
from memwall.cli.models import load_model, model_option
from memwall.cli.options import Count, defaults_of, gpu_option, output_options, set_option
from memwall.cli.output import Output
from memwall.hardware import Device
from memwall.memory.backward import ATTENTIONS, CHECKPOINTING
from memwall.memory.training import OPTIMIZERS
from memwall.reports.case import DEFAULT_GPU
from memwall.reports.train_step import TrainStepReport, train_step
from memwall.reports.training import ZERO_STAGES

EPILOG = """\b
Examples:
  memwall train-step --model llama3-8b --gpu h100 --gpus 8 --zero 3 --seq 8192
  memwall train-step --model llama3-70b --gpu h100 --gpus 64 --tp 8 --zero 1 --seq 4096 --microbatches 8
  memwall train-step --model llama3-70b --gpu h100,b200 --gpus 128 --tp 8 --pp 4 --microbatches 32 --json
"""


@click.command("train-step", epilog=EPILOG)
@model_option
@gpu_option
@click.option("--gpus", type=Count(8), default=1, help="all GPUs: tp x pp x data parallel; default 1")
@click.option(
    "--zero", type=click.Choice([str(stage) for stage in ZERO_STAGES]), default="0", help="ZeRO; 3 is FSDP"
)
@click.option("--optimizer", type=click.Choice(list(OPTIMIZERS)), default="adam", help="default adam")
@click.option("--seq", type=Count(4096), help="tokens of a sequence; default 4096")
@click.option("--micro-batch", type=Count(1), default=1, help="sequences of a GPU's forward pass; default 1")
@click.option("--microbatches", type=Count(8), help="of each replica in a step; default one a stage")
@click.option(
    "--checkpointing", type=click.Choice(CHECKPOINTING), default="none", help="what is computed again"
)
@click.option("--attention", type=click.Choice(ATTENTIONS), default="flash", help="default flash")
@click.option("--tp", type=Count(8), default=1, help="GPUs that share each layer (tensor parallel)")
@click.option("--pp", type=Count(2), default=1, help="pipeline stages")
@click.option("--ep", type=Count(8), default=1, help="GPUs of tp x dp with whole experts each")
@click.option("--sequence-parallel", is_flag=True, help="split along the sequence what --tp leaves whole")
@set_option
@output_options
def command(gpu: str | None, model: str, changes: dict[str, str], zero: str, **options: Any) -> int:
    """One training step: FLOPs of each GPU, what they exchange, and the bound."""
    from memwall.render import train_step as view

    output = Output(**{key: options.pop(key) for key in Output._fields})
    loaded = load_model(model)
    defaults = defaults_of(GPU=(gpu, DEFAULT_GPU))

    def make(device: Device) -> TrainStepReport:
        return train_step(loaded, gpu=device, zero=int(zero), defaults=defaults, **options)

    rows = on_each(gpu, changes, make)
    warn(rows, view.warning)
    return show(output, rows, view)
