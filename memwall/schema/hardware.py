"""The schema of hardware/*.yaml. hardware/README.md says the same for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from memwall.dtypes import ENGINES
from memwall.errors import nearest
from memwall.schema.base import Name, Positive, Sourced, Strict, Whole
from memwall.schema.consistency import contradictions

VECTOR_FORMATS = ("fp64", "fp32", "fp16", "bf16", "int8")


def _known_format(name: str) -> str:
    return _one_of(name, sorted(ENGINES))


def _vector_format(name: str) -> str:
    return _one_of(name, VECTOR_FORMATS)


def _one_of(name: str, formats: Sequence[str]) -> str:
    if name not in formats:
        near = nearest(name, formats, limit=1)
        meant = f"did you mean {near[0]}? " if near else ""
        raise ValueError(f"no such format; {meant}the formats: {', '.join(formats)}")
    return name


MatrixFormat = Annotated[str, AfterValidator(_known_format)]
VectorFormat = Annotated[str, AfterValidator(_vector_format)]
Peaks = dict[MatrixFormat, Positive]
VectorPeaks = dict[VectorFormat, Positive]


class Matrix(Sourced):
    """Dense peaks of the matrix unit, TFLOPS (TOPS for integers), accumulating in 32 bits."""

    peak_dense_tflops: Peaks = Field(min_length=1)
    peak_dense_tflops_acc_fp16: Peaks | None = None
    sparse_multiplier: Positive | None = None
    sparse_multiplier_by_dtype: Peaks | None = None
    clock_mhz: Positive | None = None
    flop_per_clock_per_unit: Peaks | None = None
    unsupported: dict[MatrixFormat, str] | None = None
    note: str | None = None


class Vector(Sourced):
    """Peaks of the vector lanes (CUDA cores, stream processors), an FMA counted as two."""

    peak_tflops: VectorPeaks = Field(min_length=1)
    clock_mhz: Positive | None = None
    flop_per_clock_per_unit: VectorPeaks | None = None
    note: str | None = None


class Special(Sourced):
    """Special functions (exp, reciprocal, rsqrt, tanh): results a clock and compute unit."""

    exp_per_clock_per_unit: Positive
    note: str | None = None


MEMORIES = (
    *("HBM", "HBM1", "HBM2", "HBM2e", "HBM3", "HBM3e", "HBM4"),
    *("GDDR5", "GDDR5X", "GDDR6", "GDDR6X", "GDDR7"),
    *("DDR4", "DDR5", "LPDDR4", "LPDDR4X", "LPDDR5", "LPDDR5X", "SRAM"),
)
"""The words of hardware/standards/memory.yaml; HBM where the generation is not published."""


def _known_memory(word: str) -> str:
    if word not in MEMORIES:
        near = nearest(word.upper(), MEMORIES, 1)
        meant = f" (did you mean {near[0]}?)" if near else ""
        raise ValueError(f"'{word:.40}' is no kind of memory{meant}: {', '.join(MEMORIES)}")
    return word


MemoryType = Annotated[str, AfterValidator(_known_memory)]


class Memory(Sourced):
    """The device's main memory."""

    type: MemoryType
    capacity_gb: Positive | None = None
    capacity_gib: Positive | None = None
    capacity_driver_bytes: Whole | None = None
    capacity_physical_gb: Positive | None = None
    stacks: Whole | None = None
    bus_width_bits: Whole | None = None
    bus_width_driver_bits: Whole | None = None
    bus_width_physical_bits: Whole | None = None
    pin_rate_gbit_per_s: Positive | None = None
    bandwidth_gb_per_s: Positive
    bandwidth_driver_gb_per_s: Positive | None = None
    note: str | None = None


class L2(Sourced):
    """The last cache that all compute units share on one die."""

    capacity_bytes: Whole | None = None
    capacity_mib: Positive | None = None
    bandwidth_measured_gb_per_s: Positive | None = None
    note: str | None = None


