"""Derivations: each quantity of an operator as a formula, the numbers in it, and the result.

The formulas are not written here: the functions that compute are run on symbols instead of numbers
(`memwall.ops`, `memwall.program`, `memwall.bound`, `memwall.traffic`), and what they return is printed.
sympy is imported in this package alone.
"""
