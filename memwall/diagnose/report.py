"""A profiler's export on the roofline: where each kernel stands, what is unhealthy, what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from memwall import hardware
from memwall.diagnose.checks import Check, Finding, checks, regime_of, steps
from memwall.diagnose.impossible import OVER_PEAK, impossible_rates, impossible_values, judged
from memwall.diagnose.reading import Export, Profile, read
from memwall.errors import MemwallError, NotAvailable, UnknownName, UsageError, shown
from memwall.hardware import Device
from memwall.modelled import Modelled, modelled
from memwall.reports.case import DEFAULT_DTYPE, DEFAULT_GPU
from memwall.reports.modelled import question_of
from memwall.reports.roofline import RooflineReport, roofline
from memwall.units import significant

ASK_GPU = "Name it: --gpu GPU; the list: memwall gpu list"


class Diagnosis(NamedTuple):
    """One kernel."""

    profile: Profile
    device: Device
    peak_flops_per_s: float | None
    """Of the format asked for, else of the engine that did most; None if the device has none."""
    op_flops: float | None = None
    """Of the operator, if this is its only kernel."""

    @property
    def flops(self) -> float | None:
        """As counted, else as the operator has it."""
        counted = self.profile.flops
        return counted if counted is not None and counted >= 0 else self.op_flops

    @property
    def time_s(self) -> float | None:
        """How long it ran [s]."""
        return self.counted.get("time_s")

    @property
    def dram_bytes(self) -> float | None:
        """Through main memory, read and written [B]."""
        values = self.counted
        if {"dram_read_bytes", "dram_written_bytes"} <= values.keys():
            return values["dram_read_bytes"] + values["dram_written_bytes"]
        rate = values.get("dram_bytes_per_s")
        return rate * self.time_s if rate is not None and self.time_s else None

    @property
    def counted(self) -> Mapping[str, float]:
        """What was counted and can be."""
        wrong = impossible_values(self.profile.values)
        return {field: value for field, value in self.profile.values.items() if field not in wrong}

    @property
    def impossible(self) -> Mapping[str, str]:
        """What cannot be, by field, and why."""
        return impossible_values(self.profile.values) | self._impossible_rates

    @property
    def _impossible_rates(self) -> dict[str, str]:
        return impossible_rates(
            self._bytes_per_s, self.device.bandwidth.value, self._flops_per_s, self.peak_flops_per_s
        )

    @property
    def intensity(self) -> float | None:
        """FLOPs a byte of main memory."""
        if self.flops and self.dram_bytes:
            return self.flops / self.dram_bytes
        rate, moved = self.achieved_flops_per_s, self.achieved_bytes_per_s
        return rate / moved if rate and moved else None

    @property
    def achieved_flops_per_s(self) -> float | None:
        """FLOPs / time; None if the device cannot reach it."""
        return None if "flops_rate" in self._impossible_rates else self._flops_per_s

    @property
    def achieved_bytes_per_s(self) -> float | None:
        """Bytes through main memory / time; None if the device cannot reach it."""
        return None if "dram_rate" in self._impossible_rates else self._bytes_per_s

    @property
    def _flops_per_s(self) -> float | None:
        if self.flops and self.time_s:
            return self.flops / self.time_s
        return self.profile.flops_per_s

    @property
    def _bytes_per_s(self) -> float | None:
        if self.dram_bytes is not None and self.time_s:
            return self.dram_bytes / self.time_s
        return self.counted.get("dram_bytes_per_s")

    @property
    def ridge(self) -> float | None:
        """Peak / bandwidth."""
        peak = self.peak_flops_per_s
        return peak / self.device.bandwidth.value if peak else None

    @property
    def roof_flops_per_s(self) -> float | None:
        """What the roofline allows at this intensity."""
        if self.intensity is None or self.peak_flops_per_s is None:
            return None
        return min(self.peak_flops_per_s, self.intensity * self.device.bandwidth.value)

    @property
    def regime(self) -> str:
        """memory-bound, compute-bound, latency-bound or unknown."""
        ridge = None if self._impossible_rates else self.ridge  # of another GPU, perhaps
        return regime_of(self.values, self.intensity, ridge)

    @property
    def values(self) -> Mapping[str, float]:
        """What was counted, and main memory's share worked out where it was not."""
        values = dict(self.counted)
        rate = self.achieved_bytes_per_s
        if "dram_share" not in values and rate is not None:
            values["dram_share"] = rate / self.device.bandwidth.value
        return values

    @property
    def checks(self) -> tuple[Check, ...]:
        """The healthy ranges."""
        found = checks(self.values, self.regime)
        return tuple(judged(check, self.impossible) for check in found)

    @property
    def steps(self) -> tuple[Finding, ...]:
        """The decision tree's next steps."""
        return steps(self.values, self.regime, self.checks)


