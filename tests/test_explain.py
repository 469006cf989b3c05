"""Derivations: every quantity of every operator, equal to what is computed; its text, worked out, gives its
value."""

from __future__ import annotations

import json
import math
import re
import shlex
from typing import Any

import pytest

from memwall.cli import run
from memwall.errors import UsageError
from memwall.explain.report import Explanation, Line, explain, source_of
from memwall.ops import registry
from memwall.reports.modelled import modelled_case

OPS = sorted(registry.ops())


def of(op: str, **options: Any) -> Explanation:
    return explain(op, **{**registry.find(op).example, **options})


def line(explanation: Explanation, quantity: str) -> Line:
    return next(each for each in explanation.lines if each.quantity == quantity)


UNITS = {"": "", "m": "e-3", "u": "e-6", "n": "e-9"}


def worked_out(text: str) -> float:
    """A line of arithmetic as it is printed, evaluated."""
    python = re.sub(r"([\d.]+) ([mun]?)s\b", lambda m: f"({m[1]}{UNITS[m[2]]})", text)
    python = python.replace(" x ", "*").replace("^", "**")
    assert re.fullmatch(r"[\d\s.,+\-*/()eamxcilin]*", python), text
    return float(eval(python, {"__builtins__": {}}, {"ceil": math.ceil, "min": min, "max": max}))


@pytest.mark.parametrize("op", OPS)
def test_every_quantity_is_what_is_computed(op: str) -> None:
    """The formula's value is the program's own number, and the bound's."""
    explanation = of(op, gpu="h100")
    base = explanation.base
    work = base.bound.work
    for name, amount in {
        "matrix FLOPs": sum(work.matrix_flops.values()),
        "vector FLOPs": work.vector_flops,
        "special functions": work.special_ops,
        "bytes read": work.read_bytes,
        "bytes written": work.written_bytes,
        "traffic": work.traffic_bytes,
    }.items():
        if amount:
            assert line(explanation, name).value == amount
    for term in base.bound.terms:
        assert line(explanation, f"time of {term.limit}").value == pytest.approx(term.time_s, rel=1e-9)
    assert line(explanation, "bound time").value == pytest.approx(base.bound_time_s, rel=1e-9)
    assert base.program is not None
    for tensor in (*base.program.inputs, *base.program.produced.values()):
        assert line(explanation, f"bytes of {tensor.name}").value == tensor.bytes


@pytest.mark.parametrize("op", OPS)
def test_the_substitution_worked_out_gives_the_value(op: str) -> None:
    for each in of(op, gpu="h100").lines:
        assert worked_out(each.substitution) == pytest.approx(each.value, rel=2e-4), each


@pytest.mark.parametrize("op", OPS)
def test_every_line_says_what_it_assumes(op: str) -> None:
    for each in of(op).lines:
        assert each.assumption
        assert each.latex
        assert each.source or each.quantity == "attainable rate"


@pytest.mark.parametrize("impl", ["standard", "flash", "fa2"])
@pytest.mark.parametrize("causal", [True, False])
def test_attention_in_each_form(impl: str, causal: bool) -> None:
    explanation = of("attention", impl=impl, causal=causal)
    assert line(explanation, "traffic").value == explanation.base.traffic_bytes
    blocks = [each for each in explanation.lines if each.quantity.startswith("reads of blocks")]
    assert bool(blocks) == (impl != "standard" and not causal)


@pytest.mark.parametrize("dtype", ["int4-g128", "fp8", "mxfp4"])
def test_weights_in_other_formats(dtype: str) -> None:
    explanation = explain("gemm", m=16, n=4096, k=4096, weight_dtype=dtype)
    assert line(explanation, "traffic").value == explanation.base.traffic_bytes


def test_a_gemm_reads_as_people_write_it() -> None:
    explanation = explain("gemm", m=4096, n=4096, k=4096)
    flops = line(explanation, "matrix FLOPs")
    assert flops.formula == "2 k m n"
    assert flops.substitution == "2 x 4096 x 4096 x 4096"
    assert flops.value == 137438953472
    tiles = line(explanation, "reads of tiles, no cache")
    assert tiles.formula == "2 k m ceil(n/tile_n) + 2 k n ceil(m/tile_m)"
    assert tiles.latex.count(r"\lceil") == 2


