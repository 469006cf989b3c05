"""What a page is asked, and what it knows of each GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from memwall.errors import Refusal
from memwall.hardware import Device
from memwall.htmlreport.forms import Forms
from memwall.models.cache import DEFAULT_FORMAT
from memwall.models.model import Model
from memwall.reports.step import StepReport


class Question(NamedTuple):
    """What the page is asked, and what its sliders start from."""

    model: Model
    batch: int
    context: int
    phase: str | None
    typed: str
    """The model as the user names it."""


class Asked(NamedTuple):
    """A GPU of the page."""

    device: Device
    typed: str
    """As the user names it."""
    words: Mapping[str, Any]
    """Formats, layout, library and calibration, as `memwall.step` takes them."""
    flags: str
    """The same as a command line has them."""
    what_ifs: tuple[str, ...] = ()
    """key=value, as --set takes them."""


class OnGpu(NamedTuple):
    """One GPU's part of the page."""

    asked: Asked
    forms: Mapping[str, Forms]
    reports: Mapping[str, StepReport]
    """Of each phase, at the point that was asked."""

    @property
    def device(self) -> Device:
        """The GPU."""
        return self.asked.device

    @property
    def first(self) -> StepReport:
        """The pass that is listed first."""
        return next(iter(self.reports.values()))

    @property
    def formats(self) -> str:
        """What the pass computes and stores in: bf16, weights int4-g128, cache fp8."""
        report = self.first
        parts = [report.formats.dtype]
        if report.storage.linear.name != report.formats.dtype:
            parts.append(f"weights {report.storage.linear.name}")
        cache = report.setting.plain.kv
        if cache not in (DEFAULT_FORMAT, report.setting.plain.activation):
            parts.append(f"cache {cache.name}")
        return ", ".join(parts)


class Made(NamedTuple):
    """A page, and what its user should hear beside it."""

    text: str
    refusals: list[Refusal]
    """GPUs that have no answer."""
    warnings: list[str]
    """Those that the model does not fit on, as first asked."""
