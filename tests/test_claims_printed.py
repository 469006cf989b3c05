"""Printed numbers: what they stand for, worked by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwall.claims.numbers import numbers
from memwall.claims.printed import parse
from memwall.claims.quantity import Quantity, UnitError, parse_unit, readable
from memwall.errors import UsageError


@pytest.mark.parametrize(
    ("text", "low", "high", "unit"),
    [
        ("3.35 TB/s", 3.345, 3.355, "TB/s"),
        ("1,365 FLOP/byte", 1364.5, 1365.5, "FLOP/byte"),
        ("900 GB/s", 899.5, 900.5, "GB/s"),  # a whole number is printed to its last digit
        ("~4,500 TFLOPS", 4450, 4550, "TFLOPS"),  # ~ says that closing zeros are no digits
        ("~30", 29.5, 30.5, ""),  # but two digits always count
        ("~10 ms", 9.5, 10.5, "ms"),
        ("~1.25", 1.245, 1.255, ""),
        ("80-100 TB/s", 79.5, 100.5, "TB/s"),
        ("80–100 TB/s", 79.5, 100.5, "TB/s"),  # noqa: RUF001
        ("70%–80%", 69.5, 80.5, "%"),  # noqa: RUF001
        ("4.5 to 9 PFLOP/s", 4.45, 9.5, "PFLOP/s"),
        ("10,000-50,000 cycles", 9999.5, 50000.5, "cycles"),
        ("34×", 33.5, 34.5, "×"),  # noqa: RUF001
        ("$62,400/year", 62399.5, 62400.5, "$/year"),
        ("$7.13/hr", 7.125, 7.135, "$/hr"),
        ("28 GB each", 27.5, 28.5, "GB"),
    ],
)
def test_a_printed_number_stands_for_what_rounds_to_it(text: str, low: float, high: float, unit: str) -> None:
    printed = parse(text)
    assert printed.interval() == pytest.approx((low, high))
    assert printed.unit == unit


@pytest.mark.parametrize(
    ("text", "value", "fits"),
    [
        (">80%", 81, True),
        (">80%", 79, False),
        ("<0.1%", 0.05, True),
        ("<0.1%", 0.2, False),
        ("500+ cycles", 685, True),
        ("500+ cycles", 300, False),
        ("75%+", 80, True),
        ("80-100", 90, True),
        ("80-100", 33.5, False),
        ("2.0", 2.039, True),
        ("2.00", 2.039, False),
    ],
)
def test_fitting(text: str, value: float, fits: bool) -> None:
    assert parse(text).fits(value) is fits


def test_a_claim_may_state_its_digits_and_its_unit() -> None:
    assert parse("140 GB", digits=2).interval() == (135, 145)
    assert parse("228 KB", unit="KiB").ends[0] == Quantity(228 * 1024, (("B", 1),))
    assert parse("80B", unit="billion").ends[0] == Quantity(80 * 10**9)


@pytest.mark.parametrize("text", ["", "none", "TB/s", "5 parsecs", "100-80 GB"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse(text)


@pytest.mark.parametrize(
    ("printed", "value", "fresh"),
    [
        ("1,365", 1365.33, "1,365"),
        ("295", 295.14, "295"),
        ("3.31", 3.35232, "3.35"),
        ("900", 12345.6, "12346"),
        ("1,200", 12345.6, "12,346"),
        ("~4,500", 2249.6, "2,200"),
        ("1.0", 0.9998, "1.0"),
    ],
)
def test_a_right_value_is_written_as_the_wrong_one_was(printed: str, value: float, fresh: str) -> None:
    assert parse(printed).rewritten(value) == fresh


@given(st.integers(1, 10**6), st.integers(0, 3))
def test_a_number_stands_for_itself_rounded(whole: int, decimals: int) -> None:
    text = f"{whole / 7:.{decimals}f}"
    assert parse(text).fits(whole / 7)
    assert parse(parse(text).rewritten(whole / 7)).fits(whole / 7)


@pytest.mark.parametrize(
    ("unit", "value", "dimension"),
    [
        ("TB/s", 10**12, (("B", 1), ("s", -1))),
        ("Gbps", 10**9 / 8, (("B", 1), ("s", -1))),
        ("GiB", 2**30, (("B", 1),)),
        ("TFLOPS", 10**12, (("FLOP", 1), ("s", -1))),
        ("FLOP/byte", 1, (("B", -1), ("FLOP", 1))),
        ("ms/tok", 1e-3, (("s", 1),)),
        ("%", 0.01, ()),
        ("mm2", 1e-6, (("m", 2),)),
        ("$/GPU-hr", 1 / 3600, (("USD", 1), ("s", -1))),
        ("", 1, ()),
    ],
)
def test_units(unit: str, value: float, dimension: tuple[tuple[str, int], ...]) -> None:
    parsed = parse_unit(unit)
    assert parsed.value == pytest.approx(value, rel=1e-12)
    assert parsed.dimension == dimension


def test_an_unknown_unit_names_the_nearest() -> None:
    with pytest.raises(UnitError, match="Did you mean"):
        parse_unit("GBs")


def test_quantities_for_people() -> None:
    assert readable(parse_unit("TB/s") * Quantity(3.352)) == "3.352 TB/s"
    assert readable(Quantity(0.0419, (("s", 1),))) == "41.9 ms"
    assert readable(Quantity(70553706496)) == "70,553,706,496"


def test_the_numbers_of_a_text() -> None:
    text = "An H100 has 3.35 TB/s, 80 GB and 132 SMs; FP8, v2 and GPT-4 are names; 1,365 FLOP/byteDeeply; "
    text += "2024B200"
    found = [(each.text, each.unit) for each in numbers(text)]
    assert found == [
        ("3.35", "TB/s"),
        ("80", "GB"),
        ("132", ""),
        ("1,365", "FLOP/byte"),
        ("2024", ""),
    ]
