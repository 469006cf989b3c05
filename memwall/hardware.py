"""A device: its peaks, its memory, and where each of those numbers comes from.

`Device` answers in SI units with a `Constant`, which carries its source, so that every result can
say what it rests on. The file's own data stay in datasheet units under `data`; this module is
the one crossing in. A peak that is not in the file is refused, never made up from another.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from memwall import yamlfile
from memwall.catalog import HARDWARE, Entry
from memwall.constant import WHAT_IF, Constant, Peak, kind_and_text
from memwall.errors import MemwallError, NotPublished, UnsupportedDtype, UsageError, shown
from memwall.units import MEGA, TERA, scaled_up, to_si

NO_CLOCK = "as given: the clock behind it is not known, and such parts run above theirs"
EXAMPLE = '{"memory.bandwidth_gb_per_s": 4000}'
_CLOCKS = (("clocks", "max_mhz"), ("clocks", "boost_mhz"), ("vector", "clock_mhz"), ("matrix", "clock_mhz"))

# Where a format is missing, the formats that people fall back to, nearest first.
_INSTEAD = {
    "bf16": ("fp16", "tf32", "fp32"),
    "fp16": ("bf16", "fp32"),
    "tf32": ("fp32", "bf16", "fp16"),
    "fp8": ("bf16", "fp16", "int8"),
    "fp6": ("fp8", "bf16", "fp16"),
    "fp4": ("nvfp4", "mxfp4", "fp8", "bf16", "fp16"),
    "int8": ("fp8", "bf16", "fp16"),
    "int4": ("int8", "fp8", "bf16", "fp16"),
    "nvfp4": ("mxfp4", "fp8", "bf16", "fp16"),
    "mxfp4": ("nvfp4", "fp8", "bf16", "fp16"),
    "fp64": ("fp32",),
}


class Device:
    """One accelerator, read from one file of hardware/."""

    def __init__(self, data: Mapping[str, Any], where: str = "", own: bool = False) -> None:
        self.data = data
        self.where = where
        self.own = own
        """Whether it is the user's own file."""
        self.name: str = data["name"]
        self.title: str = data["title"]
        self.architecture: str = data["architecture"]
        self.features: frozenset[str] = frozenset(data.get("features") or ())
        self._assumed = frozenset(data.get("assumed") or ())

    def __repr__(self) -> str:
        return f"<Device {self.name}: {self.title}>"

    @property
    def assumed(self) -> tuple[str, ...]:
        """The keys that a what-if has replaced."""
        return tuple(sorted(self._assumed))

    @property
    def announced(self) -> bool:
        """Not shipping: its figures are the maker's plans."""
        return bool(self.data["status"] == "announced")

    @property
    def units(self) -> int | None:
        """How many compute units (SM, CU ...) it has, if known."""
        return self.group("unit").get("count")

    @cached_property
    def bandwidth(self) -> Constant:
        """Main-memory bandwidth [B/s]: the driver's clock x width where known, else as marketed.

        A what-if on the marketed bandwidth replaces both; one on the bus width or the pin rate
        recomputes it as width x rate / 8.
        """
        memory = self.data["memory"]
        if "memory.bandwidth_gb_per_s" in self._assumed:
            return self.constant("memory", "bandwidth_gb_per_s")
        if self._assumed & {"memory.bus_width_bits", "memory.pin_rate_gbit_per_s"}:
            return self._bandwidth_from_bus()
        if memory.get("bandwidth_driver_gb_per_s"):
            return self.constant("memory", "bandwidth_driver_gb_per_s")
        return self.constant("memory", "bandwidth_gb_per_s")

    @property
    def capacity(self) -> Constant:
        """Main-memory capacity [B]: the driver's total where known, else the label.

        Raises:
            NotPublished: the file has neither.
        """
        keys = ("capacity_driver_bytes", "capacity_gib", "capacity_gb")
        asked = [key for key in keys if f"memory.{key}" in self._assumed]  # a what-if comes before the driver
        for key in (*asked, *keys):
            if self.data["memory"].get(key):
                return self.constant("memory", key)
        raise NotPublished(
            f"{self.title}: memory.capacity_gb is not in its file", "Give it: --set memory.capacity_gb=80"
        )

    @cached_property
    def l2_bytes(self) -> float | None:
        """L2 capacity [B], if known."""
        l2 = self.group("l2")
        key = next((key for key in ("capacity_bytes", "capacity_mib") if l2.get(key)), None)
        return to_si(key, l2[key]) if key else None

    @property
    def memory_latency_s(self) -> float | None:
        """The time of one dependent load from main memory [s], if measured."""
        latency = self.group("latency")
        if not latency.get("memory_cycles"):
            return None
        return float(latency["memory_cycles"] / to_si("at_clock_mhz", latency["at_clock_mhz"]))

    def peak(self, dtype: str) -> Peak:
        """The dense peak of matrix work in a format [FLOP/s], on the engine that does it.

        That is the matrix unit; fp32 and fp64 without a matrix path run on the vector lanes, and so
        does every format on a device that has no matrix unit. Consumer and workstation parts
        run above the clock behind their published peak, so theirs is taken at maximum clock.

        Raises:
            UnsupportedDtype: the hardware has no such path.
            NotPublished: the file has no such peak.
        """
        if dtype in self._peaks("matrix"):
            return Peak("matrix", self._peak("matrix", "peak_dense_tflops", dtype))
        if dtype in self._on_lanes():
            return Peak("vector", self._peak("vector", "peak_tflops", dtype))
        raise self._no_peak(dtype)

    def peak_with_fp16_sums(self, dtype: str) -> Constant | None:
        """The dense peak with products summed in fp16 [FLOP/s]; None if no other than `peak`."""
        faster = self.group("matrix").get("peak_dense_tflops_acc_fp16") or {}
        return self._peak("matrix", "peak_dense_tflops_acc_fp16", dtype) if dtype in faster else None

    def ridge_point(self, dtype: str) -> float:
        """Peak / bandwidth in a format [FLOP/byte].

        Raises:
            NotAvailable: there is no such peak.
        """
        return self.peak(dtype).rate.value / self.bandwidth.value

    @cached_property
    def vector_peak(self) -> Constant | None:
        """The lanes' fp32 peak at maximum clock [FLOP/s], an FMA counted as two; None if not published."""
        return self._peak("vector", "peak_tflops", "fp32") if "fp32" in self._peaks("vector") else None

    @cached_property
    def special_rate(self) -> Constant | None:
        """Special functions (exp, rsqrt ...) a second at maximum clock [1/s]; None if not known."""
        if not (self.data.get("special") and self.units):
            return None
        clock = self.clock
        if clock is None:
            return None
        each = self.constant("special", "exp_per_clock_per_unit", scale=1)
        units = self.constant("unit", "count", scale=1)
        note = f"{units.value} units x {each.value:g} a clock x {clock.value / MEGA:g} MHz"
        return each.computed(each.value * units.value * clock.value, (each, units, clock), note)

    def dtypes(self) -> tuple[str, ...]:
        """The formats with a published peak for matrix work, as `--dtype` takes them."""
        return (*self._peaks("matrix"), *self._on_lanes())

    def group(self, name: str) -> Mapping[str, Any]:
        """A group of the file, in its own units; empty if it is not there."""
        return self.data.get(name) or {}

    def constant(self, group: str, key: str, *inner: str, scale: int | None = None) -> Constant:
        """A number of the file in SI units with its source; `scale` overrides the key's unit."""
        value: Any = self.data[group][key]
        for step in inner:
            value = value[step]
        path = ".".join((group, key, *inner))
        kind, source = self._source(path, group, {key, *inner})
        in_si = to_si(key, value) if scale is None else scaled_up(value, scale)
        return Constant(path, in_si, kind, source)

    def _peaks(self, engine: str) -> Mapping[str, float]:
        """An engine's published peaks by format."""
        key = {"matrix": "peak_dense_tflops", "vector": "peak_tflops"}[engine]
        return self.group(engine).get(key) or {}

    def _on_lanes(self) -> list[str]:
        """The formats whose matrix work runs on the vector lanes, for want of a matrix path."""
        matrix = self._peaks("matrix")
        lanes = [dtype for dtype in self._peaks("vector") if dtype not in matrix]
        return [dtype for dtype in lanes if dtype in ("fp32", "fp64") or not matrix]

    def _source(self, path: str, group: str, keys: set[str]) -> tuple[str, str]:
        if path in self._assumed:
            return "assumed", "set by you"
        entries = [entry for entry in self.data[group]["source"] if entry.get("assumed") != WHAT_IF]
        named = [entry for entry in entries if keys & set(entry.get("for") or ())]
        rest = [entry for entry in entries if not entry.get("for")]
        return kind_and_text((named or rest or entries)[0])

    def _peak(self, group: str, key: str, dtype: str) -> Constant:
        """A published peak, taken to the maximum clock where the bound has it there."""
        peak = self.constant(group, key, dtype, scale=TERA)
        beyond = group == "vector" or self._boosts
        if not beyond or peak.key in self._assumed:
            return peak
        highest = self.clock
        if highest is None or not self.data[group].get("clock_mhz"):
            return peak._replace(note=NO_CLOCK if self._boosts else "")
        clock = self.constant(group, "clock_mhz")
        # Only a what-if says that a part cannot reach the clock of its own peak.
        slowed = "clocks.max_mhz" in self._assumed
        if highest.value == clock.value or (highest.value < clock.value and not slowed):
            return peak
        note = f"at the {highest.value / MEGA:g} MHz maximum clock; published at {clock.value / MEGA:g} MHz"
        return peak.computed(peak.value * highest.value / clock.value, (peak, clock, highest), note)

    @property
    def _boosts(self) -> bool:
        """Whether it runs above the clock behind its published peak."""
        return self.data["segment"] in ("consumer", "workstation")

    @cached_property
    def clock(self) -> Constant | None:
        """The highest clock that is known [Hz]: the driver's maximum, the boost, or that behind a peak."""
        for group, key in _CLOCKS:
            if self.group(group).get(key):
                return self.constant(group, key)
        return None

    def _bandwidth_from_bus(self) -> Constant:
        width = self.constant("memory", "bus_width_bits")
        rate = self.constant("memory", "pin_rate_gbit_per_s")
        given = self.constant("memory", "bandwidth_gb_per_s")
        return given.computed(width.value * rate.value / 8, (width, rate), "bus width x pin rate / 8")

    def _no_peak(self, dtype: str) -> MemwallError:
        offered = [d for d in _INSTEAD.get(dtype, ()) if d in self.dtypes()] or list(self.dtypes())
        hint = f"Try --dtype {offered[0]}" if offered else f"See memwall gpu show {self.name}"
        reason = (self.group("matrix").get("unsupported") or {}).get(dtype)
        if reason:
            return UnsupportedDtype(f"{self.title} has no {dtype} matrix path: {reason}", hint)
        return NotPublished(f"{self.title}: no {dtype} peak is published", hint)


