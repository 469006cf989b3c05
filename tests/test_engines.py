"""Whole models decoding in engines, against measured tokens a second."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy
import pytest

from memwall import yamlfile
from memwall.cli import run
from memwall.errors import UnknownName
from memwall.estimate.engine import Engine, core_clocks_per_s, engine_named, engines
from memwall.hardware import load
from memwall.models.load import load as load_model
from memwall.models.storage import storage_of, weight_bytes
from memwall.reports.engine_fit import Refit, refits, rewritten, sample
from memwall.reports.passes import MeasuredPass, decoded, decoding, lines
from memwall.reports.step import step

ROOT = Path(__file__).parents[1]
TOLERANCE = 1.02
MEGA, GIGA = 1e6, 1e9


def engine(name: str) -> Engine:
    found = engine_named(name)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def refitted() -> dict[str, list[Refit]]:
    return {each.name: refits(each) for each in engines() if each.fitted}


def alone() -> list[MeasuredPass]:
    return [each for each in decoding() if each.batch == 1]


def sizes(passes: Sequence[MeasuredPass]) -> numpy.ndarray[tuple[int], numpy.dtype[numpy.float64]]:
    return numpy.abs([each.error for each in passes])


def test_no_row_beats_its_bound() -> None:
    assert len(decoding()) == 677
    assert [each for each in decoding() if each.bound_s > TOLERANCE * each.measured_s] == []


def test_decoding_one_sequence_is_met() -> None:
    errors = sizes(alone())
    assert len(errors) == 397
    assert numpy.median(errors) <= 0.05
    assert (errors <= 0.25).mean() >= 0.97


@pytest.mark.parametrize("name", ["llama.cpp", "vllm", "tensorrt-llm", "gpt-fast"])
def test_each_engine_is_met(name: str) -> None:
    errors = sizes([each for each in alone() if each.engine == name])
    assert numpy.median(errors) <= 0.1
    assert (errors <= 0.25).mean() >= 0.9


def test_several_sequences_are_met() -> None:
    errors = sizes([each for each in decoding() if each.batch > 1])
    assert len(errors) == 280
    assert numpy.median(errors) <= 0.1
    assert (errors <= 0.25).mean() >= 0.9


def test_gpus_and_models_left_out_of_the_fit_are_met(refitted: dict[str, list[Refit]]) -> None:
    """The fit anew without each GPU, and without each model, and its errors there: one sequence."""
    gpus = numpy.abs(
        numpy.concatenate([r.by_gpu for fits in refitted.values() for r in fits if r.by_gpu is not None])
    )
    models = numpy.abs(numpy.concatenate([r.by_model for fits in refitted.values() for r in fits]))
    assert len(gpus) == 357
    assert numpy.median(gpus) <= 0.1
    assert (gpus <= 0.25).mean() >= 0.95
    assert len(models) == 397
    assert numpy.median(models) <= 0.06
    assert (models <= 0.25).mean() >= 0.97


def test_an_engines_file_has_the_constants_of_its_fit(refitted: dict[str, list[Refit]]) -> None:
    """Its loss is that of a fit from round numbers, and its errors are those of what was left out."""
    for name, found in refitted.items():
        own = engine(name)
        for shipped, again in zip((own.fit, *own.by_vendor.values()), found, strict=True):
            vendors = {each.step.device.data["vendor"] for each in decoded()} - set(own.by_vendor)
            of = {v for v, fit in own.by_vendor.items() if fit is shipped} or vendors
            passes = [d for d in decoded() if d.row["engine"] == name and d.step.device.data["vendor"] in of]
            data = sample(passes, own)
            assert data.loss(shipped.constants) <= 1.02 * data.loss(again.constants), name
            median, p90 = numpy.quantile(again.judged, (0.5, 0.9))
            assert shipped.error_p50 == pytest.approx(median, abs=0.02), name
            assert shipped.error_p90 == pytest.approx(p90, abs=0.02), name


def test_a_file_written_anew_is_read_as_the_fit(refitted: dict[str, list[Refit]]) -> None:
    text = (ROOT / "hardware/engines/llama.cpp.yaml").read_text()
    data = yamlfile.parse(rewritten(text, refitted["llama.cpp"]), "llama.cpp.yaml")
    first, apple = refitted["llama.cpp"]
    assert data["constants"]["layer_us"] == pytest.approx(first.constants.layer_s * MEGA, rel=1e-3)
    found = data["by_vendor"]["Apple"]["constants"]["product_share"]
    assert found == pytest.approx(apple.constants.product_share, rel=1e-3)
    assert data["by_vendor"]["Apple"]["constants"]["hop_us"] == 256


def test_the_arrays_of_a_fit_are_the_reports() -> None:
    """Two routes: the sum of a report's kernels, and the fit's arrays."""
    for name, vendor in (("llama.cpp", "NVIDIA"), ("llama.cpp", "Apple"), ("vllm", "AMD")):
        passes = [d for d in decoded() if d.row["engine"] == name and d.step.device.data["vendor"] == vendor]
        constants = engine(name).on(passes[0].step.device).constants
        errors = sample(passes, engine(name)).errors(constants)
        assert errors == pytest.approx([each.judged.error for each in passes], abs=1e-3)


def test_llama_cpp_by_hand() -> None:
    """RTX 3090, Llama 3 8B in q4_k_m, 256 tokens: layers, products and attention added up apart."""
    report = step("llama3-8b", gpu="rtx-3090", weight_dtype="q4_k_m", context=256, engine="llama.cpp")
    assert report.estimate is not None
    c = engine("llama.cpp").fit.constants
    clocks = 82 * 2100 * MEGA
    streamed_s, drawn_s = (
        4.616 * GIGA / rate for rate in (936.1 * GIGA * c.product_share, clocks * c.product_bytes_per_clock)
    )
    products_s = (streamed_s**6 + drawn_s**6) ** (1 / 6)
    keys_s = 32 * 256 * (4096 / (936.1 * GIGA) + 32 * 256 / (clocks * c.lanes_per_clock))
    assert report.estimate.time_s == pytest.approx(32 * c.layer_s + products_s + keys_s, rel=0.01)
    assert report.engine_time_s == pytest.approx(32 * c.layer_s)


def test_what_an_engine_adds() -> None:
    c = engine("vllm").fit.constants
    report = step("llama3-8b", gpu="h100", context=1024, batch=4, tp=2, engine="vllm")
    exchanges = sum(each.repeats for each in report.spread.exchanges)
    expected = c.host_s + 3 * c.sequence_s + c.rank_s + exchanges * c.sync_s
    assert report.engine_time_s == pytest.approx(expected)
    assert step("llama3-8b", gpu="h100", seq=1024, engine="vllm").engine_time_s == 0
    assert step("llama3-8b", gpu="h100", context=1024).engine_time_s == 0


def test_an_estimate_is_never_below_its_bound() -> None:
    for name in ("llama.cpp", "vllm", "tensorrt-llm", "gpt-fast"):
        for gpu in ("rtx-4090", "h200", "mi300x", "m2-ultra"):
            if not engine(name).runs_on(load(gpu)):
                continue
            report = step("llama3-8b", gpu=gpu, context=64, dtype="fp16", engine=name)
            assert report.estimate is not None
            assert report.estimate.time_s >= report.kernels_bound_time_s
            assert all(line.estimate and line.estimate.time_s >= line.bound.time_s for line in report.lines)


def test_an_engine_is_refused_where_it_does_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    words = "step --model llama3-8b --gpu m2-max --dtype fp16 --context 64 --engine tensorrt-llm"
    assert run(words.split()) == 2
    assert "Those that do: llama.cpp" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("model", "file_bytes"),
    # Llama-3-8B and 70B as files of llama.cpp, b2700 and later: XiongjieDai's tables have their sizes.
    [("llama3-8b", 4_917_740_000), ("llama3-70b", 42_509_400_000)],
)
def test_q4_k_m_takes_what_its_files_take(model: str, file_bytes: int) -> None:
    loaded = load_model(model)
    assert weight_bytes(loaded, storage_of(loaded, "q4_k_m")).total == pytest.approx(file_bytes, rel=0.005)


def test_q4_k_m_has_a_head_of_its_own_format() -> None:
    report = step("llama3-8b", gpu="rtx-3090", weight_dtype="q4_k_m", context=256)
    head = next(line for line in report.lines if line.launch.name == "head")
    assert head.launch.kernel.reads[1].dtype.name == "q6_k"


def test_cores_from_the_lanes_where_their_number_is_not_known() -> None:
    """The M1 Max: 32 cores at 1.27 GHz make 10.4 TFLOPS with 128 lanes each."""
    assert core_clocks_per_s(load("m1-max")) == pytest.approx(32 * 1270 * MEGA, rel=0.01)


def test_names_and_their_mistakes(capsys: pytest.CaptureFixture[str]) -> None:
    assert engine("LLAMA-CPP").name == "llama.cpp"
    assert engine("trtllm").name == "tensorrt-llm"
    assert engine_named(None) is None
    with pytest.raises(UnknownName, match=r"llama\.cpp"):
        engine_named("lama.cpp")
    wrong = "step --model llama3-8b --context 64 --bound-only --engine lama.cpp"
    assert run(wrong.split()) == 2
    assert "llama.cpp" in capsys.readouterr().err


def test_the_report_says_whose_step_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    asked = "step --model llama3-8b --gpu rtx-4090 --weight-dtype q4_k_m --context 512 --json"

    def record(more: str) -> dict[str, Any]:
        assert run(f"{asked} {more}".split()) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    named, plain = record("--engine llama.cpp"), record("")
    assert named["engine"] == "llama.cpp"
    assert named["basis"] == "architecture default"
    assert named["estimate_time_s"] > named["engine_time_s"] > 0
    assert any("llama.cpp" in note and "host" in note for note in named["notes"])
    assert any("fitted on other GPUs" in note for note in named["notes"])
    assert plain["engine"] is None
    assert any("kernels alone" in note for note in plain["notes"])


def test_lines_group_by_what_is_asked() -> None:
    total = list(lines(alone(), ()))
    assert [line.rows for line in total] == [397]
    assert sum(line.rows for line in lines(alone(), ("engine", "model"))) == 397
