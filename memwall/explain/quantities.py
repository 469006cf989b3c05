"""Every quantity of an operator, by running the functions that compute on symbols."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import sympy

from memwall.bound import terms_of
from memwall.explain.derivation import Derivation
from memwall.explain.reads import reads
from memwall.explain.symbols import SymbolicDevice, dimensions, rate
from memwall.hardware import Device
from memwall.ops import registry
from memwall.program import Program
from memwall.reports.case import Case

TIMES = {"hbm": "T_mem", "matrix": "T_mat", "vector": "T_vec", "special": "T_sp"}


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
    found += reads(case, symbols, values, device)
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
