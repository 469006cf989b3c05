"""A device: its peaks, its memory, and where each of those numbers comes from.

`Device` answers in SI units with a `Constant`, which carries its source, so that every result can
say what it rests on. The file's own data stay in datasheet units under `data`; this module is
the one crossing in. A peak that is not in the file is refused, never made up from another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from memwall import yamlfile
from memwall.catalog import HARDWARE, Entry
from memwall.dtypes import names as format_names
from memwall.errors import MemwallError, NotPublished, UnsupportedDtype
from memwall.units import MEGA, to_si

WEAK = ("assumed", "recalled")
"""Source kinds that a result must confess to, the weaker first."""

# Where a format is missing, the formats that people fall back to, nearest first.
_INSTEAD = {
    "bf16": ("fp16", "tf32", "fp32"),
    "fp16": ("bf16", "fp32"),
    "tf32": ("fp32", "bf16", "fp16"),
    "fp8": ("bf16", "fp16", "int8"),
    "fp6": ("fp8", "bf16", "fp16"),
    "int8": ("fp8", "bf16", "fp16"),
    "int4": ("int8", "fp8", "bf16", "fp16"),
    "nvfp4": ("mxfp4", "fp8", "bf16", "fp16"),
    "mxfp4": ("nvfp4", "fp8", "bf16", "fp16"),
    "fp64": ("fp32",),
}


class Constant(NamedTuple):
    """One number that results rest on, in SI units."""

    key: str
    """Its path in the device's file, as `--set` takes it: memory.bandwidth_gb_per_s."""
    value: float
    kind: str
    """seen, recalled, derived, measured or assumed."""
    source: str
    note: str = ""

    @property
    def weak(self) -> bool:
        """Whether the number is merely recalled or assumed."""
        return self.kind in WEAK


class Peak(NamedTuple):
    """The rate of an engine, and which engine it is."""

    engine: str
    """matrix or vector."""
    rate: Constant
    """FLOP/s, dense."""


