"""Operators as a picture's command line names them: gemv, gemm:m=4096,n=4096,k=4096,dtype=fp8."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memwall.errors import NotAvailable, Refusal, UsageError, shown
from memwall.hardware import Device
from memwall.reports.roofline import RooflineReport, roofline
from memwall.units import parse_count

SETTINGS = ("dtype", "weight_dtype", "kv_dtype", "out_dtype", "impl")
_TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def parse_op(text: str) -> tuple[str, dict[str, Any]]:
    """An operator's name, and its dimensions and settings.

    Raises:
        UsageError: a place that is no NAME=VALUE.

    >>> parse_op("gemm:m=8,n=4e3,k=2^12,dtype=fp8")
    ('gemm', {'m': 8, 'n': 4000, 'k': 4096, 'dtype': 'fp8'})
    """
    name, _, rest = text.partition(":")
    given: dict[str, Any] = {}
    for word in filter(str.strip, rest.split(",")):
        key, equals, value = (part.strip() for part in word.partition("="))
        key = key.replace("-", "_")
        if not (equals and key and value):
            raise UsageError(
                f"--op {shown(text)}: '{shown(word)}' is no NAME=VALUE",
                "Write it like --op gemm:m=8,n=4096,k=4096",
            )
        if key == "causal":
            given[key] = _TRUTHS.get(value.lower(), True)
        else:
            given[key] = value if key in SETTINGS else parse_count(value, f"--op {name.strip()}: {key}")
    return name.strip(), given


def reports_of(
    texts: Sequence[str], devices: Sequence[Device], dtype: str
) -> tuple[list[RooflineReport], list[Refusal]]:
    """Each operator on each device, and the devices that cannot.

    Raises:
        UsageError: an unknown name, or a shape that cannot be.
        NotAvailable: no device can.
    """
    reports: list[RooflineReport] = []
    refusals: list[Refusal] = []
    for text in texts:
        name, given = parse_op(text)
        for device in devices:
            try:
                reports.append(roofline(name, gpu=device, **{"dtype": dtype, **given}))
            except NotAvailable as error:
                refusals.append(Refusal(device.name, error))
    if texts and not reports:
        raise refusals[0].error
    return reports, refusals
