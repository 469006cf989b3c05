"""Products: what some libraries do by rule, worked by hand; and shapes that no fit has seen."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest
from toy_chip import chip

from memwall.estimate import measurements
from memwall.estimate.calibrate import spread
from memwall.estimate.gemm import GemmShape, gemm_time_s
from memwall.estimate.plans import plan_of
from memwall.estimate.predict import Prediction, predict

APART = Path(__file__).parents[1] / "configs" / "measurements" / "h200" / "products_apart.csv"
CHIP = chip()


def time_s(m: int, n: int, k: int, **changes: float) -> float:
    """Without launch, epilogue, re-loads and power; sums and maxima are plain."""
    plain = plan_of("gemm", "fp8").start._replace(
        launch_s=0, bandwidth_share=1, matrix_share=1, edge=0, wave_s=0, split_s=0, most_splits=1,
        unit_bytes_per_clock=1000, convert=0, energy_per_flop_j=0, sharpness=200,
    )  # fmt: skip
    shape = GemmShape(m, n, k, 1, m * k + n * k + 2 * m * n, m * k)
    return float(gemm_time_s(shape, CHIP, plain._replace(**changes)))


def test_a_library_that_takes_its_tile_by_the_rows_computes_all_of_it() -> None:
    assert time_s(200, 64, 100_000, tall_above=128) == pytest.approx(2 * 128 * 128 * 100_032 / 1e12, rel=0.01)
    assert time_s(200, 64, 100_000, tall_above=256) == pytest.approx(2 * 64 * 128 * 100_032 / 1e12, rel=0.01)
    # 4 units of 100: of more rows than 64 no tile is shorter than 64.
    assert time_s(200, 64, 100_000) == pytest.approx(2 * 64 * 64 * 100_032 / 1e12, rel=0.01)


def test_a_row_more_is_not_faster() -> None:
    """Two tiles below each other would draw the same columns twice, and count them as half."""
    times = [time_s(m, 4096, 2048) for m in (15, 16, 17, 31, 32, 33, 63, 64)]
    assert times == sorted(times)


@pytest.mark.parametrize(("m", "rows"), [(128, 128), (129, 256), (257, 512)])
def test_tiles_that_run_in_pairs_compute_an_even_number(m: int, rows: int) -> None:
    # 6400 columns are 50 tiles: two tiles high fill the 100 units once, four twice
    assert time_s(m, 6400, 65_536, tall_above=64, cluster=2) == pytest.approx(
        max(1, rows // 256) * 2 * 128 * 128 * 65_536 / 1e12, rel=0.01
    )


def test_quantising_takes_its_bytes_or_its_rows_whichever_is_longer() -> None:
    m, k = 10_000, 4096
    alone = time_s(m, 4096, k)
    by_bytes = time_s(m, 4096, k, convert=1, convert_row_clocks=1, convert_element_clocks=0)
    by_rows = time_s(m, 4096, k, convert=1, convert_row_clocks=1000, convert_element_clocks=1)
    assert by_bytes - alone == pytest.approx(3 * m * k / 1e12, rel=0.01)
    assert by_rows - alone == pytest.approx(m * (1000 + k) / (100 * 1e9), rel=0.01)


def test_a_single_row_may_have_a_kernel_that_needs_no_tiles() -> None:
    few = time_s(1, 64, 65_536, gemv=0, unit_bytes_per_clock=10)  # one unit draws 10 GB/s
    assert time_s(1, 64, 65_536, gemv=1, unit_bytes_per_clock=10) == pytest.approx(
        65 * 65_536 / 1e12, rel=0.01
    )
    assert few > 50 * 65 * 65_536 / 1e12
    assert time_s(2, 64, 65_536, gemv=1, unit_bytes_per_clock=10) > 50 * 65 * 65_536 / 1e12


def test_constants_of_before_switch_the_newer_mechanisms_off() -> None:
    start = plan_of("gemm", "16-bit").start
    assert (start.convert_element_clocks, start.tall_above, start.cluster, start.gemv) == (0, 0, 1, 0)


def judged() -> dict[tuple[str, str], list[float]]:
    """Predicted / measured - 1 of the launches apart, by operator and format."""
    read = measurements.read(str(APART)).measured
    errors: dict[tuple[str, str], list[float]] = {}
    for each, answer in zip(read, predict([m.row for m in read]), strict=True):
        assert isinstance(answer, Prediction)
        assert answer.estimate_time_s is not None
        assert answer.bound_time_s <= 1.02 * each.time_s
        errors.setdefault((each.row.op.name, each.row.dtype), []).append(
            answer.estimate_time_s / each.time_s - 1
        )
    return errors


LIMITS = {
    ("gemm", "fp8"): (0.06, 0.95),
    ("gemm", "bf16"): (0.06, 0.95),
    ("gemm", "tf32"): (0.06, 0.9),
    ("gemm", "int8"): (0.2, 0.6),
    ("gemm", "fp32"): (0.25, 0.4),  # six rows; few of them are like those that were fitted
    ("grouped_gemm", "bf16"): (0.08, 0.95),
    ("grouped_gemm", "fp8"): (0.1, 0.8),
}
"""Median error and share within 25 %, of shapes that no fit has seen."""


def test_products_of_shapes_apart_are_as_close_as_is_claimed() -> None:
    errors = judged()
    assert sum(len(each) for each in errors.values()) == 292
    for key, (median, within) in LIMITS.items():
        found = spread(numpy.array(errors[key]))
        assert found.median <= median, (key, found)
        assert found.within_25 >= within, (key, found)
