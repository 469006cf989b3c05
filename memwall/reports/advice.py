"""What to do next in a kernel's regime, in order, each step with its own number where one exists.

Every number comes from asking the same roofline again with one thing changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from memwall.bound import Bound, bound
from memwall.dtypes import find as find_dtype
from memwall.hardware import Device
from memwall.maths import ceil_div
from memwall.program import Program, Tensor
from memwall.reports.case import Case
from memwall.reports.roofline import RooflineReport
from memwall.reports.steps import Step, faster, narrower
from memwall.units import MEGA, format_bytes, scaled_binary, significant

WEIGHTS = ("b", "w")
CACHES = ("K", "V", "latent")
ACTIVATIONS = ("x", "gate")  # what another kernel has just made, and this one reads back
FEATURES = {"tma": "TMA", "cp_async": "cp.async"}
LARGEST_BATCH = 1 << 20
TILE_M, TILE_N = 128, 256
SECTOR_BYTES = 32  # what DRAM hands to L2 at the least: CUDA C++ Best Practices Guide, coalesced access


def next_steps(report: RooflineReport) -> tuple[Step, ...]:
    """The steps for a report's regime, the most promising kind first."""
    if report.case is None:
        return tuple(_for_counts(report))
    makers = _MEMORY_STEPS if report.regime == "memory-bound" else _COMPUTE_STEPS
    steps = (make(report.case, report.bound, report.device) for make in makers)
    return tuple(step for step in steps if step)


def _for_counts(report: RooflineReport) -> list[Step]:
    ridge, intensity = report.bound.ridge_point, report.bound.arithmetic_intensity
    if not (ridge and intensity):
        return []
    if report.regime == "memory-bound":
        factor = significant(ridge / intensity, 3)
        return [
            Step("fusion", f"It becomes compute-bound with {factor} times fewer bytes: fuse, quantise, tile")
        ]
    return [
        Step(
            "narrower dtype",
            f"Bytes are not the limit until they grow {significant(intensity / ridge, 3)} times",
        )
    ]


# --- memory-bound ---------------------------------------------------------------------------------


def _fusion(case: Case, now: Bound, device: Device) -> Step | None:
    program = case.program
    if program.intermediates:
        fused = case._replace(impl=case.op.impls[0]).bound(device)
        names = " and ".join(tensor.name for tensor in program.intermediates)
        return faster(
            "fusion", f"One kernel instead of {len(program.kernels)} keeps {names} on chip", now, fused
        )
    made = _named(program, ACTIVATIONS)
    if made is None:
        return None
    saved = replace(now.work, read_bytes=now.work.read_bytes - made.bytes)
    text = f"Fused into the kernel that makes {made.name}, {made.name} is not read back"
    return faster("fusion", text, now, bound(saved, device))


def _batch(case: Case, now: Bound, device: Device) -> Step | None:
    dim = _batch_dim(case)
    if dim is None:
        return None
    at = crossover(case, device, dim)
    if at is None:
        return Step("batch", f"A larger {dim} helps, but no {dim} makes this compute-bound")
    return Step(
        "batch", f"At {dim} {at} this becomes compute-bound: the weights serve more rows", at=(dim, at)
    )


def _weights(case: Case, now: Bound, device: Device) -> Step | None:
    weights = _named(case.program, WEIGHTS)
    if case.op.name == "batched_gemm" or weights is None or weights.bytes < now.work.traffic_bytes / 2:
        return None
    options = [name for name in ("fp8", "int4-g128") if _bits(name) < weights.dtype.bits_per_element]
    return narrower("quantisation", "weights", [(o, case.stored(weight=o).bound) for o in options], now)


def _activations(case: Case, now: Bound, device: Device) -> Step | None:
    if now.work.matrix_flops or find_dtype(case.formats.dtype).bits <= 8:
        return None
    return narrower("quantisation", "tensors", [("fp8", case.stored(dtype="fp8").bound)], now)


