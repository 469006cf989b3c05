"""memwall report."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from typing import Any

import click

from memwall import hardware
from memwall.cli.engines import engine_option
from memwall.cli.estimates import estimate_options, on_one
from memwall.cli.layouts import layout_options
from memwall.cli.models import load_model
from memwall.cli.options import MODEL, Count, Format, gpu_option, named_gpus, set_option
from memwall.cli.output import STDOUT, Output, write
from memwall.errors import UsageError, shown

EPILOG = """\b
Examples:
  memwall report --model llama3-70b --gpu h200,b200 --context 8192 -o report.html
  memwall report --model llama3-8b --gpu h200,b200 --batch 16 --context 4096 --dtype fp8 -o report.html
  memwall report --model llama3-70b --gpu h100,h200 --tp 8 --batch 32 -o report.html
  memwall report --model llama3-8b --gpu h100 --engine vllm -o report.html
  memwall report --model bert-base --context 512 -o report.html
"""


@click.command("report", epilog=EPILOG)
@click.option("--model", type=MODEL, required=True, help="a model: memwall model list")
@gpu_option
@click.option(
    "--phase", type=click.Choice(["prefill", "decode"]), help="what the page opens with; default decode"
)
@click.option("--batch", type=Count(8), default=1, show_default=True, help="sequences, on all GPUs together")
@click.option(
    "--context", type=Count(), default=8192, show_default=True, help="tokens in the cache, or of the prompt"
)
@click.option("--dtype", type=Format(), help="compute and storage format of the linear layers; default bf16")
@click.option("--weight-dtype", type=Format(), help="storage format of the linear layers")
@click.option("--kv-dtype", type=Format(), help="storage format of the cache")
@layout_options
@estimate_options
@engine_option
@set_option
@click.option("-o", "--output", metavar="FILE", help="write there, an .html; - is stdout")
def command(
    model: str,
    gpu: str | None,
    phase: str | None,
    batch: int,
    context: int,
    changes: Mapping[str, str],
    output: str | None,
    **words: Any,
) -> int:
    """One page with summary, roofline, kernels, memory, and sliders computed in it."""
    from memwall.htmlreport.page import page
    from memwall.htmlreport.question import Asked, Question

    _check_ending(output)
    _check_estimated(words)
    question = Question(load_model(model), batch, context, phase, model)
    asked: dict[str, Asked] = {}
    for name in named_gpus(gpu):
        device = hardware.load(name, changes)
        mine = on_one(words, device, gpu)
        new = Asked(device, name, mine, _flags(mine, changes), _what_ifs(changes))
        if asked.setdefault(device.name, new).device.data != device.data:
            raise UsageError(
                f"--gpu {shown(name)}: another GPU of the page is called {device.name} too",
                "Give one of the files another name",
            )
    made = page(question, list(asked.values()))
    for said in (*(f"{each.gpu}: {each.error}" for each in made.refusals), *made.warnings):
        click.echo(f"warning: {said}", err=True)
    write(Output(None, False, output, "never"), made.text)
    return 0


def _flags(words: Mapping[str, Any], changes: Mapping[str, str]) -> str:
    """The options as one types them to `memwall step`; those that are as by default are left out."""
    flags = ""
    for name, value in words.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            flags += f" {flag}"
        elif value and value != 1:
            flags += f" {flag} {shlex.quote(str(value))}"
    return flags + "".join(f" --set {shlex.quote(each)}" for each in _what_ifs(changes))


def _what_ifs(changes: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{key}={value}" for key, value in changes.items())


def _check_estimated(words: Mapping[str, Any]) -> None:
    """What an estimate is made with means nothing where it is left out."""
    given = next((name for name in ("library", "calibration", "engine") if words.get(name)), None)
    if given and words.get("bound_only"):
        raise UsageError(
            f"--bound-only leaves out the estimate, and --{given} is of it",
            f"Leave out --{given}, or --bound-only",
        )


def _check_ending(output: str | None) -> None:
    """A page is HTML: a name that promises something else is refused."""
    if output is None:
        raise UsageError("a page goes to a file", "Name it: -o report.html; -o - is stdout")
    stem, suffix = os.path.splitext(output)
    if (
        output in STDOUT
        or suffix.lower() in (".html", ".htm", ".xhtml")
        or (os.path.exists(output) and not os.path.isfile(output))
    ):
        return
    named = shown(f"{stem}.html", 120)
    hints = {
        **dict.fromkeys((".pdf", ".ps"), f"Write -o {named} and print it to PDF in a browser"),
        **dict.fromkeys(
            (".svg", ".png"), f"Try -o {named}; a picture: memwall plot roofline -o plot{suffix}"
        ),
        **dict.fromkeys((".json", ".csv", ".md"), f"Try -o {named}; numbers: memwall step -o step{suffix}"),
    }
    raise UsageError(
        f"-o {shown(output, 120)}: the report is a page of HTML", hints.get(suffix.lower(), f"Try -o {named}")
    )