class MemorySideCache(Sourced):
    """A cache between L2 and memory (AMD Infinity Cache), or a software-managed SRAM."""

    kind: str
    capacity_mib: Positive
    bandwidth_gb_per_s: Positive | None = None
    note: str | None = None


class Unit(Sourced):
    """One compute unit (SM, CU, TPC ...) and how many there are."""

    kind: str
    count: Whole
    compute_capability: str | None = None
    gfx: str | None = None
    shared_memory_kib: Positive | None = None
    shared_memory_per_block_kib: Positive | None = None
    shared_memory_per_block_default_kib: Positive | None = None
    l1_kib: Positive | None = None
    l1_and_shared_kib: Positive | None = None
    registers_kib: Positive | None = None
    scalar_registers_kib: Positive | None = None
    tensor_memory_kib: Positive | None = None
    max_threads: Whole | None = None
    max_warps: Whole | None = None
    max_blocks: Whole | None = None
    warp_size: Whole | None = None
    note: str | None = None


class Clocks(Sourced):
    """Clocks of the compute units; `max_mhz` is the highest that the driver allows."""

    base_mhz: Positive | None = None
    boost_mhz: Positive | None = None
    max_mhz: Positive | None = None
    note: str | None = None


class Latency(Sourced):
    """Dependent-load latencies in cycles at `at_clock_mhz`."""

    register_cycles: Positive | None = None
    shared_cycles: Positive | None = None
    l1_cycles: Positive | None = None
    l2_near_cycles: Positive | None = None
    l2_far_cycles: Positive | None = None
    memory_side_cache_cycles: Positive | None = None
    memory_cycles: Positive | None = None
    at_clock_mhz: Positive
    note: str | None = None


class Link(Sourced):
    """One kind of link to other devices or the host; bandwidth is of all its lanes, one way."""

    generation: str | float | None = None
    links: Whole | None = None
    gb_per_s_per_direction: Positive | None = None
    form: str | None = None
    note: str | None = None


class Power(Sourced):
    """Board or module power."""

    tdp_w: Positive
    peak_w: Positive | None = None
    range_w: str | None = None
    note: str | None = None


class Silicon(Sourced):
    """The chip."""

    process: str | None = None
    transistors_billion: Positive | None = None
    die_mm2: Positive | None = None
    note: str | None = None


class Measured(Sourced):
    """What careful people have measured; never used in a bound."""

    values: dict[str, Positive] = Field(min_length=1)
    note: str | None = None


class Unchecked(Strict):
    """A check of the catalogue that this file may fail, and why."""

    check: Literal["bandwidth", "matrix peak", "vector peak"]
    dtype: str | None = None
    reason: str = Field(min_length=10)


class Hardware(Strict):
    """One accelerator."""

    EXAMPLE: ClassVar[str] = "memwall gpu show h100 --yaml"

    name: Name
    title: str = Field(max_length=80)
    aliases: list[str] = Field(default_factory=list)
    vendor: str
    architecture: str
    chip: str | None = None
    segment: Literal["datacenter", "workstation", "consumer", "embedded", "cloud"]
    year: int = Field(ge=2010, le=2030)
    status: Literal["available", "announced"]
    matrix: Matrix | None = None
    vector: Vector | None = None
    special: Special | None = None
    memory: Memory
    l2: L2 | None = None
    memory_side_cache: MemorySideCache | None = None
    unit: Unit | None = None
    clocks: Clocks | None = None
    latency: Latency | None = None
    links: dict[str, Link] | None = None
    power: Power | None = None
    silicon: Silicon | None = None
    features: list[str] = Field(default_factory=list)
    measured: list[Measured] | None = None
    note: str | None = None
    assumed: list[str] = Field(default_factory=list)
    exceptions: list[Unchecked] = Field(default_factory=list)

    @model_validator(mode="after")
    def _consistent(self) -> Hardware:
        found = next(contradictions(self), None)
        if found:
            raise found
        return self