def _coalescing(case: Case, now: Bound, device: Device) -> Step | None:
    smallest = min(max(int(tensor.dtype.bits // 8), 1) for tensor in case.program.inputs)
    waste = SECTOR_BYTES // smallest
    if waste <= 1:
        return None
    element = f"{smallest}-byte element"
    return Step(
        "coalescing",
        f"Neighbouring threads must load neighbouring addresses, 16 bytes each: scattered, "
        f"a {SECTOR_BYTES}-byte sector for each {element} is up to {waste} times the bytes",
    )


def _tiles(case: Case, now: Bound, device: Device) -> Step | None:
    if case.op.name != "gemm":
        return None
    a, b = case.program.inputs
    m, n = case.dims["m"], case.dims["n"]
    naive = a.bytes * ceil_div(n, TILE_N) + b.bytes * ceil_div(m, TILE_M) + case.program.outputs[0].bytes
    return Step(
        "tiles",
        f"The bound reads each operand once; {TILE_M}x{TILE_N} tiles with no cache behind them move "
        f"{format_bytes(naive)}",
    )


def _async_copies(case: Case, now: Bound, device: Device) -> Step | None:
    latency = device.data.get("latency") or {}
    cycles, clock = latency.get("memory_cycles"), latency.get("at_clock_mhz")
    if not (cycles and clock and device.units):
        return None
    flying = device.bandwidth.value * cycles / (clock * MEGA)
    each = scaled_binary(flying / device.units, digits=3)
    by = next((text for feature, text in FEATURES.items() if feature in device.features), "wide loads")
    return Step(
        "async copies",
        f"Keep {format_bytes(flying)} in flight, {each} a compute unit, to cover the latency ({by})",
    )


def _kv(case: Case, now: Bound, device: Device) -> Step | None:
    cache = _named(case.program, CACHES)
    if cache is None or cache.bytes < now.work.traffic_bytes / 4:
        return None
    options = [name for name in ("fp8", "nvfp4") if _bits(name) < cache.dtype.bits_per_element]
    return narrower("KV compression", "K and V", [(o, case.stored(kv=o).bound) for o in options], now)


# --- compute-bound --------------------------------------------------------------------------------


def _batch_enough(case: Case, now: Bound, device: Device) -> Step | None:
    dim = _batch_dim(case)
    at = crossover(case, device, dim) if dim else None
    if dim is None or at is None:
        return None
    return Step(
        "batch", f"Compute-bound from {dim} {at} on: a larger {dim} adds time, not rate", at=(dim, at)
    )


def _tile_efficiency(case: Case, now: Bound, device: Device) -> Step | None:
    if case.op.name != "gemm" or not device.units:
        return None
    tiles = ceil_div(case.dims["m"], TILE_M) * ceil_div(case.dims["n"], TILE_N)
    waves = ceil_div(tiles, device.units)
    full = tiles / (waves * device.units)
    return Step(
        "tile efficiency",
        f"{tiles} tiles of {TILE_M}x{TILE_N} on {device.units} compute units: {waves} waves, "
        f"{significant(100 * full, 3)} % full",
    )


def _registers(case: Case, now: Bound, device: Device) -> Step | None:
    registers = (device.data.get("unit") or {}).get("registers_kib")
    if case.op.name not in ("gemm", "batched_gemm", "grouped_gemm") or not registers:
        return None
    held = TILE_M * TILE_N * 4
    return Step(
        "registers",
        f"A {TILE_M}x{TILE_N} tile holds {scaled_binary(held)} of fp32 sums, of {registers:g} KiB of "
        "registers a unit: larger tiles need warps that share them, and spilling costs more than it gains",
    )


def _narrower_compute(case: Case, now: Bound, device: Device) -> Step | None:
    if not now.work.matrix_flops:
        return None
    bits = find_dtype(case.formats.dtype).bits
    options = [
        name
        for name in ("bf16", "fp8", "nvfp4", "mxfp4")
        if find_dtype(name).bits < bits and name in device.dtypes()
    ]
    choices = [(name, case.stored(dtype=name).bound) for name in options[:2]]
    return narrower("narrower dtype", "operands", choices, now)


_Maker = Callable[[Case, Bound, Device], Step | None]
_MEMORY_STEPS: tuple[_Maker, ...] = (
    _fusion,
    _batch,
    _weights,
    _activations,
    _kv,
    _coalescing,
    _tiles,
    _async_copies,
)
_COMPUTE_STEPS: tuple[_Maker, ...] = (_batch_enough, _tile_efficiency, _registers, _narrower_compute)


def crossover(case: Case, device: Device, dim: str) -> int | None:
    """The smallest value of a dimension at which the case is compute-bound; None up to 2^20.

    Intensity rises with the dimension, so doubling finds an interval and halving the value.
    """
    if not _compute_bound(case.sized(**{dim: LARGEST_BATCH}), device):
        return None
    low, high = 0, 1
    while not _compute_bound(case.sized(**{dim: high}), device):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if _compute_bound(case.sized(**{dim: middle}), device):
            high = middle
        else:
            low = middle
    return high


def _compute_bound(case: Case, device: Device) -> bool:
    return case.bound(device).regime == "compute-bound"


def _batch_dim(case: Case) -> str | None:
    """The dimension that adds rows to the same weights."""
    return {"gemv": "batch", "gemm": "m", "grouped_gemm": "m"}.get(case.op.name)


def _named(program: Program, names: tuple[str, ...]) -> Tensor | None:
    return next((tensor for tensor in program.inputs if tensor.name in names), None)


def _bits(name: str) -> float:
    return find_dtype(name).bits_per_element
