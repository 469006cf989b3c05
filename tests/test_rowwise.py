"""Norms, softmax, elementwise work: the mechanism by hand, chains of kernels, whose kernel is meant."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy
import pytest
from toy_chip import chip

import memwall
from memwall.cli import run
from memwall.dtypes import precision
from memwall.estimate import measurements
from memwall.estimate.choice import choose
from memwall.estimate.constants import shipped, shipped_calibrations
from memwall.estimate.eager import launched
from memwall.estimate.estimate import estimate
from memwall.estimate.families import ROWWISE
from memwall.estimate.library import COMPILED, UNKNOWN, Library, of_rows, recognise
from memwall.estimate.plans import plan_of
from memwall.estimate.predict import Prediction, predict
from memwall.estimate.rowwise import RowwiseShape, rowwise_time_s
from memwall.estimate.samples import Measured
from memwall.ops import registry
from memwall.program import Program, kernel_work

CHIP = chip(peak_flops_per_s=0, l2_bytes_per_s=6.4e12, unit_cache_bytes=128e3)


def constants(family: str = "rmsnorm", **changes: float) -> Any:
    """Nothing but the bytes, unless changed; so sharp a maximum that it is the plain one."""
    plain = {
        "launch_s": 0,
        "first_s": 0,
        "bandwidth_share": 1,
        "row_clocks": 0,
        "element_clocks": 0,
        "serial_clocks": 0,
        "reread": 0,
        "sharpness": 200,
    }
    return plan_of(family, "any").start._replace(**{**plain, **changes})


def test_rows_take_their_clocks_and_bytes_their_bandwidth() -> None:
    c = constants(row_clocks=1000, element_clocks=1)
    # 10000 rows of 1000: 100 units x 1 GHz share 10000 x 2000 clocks, 200 us; 40 MB take 40 us.
    assert rowwise_time_s(RowwiseShape(10000, 1000, 40e6, 2000, 0), CHIP, c) == pytest.approx(200e-6)
    assert rowwise_time_s(RowwiseShape(10, 1000, 400e6, 2000, 0), CHIP, c) == pytest.approx(400e-6)


def test_a_function_takes_its_clocks_beside_the_family_s() -> None:
    # 1e7 elements at 1 + 3 clocks, 100 units at 1 GHz: 400 us
    shape = RowwiseShape(10000, 1000, 40e6, 2000, 3)
    assert rowwise_time_s(shape, CHIP, constants(element_clocks=1)) == pytest.approx(400e-6)


def test_rows_that_the_cache_does_not_hold_are_read_again() -> None:
    c = constants(reread=1, resident_rows=16)
    # 16 rows of 4 kB fit in 128 kB, of 16 kB they do not: 1000 rows are read once more.
    assert rowwise_time_s(RowwiseShape(1000, 2000, 8e6, 4000, 0), CHIP, c) == pytest.approx(8e-6)
    assert rowwise_time_s(RowwiseShape(1000, 8000, 32e6, 16000, 0), CHIP, c) == pytest.approx(48e-6)


def test_one_long_row_takes_its_own_time() -> None:
    # 100,000 elements, 4 clocks each, on one unit of 1 GHz
    shape = RowwiseShape(1, 100000, 400e3, 200e3, 0)
    assert rowwise_time_s(shape, CHIP, constants(serial_clocks=4)) == pytest.approx(400e-6, rel=0.01)


def test_short_rows_have_a_kernel_of_their_own() -> None:
    c = constants("softmax", row_clocks=5000, short_clocks=0.5, short_serial_clocks=0, short_row=1024)
    # 1e6 rows of 128: 0.5 clocks x 1.28e8 / 1e11 a second = 640 us; 5000 clocks a row would be 50 ms.
    assert rowwise_time_s(RowwiseShape(1e6, 128, 512e6, 256, 0), CHIP, c) == pytest.approx(640e-6)
    assert rowwise_time_s(RowwiseShape(1e6, 1025, 4e9, 2050, 0), CHIP, c) == pytest.approx(50e-3)


def test_warm_operands_come_from_l2_as_far_as_they_fit() -> None:
    c = constants(warm_bytes_per_clock=40)  # 100 units x 1 GHz x 40 B: 4 TB/s
    small, large = (RowwiseShape(1000, 1000, size, 2000, 0) for size in (40e6, 200e6))
    assert rowwise_time_s(small, CHIP, c, True) == pytest.approx(10e-6)
    assert rowwise_time_s(small, CHIP._replace(l2_parts=2), c, True) > 20e-6
    assert rowwise_time_s(large, CHIP, c, True) == pytest.approx(200e-6)
    cold = constants(first_s=1e-6)
    assert rowwise_time_s(small, CHIP, cold) == pytest.approx(41e-6)


def test_every_row_of_a_short_softmax_is_near_its_bytes_on_every_gpu() -> None:
    """A unit takes a warp's row in tens of clocks: no GPU is more than some times over its bound."""
    for gpu in ("b200", "b300", "gh200", "l40s", "rtx-4090", "a100", "v100", "t4"):
        made = memwall.roofline("softmax", gpu=gpu, rows=65536, cols=128).estimate
        assert made is not None
        assert made.time_s < 6 * made.bound_time_s


