"""Units: one crossing in, one crossing out."""

from __future__ import annotations

import ast
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memwall
from memwall import units
from memwall.errors import UsageError

QUICK = settings(max_examples=200, deadline=None, derandomize=True)
PACKAGE = Path(memwall.__file__).parent


@pytest.mark.parametrize(
    ("key", "number", "si"),
    [
        ("bandwidth_gb_per_s", 3350, 3_350_000_000_000),
        ("peak_dense_tflops", 989.4, 989_400_000_000_000),
        ("tflops", 1, 1_000_000_000_000),
        ("pin_rate_gbit_per_s", 5.25, 5_250_000_000),
        ("capacity_gb", 80, 80_000_000_000),
        ("capacity_gib", 80, 85_899_345_920),  # 80 x 1073741824
        ("capacity_mib", 50, 52_428_800),  # 50 x 1048576
        ("shared_memory_kib", 228, 233_472),  # 228 x 1024
        ("clock_mhz", 1830, 1_830_000_000),
        ("capacity_driver_bytes", 84942979072, 84942979072),
        ("bus_width_bits", 5120, 5120),
        ("tdp_w", 700, 700),
    ],
)
def test_a_key_names_its_unit(key: str, number: float, si: float) -> None:
    assert units.to_si(key, number) == pytest.approx(si, rel=1e-12)


@pytest.mark.parametrize("key", ["speed", "megabytes", "gbs", "mhzz", ""])
def test_a_key_without_a_unit_is_refused(key: str) -> None:
    with pytest.raises(KeyError):
        units.to_si(key, 1)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("4096", 4096),
        (" 4096 ", 4096),
        ("4_096", 4096),
        ("2^12", 4096),
        ("2 ^ 12", 4096),
        ("1e6", 1_000_000),
        ("4096.0", 4096),
        ("1", 1),
        ("1e15", 10**15),
    ],
)
def test_a_count_is_read_as_people_write_it(text: str, count: int) -> None:
    read = units.parse_count(text, "--m")
    assert read == count
    assert type(read) is int


@pytest.mark.parametrize(
    "text",
    [
        *("0", "-1", "1.5", "nan", "inf", "1e16", "4k", "", "0x10", "9" * 70),
        *("2^60", "^2", "2^", "2^0.5", "0^-1", "2^-1", "-2^2", "2^999999999999"),
    ],
)
def test_what_is_no_count_is_refused_with_what_to_type(text: str) -> None:
    with pytest.raises(UsageError, match="--m") as refused:
        units.parse_count(text, "--m")
    assert refused.value.hint == "Write it like --m 4096, 4e3 or 2^12"
    assert len(refused.value.message) < 140


@pytest.mark.parametrize("text", ["-0.5", "nan", "-inf", "1e400", "2^-3", "0^-1", "-3^2"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        units.parse_number(text, "--bytes")


def test_a_number_keeps_its_fraction_and_whole_ones_are_exact() -> None:
    assert units.parse_number("0.25", "--x") == 0.25
    assert units.parse_number("0", "--x") == 0
    whole = units.parse_number("4.2e12", "--flops")
    assert (type(whole), whole) == (int, 4_200_000_000_000)


def test_the_largest_number_is_the_callers_choice() -> None:
    assert units.parse_number("1e20", "--flops", largest=10**30) == 100_000_000_000_000_000_000
    with pytest.raises(UsageError, match="from 0 to"):
        units.parse_number("1e20", "--flops")


@given(st.integers(1, 10**15))
@QUICK
def test_a_written_count_is_read_back(count: int) -> None:
    assert units.parse_count(str(count), "--m") == count
    assert units.parse_count(f"{count:_}", "--m") == count


@pytest.mark.parametrize(
    ("formatted", "text"),
    [
        (units.format_bytes(134234112), "134.2 MB"),
        (units.format_bytes(699274362880), "699.3 GB"),
        (units.format_bytes(1), "1 B"),
        (units.format_bytes(0), "0 B"),
        (units.format_bytes(999.96), "1 kB"),  # rounds up into the next prefix
        (units.format_flops(137438953472), "137.4 GFLOP"),
        (units.format_flops_per_s(989.4e12), "989.4 TFLOP/s"),
        (units.format_flops_per_s(1978.9e12), "1.979 PFLOP/s"),
        (units.format_bytes_per_s(3352.32e9), "3.352 TB/s"),
        (units.format_seconds(40.047e-6), "40.05 us"),
        (units.format_seconds(1.5), "1.5 s"),
        (units.format_seconds(41.9e-3), "41.9 ms"),
        (units.format_seconds(3.2e-9), "3.2 ns"),
        (units.format_seconds(0.9999999e-3), "1 ms"),
        (units.format_seconds(0), "0 ns"),
        (units.format_parameters(70553706496), "70.55B"),
        (units.format_parameters(124439808), "124.4M"),
        (units.format_parameters(999), "999"),
        (units.scaled_binary(52428800), "50 MiB"),
        (units.scaled_binary(233472), "228 KiB"),
        (units.scaled_binary(1023), "1023 B"),
        (units.scaled_binary(85899345920), "80 GiB"),
        (units.significant(295.1388), "295.1"),
        (units.significant(0.00012345), "0.0001234"),  # the float lies just below 1.2345e-4
        (units.significant(123456789), "123456789"),
        (units.significant(-2.50), "-2.5"),
        (units.significant(math.inf), "inf"),
    ],
)
def test_a_quantity_is_printed_so(formatted: str, text: str) -> None:
    assert formatted == text


@given(st.floats(1e-3, 1e17))
@QUICK
def test_what_is_printed_is_the_value_to_four_digits(value: float) -> None:
    number, unit = units.scaled(value, "B").split(" ")
    prefix = {"P": 10**15, "T": 10**12, "G": 10**9, "M": 10**6, "k": 10**3, "": 1}[unit[:-1]]
    assert float(number) * prefix == pytest.approx(value, rel=5.001e-4)


@given(st.floats(1e-9, 1e4))
@QUICK
def test_a_printed_time_is_the_time_to_four_digits(value: float) -> None:
    number, unit = units.format_seconds(value).split(" ")
    factor = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[unit]
    assert float(number) * factor == pytest.approx(value, rel=5.001e-4)
    assert unit == "s" or float(number) < 1000


POWERS = {1e3, 1e6, 1e9, 1e12, 1e-3, 1e-6, 1e-9, 2**10, 2**30}


def _powers(path: Path) -> list[str]:
    """Where a file writes a number that converts units."""
    return [
        f"{path.name}:{node.lineno}: {node.value!r}"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value in POWERS
    ]


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE)).removesuffix(".py")
)
def test_no_other_file_converts_units(path: Path) -> None:
    assert path.name == "units.py" or not _powers(path)


def test_the_search_for_powers_finds_them_where_they_belong() -> None:
    assert _powers(PACKAGE / "units.py")
