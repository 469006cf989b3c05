"""What a serving engine adds to its kernels in a step, and the kernels that are its own.

    pass      = kernels, one after the other + exchanges + overhead
    overhead  = host + sequence (batch - 1) + rank (tp - 1) + layer layers + sync exchanges + hop (pp - 1)

An engine with kernels of its own (llama.cpp) multiplies a matrix with a vector at

    product   = smooth max(bytes / (bandwidth share), bytes / (cores clock drawn),
                           weights / (cores clock widened))
    attention = bytes / bandwidth + keys heads (d + dv) / (cores clock lanes)

for the queries of a group each read their keys again, from L2, and no core keeps more in flight than `drawn`.
Others run a library's kernels, whose launches follow each other in a CUDA graph: attention to few keys starts
within `launch`, not after what it took where it was launched by itself; and an engine may not split the keys
of a sequence (TensorRT-LLM of 2024).

Source: the sums are those of a profile of a step; the constants are fitted to whole passes,
hardware/engines/*.yaml, each with how many there are and how far off passes of GPUs left out have been.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from memwall import yamlfile
from memwall.catalog import aliases, normalise, shipped_names, shipped_text
from memwall.errors import UnknownName
from memwall.estimate.chip import Chip
from memwall.estimate.choice import ARCHITECTURE, CALIBRATED
from memwall.estimate.constants import field_of, in_si
from memwall.estimate.decode import decode_time_s
from memwall.estimate.estimate import Estimate, Part
from memwall.estimate.families import ROWWISE
from memwall.estimate.gemm import GemmShape
from memwall.hardware import Device
from memwall.maths import Count, maximum, smooth_maximum

FOLDER = "hardware/engines"
FEW_ROWS = 8
"""Vectors that an engine's own matrix-vector kernels take at once."""
LANES_PER_CORE = 128
"""Of a GPU core, where its number is not known: the fp32 peak is cores x 128 lanes x 2 x clock."""


class Constants(NamedTuple):
    """What is fitted; 0: there is no such thing."""

    host_s: float = 0.0
    """Scheduling and sampling between two steps that no kernel runs beside."""
    sequence_s: float = 0.0
    """More of it for each further sequence of the batch."""
    rank_s: float = 0.0
    """More of it for each further GPU of a tensor-parallel group."""
    layer_s: float = 0.0
    """Launches of a layer's small kernels."""
    sync_s: float = 0.0
    """Of each exchange, beside what its bytes take in a collective library."""
    hop_s: float = 0.0
    """From one pipeline stage to the next."""
    launch_s: float = 0.0
    """Of an attention kernel inside a graph, at most."""
    most_splits: float = 0.0
    """Parts that the keys of a sequence are split in; 0: as the library does."""
    product_share: float = 0.0
    """Of the bandwidth, in products of the engine's own."""
    product_bytes_per_clock: float = 0.0
    """What a core draws in these."""
    weights_per_clock: float = 0.0
    """Elements of the matrix that a core widens and multiplies in a clock, where that is what limits."""
    lanes_per_clock: float = 0.0
    """Elements of K and V that a core multiplies in a clock, every query head for itself."""
    sharpness: float = 6.0


class Fitted(NamedTuple):
    """The constants on one vendor's software."""

    constants: Constants
    fitted: tuple[str, ...]
    """Those that the measured passes moved; the others are choices, or measured apart."""
    error_p50: float
    error_p90: float
    """Of passes of GPUs left out of the fit."""


