"""The options that commands share, and how what was typed becomes values."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from memwall import dtypes
from memwall.catalog import HARDWARE, MODELS, Catalog
from memwall.errors import UsageError, shown
from memwall.reports.case import DEFAULT_DTYPE, DEFAULT_GPU
from memwall.units import LARGEST_AMOUNT, parse_count, parse_number, parse_share, parse_size

F = TypeVar("F", bound=Callable[..., Any])

DIMS = {
    "m": "rows of the product; gemv: rows of the matrix; grouped_gemm: rows an expert",
    "n": "columns of the product",
    "k": "the dimension summed over; gemv: columns of the matrix",
    "batch": "gemv: vectors; batched_gemm: products; attention: sequences",
    "experts": "experts that have rows",
    "rows": "rows (tokens)",
    "cols": "elements a row",
    "vocab": "rows of the table",
    "heads": "query heads",
    "kv_heads": "heads of K and V (default: heads)",
    "head_dim": "elements a head",
    "head_dim_v": "elements of a value head (default: head_dim)",
    "seq": "tokens, both seq_q and seq_kv; recurrences: new tokens of each sequence",
    "seq_q": "query tokens; 1 is a decode step",
    "seq_kv": "key and value tokens, the new ones included",
    "window": "keys that a query sees",
    "tokens": "expert_gemm: rows of a",
    "top_k": "experts that a token uses",
    "key_heads": "recurrences: heads of q and k (default: heads)",
    "key_dim": "recurrences: elements of a key head",
    "value_dim": "recurrences: elements of a value head",
    "channels": "recurrences: channels",
    "state": "recurrences: state elements a channel",
    "taps": "causal_conv: tokens that it sees",
}
"""Every dimension that an operator may have, and its help."""

ATTENTION_DIMS = ("batch", "heads", "kv_heads", "head_dim", "head_dim_v", "seq", "seq_q", "seq_kv", "window")


class Count(click.ParamType[int]):
    """A whole number of at least one, as people write it; the example is what a mistake is answered with."""

    name = "number"

    def __init__(self, example: int | None = None) -> None:
        self.example = example

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number."""
        return value if isinstance(value, int) else parse_count(value, _flag(param), example=self.example)


class Format(click.ParamType[str]):
    """A number format, completed by the shell."""

    name = "format"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The format's own name, whatever the spelling."""
        return dtypes.find(value).name

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The formats that begin so."""
        return [CompletionItem(name) for name in dtypes.names() if name.startswith(incomplete.lower())]


class Amount(click.ParamType[float]):
    """A finite number such as 4.2e12, zero too; a part of a FLOP or of a byte is not one."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | float:
        """The number."""
        number = (
            parse_number(value, _flag(param), largest=LARGEST_AMOUNT) if isinstance(value, str) else value
        )
        if 0 < number < 1:
            raise UsageError(
                f"{_flag(param)} must be 0 or at least 1, not '{shown(value)}'", f"Try {_flag(param)} 4.2e12"
            )
        return number


class Size(click.ParamType[str]):
    """An amount of memory such as 44.42GiB; a bare number is GiB. Checked here, kept as typed."""

    name = "size"

    def __init__(self, least: int = 1) -> None:
        self.least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text, which parse_size reads."""
        parse_size(str(value), _flag(param), self.least)
        return str(value)


class Fraction(click.ParamType[float]):
    """A number above 0 and at most 1."""

    name = "fraction"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        return parse_share(str(value), _flag(param))


class Named(click.ParamType[str]):
    """A name of the catalogue, completed by the shell; `several` allows a,b,c."""

    name = "name"

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog

    @property
    def listing(self) -> str:
        """The command that lists the names."""
        return self.catalog.listing

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text as typed, unless there is no name in it."""
        if not value.strip(" ,"):
            where = _flag(param) if isinstance(param, click.Option) else "an empty word"
            raise UsageError(f"{where} names no {self.catalog.kind}", f"The list: {self.listing}")
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The names that begin so, after the last comma."""
        before, comma, last = incomplete.rpartition(",")
        start = last.strip().lower()
        names = [] if _like_a_path(last) else [n for n in self.catalog.names() if n.startswith(start)]
        if not names and not comma:  # the shell knows the files
            return [CompletionItem(incomplete, type="file")]
        return [CompletionItem(before + comma + name) for name in names]


class Word(click.ParamType[str]):
    """A word that the command itself checks; the shell completes it from those that fit."""

    name = "text"

    def __init__(self, words: Callable[[click.Context], Iterable[str]]) -> None:
        self.words = words

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The words that begin so, whatever the case."""
        start = incomplete.lower()
        return [CompletionItem(word) for word in self.words(ctx) if word.lower().startswith(start)]


