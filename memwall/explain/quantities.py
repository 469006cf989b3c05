"""Every quantity of an operator, by running the functions that compute on symbols."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

import sympy

from memwall import tiles, traffic
from memwall.bound import terms_of
from memwall.explain.printing import latex, plain, with_numbers
from memwall.explain.symbols import SymbolicDevice, dimension, dimensions, rate
from memwall.flash import blocks_of
from memwall.hardware import Device
from memwall.modelled import Question, attention_shape, gemm_product, generation
from memwall.ops import registry
from memwall.program import Program
from memwall.reports.case import Case
from memwall.reports.modelled import question_of

TIMES = {"hbm": "T_mem", "matrix": "T_mat", "vector": "T_vec", "special": "T_sp"}


class Derivation(NamedTuple):
    """One quantity: its formula, the numbers in it, and the result."""

    quantity: str
    symbol: str
    expression: Any
    """In symbols."""
    values: Mapping[Any, float]
    """What each symbol stands for."""
    unit: str
    assumption: str
    source: str

    @property
    def value(self) -> float | int:
        """The result; a whole number stays one."""
        result = sympy.sympify(self.expression).subs(self.values)
        return int(result) if result.is_Integer else float(result)

    @property
    def formula(self) -> str:
        """The formula on one line."""
        return plain(self.expression)

    @property
    def latex(self) -> str:
        """The formula as LaTeX."""
        return latex(self.expression)

    @property
    def substitution(self) -> str:
        """The formula with the numbers in it."""
        return with_numbers(self.expression, self.values)


def derivations(case: Case, device: Device, source: str) -> tuple[Derivation, ...]:
    """Every quantity of an operator on a device, in the order in which they follow from each other.

    Args:
        case: the operator, its shape and formats.
        device: whose rates enter.
        source: of the operator's definition.
    """
    symbols = dimensions(case.dims)
    values = {symbol: case.dims[name] for name, symbol in symbols.items()}
    dims: dict[str, Any] = dict(symbols)
    program = registry.build(case.op, dims, case.formats.precision, case.causal, case.impl)
    found = [*_tensors(program, values, source), *_work(program, values, source)]
    found += _repeated(case, symbols, values, device)
    return (*found, *_times(program, values, device))


def _tensors(program: Program, values: Mapping[Any, float], source: str) -> Iterator[Derivation]:
    """Bytes of each tensor that crosses memory."""
    between = {tensor.name for tensor in program.intermediates}
    kept = {tensor.name for tensor in program.outputs}
    for tensor in (*program.inputs, *program.produced.values()):
        how = "read" if tensor in program.inputs else "written"
        if tensor.name in between:
            how = "written and read" + (", kept" if tensor.name in kept else "")
        bits = tensor.dtype.bits_per_element
        assumption = f"{how}; {tensor.dtype.name}, {bits:g} bits an element"
        yield Derivation(f"bytes of {tensor.name}", "", tensor.bytes, values, "B", assumption, source)


def _work(program: Program, values: Mapping[Any, float], source: str) -> Iterator[Derivation]:
    """FLOPs by engine, traffic and intensity."""
    work = program.work
    matrix = sum(work.matrix_flops.values())
    amounts = (
        ("matrix FLOPs", "F", matrix, "FLOP", "a multiply and an add are two"),
        ("vector FLOPs", "F_v", work.vector_flops, "FLOP", "on the lanes, in fp32"),
        ("special functions", "F_s", work.special_ops, "op", "exp, reciprocal, rsqrt, tanh"),
        (
            "bytes read",
            "Q_r",
            work.read_bytes,
            "B",
            "compulsory: each tensor once, and what passes between kernels",
        ),
        ("bytes written", "Q_w", work.written_bytes, "B", "compulsory"),
        ("traffic", "Q", work.traffic_bytes, "B", "compulsory, caches cold"),
    )
    for quantity, symbol, amount, unit, assumption in amounts:
        if amount != 0:
            yield Derivation(quantity, symbol, sympy.sympify(amount), values, unit, assumption, source)
    intensity = work.flops / work.traffic_bytes
    yield Derivation(
        "arithmetic intensity", "I", intensity, values, "FLOP/B", "FLOPs of the operator's kind / traffic",
        "Williams, Waterman and Patterson 2009",
    )  # fmt: skip


def _repeated(
    case: Case, symbols: Mapping[str, Any], values: Mapping[Any, float], device: Device
) -> Iterator[Derivation]:
    """What tiles and blocks ask for again, before any cache."""
    question = question_of(case)
    if case.op.name in ("gemm", "batched_gemm", "grouped_gemm"):
        product, _ = gemm_product(question)
        tiling = tiles.library_tiling(product)
        rows, cols = dimension("tile_m"), dimension("tile_n")
        m, n, k = (symbols[name] for name in ("m", "n", "k"))
        count = symbols.get("batch", symbols.get("experts", 1))
        size = sympy.nsimplify(product.a_bytes)
        expression = traffic.tiled_gemm(m, n, k, rows, cols, size, 0).read_bytes * count
        with_tile = {**values, rows: tiling.tile_m, cols: tiling.tile_n}
        yield Derivation(
            "reads of tiles, no cache", "Q_t", expression, with_tile, "B",
            f"each tile of {tiling.tile_m} x {tiling.tile_n} loads its own rows and columns; b stored like a",
            "memwall.traffic.tiled_gemm",
        )  # fmt: skip
    if (
        case.op.name == "attention"
        and not case.causal
        and case.impl != "standard"
        and "window" not in symbols
    ):
        yield _flash_reads(question, symbols, values, device)


def _flash_reads(
    question: Question, symbols: Mapping[str, Any], values: Mapping[Any, float], device: Device
) -> Derivation:
    shape = attention_shape(question)
    blocks = blocks_of(generation(question.impl, device), shape)
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


def _times(program: Program, values: Mapping[Any, float], device: Device) -> Iterator[Derivation]:
    """Each term of the bound, the bound, the ridge and the attainable rate."""
    work = program.work
    symbolic = SymbolicDevice(device)
    terms = terms_of(work, cast(Device, symbolic))
    rates = {symbol: constant.value for symbol, constant in symbolic.values.items()}
    sources = {str(symbol): constant for symbol, constant in symbolic.values.items()}
    every: dict[Any, float] = {**values, **rates}
    times = []
    for term in terms:
        time_s = sympy.simplify(term.time_s) if term.limit == "special" else term.time_s
        names = sorted(str(s) for s in sympy.sympify(term.rate).free_symbols)
        source = "; ".join(f"{name}: {sources[name].key}, {sources[name].source}" for name in names)
        symbol = TIMES.get(term.limit, f"T_{term.limit}")
        assumption = "everything else costs nothing and overlaps"
        derived = Derivation(f"time of {term.limit}", symbol, time_s, every, "s", assumption, source)
        times.append(derived)
        yield derived
    if not times:
        return
    largest = sympy.Max(*(rate(each.symbol) for each in times)) if len(times) > 1 else rate(times[0].symbol)
    results: dict[Any, float] = {rate(each.symbol): each.value for each in times}
    bound = Derivation(
        "bound time", "T", largest, results, "s", "the largest term: no kernel is faster",
        "Williams, Waterman and Patterson 2009",
    )  # fmt: skip
    yield bound
    if work.flops != 0:
        flops = work.flops
        amount = float(sympy.sympify(flops).subs(values))
        both = {rate("F"): amount, rate("T"): bound.value}
        yield Derivation(
            "attainable rate", "R", rate("F") / rate("T"), both, "FLOP/s", "FLOPs / bound time", ""
        )
    if "P" in sources:
        ridge = rate("P") / rate("beta")
        yield Derivation(
            "ridge point", "I_r", ridge, every, "FLOP/B", "where compute and memory take equally long",
            f"P: {sources['P'].key}, {sources['P'].source}; beta: {sources['beta'].key},"
            f" {sources['beta'].source}",
        )  # fmt: skip
