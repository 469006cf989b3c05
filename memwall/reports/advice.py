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
from memwall.units import format_bytes, scaled_binary, significant, to_si

FEATURES = {"tma": "TMA", "cp_async": "cp.async"}
GPU_UNITS = ("SM", "CU", "Xe core")
"""Compute units that run blocks of threads over tiles; others (TPU, NPU) are programmed otherwise."""
LARGEST_BATCH = 1 << 20
TILE_M, TILE_N = 128, 256
SECTOR_BYTES = 32  # what DRAM hands to L2 at the least: CUDA C++ Best Practices Guide, coalesced access


def next_steps(report: RooflineReport) -> tuple[Step, ...]:
    """The steps for a report's regime, the most promising kind first."""
    if report.case is None:
        return tuple(_for_counts(report))
    makers = _MEMORY_STEPS if report.regime == "memory-bound" else _COMPUTE_STEPS
    steps = (make(report.case, report.bound) for make in makers)
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


def _fusion(case: Case, now: Bound) -> Step | None:
    program = case.program
    if program.intermediates:
        fused = case._replace(impl=case.op.impls[0]).bound(now.device)
        names = " and ".join(tensor.name for tensor in program.intermediates)
        return faster(
            "fusion", f"One kernel instead of {len(program.kernels)} keeps {names} on chip", now, fused
        )
    if now.work.matrix_flops or not _first(program, "activation"):
        return None
    made = max((t for t in program.inputs if t.role == "activation"), key=lambda tensor: tensor.bytes)
    saved = replace(now.work, read_bytes=now.work.read_bytes - made.bytes)
    text = f"Fused into the kernel that makes {made.name}, {made.name} is not read back"
    return faster("fusion", text, now, bound(saved, now.device))


def _batch(case: Case, now: Bound) -> Step | None:
    dim = case.op.rows
    if dim is None:
        return None
    at = crossover(case, now.device, dim)
    if at is None:
        return Step("batch", f"A larger {dim} helps, but up to {LARGEST_BATCH} none makes this compute-bound")
    text = f"At {dim} {at} this becomes compute-bound: the weights serve more rows"
    return Step("batch", text, at=(dim, at))


def _weights(case: Case, now: Bound) -> Step | None:
    weights = _first(case.program, "weight")
    if case.op.rows is None or weights is None or weights.bytes < now.work.traffic_bytes / 2:
        return None
    options = [name for name in ("fp8", "int4-g128") if _bits(name) < weights.dtype.bits_per_element]
    return narrower("quantisation", "weights", [(o, case.stored(weight=o).bound) for o in options], now)


def _activations(case: Case, now: Bound) -> Step | None:
    if now.work.matrix_flops or _bits(case.formats.dtype) <= _bits("fp8"):
        return None
    return narrower("quantisation", "tensors", [("fp8", case.stored(dtype="fp8").bound)], now)


def _kv(case: Case, now: Bound) -> Step | None:
    cache = _first(case.program, "cache")
    if cache is None or cache.bytes < now.work.traffic_bytes / 4:
        return None
    options = [name for name in ("fp8", "nvfp4") if _bits(name) < cache.dtype.bits_per_element]
    return narrower("KV compression", "K and V", [(o, case.stored(kv=o).bound) for o in options], now)


def _coalescing(case: Case, now: Bound) -> Step | None:
    if now.device.data["vendor"] != "NVIDIA":
        return None  # the sector is NVIDIA's
    bits = min(tensor.dtype.bits for tensor in case.program.inputs)
    waste = SECTOR_BYTES * 8 // bits
    return Step(
        "coalescing",
        "Neighbouring threads must load neighbouring addresses, 16 bytes each: scattered, "
        f"a {SECTOR_BYTES}-byte sector for each {bits}-bit element is up to {waste} times the bytes",
    )


