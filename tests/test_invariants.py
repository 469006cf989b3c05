"""What must hold for every operator on every device, whatever its shape and formats.

A new operator, device or format is covered as soon as it is registered: nothing here names one,
except where an operator's own dimensions depend on each other.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy
import pytest
import sympy
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from memwall import dtypes
from memwall.bound import bound, kernel_bounds
from memwall.catalog import HARDWARE
from memwall.dtypes import Precision, precision
from memwall.hardware import Device, from_entry
from memwall.ops import registry
from memwall.ops.registry import Op
from memwall.program import Program, Work, fuse

DEVICES = {entry.name: from_entry(entry) for entry in HARDWARE.entries()}
OPS = registry.ops()
SLACK = 1 + 1e-9
"""Rounding of float64, and no more."""

MANY = settings(max_examples=120, deadline=None, derandomize=True)
SOME = settings(max_examples=20, deadline=None, derandomize=True)


def sizes(largest: int) -> st.SearchStrategy[int]:
    """Counts of every magnitude, the odd ones and the powers of two among them."""
    powers = st.integers(0, largest.bit_length() - 1).map(lambda bits: 2**bits)
    return st.one_of(st.integers(1, 9), powers, st.integers(1, largest))


LARGEST = {
    "batch": 256,
    "experts": 256,
    "heads": 16,  # times kv_heads
    "kv_heads": 16,
    "key_heads": 16,
    "key_dim": 512,
    "value_dim": 512,
    "seq": 8192,
    "state": 256,
    "taps": 16,
    "head_dim": 512,
    "head_dim_v": 512,
    "seq_q": 8192,
    "seq_kv": 8192,  # more than seq_q
    "window": 16384,
    "rows": 2**20,
    "vocab": 2**18,
}
"""How far each dimension is drawn; others to 2^15."""


class Drawn(NamedTuple):
    """An operator with a legal shape, formats and settings, on a device that can compute them."""

    op: Op
    dims: dict[str, int]
    precision: Precision
    settings: dict[str, Any]
    device: Device

    @property
    def program(self) -> Program:
        """The program as drawn."""
        return self.sized()

    def sized(self, **dims: Any) -> Program:
        """The program with other dimensions."""
        return self.op.build(**{**self.dims, **dims}, **self.settings, precision=self.precision)

    def with_impl(self, impl: str) -> Drawn:
        """Another implementation of the same."""
        return self._replace(settings={**self.settings, "impl": impl})


def legal(dims: dict[str, int], op: Op) -> dict[str, int]:
    """The dimensions as drawn one by one, made to fit together."""
    full = dict(dims)
    if "kv_heads" in full:
        full["heads"] = full["kv_heads"] * full["heads"]
    if "seq_q" in op.dims:
        full["seq_kv"] += full.get("seq_q", 1)
    if op.name.startswith("rope"):
        full["head_dim"] *= 2
    if "key_heads" in full:
        full["heads"] = full["key_heads"] * full["heads"]
    if op.name == "route":
        full["experts"] += full["top_k"]
    if op.name == "mla":  # the values are part of what the keys have
        full["head_dim"] = full.get("head_dim", 64) + full.setdefault("head_dim_v", 512)
    return registry.resolve(op, full)[0]


@st.composite
def shapes(draw: st.DrawFn, op: Op, smaller: int = 1) -> dict[str, int]:
    """A legal shape of an operator; its optional dimensions are there or not."""
    optional = [name for name in op.dims if name not in op.required]
    left_out = draw(st.sets(st.sampled_from(optional))) if optional else set()
    dims = {
        name: draw(sizes(max(LARGEST.get(name, 2**15) // smaller, 2)), label=name)
        for name in op.dims
        if name not in left_out
    }
    return legal(dims, op)


@st.composite
def formats(draw: st.DrawFn, computable: list[str]) -> Precision:
    """Formats of every operand, the compute format among those given."""
    stored = st.none() | st.sampled_from(dtypes.names())
    return precision(draw(st.sampled_from(computable)), draw(stored), draw(stored), draw(stored))


@st.composite
def choices(draw: st.DrawFn, op: Op, dims: dict[str, int]) -> dict[str, Any]:
    """Implementation and mask, where the operator has them; a window needs a mask."""
    chosen: dict[str, Any] = {}
    if op.impls:
        chosen["impl"] = draw(st.sampled_from(op.impls))
    if op.takes("causal"):
        chosen["causal"] = "window" in dims or draw(st.booleans())
    return chosen


def computable(device: Device) -> list[str]:
    """The formats that a device computes in."""
    return [name for name in dtypes.names() if dtypes.find(name).engine in device.dtypes()]


ABLE = [device for device in DEVICES.values() if computable(device)]


@st.composite
def cases(draw: st.DrawFn, op: Op, device: Device | None = None, smaller: int = 1) -> Drawn:
    """An operator with everything else drawn."""
    on = device or draw(st.sampled_from(ABLE))
    dims = draw(shapes(op, smaller))
    return Drawn(op, dims, draw(formats(computable(on))), draw(choices(op, dims)), on)


every_op = pytest.mark.parametrize("op", OPS.values(), ids=OPS.keys())
every_device = pytest.mark.parametrize("device", ABLE, ids=[device.name for device in ABLE])
any_op = st.sampled_from(list(OPS.values()))


# --- the bound and its roofs ----------------------------------------------------------------------------


def check_roofs(case: Drawn) -> None:
    """The bound is at least each term, and the rate that it leaves at most each roof."""
    work, device = case.program.work, case.device
    result = bound(work, device)
    by_hand = {"hbm": work.traffic_bytes / device.bandwidth.value}
    for dtype, flops in work.matrix_flops.items():
        by_hand[f"matrix {dtype}"] = flops / device.peak(dtype).rate.value
    lanes = device.vector_peak
    if lanes:
        by_hand["vector"] = work.vector_flops / lanes.value
    for what, time_s in by_hand.items():
        assert result.time_s * SLACK >= time_s, what
    assert math.isfinite(result.time_s)
    assert result.time_s > 0
    assert result.time_s == max(term.time_s for term in result.terms)
    assert [t.time_s for t in result.terms] == sorted((t.time_s for t in result.terms), reverse=True)
    attainable = result.attainable_flops_per_s
    intensity = result.arithmetic_intensity
    assert intensity is not None  # every operator moves bytes
    assert attainable <= intensity * device.bandwidth.value * SLACK
    if work.matrix_flops and result.peak:
        assert attainable <= result.peak.value * SLACK
    if lanes:
        assert work.vector_flops / result.time_s <= lanes.value * SLACK


@every_op
@given(data=st.data())
@MANY
def test_a_bound_is_at_least_each_term_and_below_every_roof(op: Op, data: st.DataObject) -> None:
    check_roofs(data.draw(cases(op)))


@every_device
@given(data=st.data())
@SOME
def test_on_every_device_a_bound_is_at_least_each_term(device: Device, data: st.DataObject) -> None:
    check_roofs(data.draw(cases(data.draw(any_op), device)))


@every_device
@given(data=st.data())
@SOME
def test_any_work_takes_at_least_as_long_as_each_of_its_parts(device: Device, data: st.DataObject) -> None:
    """Work of any proportions, so that every engine limits in turn; less work is never slower."""
    amounts = st.sampled_from([0, 1]) | st.integers(0, 60).map(lambda bits: 2**bits)
    lanes, dtype = device.vector_peak, data.draw(st.sampled_from(computable(device)))
    engine = dtypes.find(dtype).engine or ""
    read, written, matrix, vector, special = (data.draw(amounts) for _ in range(5))
    work = Work(read, written, {engine: matrix}, vector, special)
    assume(work.traffic_bytes or work.matrix_flops[engine])
    time_s = bound(work, device).time_s * SLACK
    peak = device.peak(engine)
    assert time_s >= work.traffic_bytes / device.bandwidth.value
    assert time_s >= work.matrix_flops[engine] / peak.rate.value
    if lanes:
        shared = work.matrix_flops[engine] / peak.rate.value if peak.engine == "vector" else 0
        assert time_s >= shared + work.vector_flops / lanes.value
        if device.special_rate:
            assert time_s >= work.special_ops / (device.special_rate.value + lanes.value / 12)
    halves = Work(
        work.read_bytes // 2,
        work.written_bytes,
        work.matrix_flops,
        work.vector_flops // 2,
        work.special_ops // 2,
    )
    assume(halves.traffic_bytes or halves.matrix_flops[engine])
    assert time_s >= bound(halves, device).time_s


@every_op
@given(data=st.data())
@SOME
def test_kernels_in_turn_take_at_least_the_program_s_bound(op: Op, data: st.DataObject) -> None:
    case = data.draw(cases(op))
    in_turn = sum(each.time_s for _, each in kernel_bounds(case.program, case.device))
    assert in_turn * SLACK >= bound(case.program.work, case.device).time_s


def scaled(device: Device, factor: float) -> Device:
    """A device whose every peak and bandwidth is so many times as high."""
    data = copy.deepcopy(dict(device.data))
    for group, key in (("matrix", "peak_dense_tflops"), ("vector", "peak_tflops")):
        peaks = (data.get(group) or {}).get(key, {})
        peaks.update({dtype: peak * factor for dtype, peak in peaks.items()})
    memory = data["memory"]
    for key in ("bandwidth_gb_per_s", "bandwidth_driver_gb_per_s"):
        if memory.get(key):
            memory[key] *= factor
    if data.get("special"):
        data["special"]["exp_per_clock_per_unit"] *= factor
    return Device(data)


@every_op
@given(data=st.data(), factor=st.floats(0.01, 100))
@SOME
def test_c_times_the_peaks_take_a_c_th_of_the_time(op: Op, data: st.DataObject, factor: float) -> None:
    case = data.draw(cases(op))
    work = case.program.work
    before, after = bound(work, case.device), bound(work, scaled(case.device, factor))
    assert after.time_s * factor == pytest.approx(before.time_s, rel=1e-9)
    assert after.attainable_flops_per_s == pytest.approx(before.attainable_flops_per_s * factor, rel=1e-9)


ONE_LEVEL = {
    "name": "one",
    "title": "One engine, one memory",
    "architecture": "none",
    "segment": "datacenter",
    "status": "available",
    "matrix": {"peak_dense_tflops": {"bf16": 100}, "source": [{"assumed": "this test"}]},
    "memory": {"bandwidth_gb_per_s": 700, "source": [{"assumed": "this test"}]},
}


@every_op
@given(data=st.data())
@SOME
def test_with_one_engine_and_one_memory_the_ridge_decides(op: Op, data: st.DataObject) -> None:
    device = Device(ONE_LEVEL)
    work = data.draw(cases(op, device)).program.work
    result = bound(work, device)
    matrix = sum(work.matrix_flops.values())
    # intensity < ridge in exact integers: flops / bytes < 100e12 / 700e9 = 1000 / 7
    assume(matrix * 7 != work.traffic_bytes * 1000)
    assert (result.regime == "memory-bound") == (matrix * 7 < work.traffic_bytes * 1000)
    if matrix:
        assert result.ridge_point is not None
        assert result.arithmetic_intensity is not None
        assert (result.regime == "memory-bound") == (result.arithmetic_intensity < result.ridge_point)


# --- traffic and fusion ---------------------------------------------------------------------------------


@every_op
@given(data=st.data())
@SOME
def test_traffic_is_at_least_each_input_and_output_once(op: Op, data: st.DataObject) -> None:
    program = data.draw(cases(op)).program
    inputs = {t.name: t.bytes for kernel in program.kernels for t in kernel.reads}
    written = {t.name: t.bytes for kernel in program.kernels for t in kernel.writes}
    inside = (inputs.keys() & written.keys()) - program.kept
    edge = sum(size for name, size in inputs.items() if name not in written)
    edge += sum(size for name, size in written.items() if name not in inside)
    assert program.work.traffic_bytes >= edge
    if len(program.kernels) == 1:
        assert program.work.traffic_bytes == edge
    else:  # what passes between is written and read, what is kept is read
        assert program.work.traffic_bytes > edge


@every_op
@given(data=st.data())
@SOME
def test_fusing_never_adds_traffic_and_never_changes_flops(op: Op, data: st.DataObject) -> None:
    program = data.draw(cases(op)).program
    before, after = program.work, fuse(program).work
    assert after.read_bytes <= before.read_bytes
    assert after.written_bytes <= before.written_bytes
    assert after.flops_by_engine == before.flops_by_engine
    assert after.matrix_flops == before.matrix_flops


@pytest.mark.parametrize("op", [op for op in OPS.values() if op.impls], ids=lambda op: op.name)
@given(data=st.data())
@SOME
def test_no_other_implementation_moves_less_than_the_default(op: Op, data: st.DataObject) -> None:
    case = data.draw(cases(op))
    default = case.with_impl(op.impls[0]).program.work
    for impl in op.impls[1:]:
        other = case.with_impl(impl).program.work
        assert other.traffic_bytes >= default.traffic_bytes
        assert other.flops >= default.flops


# --- shapes ---------------------------------------------------------------------------------------------


def grown(case: Drawn, name: str, draw: Callable[[st.SearchStrategy[int]], int]) -> dict[str, int]:
    """The dimension made larger by a legal step, its partners as they are."""
    value = case.dims.get(name)
    if value is None:  # no window: nothing is larger than that
        return {}
    if name in ("kv_heads", "key_heads"):
        heads = case.dims.get("heads", value)
        return {name: draw(st.sampled_from([d for d in range(value, heads + 1) if heads % d == 0]))}
    if name == "seq_q":
        return {name: draw(st.integers(value, case.dims["seq_kv"]))}
    step = 2 if name == "head_dim" and case.op.name.startswith("rope") else 1
    if name == "heads":
        step = case.dims.get("kv_heads", 1) * case.dims.get("key_heads", 1)
    return {name: value + step * draw(sizes(4096))}


@every_op
@given(data=st.data())
@MANY
def test_nothing_falls_when_a_dimension_grows(op: Op, data: st.DataObject) -> None:
    case = data.draw(cases(op))
    name = data.draw(st.sampled_from(op.dims))
    larger = grown(case, name, data.draw)
    before, after = case.program.work, case.sized(**larger).work
    assert after.flops >= before.flops
    assert after.read_bytes >= before.read_bytes
    assert after.written_bytes >= before.written_bytes
    assert all(n >= before.flops_by_engine[engine] for engine, n in after.flops_by_engine.items())
    assert bound(after, case.device).time_s * SLACK >= bound(before, case.device).time_s


@every_op
@given(data=st.data(), more=st.integers(1, 1000))
@SOME
def test_batches_add_up(op: Op, data: st.DataObject, more: int) -> None:
    """The dimension of independent pieces: FLOPs add exactly, and batching shares what is common."""
    name = next(n for n in ("batch", "rows", "experts", "m") if n in op.dims)
    case = data.draw(cases(op))
    one, two = case.dims[name], more
    parts = [case.sized(**{name: count}).work for count in (one, two)]
    whole = case.sized(**{name: one + two}).work
    assert whole.flops == parts[0].flops + parts[1].flops
    assert whole.flops_by_engine == (parts[0] + parts[1]).flops_by_engine
    assert whole.traffic_bytes <= parts[0].traffic_bytes + parts[1].traffic_bytes
    assert whole.written_bytes <= parts[0].written_bytes + parts[1].written_bytes


@every_op
@pytest.mark.parametrize("size", [1, 2, 2**21])
def test_the_smallest_and_the_largest_shapes_are_finite_and_exact(op: Op, size: int) -> None:
    dims = dict.fromkeys(op.required, size)
    full, _ = registry.resolve(op, {**dims, "head_dim": 2 * size} if op.name.startswith("rope") else dims)
    for dtype in ("bf16", "fp8", "int8"):
        work = op.build(**full, precision=precision(dtype, weight="int4-g128", kv="nvfp4")).work
        for count in (work.read_bytes, work.written_bytes, work.flops, *work.flops_by_engine.values()):
            assert type(count) is int
            assert count >= 0
        for device in DEVICES.values():
            if dtypes.find(dtype).engine in device.dtypes():
                result = bound(work, device)
                assert 0 < result.time_s < math.inf
                assert 0 <= result.attainable_flops_per_s < math.inf


# --- one formula, three evaluations -----------------------------------------------------------------------


def parts(program: Program) -> list[Any]:
    """What is compared: bytes read and written, and the operations of each engine."""
    work = program.work
    return [work.read_bytes, work.written_bytes, work.flops, *work.flops_by_engine.values()]


ALL_FORMATS = formats([name for name in dtypes.names() if dtypes.find(name).engine])


@st.composite
def twins(draw: st.DrawFn, op: Op) -> tuple[list[dict[str, int]], Callable[[dict[str, Any]], Program]]:
    """A few shapes with the same dimensions named, and what builds their program."""
    first = draw(shapes(op, smaller=8))  # small enough for float64 to be exact
    others = [
        shape for shape in draw(st.lists(shapes(op, smaller=8), max_size=3)) if shape.keys() == first.keys()
    ]
    chosen, operands = draw(choices(op, first)), draw(ALL_FORMATS)
    return [first, *others], lambda dims: op.build(**dims, **chosen, precision=operands)


@every_op
@given(data=st.data())
@settings(max_examples=30, deadline=None, derandomize=True)
def test_an_array_is_its_numbers_one_by_one(op: Op, data: st.DataObject) -> None:
    dims, build = data.draw(twins(op))
    arrays = {name: numpy.array([each[name] for each in dims], dtype=float) for name in dims[0]}
    one_by_one = [parts(build(each)) for each in dims]
    for index, together in enumerate(parts(build(arrays))):
        assert numpy.broadcast_to(together, len(dims)).tolist() == [each[index] for each in one_by_one]


@every_op
@given(data=st.data())
@settings(max_examples=10, deadline=None, derandomize=True)
def test_a_symbol_stands_for_its_number(op: Op, data: st.DataObject) -> None:
    dims, build = data.draw(twins(op))
    symbols = {name: sympy.Symbol(name, integer=True, positive=True) for name in dims[0]}
    formulas = [sympy.sympify(formula) for formula in parts(build(symbols))]
    for each in dims:
        values = {symbols[name]: value for name, value in each.items()}
        assert [formula.subs(values) for formula in formulas] == parts(build(each))