class Device:
    """One accelerator, read from one file of hardware/."""

    def __init__(self, data: Mapping[str, Any], where: str = "") -> None:
        self.data = data
        self.where = where
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
        unit = self.data.get("unit")
        return unit["count"] if unit else None

    @property
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
        for key in ("capacity_driver_bytes", "capacity_gib", "capacity_gb"):
            if self.data["memory"].get(key):
                return self.constant("memory", key)
        raise NotPublished(
            f"{self.title}: memory.capacity_gb is not in its file", "Give it: --set memory.capacity_gb=80"
        )

    @property
    def l2_bytes(self) -> float | None:
        """L2 capacity [B], if known."""
        l2 = self.data.get("l2") or {}
        key = next((key for key in ("capacity_bytes", "capacity_mib") if l2.get(key)), None)
        return to_si(key, l2[key]) if key else None

    def peak(self, dtype: str) -> Peak:
        """The dense peak of matrix work in a format [FLOP/s], on the engine that does it.

        That is the matrix unit; fp32 and fp64 without a matrix path run on the vector lanes, and so
        does every format on a device that has no matrix unit. Consumer and workstation parts
        run above the clock behind their published peak, so theirs is taken at maximum clock.

        Raises:
            UnsupportedDtype: the hardware has no such path.
            NotPublished: the file has no such peak.
        """
        matrix = self.data.get("matrix") or {}
        if dtype in matrix.get("peak_dense_tflops", {}):
            return Peak("matrix", self._peak("matrix", "peak_dense_tflops", dtype))
        vector = (self.data.get("vector") or {}).get("peak_tflops", {})
        if dtype in vector and (dtype in ("fp32", "fp64") or not matrix):
            return Peak("vector", self._peak("vector", "peak_tflops", dtype))
        raise self._no_peak(dtype, matrix)

    def vector_peak(self, dtype: str = "fp32") -> Constant | None:
        """The vector lanes' peak at maximum clock [FLOP/s], an FMA counted as two; None if not published."""
        vector = (self.data.get("vector") or {}).get("peak_tflops", {})
        return self._peak("vector", "peak_tflops", dtype) if dtype in vector else None

    @property
    def special_rate(self) -> Constant | None:
        """Special functions (exp, rsqrt ...) a second at maximum clock [1/s]; None if not known."""
        special = self.data.get("special")
        clock = self._max_clock_mhz()
        if not (special and self.units and clock):
            return None
        constant = self.constant("special", "exp_per_clock_per_unit", scale=self.units * clock * MEGA)
        return constant._replace(note=f"{self.units} units at {clock:g} MHz")

    def dtypes(self) -> tuple[str, ...]:
        """The formats with a published peak for matrix work; fp4 and fp6 name widths, not formats."""
        matrix = (self.data.get("matrix") or {}).get("peak_dense_tflops", {})
        vector = (self.data.get("vector") or {}).get("peak_tflops", {})
        lanes = [d for d in vector if d not in matrix and (d in ("fp32", "fp64") or not matrix)]
        return (*matrix, *lanes)

    def constant(self, group: str, key: str, *inner: str, scale: float | None = None) -> Constant:
        """A number of the file in SI units with its source; `scale` overrides the key's unit."""
        value: Any = self.data[group][key]
        for step in inner:
            value = value[step]
        path = ".".join((group, key, *inner))
        kind, source = self._source(path, group, {key, *inner})
        return Constant(path, value * scale if scale is not None else to_si(key, value), kind, source)

    def _source(self, path: str, group: str, keys: set[str]) -> tuple[str, str]:
        if path in self._assumed:
            return "assumed", "set by you"
        entries = self.data[group]["source"]
        named = [entry for entry in entries if keys & set(entry.get("for") or ())]
        rest = [entry for entry in entries if not entry.get("for")]
        entry = (named or rest or entries)[0]
        kind = next(
            kind for kind in ("assumed", "recalled", "derived", "measured", "seen") if entry.get(kind)
        )
        return kind, entry[kind]

    def _peak(self, group: str, key: str, dtype: str) -> Constant:
        constant = self.constant(group, key, dtype)
        clock, highest = self.data[group].get("clock_mhz"), self._max_clock_mhz()
        beyond = group == "vector" or self.data["segment"] in ("consumer", "workstation")
        if not (beyond and clock and highest and highest > clock) or constant.kind == "assumed":
            return constant
        return constant._replace(
            value=constant.value * highest / clock,
            kind=_weakest(constant.kind, self.constant("clocks", "max_mhz").kind),
            note=f"at the {highest:g} MHz maximum clock; published at {clock:g} MHz",
        )

    def _max_clock_mhz(self) -> float | None:
        clocks = self.data.get("clocks") or {}
        fallback = (self.data.get("vector") or {}).get("clock_mhz") or (self.data.get("matrix") or {}).get(
            "clock_mhz"
        )
        return clocks.get("max_mhz") or clocks.get("boost_mhz") or fallback

    def _bandwidth_from_bus(self) -> Constant:
        width = self.constant("memory", "bus_width_bits")
        rate = self.constant("memory", "pin_rate_gbit_per_s")
        changed = next(c for c in (rate, width) if c.kind == "assumed")
        return changed._replace(value=width.value * rate.value / 8, note="bus width x pin rate / 8")

    def _no_peak(self, dtype: str, matrix: Mapping[str, Any]) -> MemwallError:
        usable = [d for d in self.dtypes() if d in format_names()]
        offered = [d for d in _INSTEAD.get(dtype, ()) if d in usable] or usable
        hint = f"Try --dtype {offered[0]}" if offered else f"See memwall gpu show {self.name}"
        reason = (matrix.get("unsupported") or {}).get(dtype)
        if reason:
            return UnsupportedDtype(f"{self.title} has no {dtype} matrix path: {reason}", hint)
        return NotPublished(f"{self.title}: no {dtype} peak is published", hint)


def _weakest(*kinds: str) -> str:
    return next((kind for kind in WEAK if kind in kinds), kinds[0])


def load(name: str, changes: Mapping[str, str] | None = None) -> Device:
    """The device of that name, alias or file.

    Args:
        name: as people type it: h100, H100-SXM5-80GB, my-gpu.yaml.
        changes: what-ifs, key path to new value: {"memory.bandwidth_gb_per_s": "4000"}.

    Raises:
        UnknownName, FileError, UsageError: as they say.
    """
    device = from_entry(HARDWARE.find(name))
    if not changes:
        return device
    from memwall.whatif import apply  # pydantic checks the changed file; the plain path does without

    return Device(apply(dict(device.data), changes, device.name), device.where)


def from_entry(entry: Entry) -> Device:
    """The device of a file; a user's own is checked against the schema first."""
    if entry.user:
        from memwall.schema.base import validate
        from memwall.schema.hardware import Hardware

        validate(Hardware, entry.text, entry.where)
    return Device(yamlfile.parse(entry.text, entry.where), entry.where)