def test_a_docstring_s_source() -> None:
    assert source_of("x\n\n    Source: the\n    definition.\n") == "the definition"
    assert source_of("nothing") == "the definition"


def test_json_and_latex(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shlex.split("explain gemm --m 64 --n 64 --k 64 --json")) == 0
    document = json.loads(capsys.readouterr().out)
    found = {each["quantity"]: each for each in document["quantities"]}
    assert found["matrix FLOPs"]["value"] == 2 * 64**3
    assert run(shlex.split("explain gemm --m 64 --n 64 --k 64 --latex")) == 0
    assert r"\frac" in capsys.readouterr().out


@pytest.mark.parametrize("form", ["text", "csv", "markdown", "json"])
def test_every_format_and_several_gpus(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shlex.split(f"explain gemv --gpu a100,v100 --format {form}")) == 0
    assert "a100" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        ("explain gemn", 2, "gemm"),
        ("explain", 2, "OP"),
        ("explain gemm --m 4", 2, "--n"),
        ("explain gemm --m 4 --n 4 --k 4 --dtype fp8 --gpu a100", 4, "fp8"),
    ],
)
def test_mistakes_are_answered(
    command: str, code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(shlex.split(command)) == code
    assert says in capsys.readouterr().err


def test_without_sympy_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import memwall.cli.explain as command

    monkeypatch.setattr(command, "find_spec", lambda name: None)
    assert run(shlex.split("explain gemv")) == 4
    assert "memwall[explain]" in capsys.readouterr().err


def test_bare_counts_are_no_operator() -> None:
    with pytest.raises(UsageError):
        explain("")


@pytest.mark.parametrize("gpu", ["a100", "h200", "rtx-4090"])
@pytest.mark.parametrize(
    ("op", "shape"),
    [
        ("gemm", {"m": 4096, "n": 8192, "k": 4096}),
        ("grouped_gemm", {"experts": 8, "m": 512, "n": 4096, "k": 4096}),
        ("attention", {"heads": 32, "kv_heads": 8, "head_dim": 128, "seq": 16384}),
    ],
)
def test_the_modelled_reads_are_what_is_modelled(op: str, shape: dict[str, Any], gpu: str) -> None:
    explanation = explain(op, gpu=gpu, **shape)
    case = explanation.base.case
    assert case is not None
    expected = modelled_case(case, explanation.device).dram.read_bytes
    assert line(explanation, "reads of main memory, modelled").value == pytest.approx(expected)


def test_latex_keeps_its_backslashes() -> None:
    """A product is written with thin spaces; a lost backslash would print the command's name."""
    explanation = explain("gemm", m=4096, n=4096, k=4096)
    assert line(explanation, "matrix FLOPs").latex == r"2 \, k \, m \, n"
    assert not any("thinspace" in each.latex for each in explanation.lines)


def test_numbers_stand_under_their_own_symbols() -> None:
    """In the formula's order, though the numbers themselves would sort otherwise."""
    explanation = explain("gemm", m=7, n=300, k=50, gpu="h100")
    assert line(explanation, "matrix FLOPs").formula == "2 k m n"
    assert line(explanation, "matrix FLOPs").substitution == "2 x 50 x 7 x 300"
    explanation = of("attention", gpu="h100")
    bound = line(explanation, "bound time")
    names = bound.formula.removeprefix("max(").removesuffix(")").split(", ")
    numbers = bound.substitution.removeprefix("max(").removesuffix(")").split(", ")
    times = {each.symbol: each.value for each in explanation.lines if each.symbol.startswith("T_")}
    assert len(names) > 1
    for name, number in zip(names, numbers, strict=True):
        assert number.endswith("s")
        assert worked_out(number) == pytest.approx(times[name], rel=1e-4)
