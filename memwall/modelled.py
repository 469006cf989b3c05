"""Bytes that an operator's kernels are expected to move, at main memory and between L2 and the units, L2
cold.

`Program.work` has the compulsory bytes, each tensor once. Real kernels ask again: a product for every tile,
attention for every block of queries, a norm in its second pass, and a kernel for what the one before it
wrote. What of that reaches main memory depends on L2 (`memwall.retention`). How a library cuts and orders
its work is its own; the assumptions are those of `memwall.tiles` and `memwall.flash`, and PyTorch's for rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from memwall import flash, tiles
from memwall.dtypes import Precision
from memwall.errors import NotPublished
from memwall.hardware import Device
from memwall.program import Kernel, Program, Tensor, kernel_work
from memwall.retention import L2, cache_of, loaded_by
from memwall.traffic import Traffic
from memwall.units import KIBI

NORM_THREADS, SOFTMAX_THREADS = 4 * 32, 32 * 32
"""Threads a row in PyTorch's kernels. Read from launches on an H200, PyTorch 2.11."""

SOFTMAX_ROW_BYTES = 48 * KIBI
"""The longest row that PyTorch's softmax keeps in shared memory; a longer one is read three times.
Source: pytorch aten/src/ATen/native/cuda/SoftMax.cu."""


class Modelled(NamedTuple):
    """The modelled bytes of an operator."""

    dram: Traffic
    l2: Traffic
    """Between L2 and the units."""
    l2_counter_bytes: float
    """What the profiler's `lts__t_bytes` is expected to show; it counts partition crossings too."""
    assumes: str
    """The tiles, the order or the passes that were assumed."""


class Question(NamedTuple):
    """An operator of a shape, as `memwall.ops.registry` builds it."""

    op: str
    dims: Mapping[str, Any]
    precision: Precision
    program: Program
    causal: bool | None = None
    impl: str | None = None


def modelled(question: Question, device: Device) -> Modelled:
    """The bytes that the operator's kernels are expected to move on a device.

    Args:
        question: the operator, its shape, formats and program.
        device: its L2 and compute units enter.

    Raises:
        NotPublished: the device's file has no L2, or no number of compute units.
    """
    if not (device.units and device.l2_bytes):
        missing = "l2.capacity_mib" if device.units else "unit.count"
        raise NotPublished(
            f"{device.title}: {missing} is not in its file, so what L2 keeps is not known",
            f"Give it in a file of your own: memwall gpu show {device.name} --yaml",
        )
    if question.op in ("attention", "mla"):
        return _attention(question, device)
    if question.op in ("gemm", "gemv", "batched_gemm", "grouped_gemm"):
        return _product(question, device)
    return _in_turn(question.program, device)


def gemm_product(question: Question) -> tuple[tiles.Product, int]:
    """A product's shape as m x n x k, and how many of them there are."""
    dims = question.dims
    if question.op == "gemv":
        m, n, k, count = dims["batch"], dims["m"], dims["k"], 1
    else:
        m, n, k = dims["m"], dims["n"], dims["k"]
        count = dims.get("batch", dims.get("experts", 1))
    (kernel,) = question.program.kernels
    weights = next(t for t in kernel.reads if t.role == "weight")
    rows = next(t for t in kernel.reads if t.role != "weight")
    (result,) = kernel.writes
    sizes = (rows.bytes / (m * k * count), weights.bytes / (n * k * count), result.bytes / (m * n * count))
    return tiles.Product(m, n, k, *sizes), count


def _product(question: Question, device: Device) -> Modelled:
    product, count = gemm_product(question)
    l2, tiling = cache_of(device), tiles.library_tiling(product)
    cluster = 2 if "clusters" in device.features else 1
    places = l2.places(loaded_by(device))
    dram = tiles.with_l2(product, tiling, device.units or 1, l2, places).times(count)
    moved = tiles.through_l2(product, tiling, cluster).times(count)
    streamed = dram.total_bytes * (l2.crossing - 1)
    assumes = f"tiles of {tiling.tile_m} x {tiling.tile_n} in bands of {tiling.band} columns of tiles"
    return Modelled(dram, moved, moved.total_bytes + streamed, assumes)


def attention_shape(question: Question) -> flash.Shape:
    """Attention's shape with the bytes of its elements; a latent serves as K and V of one head."""
    dims, precision = question.dims, question.precision
    latent = question.op == "mla"
    return flash.Shape(
        dims["batch"],
        dims["heads"],
        1 if latent else dims["kv_heads"],
        dims["seq_q"],
        dims["seq_kv"],
        dims["head_dim"],
        0 if latent else dims["head_dim_v"],
        bool(question.causal) and dims["seq_q"] > 1,
        dims.get("window"),
        precision.activation.bits_per_element / 8,
        precision.kv.bits_per_element / 8,
    )


def generation(impl: str | None, device: Device) -> str:
    """The generation that an implementation's name stands for; `flash` is the best that the device runs."""
    best = "fa3" if {"tma", "wgmma"} <= device.features else "fa2"
    return impl if impl in flash.SIZES else best


