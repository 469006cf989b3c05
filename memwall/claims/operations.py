"""memwall's own reports as a claim names them: a call, and a path through the keys of its JSON.

    roofline("gemm", m=4096, n=4096, k=4096, gpu="h100").arithmetic_intensity
    attention("llama3-70b", seq=4096).standard.traffic_bytes
    gpu("h100").memory.pin_rate_gbit_per_s        model("llama3-70b").parameters_total
    step("llama3-70b", context=4096).kernels["mlp.down"].flops

The keys are those that the commands document, so that a claim and `--json` cannot disagree; a key's ending
says its unit. Each answer is made once a run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from memwall.claims.quantity import Quantity, parse_unit
from memwall.errors import UsageError, nearest, shown
from memwall.units import LARGEST_COUNT

Step = str | int
Arguments = tuple[tuple[Any, ...], tuple[tuple[str, Any], ...]]


class Operation(NamedTuple):
    """One of memwall's reports."""

    report: str
    """module:function that makes it."""
    record: str
    """module:function that turns it into documented keys."""
    command: str
    """The command that prints it; where there is none, the call or the file, with its arguments' places."""
    first: str
    """The flag of the first argument; empty: it stands bare."""


def _operation(name: str, first: str) -> Operation:
    """A command whose report, record and name are one word."""
    return Operation(
        f"memwall.reports.{name}:{name}", f"memwall.render.{name}:record", f"memwall {name}", first
    )


OPERATIONS: Mapping[str, Operation] = {
    "roofline": _operation("roofline", "--op"),
    "attention": _operation("attention", "--model"),
    "generations": Operation(
        "memwall.reports.generations:generations",
        "memwall.render.generations:record",
        "memwall attention --impl all",
        "--model",
    ),
    "gpu": Operation("memwall.hardware:load", "memwall.claims.tables:device_keys", "memwall gpu show", ""),
    "model": Operation("memwall.models.load:load", "memwall.render.models:record", "memwall model show", ""),
    "step": Operation(
        "memwall.reports.step:step", "memwall.render.step_record:record", "memwall step", "--model"
    ),
    "capacity": _operation("capacity", "--model"),
    "quant": _operation("quant", "--model"),
    "train_memory": Operation(
        "memwall.reports.training:training_memory",
        "memwall.render.training:record",
        "memwall train-memory",
        "--model",
    ),
    "hierarchy": _operation("hierarchy", "--gpu"),
    "occupancy": _operation("occupancy", ""),
    "access": Operation(
        "memwall.reports.access:access",
        "memwall.claims.tables:access_keys",
        "memwall access",
        "--pattern",
    ),
    "fuse": _operation("fuse", ""),
    "traffic": Operation(
        "memwall.claims.tables:traffic",
        "memwall.claims.tables:as_it_is",
        "memwall.traffic.{first}({named})",
        "",
    ),
    "standard": Operation(
        "memwall.claims.tables:standard",
        "memwall.claims.tables:as_it_is",
        "hardware/standards/memory.yaml, {first}",
        "",
    ),
}

_AMOUNTS = ("flops", "bytes", "zero", "memory_fraction", "reserve")
"""Arguments that are no counts: zero is one of their values, or a part."""

_NAMES = ("name", "kernel", "level")
"""Keys by whose value an item of a list is found."""

# A key's ending, the longest that fits, and the unit of its value. Those of the reports are SI, those of the
# hardware files are the datasheet's.
ENDINGS = {
    "flops_per_s": "FLOP/s",
    "ops_per_s": "OP/s",
    "bytes_per_s": "B/s",
    "bytes_per_token": "B",
    "bytes_per_sequence": "B",
    "flops": "FLOP",
    "flops_by_engine": "FLOP",
    "bytes": "B",
    "time_s": "s",
    "per_s": "Hz",
    "s": "s",
    "arithmetic_intensity": "FLOP/B",
    "ridge_point": "FLOP/B",
    "ridge_points": "FLOP/B",
    "usd_per_hour": "$/h",
    "tflops": "TFLOP/s",
    "tflops_acc_fp16": "TFLOP/s",
    "gb_per_s": "GB/s",
    "gb_per_s_per_direction": "GB/s",
    "gbit_per_s": "Gbit/s",
    "gb": "GB",
    "gib": "GiB",
    "mib": "MiB",
    "kib": "KiB",
    "mhz": "MHz",
    "bits": "bit",
    "w": "W",
    "mm2": "mm2",
    "billion": "billion",
    "flop_per_clock_per_unit": "FLOP",
    "cycles": "",
}