def load(name: str, changes: Mapping[str, str | float] | None = None) -> Device:
    """The device of that name, alias or file.

    Args:
        name: as people type it: h100, H100-SXM5-80GB, my-gpu.yaml.
        changes: what-ifs, key path to new value: {"memory.bandwidth_gb_per_s": 4000}.

    Raises:
        UnknownName, FileError, UsageError: as they say.
    """
    if not isinstance(name, str):
        raise UsageError(f"a GPU is one name, not {shown(repr(name))}", "For example: 'h100'")
    if not isinstance(changes or {}, Mapping):
        raise UsageError(
            f"what-ifs are keys and values, not {shown(repr(changes))}", f"For example: {EXAMPLE}"
        )
    device = from_entry(HARDWARE.find(name))
    if not changes:
        return device
    from memwall.whatif import apply  # pydantic checks the changed file; the plain path does without

    texts = {key: str(value) for key, value in changes.items()}
    return Device(apply(dict(device.data), texts, device.name), device.where, device.own)


def from_entry(entry: Entry) -> Device:
    """The device of a file; a user's own is checked against the schema first."""
    if entry.user:
        from memwall.schema.base import validate
        from memwall.schema.hardware import Hardware

        validate(Hardware, entry.text, entry.where)
    return Device(yamlfile.parse(entry.text, entry.where), entry.where, entry.user)
