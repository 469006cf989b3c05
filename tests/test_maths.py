"""The helpers mean the same for a number, an array and a symbol."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from memwall.maths import Count, ceil_div, exact_div, minimum, triangle

QUICK = settings(max_examples=200, deadline=None, derandomize=True)
HUGE = 10**40  # far beyond int64 and beyond float64's exact integers


@given(st.integers(0, HUGE), st.integers(1, HUGE))
@QUICK
def test_ceil_div_is_the_ceiling_of_the_fraction(numerator: int, denominator: int) -> None:
    assert ceil_div(numerator, denominator) == math.ceil(Fraction(numerator, denominator))


@given(st.integers(0, HUGE), st.integers(1, HUGE))
@QUICK
def test_exact_div_undoes_a_product(quotient: int, denominator: int) -> None:
    result = exact_div(quotient * denominator, denominator)
    assert (type(result), result) == (int, quotient)


@given(st.integers(0, HUGE), st.integers(2, 1000))
@QUICK
def test_exact_div_refuses_a_remainder(quotient: int, denominator: int) -> None:
    with pytest.raises(ValueError, match="leaves a remainder"):
        exact_div(quotient * denominator + 1, denominator)


@given(st.integers(0, 2000))
@QUICK
def test_triangle_is_the_sum_of_the_first_numbers(n: int) -> None:
    assert triangle(n) == sum(range(1, n + 1))


def test_triangle_of_a_million_tokens_is_exact() -> None:
    # 2^20 (2^20 + 1) / 2 = 2^39 + 2^19
    assert triangle(2**20) == 549755813888 + 524288


TWO = st.integers(1, 4096)


@pytest.mark.parametrize(
    ("helper", "plain"),
    [
        (ceil_div, lambda a, b: math.ceil(Fraction(a, b))),
        (minimum, lambda a, b: a if a < b else b),
        (lambda a, b: triangle(a) + b, lambda a, b: sum(range(a + 1)) + b),
        (lambda a, b: exact_div(6 * a * b, 3), lambda a, b: 2 * a * b),
    ],
    ids=["ceil_div", "minimum", "triangle", "exact_div"],
)
@given(pairs=st.lists(st.tuples(TWO, TWO), min_size=1, max_size=5))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_number_array_and_symbol_agree(
    helper: Callable[[Count, Count], Count],
    plain: Callable[[int, int], int],
    pairs: list[tuple[int, int]],
) -> None:
    expected = [plain(a, b) for a, b in pairs]
    assert [helper(a, b) for a, b in pairs] == expected
    left, right = numpy.array(pairs, dtype=float).T
    assert helper(left, right).tolist() == expected
    x, y = sympy.symbols("x y", integer=True, positive=True)
    formula = helper(x, y)
    assert [formula.subs({x: a, y: b}) for a, b in pairs] == expected


def test_a_number_beside_an_array_or_a_symbol_is_taken_as_both() -> None:
    assert minimum(3, numpy.array([1.0, 5.0])).tolist() == [1.0, 3.0]
    x = sympy.Symbol("x")
    assert minimum(3, x).subs({x: 5}) == 3
    assert ceil_div(7, x).subs({x: 2}) == 4
