"""Arithmetic that means the same for a number, a numpy array and a symbol.

Every formula of memwall is written once, with `+ - * /` and these helpers, and is evaluated
three ways: exactly on Python ints (one answer), on float64 arrays (a sweep), and on sympy symbols
(the printed formula). So a formula never branches on a value. numpy and sympy are found by what
comes in, never imported here: the scalar path stays free of both. A number that writes down what is done
with it, so that a page can compute the formula again, says so by a method `noted(operation, *operands)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

Count: TypeAlias = Any  # an int, a float64 array or a sympy expression
"""A dimension, or a number of elements, bytes or FLOPs."""


_PLAIN = (int, float)
"""By far the most frequent, and asked first."""

SHORT = 2000
"""Elements of an array that is cheap to repeat for every candidate."""


def ceil_div(numerator: Count, denominator: Count) -> Count:
    """ceil(numerator / denominator), exact on ints.

    >>> ceil_div(7, 2), ceil_div(8, 2)
    (4, 4)
    """
    if type(numerator) is int and type(denominator) is int:  # nearly always, and half the cost
        return -(-numerator // denominator)
    if _symbolic(numerator, denominator):
        import sympy

        return sympy.ceiling(numerator / denominator)
    return -(-numerator // denominator)


def whole_up(value: Count) -> Count:
    """The least whole number that is not below a value, element by element on arrays.

    >>> whole_up(2.25), whole_up(3)
    (3, 3)
    """
    if _symbolic(value):
        import sympy

        return sympy.ceiling(value)
    if _array(value):
        import numpy

        return numpy.ceil(value)
    import math

    return math.ceil(value)


def exact_div(numerator: Count, denominator: Count) -> Count:
    """A division that is known to leave no remainder, such as S(S+1)/2; stays an int on ints.

    >>> exact_div(4096 * 4097, 2)
    8390656

    Raises:
        ValueError: ints that leave a remainder: the formula that called is wrong.
    """
    if isinstance(numerator, int) and isinstance(denominator, int):
        quotient, remainder = divmod(numerator, denominator)
        if remainder:
            raise ValueError(f"{numerator} / {denominator} leaves a remainder")
        return quotient
    return numerator / denominator


def minimum(left: Count, right: Count) -> Count:
    """The smaller of two, element by element on arrays."""
    if type(left) in _PLAIN and type(right) in _PLAIN:
        return min(left, right)
    if _symbolic(left, right):
        import sympy

        return sympy.Min(left, right)
    if (noting := _noting(left, right)) is not None:
        return noting.noted("min", left, right)
    if _array(left, right):
        import numpy

        return numpy.minimum(left, right)
    return min(left, right)


def maximum(left: Count, right: Count) -> Count:
    """The larger of two, element by element on arrays."""
    if type(left) in _PLAIN and type(right) in _PLAIN:
        return max(left, right)
    if _symbolic(left, right):
        import sympy

        return sympy.Max(left, right)
    if (noting := _noting(left, right)) is not None:
        return noting.noted("max", left, right)
    if _array(left, right):
        import numpy

        return numpy.maximum(left, right)
    return max(left, right)


def where(condition: Any, then: Count, otherwise: Count) -> Count:
    """`then` where the condition holds, else `otherwise`, element by element on arrays."""
    if (noting := _noting(condition)) is not None:
        return noting.noted("where", condition, then, otherwise)
    if _array(condition):
        import numpy

        return numpy.where(condition, then, otherwise)
    return then if condition else otherwise


def least(formula: Callable[..., Count], candidates: Sequence[tuple[float, ...]], size: Count) -> Count:
    """The least value of a formula over its candidates' arguments.

    Args:
        formula: takes one candidate's numbers, or columns of them.
        candidates: what to choose from.
        size: a dimension of the shape; short arrays meet all candidates at once, which is faster.

    >>> least(lambda a, b: a * b, [(2, 3), (1, 4)], 1)
    4
    """
    if _array(size) and size.size <= SHORT:
        import numpy

        columns = [numpy.array(column, dtype=float)[:, None] for column in zip(*candidates, strict=True)]
        return formula(*columns).min(axis=0)
    best = formula(*candidates[0])
    if (noting := _noting(best)) is not None:
        return noting.noted_least(formula, candidates)
    for candidate in candidates[1:]:
        best = minimum(best, formula(*candidate))
    return best


def smooth_maximum(left: Count, right: Count, sharpness: float) -> Count:
    """(left^q + right^q)^(1/q): two limits that hinder each other where they are close.

    Never below the larger, at most 2^(1/q) times it; the plain maximum as q grows.

    >>> round(smooth_maximum(3.0, 4.0, 2), 12), smooth_maximum(0, 5.0, 4)
    (5.0, 5.0)
    """
    large, small = maximum(left, right), minimum(left, right)
    return large * (1 + (small / large) ** sharpness) ** (1 / sharpness)


def log2(n: Count) -> Count:
    """The logarithm to base 2."""
    if (noting := _noting(n)) is not None:
        return noting.noted("log2", n)
    if _array(n):
        import numpy

        return numpy.log2(n)
    import math

    return math.log2(n)


def floor_sum(count: int, divisor: int, step: int, start: int) -> int:
    """The sum of floor((start + i step) / divisor) over i < count, in as many steps as Euclid's algorithm.

    Source: Graham, Knuth and Patashnik, Concrete Mathematics, section 3.5.

    >>> floor_sum(4, 5, 3, 1), sum((1 + i * 3) // 5 for i in range(4))
    (3, 3)
    """
    total = 0
    while count > 0:
        whole, step = divmod(step, divisor)
        total += whole * (count * (count - 1) // 2)
        whole, start = divmod(start, divisor)
        total += whole * count
        reached = step * count + start
        if reached < divisor:
            break
        count, start = divmod(reached, divisor)
        divisor, step = step, divisor
    return total


def triangle(n: Count) -> Count:
    """1 + 2 + ... + n = n(n+1)/2."""
    return exact_div(n * (n + 1), 2)


def _symbolic(*values: Count) -> bool:
    return any(hasattr(v, "free_symbols") for v in values)


def _noting(*values: Count) -> Any:
    """The first of them that writes down what is done with it."""
    return next((v for v in values if hasattr(v, "noted")), None)


def _array(*values: Count) -> bool:
    return any(hasattr(v, "__array__") for v in values)
