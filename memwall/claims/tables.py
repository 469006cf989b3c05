"""What an expression may ask that no command reports: a device's file, memory standards, traffic formulas."""

from __future__ import annotations

from inspect import isfunction, signature
from typing import Any

from memwall.errors import UsageError, shown


def device_keys(device: Any) -> dict[str, Any]:
    """A device's documented keys and the groups of its file."""
    from memwall.render.gpus import record

    return {**device.data, **record(device)}


def access_keys(report: Any) -> dict[str, Any]:
    """The documented keys of an access pattern."""
    from memwall.render.access import AccessView

    return AccessView().record(report)


def standard(name: str) -> dict[str, Any]:
    """A memory standard: what it allows at most.

    Raises:
        UsageError: no such standard.
    """
    from memwall import yamlfile
    from memwall.catalog import shipped_text

    path = "hardware/standards/memory.yaml"
    known = {each["name"]: each for each in yamlfile.parse(shipped_text(path), path)["memory"]}
    if name not in known:
        raise UsageError(f"unknown memory standard '{shown(name)}'", f"One of: {', '.join(known)}")
    return dict(known[name])


def traffic(formula: str, **sizes: Any) -> dict[str, Any]:
    """What a tiled kernel asks of the memory, by a formula of memwall.traffic: flash1_figure, tiled_gemm ...

    Raises:
        UsageError: no such formula.
    """
    from memwall import traffic as formulas

    known = [
        name
        for name, made in vars(formulas).items()
        if isfunction(made) and signature(made).return_annotation == "Traffic"
    ]
    if formula not in known:
        raise UsageError(f"no traffic formula '{shown(formula)}'", f"There are: {', '.join(known)}")
    made = getattr(formulas, formula)(**sizes)
    return {
        "read_bytes": made.read_bytes,
        "written_bytes": made.written_bytes,
        "total_bytes": made.total_bytes,
    }


def as_it_is(record: dict[str, Any]) -> dict[str, Any]:
    """What needs no rendering."""
    return record
