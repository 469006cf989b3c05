"""Operators as a picture's command line names them: gemv, gemm:m=4096,n=4096,k=4096,dtype=fp8."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from memwall.errors import NotAvailable, Refusal, UnknownName, UsageError, shown
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
            given[key] = value if key in SETTINGS else _size(name.strip(), key, value)
    return name.strip(), given


def _size(name: str, key: str, value: str) -> int:
    try:
        return parse_count(value, f"--op {name}: {key}")
    except UsageError as error:
        raise UsageError(
            error.message, f"Write it like --op {name}:{key}=4096, {key}=4e3 or {key}=2^12"
        ) from None


_FLAG = re.compile(r"--(?!(?:op|gpu|dtype)\b)([a-z][a-z-]*)")
_EXAMPLE = re.compile(r"memwall roofline --op \S+(?P<flags>(?: --\S+ \S+)*)")


def in_plot_words(error: UsageError, name: str) -> UsageError:
    """An operator's complaint with its dimensions as a picture takes them: m=4096, not --m 4096.

    >>> print(in_plot_words(UsageError("needs --m", "For example: memwall roofline --op gemm --m 8"), "gemm"))
    needs m. For example: --op gemm:m=8
    >>> print(in_plot_words(UsageError("attention: 2 do not divide 3", "try --kv-heads 1"), "attention"))
    attention: 2 do not divide 3. try kv_heads=1
    """
    if isinstance(error, UnknownName):
        return error
    hint = error.hint
    example = _EXAMPLE.search(hint)
    if example:
        sizes = ",".join(f"{flag.replace('-', '_')}={size}" for flag, size in _PAIR.findall(example["flags"]))
        hint = hint.replace(example[0], f"--op {name}:{sizes}")
    else:
        hint = _bare(_PAIR.sub(lambda found: f"{found[1].replace('-', '_')}={found[2]}", hint))
    return UsageError(_bare(error.message), hint)


def _bare(text: str) -> str:
    """Flags without their dashes, but those that a picture has too."""
    return _FLAG.sub(lambda found: found[1].replace("-", "_"), text)


_PAIR = re.compile(r"--(?!(?:op|gpu|dtype)\b)([a-z][a-z-]*) ([0-9]\S*)")


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
                if "dtype" in given:  # the operator's own, which --dtype does not change
                    error.hint = error.hint.replace("--dtype ", f"--op {name}:...,dtype=")
                refusals.append(Refusal(f"{name} on {device.name}", error))
            except UsageError as error:
                raise in_plot_words(error, name) from None
    if texts and not reports:
        raise refusals[0].error
    return reports, refusals
