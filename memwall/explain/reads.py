"""What tiles and blocks ask for again: without any cache, and with this device's L2."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import sympy

from memwall import flash, tiles, traffic
from memwall.explain.derivation import Derivation
from memwall.explain.symbols import dimension, rate
from memwall.hardware import Device
from memwall.maths import ceil_div
from memwall.modelled import Question, attention_shape, gemm_product, generation
from memwall.ops import registry
from memwall.reports.case import Case
from memwall.reports.modelled import question_of
from memwall.retention import cache_of, loaded_by

Symbols = Mapping[str, Any]
Values = Mapping[Any, float]
MODELLED = "reads of main memory, modelled"


def reads(case: Case, symbols: Symbols, values: Values, device: Device) -> Iterator[Derivation]:
    """The reads of a matrix product, or of flash attention; nothing for others, which stream.

    Args:
        case: the operator, its shape and formats.
        symbols: of its dimensions.
        values: what they stand for.
        device: whose L2 enters.
    """
    question = question_of(case)
    cached = bool(device.units and device.l2_bytes)
    if case.op.name in ("gemm", "batched_gemm", "grouped_gemm"):
        yield from _of_product(question, symbols, values, device if cached else None)
    if case.op.name == "attention" and case.impl != "standard":
        if not case.causal and "window" not in symbols:
            yield _of_blocks(question, symbols, values, device)
        if cached and generation(case.impl, device) != "fa1":
            yield _of_waves(question, symbols, values, device)


def _of_product(
    question: Question, symbols: Symbols, values: Values, device: Device | None
) -> Iterator[Derivation]:
    product, _ = gemm_product(question)
    tiling = tiles.library_tiling(product)
    rows, cols = dimension("tile_m"), dimension("tile_n")
    m, n, k = (symbols[name] for name in ("m", "n", "k"))
    count = symbols.get("batch", symbols.get("experts", 1))
    a_size, b_size = (sympy.nsimplify(size, rational=True) for size in (product.a_bytes, product.b_bytes))
    if a_size == b_size:
        worst = traffic.tiled_gemm(m, n, k, rows, cols, a_size, 0).read_bytes
    else:  # the same loads, each operand in its own format
        worst = m * k * a_size * ceil_div(n, cols) + n * k * b_size * ceil_div(m, rows)
    with_tile = {**values, rows: tiling.tile_m, cols: tiling.tile_n}
    yield Derivation(
        "reads of tiles, no cache", "Q_t", worst * count, with_tile, "B",
        f"each tile of {tiling.tile_m} x {tiling.tile_n} loads its own rows and columns",
        "memwall.traffic.tiled_gemm",
    )  # fmt: skip
    if device is None:
        return
    l2 = cache_of(device)
    again = tiles.read_again(product, tiling, device.units or 1, l2, l2.places(loaded_by(device)))
    names = [rate(name) for name in ("r_a", "r_b", "s")]
    modelled = tiles.dram_reads(m * k * a_size, n * k * b_size, worst, *names) * count
    yield Derivation(
        MODELLED, "Q_m", modelled, {**with_tile, **dict(zip(names, again, strict=True))}, "B",
        "a comes r_a times again, b r_b times, where L2 lost it between waves; s: blocks out of step",
        f"memwall.tiles, bands of {tiling.band} columns of tiles; memwall.retention",
    )  # fmt: skip


def _of_blocks(question: Question, symbols: Symbols, values: Values, device: Device) -> Derivation:
    shape = attention_shape(question)
    blocks = flash.blocks_of(generation(question.impl, device), shape)
    block_q, block_k = dimension("B_r"), dimension("B_c")
    head = traffic.flash2(
        symbols["seq_q"], symbols["seq_kv"], symbols["head_dim"], symbols["head_dim_v"], block_q, block_k,
        sympy.nsimplify(shape.q_bytes), causal=False,
    )  # fmt: skip
    expression = head.read_bytes * symbols["batch"] * symbols["heads"]
    with_blocks = {**values, block_q: blocks.block_q, block_k: blocks.block_kv}
    return Derivation(
        "reads of blocks, no reuse", "Q_b", expression, with_blocks, "B",
        f"each block of {blocks.block_q} queries of each head loads its own K and V",
        "Dao 2023, arXiv:2307.08691, algorithm 1",
    )  # fmt: skip


def _of_waves(question: Question, symbols: Symbols, values: Values, device: Device) -> Derivation:
    shape, name = attention_shape(question), generation(question.impl, device)
    again = flash.read_again(shape, flash.blocks_of(name, shape), device.units or 1, cache_of(device))
    operator = registry.find(question.op)
    built = registry.build(operator, dict(symbols), question.precision, question.causal, question.impl)
    queries, *cache = (tensor.bytes for tensor in built.inputs)
    repeats = rate("r")
    return Derivation(
        MODELLED, "Q_m", flash.dram_reads(queries, sum(cache), repeats), {**values, repeats: again}, "B",
        f"{name}: K and V come r times again, where a head straddles two waves of blocks and L2 lost it",
        "memwall.flash.through_dram; memwall.retention",
    )  # fmt: skip