def _attention(question: Question, device: Device) -> Modelled:
    if question.impl == "standard":
        return _in_turn(_with_mask(question), device)
    shape, l2, units = attention_shape(question), cache_of(device), device.units or 1
    name = generation(question.impl, device)
    blocks = flash.blocks_of(name, shape)
    work = question.program.work
    assumes = f"{name}, blocks of {blocks.block_q} x {blocks.block_kv}"
    if question.op == "mla":  # the heads are the rows of a block or two, on one latent
        moved = Traffic(work.read_bytes, work.written_bytes)
        return Modelled(moved, moved, moved.total_bytes * l2.crossing, f"{name}, absorbed, the latent once")
    if name == "fa1":
        full = flash.fa1_full(shape, blocks)
        dram = flash.fa1_dram(shape, blocks, units, l2)
        return Modelled(dram, full, full.total_bytes * l2.crossing, assumes)
    dram = flash.through_dram(shape, blocks, units, l2)
    counter = flash.counted_l2(shape, blocks, l2)
    return Modelled(dram, flash.through_l2(shape, blocks), counter, assumes)


def _with_mask(question: Question) -> Program:
    """Standard attention as frameworks run it: a kernel adds the causal mask, a square, to every head's S."""
    program = question.program
    if not question.causal or question.dims["seq_q"] == 1:
        return program
    qk, *rest = program.kernels
    (scores,) = qk.writes
    heads = scores.shape[0] * scores.shape[1]
    mask = Tensor("mask", (heads, *scores.shape[2:]), scores.dtype)  # read again for every head
    raw = scores._replace(name="S before the mask")
    add = Kernel("mask", (raw, mask), (scores,))
    return program._replace(kernels=(qk._replace(writes=(raw,)), add, *rest))


def _in_turn(program: Program, device: Device) -> Modelled:
    """Kernels in turn: each streams its operands, and finds some of the last one's results in L2."""
    l2 = cache_of(device)
    read = moved = 0.0
    written = program.work.written_bytes
    traffic = [kernel_work(kernel).traffic_bytes for kernel in program.kernels]
    maker = {tensor.name: i for i, kernel in enumerate(program.kernels) for tensor in kernel.writes}
    notes = []
    for i, kernel in enumerate(program.kernels):
        for tensor in kernel.reads:
            missed = 1.0
            if tensor.name in maker:  # written at the same place of the earlier kernel as it is read here
                between = sum(traffic[maker[tensor.name] + 1 : i])
                missed = l2.missed(between + (traffic[maker[tensor.name]] + traffic[i]) / 2)
            read += tensor.bytes * missed
            moved += tensor.bytes
        for again in _later_passes(kernel, device, l2):
            read, moved = read + again.dram_bytes, moved + again.l2_bytes
            notes.append(again.why)
    assumes = "; ".join(dict.fromkeys(notes)) or "each operand streamed once"
    through = Traffic(moved, written)
    return Modelled(Traffic(read, written), through, through.total_bytes * l2.crossing, assumes)


class _Pass(NamedTuple):
    """One more pass over a kernel's input."""

    dram_bytes: float
    l2_bytes: float
    why: str


def _later_passes(kernel: Kernel, device: Device, l2: L2) -> Iterator[_Pass]:
    """What PyTorch's row kernels read again.

    A norm reads its rows twice, to sum and to scale, and by then the rows of all live blocks have passed:
    what they read, in the places that a streamed line takes, and half of what they write. A row is in L1 as
    far as the live rows of a unit fit.
    """
    x = kernel.reads[0]
    row_bytes = x.bytes / _rows(x)
    if kernel.name in ("rmsnorm", "layernorm"):
        live_bytes = _live_rows(device, NORM_THREADS) * row_bytes
        l1_bytes = device.group("unit").get("l1_and_shared_kib", 128) * KIBI * (device.units or 1)
        missed = l2.missed(min(x.bytes, live_bytes) * (l2.crossing + 0.5))
        share = min(1.0, live_bytes / l1_bytes)
        yield _Pass(x.bytes * missed, x.bytes * share, f"two passes, {NORM_THREADS} threads a row")
    elif kernel.name == "softmax" and row_bytes > SOFTMAX_ROW_BYTES:
        live_bytes = min(x.bytes, _live_rows(device, SOFTMAX_THREADS) * row_bytes)
        for places in (l2.crossing, l2.crossing + 0.5):
            why = f"three passes, {SOFTMAX_THREADS} threads a row"
            yield _Pass(x.bytes * l2.missed(live_bytes * places), x.bytes, why)


def _rows(tensor: Tensor) -> int:
    rows = 1
    for size in tensor.shape[:-1]:
        rows *= size
    return rows


def _live_rows(device: Device, threads: int) -> int:
    """Rows that are worked on at once, one a block."""
    unit = device.group("unit")
    blocks = int(min(unit.get("max_threads", 2048) // threads, unit.get("max_blocks", 32)))
    return (device.units or 1) * blocks
