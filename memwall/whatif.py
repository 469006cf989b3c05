"""What-ifs: a device with some of its numbers replaced, each marked as assumed."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from memwall import yamlfile
from memwall.errors import FileError, UsageError, nearest, shown


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
        _set(changed, path, _value(path, value), name)
    changed["assumed"] = sorted({*(data.get("assumed") or ()), *changes})
    _check(changed, changes)
    return changed


def _value(path: str, text: str) -> Any:
    try:
        return yamlfile.parse(f"value: {text}", "--set")["value"]
    except FileError:
        raise UsageError(
            f"--set {shown(path)}: '{shown(text)}' is not a value", "For example: =4000"
        ) from None


def _set(data: dict[str, Any], path: str, value: Any, name: str) -> None:
    """Replace one value; only numbers and words that the file has, or its schema allows, can be set."""
    *parents, last = path.split(".")
    group: Any = data
    for step in parents:
        group = group.get(step) if isinstance(group, dict) else None
    if not isinstance(group, dict) or not parents or isinstance(group.get(last), dict | list):
        known = _paths(data)
        near = nearest(path, known, limit=1)
        hint = f"Did you mean {near[0]}?" if near else f"The keys: memwall gpu show {name} --yaml"
        raise UsageError(f"--set: {name} has no value '{shown(path, 80)}' to replace", hint)
    group[last] = value


def _paths(data: Mapping[str, Any], prefix: str = "") -> list[str]:
    found: list[str] = []
    for key, value in data.items():
        found += _paths(value, f"{prefix}{key}.") if isinstance(value, dict) else [f"{prefix}{key}"]
    return found


def _check(data: dict[str, Any], changes: Mapping[str, str]) -> None:
    from pydantic import ValidationError

    from memwall.schema.hardware import Hardware

    try:
        Hardware.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(step) for step in first["loc"])
        path = key if key in changes else next(iter(changes))
        what = "no such key there" if first["type"] == "extra_forbidden" else first["msg"].lower()
        raise UsageError(
            f"--set {shown(path, 80)}: {what}", "For example: --set memory.bandwidth_gb_per_s=4000"
        ) from None
