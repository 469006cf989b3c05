"""Exports of profilers: real ones of an H200, read in every form; ranges, steps, comparison, bad files."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from memwall.cli import run
from memwall.diagnose.checks import checks, regime_of, steps
from memwall.diagnose.reading import parse, read
from memwall.diagnose.report import DiagnoseReport, Diagnosis, diagnose
from memwall.errors import FileError, UsageError

PROFILES = Path(__file__).parent / "profiles"
RAW, UNITS, DETAILS, ROCPROF = (
    str(PROFILES / f"{name}.csv") for name in ("ncu_raw", "ncu_raw_units", "ncu_details", "rocprof_compute")
)


def one(report: DiagnoseReport, name: str) -> Diagnosis:
    return next(each for each in report.kernels if name in each.profile.kernel)


def status(diagnosis: Diagnosis) -> dict[str, str]:
    return {check.name: check.status for check in diagnosis.checks}


def test_the_raw_page_by_hand() -> None:
    """2^26 floats, every eighth loaded: 2^23 loads, a sector each, 268e6 bytes; 33.6e6 written."""
    report = diagnose(RAW)
    assert report.device.name == "h200"
    kernel = one(report, "stride_load")
    assert kernel.profile.values["dram_read_bytes"] == pytest.approx(2**23 * 32, rel=0.01)
    assert kernel.time_s == pytest.approx(70.08e-6)
    assert kernel.achieved_bytes_per_s == pytest.approx((268446208 + 31269632) / 70.08e-6)
    excess = next(check for check in kernel.checks if check.name == "uncoalesced accesses")
    assert excess.value == pytest.approx(7340032 / 9437184)  # 7 of 8 load sectors; stores are coalesced
    assert kernel.regime == "memory-bound"


def test_units_are_read() -> None:
    """The same export in base units and in those that the profiler picks."""
    base, picked = diagnose(RAW), diagnose(UNITS)
    for ours, theirs in zip(base.kernels, picked.kernels, strict=True):
        for field, value in ours.profile.values.items():
            assert theirs.profile.values[field] == pytest.approx(value, rel=0.01, abs=1e-4), field


def test_the_details_page_says_the_same() -> None:
    raw, details = diagnose(RAW), diagnose(DETAILS, gpu="h200")
    for ours, theirs in zip(raw.kernels, details.kernels, strict=True):
        assert ours.profile.kernel[:8] == theirs.profile.kernel[:8]
        for field in (
            "time_s",
            "dram_share",
            "l2_hit_share",
            "occupancy_share",
            "global_excess",
            "shared_excess",
        ):
            if field in theirs.profile.values:
                expected = ours.profile.values[field]
                assert theirs.profile.values[field] == pytest.approx(expected, rel=0.01, abs=1e-4)


@pytest.mark.parametrize("path", [RAW, DETAILS])
def test_planted_faults_are_found(path: str) -> None:
    """Three kernels were written with one fault each."""
    report = diagnose(path, gpu="h200")
    assert status(one(report, "stride_load"))["uncoalesced accesses"] == "bad"
    assert status(one(report, "bank_conflicts"))["bank conflicts"] == "bad"
    assert status(one(report, "spilling"))["register spills"] == "bad"
    assert one(report, "bank_conflicts").steps[0].action == "bank conflicts"
    assert one(report, "spilling").steps[0].action == "spills"


def test_a_good_product_is_left_alone() -> None:
    product = one(diagnose(RAW), "nvjet_sm90_tst_256x128")
    assert set(status(product).values()) == {"ok"}
    assert product.regime == "compute-bound"
    assert product.profile.flops == pytest.approx(2 * 4096**3, rel=1e-3)
    assert product.roof_flops_per_s == 989.4e12
    assert product.achieved_flops_per_s == pytest.approx(2 * 4096**3 / 173.664e-6, rel=1e-3)


def test_a_vector_product_is_memory_bound() -> None:
    vector = one(diagnose(RAW), "nvjet_sm90_tst_64x8")
    assert vector.regime == "memory-bound"
    assert vector.steps[0].action == "fusion"
    assert vector.dram_bytes == pytest.approx(8192 * 8192 * 2, rel=0.03)


def test_rocprof_compute() -> None:
    report = diagnose(ROCPROF, gpu="mi300x")
    (kernel,) = report.kernels
    assert kernel.values["dram_share"] == 0.77
    assert kernel.achieved_bytes_per_s == 4081e9
    assert kernel.achieved_flops_per_s == pytest.approx((812.4 + 402311.7) * 1e9)
    assert kernel.intensity == pytest.approx((812.4 + 402311.7) / 4081.0)
    assert kernel.values["occupancy_share"] == 0.1875
    assert status(kernel)["bank conflicts"] == "bad"
    assert all(flag.startswith("-b") for _, flag in kernel.profile.missing)


def test_an_operator_s_bytes_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    line = f"diagnose {RAW} --kernel vectorized --op add --rows 16384 --cols 8192 --json"
    assert run(shlex.split(line)) == 0
    predicted = json.loads(capsys.readouterr().out)["predicted"]
    assert predicted["dram_read_bytes"] == 2 * 16384 * 8192 * 2  # two tensors; the kernel added one to itself
    assert predicted["counted_dram_read_bytes"] == pytest.approx(16384 * 8192 * 2, rel=0.01)


def test_missing_metrics_name_their_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shlex.split(f"diagnose {DETAILS} --gpu h200 --kernel stride")) == 0
    out = capsys.readouterr().out
    assert "dram_read_bytes" in out
    assert "--metrics dram__bytes_read.sum" in out


def test_unknown_metrics_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shlex.split(f"diagnose {RAW} --json")) == 0
    document = json.loads(capsys.readouterr().out)
    assert "smsp__inst_executed.sum" in document["unknown_metrics"]
    assert len(document["kernels"]) == 7


def test_bare_metrics_without_a_section() -> None:
    """ncu --metrics ... --csv, without --page: one metric a row, named as on the raw page."""
    text = (
        '"ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"\n'
        '"0","k","Command line profiler metrics","dram__bytes_read.sum","Mbyte","268.45"\n'
        '"0","k","Command line profiler metrics","gpu__time_duration.sum","us","70.5"\n'
    )
    (profile,) = parse(text, "x.csv").profiles
    assert profile.values["dram_read_bytes"] == pytest.approx(268.45e6)
    assert profile.values["time_s"] == pytest.approx(70.5e-6)


@pytest.mark.parametrize(
    ("values", "regime"),
    [
        ({"dram_share": 0.9, "sm_share": 0.2}, "memory-bound"),
        ({"dram_share": 0.1, "sm_share": 0.9}, "compute-bound"),
        ({"dram_share": 0.1, "sm_share": 0.2}, "latency-bound"),
        ({}, "unknown"),
    ],
)
def test_regimes(values: dict[str, float], regime: str) -> None:
    assert regime_of(values, None, None) == regime
    found = checks(values, regime)
    assert {check.status for check in found} <= {"ok", "note", "bad", "missing"}
    assert steps(values, regime, found)


def test_intensity_decides_where_nothing_else_is_counted() -> None:
    assert regime_of({}, 10.0, 200.0) == "memory-bound"
    assert regime_of({}, 1000.0, 200.0) == "compute-bound"


@pytest.mark.parametrize(("share", "status"), [(0.9, "ok"), (0.5, "note"), (0.2, "bad"), (None, "missing")])
def test_the_range_of_main_memory(share: float | None, status: str) -> None:
    values = {} if share is None else {"dram_share": share}
    assert checks(values, "memory-bound")[0].status == status


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no table"),
        ("a,b,c\n1,2,3\n", "no table"),
        ('"ID","Kernel Name","x"\n', "no kernel"),
        ("\x00\x01\x02", "no table"),
    ],
)
def test_bad_files_are_exit_3(
    text: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    assert run(["diagnose", str(path)]) == 3
    assert says in capsys.readouterr().err


def test_other_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diagnose", str(tmp_path / "nowhere.csv")]) == 3
    assert run(["diagnose", str(tmp_path)]) == 3
    assert run(shlex.split(f"diagnose {RAW} --kernel nothing")) == 2
    assert "stride_load" in capsys.readouterr().err
    assert run(shlex.split(f"diagnose {RAW} --m 4096")) == 2
    assert run(shlex.split(f"diagnose {RAW} --op gemm")) == 2
    assert run(["diagnose"]) == 2
    with pytest.raises(FileError):
        read(str(tmp_path / "nowhere.csv"))
    with pytest.raises(UsageError):
        diagnose(RAW, kernel="nothing")


@pytest.mark.parametrize("path", [RAW, DETAILS, ROCPROF])
@pytest.mark.parametrize("form", ["text", "csv", "markdown", "json"])
def test_every_format(path: str, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diagnose", path, "--gpu", "h200", "--format", form]) == 0
    assert capsys.readouterr().out


def test_the_roof_is_of_the_engine_that_worked() -> None:
    """A softmax works on the lanes, a bf16 product on the matrix unit."""
    report = diagnose(RAW)
    softmax, product = one(report, "SoftMax"), one(report, "nvjet_sm90_tst_256x128")
    assert (softmax.profile.engine, product.profile.engine) == ("lanes", "bf16")
    assert softmax.peak_flops_per_s == 66.9e12
    assert one(diagnose(RAW, dtype="fp8"), "nvjet_sm90_tst_256x128").peak_flops_per_s == 1978.9e12


def test_an_operator_s_flops_place_a_kernel_without_counts() -> None:
    """The details page counts no FLOPs: the operator's stand in."""
    report = diagnose(DETAILS, gpu="h200", kernel="nvjet_sm90_tst_256x128", op="gemm", m=4096, n=4096, k=4096)
    (product,) = report.kernels
    assert product.profile.flops is None
    assert product.achieved_flops_per_s == pytest.approx(2 * 4096**3 / 173.66e-6, rel=0.01)
    assert product.intensity is not None


@pytest.mark.parametrize("path", sorted(PROFILES.glob("*.csv")), ids=lambda path: path.stem)
def test_a_file_that_is_cut_off_is_bad_input(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, cut = path.read_bytes(), tmp_path / "cut.csv"
    codes = []
    for eighth in range(1, 8):
        cut.write_bytes(whole[: len(whole) * eighth // 8])
        codes.append(run(["diagnose", str(cut)]))
        capsys.readouterr()
    assert set(codes) <= {0, 3}  # 0: cut between two rows
    assert 3 in codes
    lines = [line for line in path.read_text().splitlines() if not line.startswith("==")]
    cut.write_text("\n".join([*lines[:-1], lines[-1][: len(lines[-1]) // 3]]))
    assert run(["diagnose", str(cut)]) == 3
    assert "Export it again, whole" in capsys.readouterr().err