class DiagnoseReport(NamedTuple):
    """An export on a device, and what an operator should have moved."""

    export: Export
    device: Device
    kernels: tuple[Diagnosis, ...]
    predicted: tuple[RooflineReport, Modelled] | None
    """With an operator: its roofline and modelled bytes."""
    defaults: tuple[str, ...]

    def counted(self, field: str) -> float | None:
        """The sum of a count over all kernels; None if one lacks it."""
        found = [each.counted.get(field) for each in self.kernels]
        return None if any(value is None for value in found) else sum(value or 0.0 for value in found)

    @property
    def beaten(self) -> str:
        """Why the operator cannot be what was measured, where the kernels beat its bound; else empty."""
        measured = self.counted("time_s")
        if (
            self.predicted is None
            or measured is None
            or measured >= self.predicted[0].bound_time_s / OVER_PEAK
        ):
            return ""
        share = significant(measured / self.predicted[0].bound_time_s, 3)
        return (
            f"impossible: the time measured is {share} of the bound, and a bound cannot be beaten: another "
            "op, shape, dtype or GPU was measured, or its operands were in L2 before"
        )


def diagnose(
    path: str,
    *,
    gpu: str | None = None,
    dtype: str | None = None,
    kernel: str | None = None,
    changes: Mapping[str, str | float] | None = None,
    op: str | None = None,
    **options: Any,
) -> DiagnoseReport:
    """Diagnose each kernel of a profiler's export.

    Args:
        path: the CSV.
        gpu: the device; the one that the export names unless given.
        dtype: whose peak is the roof; bf16 unless given.
        kernel: only kernels whose name has this in it.
        changes: what-ifs on the device.
        op: an operator that the kernels together compute, to compare bytes with.
        options: its shape and formats.

    Raises:
        FileError: the export cannot be read.
        UsageError: no kernel of that name, or the export's GPU is not known.
    """
    export = read(path)
    profiles = [p for p in export.profiles if kernel is None or kernel.lower() in p.kernel.lower()]
    if not profiles:
        names = ", ".join(dict.fromkeys(shown(p.kernel) for p in export.profiles[:5]))
        raise UsageError(f"no kernel has '{shown(kernel)}' in its name", f"There are: {names}")
    device, defaults = _device(gpu, profiles[0], changes)
    predicted = _predict(op, device, dtype or DEFAULT_DTYPE, options)
    alone = float(predicted[0].flops) if predicted and len(profiles) == 1 else None
    kernels = tuple(Diagnosis(each, device, _peak(device, dtype, each.engine), alone) for each in profiles)
    if dtype is None and any(each.profile.engine is None for each in kernels):
        defaults = (*defaults, f"dtype {DEFAULT_DTYPE}")
    return DiagnoseReport(export, device, kernels, predicted, defaults)


def _device(
    gpu: str | None, profile: Profile, changes: Mapping[str, str | float] | None
) -> tuple[Device, tuple[str, ...]]:
    """As asked, else as the export says; the default only where the export does not speak against it."""
    if gpu is not None:
        return hardware.load(gpu, changes), ()
    named, capability = profile.device, profile.capability
    if named:
        try:
            return hardware.load(named, changes), (f"GPU {named}, as the export says",)
        except UnknownName:
            raise UsageError(
                f"the export is of '{shown(named)}', a GPU that is not in the catalogue", ASK_GPU
            ) from None
    device = hardware.load(DEFAULT_GPU, changes)
    own = device.data["unit"].get("compute_capability")
    if capability and capability != own:
        raise UsageError(
            f"the export does not name its GPU, and its compute capability is {shown(capability)}", ASK_GPU
        )
    return device, (f"GPU {DEFAULT_GPU}",)


def _peak(device: Device, dtype: str | None, engine: str | None) -> float | None:
    """The peak of the format asked for; else of what the kernel used; else of the default format."""
    if dtype is None and engine == "lanes":
        return device.vector_peak.value if device.vector_peak else None
    used = dtype or (engine if engine in device.dtypes() else DEFAULT_DTYPE)
    try:
        return float(device.peak(used).rate.value)
    except NotAvailable:
        return None


def _predict(
    op: str | None, device: Device, dtype: str, options: dict[str, Any]
) -> tuple[RooflineReport, Modelled] | None:
    given = {name: value for name, value in options.items() if value is not None}
    if op is None:
        if given:
            raise UsageError("a shape describes an operator, and none is named", "Add --op, e.g. --op gemm")
        return None
    base = roofline(op, gpu=device, dtype=dtype, **given)
    case = base.case
    if case is None:
        raise MemwallError("an operator has a case")
    question = question_of(case)
    return base, modelled(question, device)
