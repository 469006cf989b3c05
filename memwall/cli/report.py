"""memwall report."""

from __future__ import annotations

from typing import Any

import click

from memwall import hardware
from memwall.cli.models import load_model
from memwall.cli.options import MODEL, Count, Format, gpu_option, named_gpus, set_option
from memwall.cli.output import Output, write
from memwall.errors import UsageError

EPILOG = """\b
Examples:
  memwall report --model llama3-70b --gpu h100,h200 --context 8192 -o report.html
  memwall report --model llama3-8b --gpu h200,b200 --batch 16 --context 4096 --dtype fp8 -o report.html
  memwall report --model bert-base --context 512 -o report.html
"""


@click.command("report", epilog=EPILOG)
@click.option("--model", type=MODEL, required=True, help="a model: memwall model list")
@gpu_option
@click.option(
    "--phase", type=click.Choice(["prefill", "decode"]), help="what the page opens with; default decode"
)
@click.option("--batch", type=Count(), default=1, show_default=True, help="sequences")
@click.option(
    "--context", type=Count(), default=8192, show_default=True, help="tokens in the cache, or of the prompt"
)
@click.option("--dtype", type=Format(), help="compute and storage format of the linear layers; default bf16")
@click.option("--weight-dtype", type=Format(), help="storage format of the linear layers")
@click.option("--kv-dtype", type=Format(), help="storage format of the cache")
@set_option
@click.option("-o", "--output", metavar="FILE", help="write there; - is stdout")
def command(
    model: str,
    gpu: str | None,
    phase: str | None,
    batch: int,
    context: int,
    changes: Any,
    output: str | None,
    **words: Any,
) -> int:
    """One page with summary, roofline, kernels, memory, and sliders computed in it."""
    from memwall.htmlreport.page import Question, page

    if output is None:
        raise UsageError("a page goes to a file", "Name it: -o report.html; -o - is stdout")
    question = Question(load_model(model), batch, context, phase, words)
    devices = [hardware.load(name, changes) for name in named_gpus(gpu)]
    text, refusals = page(question, devices)
    for refusal in refusals:
        click.echo(f"warning: {refusal.gpu}: {refusal.error}", err=True)
    write(Output(None, False, output, "never"), text)
    return 0