# --- chains of kernels


def estimates(measured: Sequence[Measured]) -> list[float]:
    """Of rows that all have one."""
    answers = predict([each.row for each in measured])
    return [a.estimate_time_s for a in answers if isinstance(a, Prediction) and a.estimate_time_s]


def rmsnorm(dtype: str = "bf16") -> Program:
    return registry.build(registry.find("rmsnorm"), {"rows": 4096, "cols": 8192}, precision(dtype))


def test_a_hugging_face_norm_moves_36_bytes_an_element() -> None:
    elements = 4096 * 8192
    chain = [launch.kernel for launch in launched(rmsnorm().kernels, recognise("huggingface"))]
    moved = sum(kernel_work(kernel).traffic_bytes for kernel in chain)
    # upcast 2 + 4, square 4 + 4, mean 4, scale 4 + 4, downcast 4 + 2, weight 2 + 2; a few numbers a row
    assert moved == pytest.approx(36 * elements, rel=0.001)
    assert [k.name for k in chain] == [
        "upcast",
        "square",
        "mean",
        "add_epsilon",
        "rsqrt",
        "scale_rows",
        "downcast",
        "scale_columns",
    ]


def test_a_norm_of_fp32_has_no_casts() -> None:
    chain = [each.kernel.name for each in launched(rmsnorm("fp32").kernels, Library("eager"))]
    assert "upcast" not in chain
    assert "downcast" not in chain


@pytest.mark.parametrize("library", ["liger", "torch", "vllm", "triton", None])
def test_others_launch_one_kernel(library: str | None) -> None:
    assert len(launched(rmsnorm().kernels, recognise(library))) == 1


def test_a_chain_takes_several_times_a_fused_kernel() -> None:
    times = {
        name: memwall.roofline("rmsnorm", gpu="a100", library=name, rows=4096, cols=8192).estimate
        for name in ("huggingface", "torch", "liger", "vllm")
    }
    spent = {name: made.time_s for name, made in times.items() if made}
    assert len(spent) == 4
    assert spent["huggingface"] > 4 * max(
        spent["torch"], spent["liger"], spent["vllm"]
    )  # the last is an old kernel
    assert len(set(spent.values())) == 4


def test_measured_chains_are_as_their_parts() -> None:
    """Nothing is fitted to them: 36 rows of Hugging Face norms, on an A100 and an H200."""
    measured = [
        each
        for each in measurements.read_shipped().measured
        if each.row.op.name == "rmsnorm" and each.row.library.kernel == "huggingface"
    ]
    assert len(measured) > 30
    spent = estimates(measured)
    off = [time_s / m.time_s - 1 for time_s, m in zip(spent, measured, strict=True)]
    assert float(numpy.median(numpy.abs(off))) < 0.05
    assert float((numpy.abs(off) < 0.25).mean()) > 0.85


