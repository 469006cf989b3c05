"""memwall plot traffic | decode | memory: pictures of a model."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import click

from memwall import hardware
from memwall.cli.devices import answered, on_each
from memwall.cli.engines import engine_option
from memwall.cli.estimates import LIBRARY
from memwall.cli.layouts import layout_options
from memwall.cli.lists import counts_of, formats_of
from memwall.cli.models import load_model
from memwall.cli.options import (
    ATTENTION_DIMS,
    MODEL,
    Format,
    causal_option,
    gpu_option,
    named_gpus,
    set_option,
    shape_options,
)
from memwall.cli.pictures import picture_options, show
from memwall.errors import NotAvailable, Refusal, UsageError
from memwall.hardware import Device
from memwall.reports.case import DEFAULT_DTYPE

LENGTHS, BATCHES, CONTEXTS = "256:131072:log2", "1:512:log2", "1024,8192,32768,131072"
ONE_CONTEXT = "8192"
EXAMPLES = {"batch": "1,8,64", "context": "4096,32768", "tp": "8"}
MOST_VALUES, MOST_CURVES, MOST_BARS = 512, 8, 24
"""Points of a curve, and curves and bars that can be told apart."""

ONE_GPU = click.option("--gpu", metavar="GPU", help="one GPU, by name or file; default h100")

TRAFFIC_EPILOG = """\b
Examples:
  memwall plot traffic --model llama3-70b -o traffic.svg
  memwall plot traffic --heads 32 --kv-heads 8 --head-dim 128 --lengths 512:65536:log2
"""

DECODE_EPILOG = """\b
Examples:
  memwall plot decode --model llama3-8b --gpu h200 -o decode.svg
  memwall plot decode --model llama3-8b --gpu a100,h100,b200 --context 8192 -o decode.svg
  memwall plot decode --model llama3-8b --gpu h100 --engine vllm --estimate --batch 1:256:log2
  memwall plot decode --model deepseek-v3 --gpu b200 --tp 8 --ep 8 --batch 1:256:log2 --context 4096,32768
"""

MEMORY_EPILOG = """\b
Examples:
  memwall plot memory --model llama3-70b --gpu h100,h200,b200 --batch 8 --context 8192 -o memory.svg
  memwall plot memory --model llama3-70b --gpu h100 --tp 2,4,8 --batch 32
  memwall plot memory --model llama3-8b --gpu h100 --kv-dtype bf16,fp8 --batch 8,32 --context 8192
