"""Arithmetic that means the same for a number, a numpy array and a symbol.

Every formula of memwall is written once, with `+ - * /` and these helpers, and is evaluated
three ways: exactly on Python ints (one answer), on float64 arrays (a sweep), and on sympy symbols
(the printed formula). So a formula never branches on a value. numpy and sympy are found by what
comes in, never imported here: the scalar path stays free of both.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Count: TypeAlias = Any  # an int, a float64 array or a sympy expression
"""A dimension, or a number of elements, bytes or FLOPs."""


def ceil_div(numerator: Count, denominator: Count) -> Count:
    """ceil(numerator / denominator), exact on ints.

    >>> ceil_div(7, 2), ceil_div(8, 2)
    (4, 4)
    """
    if _symbolic(numerator, denominator):
        import sympy

        return sympy.ceiling(numerator / denominator)
    return -(-numerator // denominator)


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
    if _symbolic(left, right):
        import sympy

        return sympy.Min(left, right)
    if _array(left, right):
        import numpy

        return numpy.minimum(left, right)
    return min(left, right)


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


def _array(*values: Count) -> bool:
    return any(hasattr(v, "__array__") for v in values)