def value(name: str, arguments: Arguments, path: Sequence[Step]) -> Quantity:
    """The number at a path of an operation's keys, in SI units.

    Raises:
        UsageError: no such operation or key, or what is there is no number.
        MemwallError: as the report says.
    """
    here: Any = _keys(name, arguments)
    for depth, step in enumerate(path):
        here = _child(here, step, name, path[:depth])
    if isinstance(here, bool) or not isinstance(here, int | float):
        raise UsageError(_no_number(name, path, here), _keys_hint(here))
    unit = parse_unit(_unit(path))
    return Quantity(here * unit.value, unit.dimension)


def source(name: str, arguments: Arguments, path: Sequence[Step]) -> str:
    """Where a device's number comes from; empty for what memwall computes."""
    words = [str(step) for step in path]
    if name != "gpu" or len(words) < 2:
        return ""
    device = _report(name, arguments)
    if not isinstance(device.data.get(words[0]), Mapping) or "source" not in device.data[words[0]]:
        return ""
    constant = device.constant(words[0], *words[1:], scale=1)
    return f"{constant.kind}: {constant.source}"


def command(name: str, arguments: Arguments, path: Sequence[Step]) -> str:
    """The command line that prints the number, and the key to look for."""
    operation = OPERATIONS[name]
    positional, named = arguments
    key = ".".join(str(step) for step in path)
    if "{" in operation.command:
        first, given = "".join(map(str, positional)), ", ".join(f"{name}={each}" for name, each in named)
        return f"{operation.command.format(first=first, named=given)}: {key}"
    words = [operation.command, *(f"{operation.first} {_word(each)}".strip() for each in positional)]
    words += [_flag(name, each) for name, each in named]
    return f"{' '.join(words)} --json: {key}"


@cache
def _report(name: str, arguments: Arguments) -> Any:
    """The report, its arguments checked as the command line checks them."""
    positional, named = arguments
    for each in positional:
        if not isinstance(each, str):
            raise UsageError(
                f"{name}(...) begins with a name, not {shown(repr(each))}", f'Like {name}("...")'
            )
    for key, each in named:
        counted = isinstance(each, int | float) and not isinstance(each, bool) and key not in _AMOUNTS
        if counted and not (each == int(each) and 1 <= each <= LARGEST_COUNT):
            raise UsageError(f"{name}(...): {key} must be a whole number of at least 1, not {each:g}", "")
    try:
        return _load(OPERATIONS[name].report)(*positional, **dict(named))
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
        why = str(error).partition("()")[2].strip() or str(error)
        hint = f"See {OPERATIONS[name].command.partition('{')[0].rstrip('., ')} --help"
        raise UsageError(f"{name}(...) cannot be made of these arguments: {shown(why, 80)}", hint) from None


@cache
def _keys(name: str, arguments: Arguments) -> Mapping[str, Any]:
    record = _load(OPERATIONS[name].record)(_report(name, arguments))
    return record  # type: ignore[no-any-return]


@cache
def _load(place: str) -> Callable[..., Any]:
    module, _, function = place.partition(":")
    return getattr(import_module(module), function)  # type: ignore[no-any-return]


def _child(here: Any, step: Step, name: str, before: Sequence[Step]) -> Any:
    if isinstance(here, Mapping) and step in here:
        return here[step]
    if isinstance(here, list) and isinstance(step, int) and -len(here) <= step < len(here):
        return here[step]
    if isinstance(here, list):
        named = (each for each in here if isinstance(each, Mapping))
        found = next((each for each in named if step in (each.get(key) for key in _NAMES)), None)
        if found:
            return found
    known = [str(key) for key in here] if isinstance(here, Mapping) else []
    near = nearest(str(step), known, limit=1)
    hint = f"Did you mean {near[0]}?" if near else _keys_hint(here)
    place = ".".join(str(each) for each in (f"{name}(...)", *before))
    raise UsageError(f"{place} has no metric '{shown(step)}'", hint)


def _no_number(name: str, path: Sequence[Step], here: Any) -> str:
    place = ".".join(str(each) for each in (f"{name}(...)", *path))
    what = (
        "a group of metrics"
        if isinstance(here, Mapping)
        else "a list"
        if isinstance(here, list)
        else shown(here)
    )
    return f"{place} is not a number but {what}"


def _keys_hint(here: Any) -> str:
    known = ", ".join(str(key) for key in here) if isinstance(here, Mapping) else ""
    return shown(f"There are: {known}", 200) if known else "See the command's --json"


def _unit(path: Sequence[Step]) -> str:
    """The unit that the last key with a known ending names."""
    for step in reversed(path):
        key = str(step)
        ending = max((e for e in ENDINGS if key == e or key.endswith(f"_{e}")), key=len, default=None)
        if ending is not None:
            return ENDINGS[ending]
    return ""


def _flag(key: str, given: Any) -> str:
    name = key.replace("_", "-")
    if isinstance(given, bool):
        return f"--{name}" if given else f"--non-{name}"
    return f"--{name} {_word(given)}"


def _word(given: Any) -> str:
    return str(given)