# --- whose kernel is meant


def test_a_gelu_or_a_softmax_of_hugging_face_is_the_framework_s() -> None:
    assert of_rows(recognise("huggingface")) == of_rows(UNKNOWN) == Library(None, "torch")
    assert of_rows(recognise("liger_triton")) == of_rows(recognise("triton")) == Library("liger")
    assert of_rows(recognise("vllm kernels")) == Library(None, "vllm")


def test_a_pass_runs_what_a_compiler_makes_and_an_attention_s_name_says_nothing() -> None:
    assert of_rows(UNKNOWN, within=True) == of_rows(recognise("cudnn"), within=True) == COMPILED
    assert of_rows(recognise("fa3")) == Library(None, "torch")
    assert of_rows(recognise("vllm_flash_attn_fa3|vllm_0.24.0")) == Library(None, "vllm")
    assert recognise("torch.compile") == COMPILED


def test_constants_of_rows_are_fitted_over_generations() -> None:
    """Clocks of a unit are of the implementation; few sets, none on a handful of rows."""
    for name in shipped_calibrations():
        for fit in shipped(name):
            if fit.family in ROWWISE:
                assert name in ("general", "cdna", "eager")
                assert fit.rows >= 8 or not fit.fitted


def test_a_gpu_of_a_measured_generation_has_the_architecture_s_basis() -> None:
    vllm = Library(None, "vllm")
    assert choose("rmsnorm", "any", memwall.gpu("h100"), vllm).basis == "calibrated: h100"
    assert choose("rmsnorm", "any", memwall.gpu("gh200"), vllm).basis == "architecture default"
    assert choose("rmsnorm", "any", memwall.gpu("b200"), vllm).basis == "physics"


def test_a_power_costs_more_than_its_bytes_where_lanes_are_few() -> None:
    rows = measurements.parse(
        "made up",
        "gpu,op,dtype,rows,cols,kernel,time_us\n"
        + "".join(
            f"{gpu},{op},fp32,16384,4096,torch eager,1\n"
            for gpu in ("mi210", "v100-pcie-32gb")
            for op in ("elementwise_pow", "elementwise_add")
        ),
    ).measured
    power, add, v100_power, v100_add = estimates(rows)
    assert power > 1.5 * add
    assert v100_power < 1.1 * v100_add


@pytest.mark.parametrize(
    ("library", "said"),
    [
        (None, "(torch's kernel, as no library is named)"),
        ("liger", "(liger's kernel)"),
        ("huggingface", "(huggingface's chain of 8 kernels)"),
        ("sglang", "(no rows of sglang: all libraries together)"),
    ],
)
def test_the_basis_says_whose_kernel_is_meant(
    library: str | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    named = ["--library", library] if library else []
    assert run(["roofline", "--op", "rmsnorm", "--rows", "4096", "--cols", "4096", *named]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  estimate")]
    assert said in line
    assert run(["roofline", "--op", "rmsnorm", "--rows", "64", "--cols", "64", "--json", *named]) == 0
    assert json.loads(capsys.readouterr().out)["estimate_kernel"] == said.strip("()")


def test_arrays_of_chains_give_what_numbers_give() -> None:
    shapes = [{"rows": 64, "cols": 1024}, {"rows": 4096, "cols": 8192}]
    device, hugging_face = memwall.gpu("h200"), recognise("huggingface")
    op, formats = registry.find("rmsnorm"), precision("bf16")
    arrays = {key: numpy.array([shape[key] for shape in shapes], dtype=float) for key in shapes[0]}
    both = estimate(registry.build(op, arrays, formats), device, hugging_face).time_s
    alone = [estimate(registry.build(op, dict(s), formats), device, hugging_face).time_s for s in shapes]
    assert both == pytest.approx(alone, rel=1e-12)
