"""What-ifs: a device with some of its numbers replaced, each marked as assumed."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from memwall import yamlfile
from memwall.constant import WHAT_IF
from memwall.errors import FileError, UsageError, nearest, shown
from memwall.units import LARGEST_AMOUNT, parse_number

_PEAKS = {"matrix": "matrix.peak_dense_tflops.bf16", "vector": "vector.peak_tflops.fp32"}


def apply(data: dict[str, Any], changes: Mapping[str, str], name: str) -> dict[str, Any]:
    """A device file's data with the changes made and listed under `assumed`.

    Args:
        data: the file as read.
        changes: {"memory.bandwidth_gb_per_s": "4000"}: key path to the new value, as text.
        name: the device, for messages.

    Raises:
        UsageError: no such key, or a value that the key cannot have.
    """
    changed = copy.deepcopy(data)
    for path, value in changes.items():
        _check_lever(path)
        _set(changed, path, _value(path, value), name)
        _confess(changed, path)
    changed["assumed"] = sorted({*(data.get("assumed") or ()), *changes})
    _check(changed, changes, name)
    return changed


def _check_lever(path: str) -> None:
    """The clock behind a published peak only says at which clock it was published."""
    group, _, key = path.partition(".")
    if group in ("matrix", "vector") and key == "clock_mhz":
        raise UsageError(
            f"--set {path}: it is the clock behind the published peaks, and changes none of them",
            f"Set a peak, such as --set {_PEAKS[group]}=1000, or clocks.max_mhz",
        )


def _value(path: str, text: str) -> Any:
    """A number as people type it (4000, 4e3, 2^12), true, false, or a word."""
    try:
        return parse_number(text, path, largest=LARGEST_AMOUNT)
    except UsageError:
        pass
    try:
        value = yamlfile.parse(f"value: {text}", "--set")["value"]
    except FileError:
        raise _refused(path, f"'{shown(text)}' is not a value") from None
    if value is None:  # taking a number away is an edit of the file, not a what-if
        raise _refused(path, f"'{shown(text)}' is not a value")
    return value


def _set(data: dict[str, Any], path: str, value: Any, name: str) -> None:
    """Replace one value; only numbers and words that the file has, or its schema allows, can be set."""
    *parents, last = path.split(".")
    group: Any = data
    for step in parents:
        group = group.get(step) if isinstance(group, dict) else None
    if not isinstance(group, dict) or not (parents or last in group):
        raise _no_key(path, name, nearest(path, _paths(data), limit=1))
    if isinstance(group.get(last), dict):
        raise UsageError(
            f"--set: '{shown(path, 80)}' is a group of values",
            f"Name one in it: {_some_of(group[last], path)}",
        )
    if isinstance(group.get(last), list) or not parents:
        raise UsageError(
            f"--set: '{shown(path, 80)}' is not a number of the device",
            f"Write a file: {_example_file(name)}",
        )
    group[last] = value


def _confess(data: dict[str, Any], path: str) -> None:
    """Name the what-if among its group's sources."""
    *parents, last = path.split(".")
    group: Any = data
    sourced: Any = None
    for step in parents:
        group = group[step]
        sourced = group if "source" in group else sourced
    entry = {"assumed": WHAT_IF, "for": [last]}
    if sourced is not None and entry not in sourced["source"]:
        sourced["source"] = [*sourced["source"], entry]


def _no_key(path: str, name: str, near: Sequence[str]) -> UsageError:
    hint = f"Did you mean {near[0]}?" if near else _values_of(name)
    return UsageError(f"--set: {name} has no value '{shown(path, 80)}'", hint)


def _values_of(name: str) -> str:
    return f"Its values: memwall gpu show {shown(name)} --yaml"


def _example_file(name: str) -> str:
    return f"memwall gpu show {name} --yaml > my-gpu.yaml, edit it, and --gpu my-gpu.yaml"


def _some_of(group: Mapping[str, Any], path: str) -> str:
    numbers = [key for key, value in group.items() if isinstance(value, int | float)]
    return ", ".join(f"{path}.{key}" for key in (numbers or list(group))[:3])


def _paths(data: Mapping[str, Any], prefix: str = "") -> list[str]:
    """The paths of all numbers and words; lists cannot be set."""
    found: list[str] = []
    for key, value in data.items():
        if isinstance(value, dict):
            found += _paths(value, f"{prefix}{key}.")
        elif prefix and not isinstance(value, list):
            found.append(f"{prefix}{key}")
    return found


def _check(data: dict[str, Any], changes: Mapping[str, str], name: str) -> None:
    from pydantic import ValidationError

    from memwall.schema.base import first, keys_at, said
    from memwall.schema.hardware import Hardware

    try:
        Hardware.model_validate(data)
    except ValidationError as invalid:
        error = first(invalid)
        *group, last = (step for step in error["loc"] if step != "[key]")
        key = ".".join(map(str, (*group, last)))
        path = key if key in changes else next(iter(changes))
        if error["type"] == "extra_forbidden":
            prefix = "".join(f"{step}." for step in group)
            near = nearest(str(last), keys_at(Hardware, tuple(group)), limit=1)
            raise _no_key(path, name, [f"{prefix}{key}" for key in near]) from None
        if error["type"] == "value_error":
            raise UsageError(f"--set {shown(path, 80)}: {said(error)}", _values_of(name)) from None
        raise _refused(path, said(error)) from None


def _refused(path: str, why: str) -> UsageError:
    return UsageError(
        f"--set {shown(path, 80)}: {why}",
        "A plain number in the key's unit: --set memory.bandwidth_gb_per_s=4000",
    )