def _ops(ctx: click.Context) -> Iterable[str]:
    from memwall.ops import registry  # these three are asked for by the shell alone

    return registry.ops()


def _impls(ctx: click.Context) -> Iterable[str]:
    """Those of the operator that was named before, else every one."""
    from memwall.ops import registry

    ops = registry.ops()
    op = ops.get(str(ctx.params.get("op")))
    return op.impls if op else dict.fromkeys(impl for each in ops.values() for impl in each.impls)


def _vendors(ctx: click.Context) -> Iterable[str]:
    from memwall import hardware

    devices, _ = HARDWARE.read_each(hardware.from_entry)
    return sorted({str(device.data["vendor"]) for device in devices})


GPU, MODEL = Named(HARDWARE), Named(MODELS)
OP, IMPL, VENDOR = Word(_ops), Word(_impls), Word(_vendors)


def _like_a_path(text: str) -> bool:
    return text.startswith((".", "~")) or os.sep in text


def _flag(param: click.Parameter | None) -> str:
    return param.opts[0] if param else "the value"


def shape_options(dims: tuple[str, ...] = tuple(DIMS)) -> Callable[[F], F]:
    """One option a dimension."""

    def decorate(command: F) -> F:
        for name in reversed(dims):
            command = click.option(f"--{name.replace('_', '-')}", name, type=Count(), help=DIMS[name])(
                command
            )
        return command

    return decorate


def gpu_option(command: F) -> F:
    """--gpu, one or several."""
    text = f"a GPU, several (a,b,c) or a YAML file; default {DEFAULT_GPU}"
    return click.option("--gpu", type=GPU, multiple=True, callback=joined, help=text)(command)


def dtype_option(command: F) -> F:
    """--dtype."""
    text = f"compute and storage format; default {DEFAULT_DTYPE}"
    return click.option("--dtype", type=Format(), help=text)(command)


def causal_option(command: F) -> F:
    """--causal/--non-causal."""
    text = "mask the keys after each query; default: causal for prefill and for seq_q = seq_kv"
    return click.option("--causal/--non-causal", default=None, help=text)(command)


def set_option(command: F) -> F:
    """--set KEY=VALUE, as often as wanted."""
    text = "what if: replace a value of the GPU's file, e.g. memory.bandwidth_gb_per_s=4000"
    return click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", callback=_changes, help=text)(
        command
    )


def output_options(command: F) -> F:
    """--format, --json, -o and --color."""
    for option in (
        click.option(
            "--color",
            type=click.Choice(["auto", "always", "never"]),
            default="auto",
            help="colour on a terminal",
        ),
        click.option(
            "-o",
            "--output",
            metavar="FILE",
            help="write there; .json, .csv and .md choose the format, else text",
        ),
        click.option("--json", "as_json", is_flag=True, help="short for --format json"),
        click.option(
            "--format", "form", type=click.Choice(["text", "json", "csv", "markdown"]), help="default: text"
        ),
    ):
        command = option(command)
    return command


def joined(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> str | None:
    """--gpu a --gpu b is --gpu a,b."""
    return ",".join(values) if values else None


def _changes(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> Mapping[str, str]:
    changes = {}
    for value in values:
        key, equals, new = value.partition("=")
        if not equals or not key.strip() or not new.strip():
            raise UsageError(
                f"--set takes KEY=VALUE, not '{shown(value)}'", "Try --set memory.bandwidth_gb_per_s=4000"
            )
        if key.strip() in changes:
            raise UsageError(f"--set {shown(key.strip())} is given twice", "Keep one of the two")
        changes[key.strip()] = new.strip()
    return changes


def named_gpus(text: str | None) -> list[str]:
    """The names in a,b,c; the default GPU if there is none."""
    if text is None:
        return [DEFAULT_GPU]
    return list(dict.fromkeys(split_names(text)))


def split_names(text: str) -> list[str]:
    """The names in a,b,c, as often as they stand there."""
    return [name.strip() for name in text.split(",") if name.strip()]


def defaults_of(**named: tuple[str | None, str]) -> tuple[str, ...]:
    """What the user left out, for the report: GPU=(None, "h100") becomes "GPU h100"."""
    return tuple(f"{name} {default}" for name, (given, default) in named.items() if given is None)
