"""memwall train-memory."""

from __future__ import annotations

from typing import Any

import click

from memwall.cli.devices import on_each, show
from memwall.cli.models import load_model, model_option
from memwall.cli.options import GPU, Count, Fraction, joined, output_options, set_option
from memwall.cli.output import Output
from memwall.errors import Refusal, UsageError
from memwall.hardware import Device
from memwall.memory.backward import ATTENTIONS, CHECKPOINTING
from memwall.memory.training import OPTIMIZERS
from memwall.reports.training import GRADIENTS, ZERO_STAGES, TrainingReport, training_memory

EPILOG = """\b
Examples:
  memwall train-memory --model llama3-70b --gpus 64 --zero 3 --seq 4096
  memwall train-memory --model llama3-8b --gpu h100 --gpus 8 --zero 2
  memwall train-memory --model llama3.2-3b --gpu b200 --optimizer adam-8bit
  memwall train-memory --model llama3-70b --gpu h200 --gpus 64 --tp 8 --pp 4

\b
With --gpu it says whether that holds it: exit code 1 if not.
Of several GPUs, if none does.
"""


@click.command("train-memory", epilog=EPILOG)
@model_option
@click.option("--gpu", type=GPU, multiple=True, callback=joined, help="whether it fits: a GPU or several")
@click.option("--gpus", type=Count(64), default=1, help="all GPUs: tp x pp x data parallel; default 1")
@click.option(
    "--zero", type=click.Choice([str(stage) for stage in ZERO_STAGES]), default="0", help="ZeRO stage"
)
@click.option("--optimizer", type=click.Choice(list(OPTIMIZERS)), default="adam", help="default adam")
@click.option("--seq", type=Count(4096), help="tokens of a sequence; default 4096")
@click.option("--micro-batch", type=Count(1), default=1, help="sequences of a GPU's forward pass; default 1")
@click.option(
    "--checkpointing", type=click.Choice(CHECKPOINTING), default="none", help="what is computed again"
)
@click.option("--attention", type=click.Choice(ATTENTIONS), default="flash", help="default flash")
@click.option("--tp", type=Count(8), default=1, help="GPUs that share each layer (tensor parallel)")
@click.option("--pp", type=Count(4), default=1, help="pipeline stages")
@click.option("--ep", type=Count(8), default=1, help="GPUs of tp x dp that share the experts")
@click.option("--sequence-parallel", is_flag=True, help="split along the sequence what --tp leaves whole")
@click.option("--dropout", is_flag=True, help="keep dropout's masks, as for GPT-2 and GPT-3")
@click.option("--grad-dtype", type=click.Choice(list(GRADIENTS)), default="bf16", help="default bf16")
@click.option("--memory-fraction", type=Fraction(), default=1.0, help="of the GPU's memory; default 1")
@set_option
@output_options
def command(gpu: str | None, model: str, changes: dict[str, str], zero: str, **options: Any) -> int:
    """Training: parameters, gradients, optimizer and activations on each GPU."""
    from memwall.render import training as view

    output = Output(**{key: options.pop(key) for key in Output._fields})
    loaded = load_model(model)

    def make(device: Device | None) -> TrainingReport:
        return training_memory(loaded, zero=int(zero), gpu=device, **options)

    if gpu is None and changes:
        raise UsageError("--set changes a GPU, and none is named", "Add --gpu h100")
    rows: list[TrainingReport | Refusal] = [make(None)] if gpu is None else on_each(gpu, changes, make)
    code = show(output, rows, view)
    answers = [row.fits for row in rows if isinstance(row, TrainingReport)]
    return code or int(not any(fits is None or fits for fits in answers))