def _tiles(case: Case, now: Bound) -> Step | None:
    if case.op.name != "gemm" or not _is_gpu(now.device):
        return None
    a, b = case.program.inputs
    m, n = case.dims["m"], case.dims["n"]
    naive = a.bytes * ceil_div(n, TILE_N) + b.bytes * ceil_div(m, TILE_M) + case.program.outputs[0].bytes
    return Step(
        "tiles",
        f"The bound reads each operand once; {TILE_M}x{TILE_N} tiles with no cache behind them move "
        f"{format_bytes(naive)}",
    )


def _async_copies(case: Case, now: Bound) -> Step | None:
    latency_s, units = now.device.memory_latency_s, now.device.units
    if not (latency_s and units):
        return None
    flying = now.device.bandwidth.value * latency_s
    each = scaled_binary(flying / units, digits=3)
    by = next((text for feature, text in FEATURES.items() if feature in now.device.features), "wide loads")
    return Step(
        "async copies",
        f"Keep {format_bytes(flying)} in flight, {each} a compute unit, to cover the latency ({by})",
    )


# --- compute-bound --------------------------------------------------------------------------------


def _batch_enough(case: Case, now: Bound) -> Step | None:
    dim = case.op.rows
    at = crossover(case, now.device, dim) if dim else None
    if dim is None or at is None:
        return None
    return Step(
        "batch", f"Compute-bound from {dim} {at} on: a larger {dim} adds time, not rate", at=(dim, at)
    )


def _tile_efficiency(case: Case, now: Bound) -> Step | None:
    units = now.device.units
    if case.op.name != "gemm" or not units or not _is_gpu(now.device):
        return None
    tiles = ceil_div(case.dims["m"], TILE_M) * ceil_div(case.dims["n"], TILE_N)
    waves = ceil_div(tiles, units)
    full = significant(100 * tiles / (waves * units), 3)
    return Step(
        "tile efficiency",
        f"{tiles} tiles of {TILE_M}x{TILE_N} on {units} compute units: {waves} waves, {full} % full",
    )


def _registers(case: Case, now: Bound) -> Step | None:
    """Where the sums of a tile live: in registers, or on Blackwell in tensor memory."""
    unit = now.device.group("unit")
    place, size = "tensor memory", unit.get("tensor_memory_kib")
    if not size:
        place, size = "registers", unit.get("registers_kib")
    held_bytes = TILE_M * TILE_N * 4
    if "gemm" not in case.op.name or not size or held_bytes >= to_si("kib", size) or not _is_gpu(now.device):
        return None
    held = scaled_binary(held_bytes)
    return Step(
        "registers",
        f"A {TILE_M}x{TILE_N} tile holds {held} of 32-bit sums, of {size:g} KiB of {place} a unit: "
        "larger tiles need units that share one, and spilling costs more than it gains",
    )


def _exponentials(case: Case, now: Bound) -> Step | None:
    if now.limited_by != "special":
        return None
    return Step(
        "exponentials",
        "They limit, not the matrix unit: the bound already emulates some on the vector lanes; "
        "a wider head does more matrix work for each",
    )


def _narrower_compute(case: Case, now: Bound) -> Step | None:
    """Up to three faster formats of the device, no wider than this one: floats first, the widest first."""
    if not now.work.matrix_flops or now.peak is None:
        return None
    bits = _bits(case.formats.dtype)
    offered = {name: now.device.peak(name).rate.value for name in now.device.dtypes()}
    better = [name for name, rate in offered.items() if rate > now.peak.value and _bits(name) <= bits]
    better.sort(key=lambda name: (name.startswith("int"), -_bits(name), -offered[name], name))
    choices = [(name, case.stored(dtype=name).bound) for name in better[:3]]
    return narrower("narrower dtype", "operands", choices, now)


_Maker = Callable[[Case, Bound], Step | None]
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
_COMPUTE_STEPS: tuple[_Maker, ...] = (
    _batch_enough,
    _tile_efficiency,
    _registers,
    _exponentials,
    _narrower_compute,
)


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


def _first(program: Program, role: str) -> Tensor | None:
    return next((tensor for tensor in program.inputs if tensor.role == role), None)


def _is_gpu(device: Device) -> bool:
    return device.group("unit").get("kind") in GPU_UNITS


def _bits(name: str) -> float:
    return find_dtype(name).bits_per_element