class Engine(NamedTuple):
    """A serving engine."""

    name: str
    title: str
    dtype: str | None
    """The 16-bit format that it computes in by default."""
    gpus: tuple[str, ...]
    """Of the passes that it was fitted on."""
    fit: Fitted
    by_vendor: Mapping[str, Fitted]
    """Where it differs on another vendor's software."""
    vendors: tuple[str, ...]
    """Of the devices that it runs on; empty: of any."""

    def on(self, device: Device) -> Fitted:
        """The constants on a device, and how far they have been off."""
        return self.by_vendor.get(device.data["vendor"], self.fit)

    @property
    def fitted(self) -> int:
        """How many constants were fitted."""
        return sum(len(fit.fitted) for fit in (self.fit, *self.by_vendor.values()))

    def runs_on(self, device: Device) -> bool:
        """Whether there is such an engine for the device."""
        return not self.vendors or device.data["vendor"] in self.vendors

    def basis(self, device: Device) -> str:
        """What an estimate with it rests on."""
        return f"{CALIBRATED}: {device.name}" if device.name in self.gpus else ARCHITECTURE

    def overhead_s(
        self, device: Device, layers: int, batch: Count, tp: int, pp: int, exchanges: int
    ) -> Count:
        """What it adds to a step's kernels and exchanges [s]."""
        c = self.on(device).constants
        host_s = c.host_s + c.sequence_s * (batch - 1)
        among = c.rank_s * (tp - 1) + (c.sync_s * exchanges if tp > 1 else 0.0)
        return host_s + c.layer_s * layers + among + c.hop_s * (pp - 1)

    def estimated(self, estimate: Estimate, device: Device) -> Estimate:
        """A kernel of decoding as it runs under the engine, from a library's estimate of it."""
        time_s = self._time_s(estimate.parts[0], estimate.bound_time_s, device)
        if time_s is None:
            return estimate
        return estimate._replace(time_s=maximum(time_s, estimate.bound_time_s), basis=self.basis(device))

    def _time_s(self, part: Part, bound_s: Count, device: Device) -> Count | None:
        """None: as the library has it."""
        c, run = self.on(device).constants, part.run
        if run.family == "decode":
            return _attention_s(part, device, c)
        if not c.product_share:
            return None
        if run.family in ROWWISE:
            return bound_s  # its launch is the layer's
        product = run.family in ("gemm", "grouped_gemm") and run.shape.m <= FEW_ROWS
        return _product_s(run.shape, device, c) if product else None


def _product_s(shape: GemmShape, device: Device, c: Constants) -> Count:
    """A matrix times a few vectors, from memory or as fast as the cores take it."""
    clocks = core_clocks_per_s(device)
    time_s = shape.traffic_bytes / (device.bandwidth.value * c.product_share)
    if c.product_bytes_per_clock:
        drawn_s = shape.traffic_bytes / (clocks * c.product_bytes_per_clock)
        time_s = smooth_maximum(time_s, drawn_s, c.sharpness)
    if c.weights_per_clock:
        widened_s = shape.products * shape.n * shape.k / (clocks * c.weights_per_clock)
        time_s = smooth_maximum(time_s, widened_s, c.sharpness)
    return time_s


def _attention_s(part: Part, device: Device, c: Constants) -> Count:
    """Attention with one query token a sequence."""
    shape = part.run.shape
    if c.lanes_per_clock:
        elements = shape.batch * shape.heads * shape.seq_kv * (shape.head_dim + shape.head_dim_v)
        lanes_s = elements / (core_clocks_per_s(device) * c.lanes_per_clock)
        return shape.traffic_bytes / device.bandwidth.value + lanes_s
    mechanism, chip = part.fit.constants, Chip.of(device, part.run.compute)
    quick = mechanism._replace(
        launch_s=min(mechanism.launch_s, c.launch_s), most_splits=c.most_splits or mechanism.most_splits
    )
    return decode_time_s(shape, chip, quick)


def core_clocks_per_s(device: Device) -> float:
    """Clocks of all cores together in a second: cores x clock, or from the lanes' peak."""
    clock = device.clock
    if device.units and clock:
        return device.units * clock.value
    peak = device.vector_peak
    return peak.value / (2 * LANES_PER_CORE) if peak else float("inf")


def engine_named(name: str | None) -> Engine | None:
    """The engine that a user names; None: none, a pass compiled into a CUDA graph.

    Raises:
        UnknownName: with those that there are.

    >>> engine_named("llama-cpp").name
    'llama.cpp'
    """
    if name is None:
        return None
    known = engines()
    for engine in known:
        text = shipped_text(f"{FOLDER}/{engine.name}.yaml")
        if normalise(name) in (normalise(engine.name), *map(normalise, aliases(text))):
            return engine
    names = [engine.name for engine in known]
    raise UnknownName("engine", name, names, ", ".join(names))


@cache
def engines() -> tuple[Engine, ...]:
    """Every engine that has been fitted."""
    return tuple(_engine(name) for name in sorted(shipped_names(FOLDER)))


def _engine(name: str) -> Engine:
    path = f"{FOLDER}/{name}.yaml"
    data = yamlfile.parse(shipped_text(path), path)
    by_vendor = {vendor: _fitted(each) for vendor, each in (data.get("by_vendor") or {}).items()}
    return Engine(
        data["name"],
        data["title"],
        data.get("dtype"),
        tuple(data["gpus"]),
        _fitted(data),
        by_vendor,
        tuple(data.get("vendors") or ()),
    )


def _fitted(data: Mapping[str, Any]) -> Fitted:
    """Constants in SI: host_us is host_s."""
    return Fitted(
        Constants(**{field_of(key): in_si(key, value) for key, value in data["constants"].items()}),
        tuple(field_of(key) for key in data["fitted"]),
        data["error_p50"],
        data["error_p90"],
    )
