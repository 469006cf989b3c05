"""Expressions: arithmetic with units, and nothing else."""

from __future__ import annotations

import pytest

from memwall.claims.expression import Expression, Fact, parse
from memwall.claims.quantity import Quantity
from memwall.errors import MemwallError, UsageError


def none(name: str) -> Fact:
    raise UsageError(f"{name} is not known")


def value(text: str, unit: str = "") -> float:
    return parse(text).evaluate(none).to(unit)


@pytest.mark.parametrize(
    ("text", "unit", "right"),
    [
        ("2 + 3 * 4", "", 14),
        ("2 ** 10", "", 1024),
        ("-(3 - 5)", "", 2),
        ("5 * 1024*bit * 2619*MHz * 2", "TB/s", 3.35232),  # an H100's memory, by hand
        ("137438953472*FLOP / (100663296*B)", "FLOP/byte", 1365.3333333),
        ("80*GB / (3.2*TB/s)", "ms", 25),
        ("64*128*2*B", "KiB", 16),
        ("max(3, 7, 5) - min(2, 9)", "", 5),
        ("ceil(7/2) + floor(7/2)", "", 7),
        ("sqrt(9) * log2(8)", "", 9),
        ("50 / 200", "%", 25),
        ("2.5 * USD/hour", "$/year", 21900),
        ('roofline("gemm", m=4096, n=4096, k=4096).arithmetic_intensity', "FLOP/byte", 1365.3333333),
        ('roofline("gemv", m=4*2048, k=8192, gpu="h100").bound_time_s', "us", 40.0470407),
        ("attention(heads=1, head_dim=128, seq=4096, causal=False).standard.traffic_bytes", "B", 138412032),
        ('gpu("h100").unit.count * gpu("h100").unit.registers_kib', "MiB", 33),
        ('gpu("h100").matrix.peak_dense_tflops.bf16', "TFLOPS", 989.4),
        ('gpu("h100").memory.pin_rate_gbit_per_s', "Gbps", 5.238),
        ('gpu("h100").ridge_points["bf16"]', "FLOP/byte", 295.13889),
        ('model("llama3-70b").parameters_total', "billion", 70.553706496),
        ('model("llama3-70b").layer_groups[0].attention.kv_heads', "", 8),
        ('standard("HBM3").gb_per_s', "GB/s", 819.2),
    ],
)
def test_values(text: str, unit: str, right: float) -> None:
    assert value(text, unit) == pytest.approx(right, rel=1e-7)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "import os",
        "[x for x in range(9)]",
        "(lambda: 1)()",
        "while True: pass",
        "open('f').read()",
        "gpu.__class__.__base__.__subclasses__()",
        "1 if 2 else 3",
        "1 < 2",
        "x := 3",
        "f'{1}'",
        "'text'",
        "True",
        "{1: 2}",
        "(1, 2)",
        "1 // 2",
        "5 % 3",
        "2 | 1",
        "max(*x)",
        "max(a=1)",
        'gpu("h100", **x).year',
        "gpu(name).year",
        'gpu("h100")',
        "",
        "1 +",
        "3in 4",
        "1e300",
        "(" * 500,
        "1" + "+1" * 400,
    ],
)
def test_what_is_not_arithmetic_is_refused_before_it_is_evaluated(text: str) -> None:
    with pytest.raises(UsageError):
        parse(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1 / 0", "division by zero"),
        ("1 / (3 - 3)", "division by zero"),
        ("3*GB + 2*s", "cannot add"),
        ("3*GB - 2", "cannot subtract"),
        ("max(3*GB, 2*s)", "cannot subtract"),
        ("2 ** 1000", "power"),
        ("2 ** (3*GB)", "power"),
        ("9 ** 64 ** 2", "power"),
        ("sqrt(-1)", "no value"),
        ("sqrt(1, 2)", "arguments"),
        ("(0 - 2) ** 0.5", "no number"),
        ("exp(1000)", "no value"),
        ('gpu("h100").nothing', "no metric"),
        ('gpu("h100").memory', "not a number"),
        ('gpu("h100").title', "not a number"),
        ('gpu("h1000").year', "unknown GPU"),
        ('roofline("gemm").flops', "needs"),
        ('roofline("gemm", mm=4).flops', "no --mm"),
        ('capacity("llama3-70b", tp=0).weight_bytes', "at least 1"),
        ('capacity("llama3-70b", tp="8").weight_bytes', "tp must be a whole number"),
        ('step("llama3-70b", context=5, batch=0).flops', "at least 1"),
        ('quant("llama3-70b", tp=1.5).formats.fp8.weight_bytes', "at least 1"),
        ("model(5).layers", "begins with a name"),
        ('traffic("flash9", seq=1).total_bytes', "no traffic formula"),
        ('traffic("flash1", seq=1).total_bytes', "cannot be made"),
        ('standard("HBM9").gb_per_s', "unknown memory standard"),
    ],
)
def test_faults_are_said(text: str, why: str) -> None:
    with pytest.raises(MemwallError, match=why):
        value(text)


def test_a_wrong_unit_says_both() -> None:
    with pytest.raises(UsageError, match="TB/s is B/s, and what is computed is B"):
        value("3*GB", "TB/s")


def test_a_misspelt_operation_and_key_name_the_nearest() -> None:
    with pytest.raises(UsageError, match="none of memwall's operations") as wrong:
        parse('rooflin("gemv").flops')
    assert "roofline" in wrong.value.hint
    with pytest.raises(UsageError) as key:
        value('gpu("h100").bandwith_bytes_per_s')
    assert "bandwidth_bytes_per_s" in key.value.hint


def test_names_are_claims_and_inputs_not_units_or_reports() -> None:
    text = 'a + b.low / text.c.high * GB * gpu("h100").year + max(d, 2)'
    assert parse(text).names == ("a", "b.low", "text.c.high", "d")


def test_numbers_stand_in_the_place_of_names() -> None:
    facts = {"peak": Fact(Quantity(989e12, (("FLOP", 1), ("s", -1)))), "n": Fact(Quantity(4096))}
    expression: Expression = parse("2 * (peak - peak / n) ** 1")
    assert expression.substituted(lambda name: facts[name]) == (
        "2 * (989 TFLOP/s - 989 TFLOP/s / 4,096) ** 1"
    )