"""


@click.command("traffic", epilog=TRAFFIC_EPILOG)
@click.option("--model", type=MODEL, help="a model: memwall model list; or give --heads and --head-dim")
@ONE_GPU
@shape_options(tuple(name for name in ATTENTION_DIMS if not name.startswith("seq")))
@click.option("--lengths", metavar="RANGE", default=LENGTHS, show_default=True, help="sequence lengths")
@click.option("--dtype", type=Format(), default=DEFAULT_DTYPE, show_default=True, help="format")
@causal_option
@picture_options
def plot_traffic(
    model: str | None, gpu: str | None, lengths: str, dtype: str, causal: bool | None, **options: Any
) -> int:
    """Standard attention against flash over sequence length."""
    from memwall.plot import traffic as view
    from memwall.reports.attention import attention

    target = {name: options.pop(name) for name in ("output", "form", "size")}
    device = _one(gpu)
    loaded = load_model(model) if model else None
    values = counts_of(lengths, "--lengths", 2, MOST_VALUES, LENGTHS)
    shape = {name: size for name, size in options.items() if size is not None}
    if not loaded and not shape:
        raise UsageError("whose attention: --model, or --heads and --head-dim", "Try --model llama3-70b")
    reports = [attention(loaded, gpu=device, dtype=dtype, causal=causal, seq=n, **shape) for n in values]
    named = " ".join(f"{name.replace('_', '-')} {size}" for name, size in shape.items())
    return show(view.figure(reports, values, loaded.title if loaded else named), target)


@click.command("decode", epilog=DECODE_EPILOG)
@click.option("--model", type=MODEL, required=True, help="a model: memwall model list")
@gpu_option
@click.option("--batch", metavar="RANGE", default=BATCHES, show_default=True, help="sequences at once")
@click.option(
    "--context", metavar="RANGE", help=f"one curve each; default {CONTEXTS}, of several GPUs {ONE_CONTEXT}"
)
@click.option("--dtype", type=Format(), help="compute and storage format of the linear layers; default bf16")
@click.option("--weight-dtype", type=Format(), help="storage format of the linear layers")
@click.option("--kv-dtype", type=Format(), help="storage format of the cache")
@layout_options
@click.option("--estimate", is_flag=True, help="the expected time too, above the bound")
@LIBRARY
@engine_option
@set_option
@picture_options
def plot_decode(
    model: str,
    gpu: str | None,
    batch: str,
    context: str | None,
    changes: Any,
    estimate: bool,
    **words: Any,
) -> int:
    """Time per token over batch, a curve for each context and GPU."""
    from memwall.plot import decode as view
    from memwall.plot.notes import changed, with_notes
    from memwall.reports.step import StepReport, step

    target = {name: words.pop(name) for name in ("output", "form", "size")}
    for name in () if estimate else ("library", "engine"):
        if words[name] is not None:
            raise UsageError(f"--{name} is of the estimate", "Add --estimate")
    gpus = len(named_gpus(gpu))
    loaded = load_model(model)
    if not loaded.decodes:
        raise NotAvailable(
            f"{loaded.title} is an encoder: it reads all tokens at once and generates none",
            f"Try memwall step --model {model} --phase prefill --seq 512",
        )
    words["bound_only"] = not estimate
    batches = counts_of(batch, "--batch", 2, MOST_VALUES, BATCHES)
    usual = CONTEXTS if gpus == 1 else ONE_CONTEXT
    contexts = counts_of(context or usual, "--context", 1, MOST_CURVES // min(gpus, MOST_CURVES), ONE_CONTEXT)
    if gpus > MOST_CURVES:
        raise UsageError(f"{gpus} GPUs are too many, {MOST_CURVES} curves can be told apart", "Name fewer")

    def on(device: Device) -> list[list[StepReport]]:
        return [
            [step(loaded, gpu=device, batch=b, context=each, **words) for b in batches] for each in contexts
        ]

    rows = on_each(gpu, changes, on)
    picture = view.figure([row for each in answered(rows) for row in each], batches)
    refusals = [f"{row.gpu}: {row.error.message}" for row in rows if isinstance(row, Refusal)]
    return show(changed(with_notes(picture, refusals), changes), target)


@click.command("memory", epilog=MEMORY_EPILOG)
@click.option("--model", type=MODEL, required=True, help="a model: memwall model list")
@gpu_option
@click.option("--batch", metavar="RANGE", help="sequences at once, a bar each; default 1")
@click.option(
    "--context", metavar="RANGE", help="tokens of each sequence; default as memwall capacity has it"
)
@click.option("--tp", metavar="RANGE", help="GPUs that share the model; default 1")
@click.option("--dtype", metavar="FORMATS", help="compute and storage formats of the linear layers, a,b,c")
@click.option("--weight-dtype", metavar="FORMATS", help="storage formats of the linear layers, a,b,c")
@click.option("--kv-dtype", metavar="FORMATS", help="storage formats of the cache, a,b,c")
@set_option
@picture_options
def plot_memory(model: str, gpu: str | None, changes: Any, **options: Any) -> int:
    """What fills a GPU: weights, cache, reserve, against its memory."""
    from memwall.plot import memory as view
    from memwall.plot.notes import changed, with_notes
    from memwall.reports.capacity import CapacityReport, capacity

    target = {name: options.pop(name) for name in ("output", "form", "size")}
    loaded = load_model(model)
    asked = list(_combinations(options))
    if len(asked) * len(named_gpus(gpu)) > MOST_BARS:
        raise UsageError(
            f"{len(asked) * len(named_gpus(gpu)):,} bars are too many, {MOST_BARS} can be told apart",
            "Name fewer of a range, or ask memwall sweep capacity",
        )

    def on(device: Device) -> list[CapacityReport]:
        return [capacity(loaded, gpu=device, **each) for each in asked]

    rows = on_each(gpu, changes, on)
    reports = [report for each in answered(rows) for report in each]
    refusals = [f"{row.gpu}: {row.error.message}" for row in rows if isinstance(row, Refusal)]
    picture = view.figure(reports, named_context=options["context"] is not None)
    return show(changed(with_notes(picture, refusals), changes), target)


def _combinations(options: dict[str, str | None]) -> Iterator[dict[str, Any]]:
    """Every combination of the values that were given."""
    lists: dict[str, list[Any]] = {}
    for name, text in options.items():
        flag = "--" + name.replace("_", "-")
        if text is not None and name.endswith("dtype"):
            lists[name] = formats_of(text, flag)
        elif text is not None:
            lists[name] = counts_of(text, flag, 1, MOST_BARS, EXAMPLES[name])
    for values in itertools.product(*lists.values()):
        yield dict(zip(lists, values, strict=True))


def _one(gpu: str | None) -> Device:
    names = named_gpus(gpu)
    if len(names) > 1:
        raise UsageError("this picture is of one GPU", f"Name one: --gpu {names[0]}")
    return hardware.load(names[0])
