"""Fitting: it finds the constants that made the data, counts only those it needs, and holds launches out."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest

import memwall
from memwall.cli import run
from memwall.estimate.calibrate import GPU_OUT, calibrate, held_out, spread
from memwall.estimate.chip import Chip
from memwall.estimate.choice import generation_of
from memwall.estimate.constants import field_of, in_si, key_of, load, out_of_si
from memwall.estimate.fit import errors_of, fit
from memwall.estimate.library import UNKNOWN, Library
from memwall.estimate.minimise import Vector, minimise
from memwall.estimate.plans import plan_of
from memwall.estimate.rowwise import RowwiseShape, rowwise_time_s
from memwall.estimate.samples import Sample

TRUE = plan_of("elementwise", "any").start._replace(launch_s=4e-6, bandwidth_share=0.7)


def sample(gpu: str = "h100", library: Library = UNKNOWN, noise: float = 0.0, share: float = 0.7) -> Sample:
    """Eighty launches of a kernel whose constants are known."""
    device = memwall.gpu(gpu)
    chip = Chip.of(device)._replace(stream_ratio=1.0)
    rows = numpy.geomspace(16, 200000, 80)
    shape = RowwiseShape(rows, numpy.full(80, 4096.0), rows * 4096 * 4, 8192, 0)
    cold = numpy.zeros(80, dtype=bool)
    time_s = rowwise_time_s(shape, chip, TRUE._replace(bandwidth_share=share), cold)
    time_s = time_s * numpy.exp(noise * numpy.random.default_rng(1).normal(size=80))
    bound_s = shape.traffic_bytes / chip.bandwidth_bytes_per_s
    return Sample(
        "elementwise", "any", gpu, generation_of(device), library, "copy", shape, chip, cold, bound_s, time_s
    )


def test_the_simplex_finds_the_bottom_of_a_valley() -> None:
    def valley(point: Vector) -> float:
        x, y = point
        return float((1 - x) ** 2 + 5 * (y - x * x) ** 2)  # Rosenbrock's, its least at (1, 1)

    assert minimise(valley, numpy.array([-1.0, 1.0]), restarts=3) == pytest.approx([1, 1], abs=0.05)


def test_a_fit_finds_the_constants_that_made_the_data() -> None:
    found = fit([sample(noise=0.01)])
    assert found.constants.launch_s == pytest.approx(4e-6, rel=0.05)
    assert found.constants.bandwidth_share == pytest.approx(0.7, rel=0.03)
    assert set(found.fitted) == {"launch_s", "bandwidth_share"}


def test_held_out_launches_are_as_far_off_as_the_noise() -> None:
    errors = spread(fit([sample(noise=0.05)]).errors)
    assert errors.rows == 80
    assert 0.02 < errors.median < 0.05  # of normal noise half is within 0.67 standard deviations: 3.4 %


def test_a_constant_stays_where_the_data_say_nothing_about_it() -> None:
    found = fit([sample()])
    assert found.constants.warm_bytes_per_clock == 32
    assert "warm_bytes_per_clock" not in found.fitted


def test_a_library_that_is_like_all_others_adds_no_constant() -> None:
    one, two = Library("a"), Library("b")
    entries = calibrate([sample(library=one), sample(library=two)])
    assert [str(entry.library) for entry in entries] == ["", "a", "b"]
    assert entries[1].fitted.fitted == ()


def test_a_held_out_gpu_is_predicted_by_its_relatives() -> None:
    starts = {("general", "elementwise", "any", UNKNOWN): plan_of("elementwise", "any").start}
    alike = held_out([sample("h100"), sample("h200")], starts)
    left = [each for each in alike if each.scheme == GPU_OUT]
    assert {each.gpu for each in left} == {"h100", "h200"}
    assert all(spread(each.errors).median < 0.03 for each in left)
    differing = held_out([sample("h100", share=0.9), sample("h200", share=0.45)], starts)
    assert max(spread(each.errors).p90 for each in differing if each.scheme == GPU_OUT) > 0.5


def test_no_prediction_is_below_its_bound() -> None:
    perfect = TRUE._replace(launch_s=0, bandwidth_share=1.0, sharpness=3)
    each = sample()
    assert (each.predicted_s(perfect) >= each.bound_s).all()
    assert (errors_of([each], perfect) < 0).all()


@pytest.mark.parametrize(
    ("field", "key"), [("launch_s", "launch_us"), ("energy_per_flop_j", "energy_per_flop_pj")]
)
def test_constants_are_written_in_readable_units_and_read_back(field: str, key: str) -> None:
    assert (key_of(field), field_of(key)) == (key, field)
    assert in_si(key, out_of_si(field, 3.5e-6)) == pytest.approx(3.5e-6)


def measured_csv(path: Path, rows: int = 40) -> Path:
    each = sample("a10")
    lines = ["op,dtype,rows,cols,time_us"]
    lines += [
        f"copy,bf16,{round(float(r))},4096,{t * 1e6:.4f}"
        for r, t in list(zip(each.shape.rows, each.time_s, strict=True))[:: 80 // rows]
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_calibrate_writes_a_file_that_an_estimate_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, out = measured_csv(tmp_path / "measured.csv"), tmp_path / "a10.yaml"
    assert run(["calibrate", str(table), "--gpu", "a10", "--source", "my own", "-o", str(out)]) == 0
    assert "40 rows, 1 fits, 2 fitted constants" in capsys.readouterr().out
    text = out.read_text()
    assert 'source: "my own"' in text
    assert "fitted_constants: 2" in text
    (fitted,) = load(str(out))
    ratio = Chip.of(memwall.gpu("a10")).stream_ratio
    assert fitted.constants.bandwidth_share * ratio == pytest.approx(0.7, rel=0.03)
    own = memwall.roofline("copy", calibration=str(out), gpu="a10", rows=100000, cols=4096).estimate
    other = memwall.roofline("copy", gpu="a10", rows=100000, cols=4096).estimate
    assert own is not None
    assert other is not None
    assert (own.basis, other.basis) == ("calibrated: a10", "physics")
    assert own.time_s == pytest.approx(100000 * 4096 * 4 / (0.7 * 600e9), rel=0.02)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["calibrate"], "calibrate needs a table of measured rows and its GPU"),
        (["calibrate", "missing.csv", "--gpu", "h100"], "missing.csv"),
        (["calibrate", "x.csv", "--rebuild", "somewhere"], "--rebuild fits what memwall ships"),
    ],
)
def test_a_calibration_without_rows_says_what_it_needs(
    args: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(args) in (2, 3)
    assert message in capsys.readouterr().err


def test_too_few_rows_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = measured_csv(tmp_path / "few.csv", rows=4)
    assert run(["calibrate", str(table), "--gpu", "a10"]) == 2
    assert "too few for a calibration" in capsys.readouterr().err


def test_a_calibration_file_that_is_none_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text("name: x\nfits:\n  - family: gemm\n")
    assert run(["roofline", "--op", "gemv", "--calibration", str(path)]) == 3
    assert "fit 1 is not complete" in capsys.readouterr().err


def test_a_mechanism_of_few_rows_is_left_out_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, out = measured_csv(tmp_path / "measured.csv"), tmp_path / "a10.yaml"
    head, *lines = table.read_text().splitlines()
    lines = [*(f"{line},," for line in lines), "gemm,bf16,,,1999,4096,4096", "gemm,bf16,,,999,4096,2048"]
    lines = [line if line.startswith("copy") else f"{line},4096" for line in lines]
    lines = [f"{line}," if line.startswith("copy") else line for line in lines]
    table.write_text("\n".join([f"{head},m,n,k", *lines]) + "\n")
    assert run(["calibrate", str(table), "--gpu", "a10", "-o", str(out)]) == 0
    said = capsys.readouterr()
    assert "40 rows, 1 fits" in said.out
    assert "left out: 2 rows: gemm 16-bit: fewer than 8 rows" in said.err
    assert {each.family for each in load(str(out))} == {"elementwise"}
    own = memwall.roofline("gemm", calibration=str(out), gpu="a10", m=4096, n=4096, k=4096)
    shipped = memwall.roofline("gemm", gpu="a10", m=4096, n=4096, k=4096)
    assert own.estimate == shipped.estimate  # the shipped constants and their band


def test_few_rows_of_many_mechanisms_are_no_calibration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "few.csv"
    gemms = [f"gemm,,,{m},4096,4096,{m}" for m in (1024, 2048, 4096, 8192)]
    copies = [f"copy,{rows},4096,,,,{rows // 16}" for rows in (4096, 8192, 16384, 32768, 65536)]
    table.write_text("\n".join(["op,rows,cols,m,n,k,time_us", *gemms, *copies]) + "\n")
    assert run(["calibrate", str(table), "--gpu", "a10"]) == 2
    assert "of no mechanism 8: too few for a calibration" in capsys.readouterr().err


def test_times_that_beat_their_bound_are_no_measurement(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "fast.csv"
    table.write_text("op,m,n,k,time_us\n" + "".join(f"gemm,{m},4096,4096,0.001\n" for m in range(64, 96)))
    assert run(["calibrate", str(table), "--gpu", "h200"]) == 2
    assert "32 faster than their bound" in capsys.readouterr().err


def test_nothing_to_compare_is_no_accuracy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "untimed.csv"
    table.write_text("gpu,op,m,n,k\nh200,gemm,64,4096,4096\n")
    assert run(["accuracy", "--data", str(table)]) == 3
    assert "nothing to compare" in capsys.readouterr().err
