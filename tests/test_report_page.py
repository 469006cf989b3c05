"""What a page says, and how it answers to its controls: in words, for every reader, on screen and paper."""

from __future__ import annotations

import html
import json
import re
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from report_page import needs_browser, play, report

import memwall
from memwall.catalog import MODELS
from memwall.cli import run
from memwall.constant import Constant
from memwall.htmlreport.details import details_of
from memwall.htmlreport.sources import readable
from memwall.models.load import load

SUMMARY = "return document.getElementById('summary').textContent;"
REMARKS = """return [...document.querySelectorAll("#computed li, [data-of] li")]
    .filter((each) => each.checkVisibility()).map((each) => each.textContent);"""


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report(tmp_path_factory.mktemp("page") / "one.html", "--model llama3-70b --gpu h200,h100,b200")


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "staged.html"
    return report(path, "--model llama3-405b --gpu h100 --tp 8 --pp 4")


def visible_text(script: str) -> str:
    return f"return document.querySelector({json.dumps(script)}).innerText;"


NAME = "a <!--<script> & \u2028 b"


def hostile(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[Path, Path]:
    """Files of a model and a GPU whose names a browser may take for markup."""
    folder /= NAME.replace("/", "")
    folder.mkdir()
    assert run(["model", "show", "llama3-8b", "--yaml"]) == 0
    (folder / "model.yaml").write_text(capsys.readouterr().out)
    assert run(["gpu", "show", "h100", "--yaml"]) == 0
    text = re.sub(r"(?m)^title:.*", lambda _: f"title: {json.dumps(NAME)}", capsys.readouterr().out)
    (folder / "gpu.yaml").write_text(text)
    return folder / "model.yaml", folder / "gpu.yaml"


def test_no_name_ends_the_script_or_hides_its_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, gpu = hostile(tmp_path, capsys)
    path = tmp_path / "page.html"
    assert run(["report", "--model", str(model), "--gpu", str(gpu), "-o", str(path)]) == 0
    text = path.read_text()
    data = text.partition("<script>")[2].partition('"use strict"')[0]
    assert not re.search("[<>&\u2028\u2029]", data)
    assert len(re.findall("(?i)<script|<!--", text)) == 1
    report_line = next(line for line in data.splitlines() if line.startswith("const REPORT="))
    said = json.loads(report_line.removeprefix("const REPORT=").rstrip(";"))
    assert said["gpus"][0]["title"] == NAME
    assert shlex.split(said["model"]) == [str(model)]


@needs_browser
def test_a_page_of_such_names_lives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, gpu = hostile(tmp_path, capsys)
    path = tmp_path / "page.html"
    assert run(["report", "--model", str(model), "--gpu", str(gpu), "-o", str(path)]) == 0
    assert NAME in play(path, SUMMARY)


@needs_browser
def test_one_step_of_a_slider_reaches_another_count(one: Path) -> None:
    """Each step up and down, from both ends and from counts between its places."""
    script = """return ["batch", "context"].map((name) => {
      const slider = document.getElementById(name), wrong = [];
      const press = (by) => {
        slider.stepUp(by); slider.dispatchEvent(new Event("input")); return state[name];
      };
      const from = (value) => { fire(`${name}-number`, value, "change"); return value; };
      for (const start of [1, 2, 3, 7, 47, 48, 1000])
        for (const by of [1, -1]) {
          const before = from(start), after = press(by);
          if (before + by >= 1 && (after - before) * by <= 0) wrong.push([before, by, after]);
        }
      from(1);
      const climbed = [press(1), press(1), press(1), press(1)];
      fire(name, slider.max, "input");
      return [wrong, climbed, state[name] === POINTS[name]];
    });"""
    assert play(one, script) == [[[], [2, 3, 4, 5], True]] * 2


@needs_browser
def test_a_pipelines_numbers_are_called_a_microbatchs(staged: Path) -> None:
    text = play(staged, visible_text("main"))
    assert "traffic of a microbatch, all stages" in text
    assert "Kernels of a microbatch through all stages, a GPU of each" in text
    assert "a microbatch on its way through all stages moves 101.5 GB" in text
    for wrong in ("of a GPU\n", "each GPU's memory", "Kernels of one GPU"):
        assert wrong not in text


def test_bars_and_swatches_are_printed(one: Path) -> None:
    paper = one.read_text().partition("@media print{")[2].partition("</style>")[0]
    assert ".bar,.bar *,.key b,td .share{-webkit-print-color-adjust:exact;print-color-adjust:exact}" in paper


@needs_browser
def test_the_summary_says_what_does_not_fit(one: Path, tmp_path: Path) -> None:
    script = """return ["h100", "h200"].map((gpu) => {
      change({ gpu, phase: "decode", batch: 1, context: 8192 });
      return ["summary", "bar-text"].map((id) => document.getElementById(id).textContent);
    });"""
    (said, bar), (fits, _) = play(one, script)
    found = memwall.step("llama3-70b", gpu="h100", context=8192).to_dict()
    over = found["resident_weight_bytes"] + found["resident_cache_bytes"] - found["capacity_bytes"]
    missing = f"{over / 10**9:.2f}".rstrip("0")
    assert f"does not fit: weights and cache are {missing} GB more than the GPU has" in said
    assert f"does not fit, {missing} GB more" in bar
    assert "does not fit" not in fits
    path = report(tmp_path / "two.html", "--model llama3-405b --gpu h100 --tp 2")
    assert "of the fullest GPU are 323" in play(path, SUMMARY)


def test_the_command_line_warns_of_what_does_not_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report(tmp_path / "page.html", "--model llama3-70b --gpu h100,h200")
    assert run(["step", "--model", "llama3-70b", "--gpu", "h100,h200", "--context", "8192"]) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning")]
    assert len(said) == 2
    assert said[0] == said[1]


PAGES: list[tuple[str, str, str, list[tuple[str, int, int]]]] = [
    ("bert-base", "h100", "", [("prefill", 1, 20_000), ("prefill", 1, 512)]),
    ("llama3-8b", "h100", "", [("decode", 1, 100), ("prefill", 1, 100_000)]),
    ("deepseek-v3", "h200", "--tp 8", [("decode", 64, 4096), ("prefill", 2, 4096)]),
    ("llama3-8b", "mi300x", "--dp 3 --set memory.bandwidth_gb_per_s=9000", [("decode", 100, 64)]),
    ("llama3-8b", "h100", "--set vector.peak_tflops.fp32=1 --bound-only", [("decode", 1, 64)]),
    ("llama3-8b", "h100", "--set vector.peak_tflops.fp32=1000 --bound-only", [("decode", 1, 64)]),
    ("llama3-8b", "h100", "--engine vllm", [("decode", 33, 700), ("prefill", 3, 700)]),
    ("llama3-8b", "b200", "--engine vllm", [("decode", 3, 700)]),
    ("bart", "h100", "", [("decode", 1, 2000), ("prefill", 1, 2000)]),
    ("whisper", "h100", "", [("decode", 1, 500), ("prefill", 4, 2000)]),
]
ENCODED = {
    "bart": {"d_model": 1024, "decoder_layers": 12, "decoder_attention_heads": 16, "vocab_size": 50265}
    | {"architectures": ["BartForConditionalGeneration"], "max_position_embeddings": 1024},
    "whisper": {"d_model": 1280, "encoder_layers": 32, "encoder_attention_heads": 20, "decoder_layers": 32}
    | {"decoder_attention_heads": 20, "decoder_ffn_dim": 5120, "encoder_ffn_dim": 5120}
    | {"architectures": ["WhisperForConditionalGeneration"], "vocab_size": 51866, "num_mel_bins": 128},
}
"""Configs of models with an encoder and a decoder."""


@needs_browser
@pytest.mark.parametrize(("model", "gpu", "flags", "points"), PAGES)
def test_remarks_are_those_of_what_is_shown(
    model: str,
    gpu: str,
    flags: str,
    points: list[tuple[str, int, int]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Asked at one point, the page says at others what the command line says at these."""
    if model in ENCODED:
        config = tmp_path / "config.json"
        config.write_text(json.dumps({"model_type": model, **ENCODED[model]}))
        model = str(config)
    path = report(tmp_path / "page.html", f"--model {model} --gpu {gpu} {flags} --batch 2 --context 300")
    script = f"""return {json.dumps(points)}.map(([phase, batch, context]) => {{
      change({{ phase, batch, context }}); {REMARKS} }});"""
    capsys.readouterr()
    for (phase, batch, context), found in zip(points, play(path, script), strict=True):
        length = "--context" if phase == "decode" else "--seq"
        point = f"--phase {phase} --batch {batch} {length} {context}"
        assert run(f"step --model {model} --gpu {gpu} {point} {flags} --json".split()) == 0
        notes = [note for note in json.loads(capsys.readouterr().out)["notes"] if "does not fit" not in note]
        assert sorted(found) == sorted(
            note.replace(": --engine", ": memwall step --engine") for note in notes
        )


def test_without_scripts_the_page_has_the_answer(one: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = one.read_text().partition("<noscript>")[2].partition("</noscript>")[0]
    assert (
        run(["step", "--model", "llama3-70b", "--gpu", "h100", "--phase", "decode", "--context", "8192"]) == 0
    )
    answer = capsys.readouterr().out
    assert answer.partition("\nNotes")[0] in html.unescape(written)
    assert "$ memwall step --model llama3-70b --gpu h100 --phase decode --batch 1 --context 8192" in written


def rows_of_sources(path: Path) -> list[list[str]]:
    text = path.read_text().partition("Assumptions and sources")[2].partition("</main>")[0]
    rows = [re.split("<td>", row)[1:] for row in text.split("<tr>")]
    return [[html.unescape(re.sub("<.*?>", "", cell)) for cell in row] for row in rows if row]


@pytest.mark.parametrize("gpu", ["h100", "mi300x", "l40s"])
def test_every_number_of_the_page_has_its_source(gpu: str, tmp_path: Path) -> None:
    path = report(tmp_path / "page.html", f"--model llama3-8b --gpu {gpu} --tp 4")
    rows = rows_of_sources(path)
    assert all(all(row) for row in rows)
    keys = {row[0] for row in rows}
    device = memwall.gpu(gpu)
    assert {leaf.key for dtype in ("bf16", "fp8", "int8") for leaf in device.peak(dtype).rate.leaves} <= keys
    assert any(key.startswith("memory.capacity") for key in keys)
    assert any(key.startswith("links.") for key in keys)
    assert any("start_us" in row[1] for row in rows if row[0].startswith("collectives."))
    assert ("l2.bandwidth_measured_gb_per_s" in keys) == bool(
        device.group("l2").get("bandwidth_measured_gb_per_s")
    )


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("memory.bandwidth_driver_gb_per_s", 3.35232e12, "3.352 TB/s"),
        ("matrix.peak_dense_tflops.bf16", 989.4e12, "989.4 TFLOP/s"),
        ("matrix.peak_dense_tflops.int8", 1978.9e12, "1.979 POP/s"),
        ("memory.capacity_driver_bytes", 84942979072.0, "84.94 GB"),
        ("links.nvlink.gb_per_s_per_direction", 450e9, "450 GB/s"),
        ("clocks.max_mhz", 1.98e9, "1.98 GHz"),
        ("unit.count", 132.0, "132"),
        ("special.exp_per_clock_per_unit", 16.0, "16"),
    ],
)
def test_a_constants_value_has_its_unit(key: str, value: float, said: str) -> None:
    assert readable(Constant(key, value, "seen", "")) == said


@needs_browser
def test_two_printed_pages_can_be_told_apart(tmp_path: Path) -> None:
    args = "--weight-dtype int4-g128 --kv-dtype fp8 --engine vllm --set memory.bandwidth_gb_per_s=4000 --tp 2"
    path = report(tmp_path / "page.html", f"--model llama3-70b --gpu h100 {args}")
    formats, what_if = "bf16, weights int4-g128, cache fp8", "memory.bandwidth_gb_per_s=4000"
    setting = f"{formats}; on h100; 2 GPUs: TP 2; engine vllm; what-if {what_if}"
    assert f"<title>Llama 3 70B: {setting}</title>" in path.read_text()
    shown, said = play(
        path, "return ['.setting', '#summary'].map((each) => document.querySelector(each).innerText);"
    )
    assert shown == setting
    assert f"in {formats} and with the what-if {what_if}" in said


@pytest.mark.parametrize("model", MODELS.names())
def test_kernels_of_one_name_have_their_shapes(model: str) -> None:
    loaded = load(model)
    words: dict[str, Any] = {"context": 64} if loaded.decodes else {"seq": 64}
    launches = [line.launch for line in memwall.step(loaded, gpu="h100", bound_only=True, **words).lines]
    details = details_of(launches)
    names = Counter(launch.name for launch in launches)
    assert all(
        bool(detail) == (names[launch.name] > 1) for launch, detail in zip(launches, details, strict=True)
    )
    assert len({(launch.name, detail) for launch, detail in zip(launches, details, strict=True)}) == len(
        launches
    )


def test_a_projections_shape_is_all_its_matrices_together() -> None:
    """Gemma 4 E2B, by hand: Q of 8 heads, K and V of one each, of 256 or 512, of a width of 1536."""
    lines = memwall.step("gemma4-e2b", gpu="h100", context=64, bound_only=True).lines
    launches = [line.launch for line in lines]
    found = {
        d for launch, d in zip(launches, details_of(launches), strict=True) if launch.name == "attention.qkv"
    }
    assert found == {"2560 x 1536", "5120 x 1536", "2048 x 1536", "4096 x 1536"}


@needs_browser
def test_gpus_beside_each_other_have_the_command_lines_numbers(
    one: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = """return [document.getElementById("quickest").textContent,
      [...document.querySelectorAll("#compared tr")].map((r) => [...r.cells].map((c) => c.textContent))];"""
    said, rows = play(one, script, "gpu=h200&phase=decode&batch=2&context=4000")
    point = ["--batch", "2", "--context", "4000", "--json"]
    assert run(["step", "--model", "llama3-70b", "--gpu", "h200,h100,b200", *point]) == 0
    results = {each["gpu"]: each for each in json.loads(capsys.readouterr().out)["results"]}
    assert [row[0] for row in rows] == list(results)
    for name, bound, estimate, _, _, fits in rows:
        found = results[name]
        for text, time_s in ((bound, found["bound_time_s"]), (estimate, found["estimate_time_s"])):
            assert text == f"{time_s * 1000:.4g} ms"
        assert fits == ("yes" if found["fits"] else "no")
    assert said.startswith("Of those that it fits on, b200 is quickest by the estimate")


@needs_browser
def test_the_filter_wants_all_its_words(one: Path) -> None:
    script = """const shown = (text) => { fire("filter", text, "input");
      return [...document.querySelectorAll("#kernels tr")].map((r) => r.dataset.kernel); };
    const example = document.getElementById("filter").placeholder;
    return [" mlp ", "mlp linear", "linear mlp", "mlp nothing", example].map(shown);"""
    blanks, both, turned, none, example = play(one, script)
    assert set(blanks) == {"mlp.gate_up", "mlp.silu*mul", "mlp.down"}
    assert set(both) == set(turned) == {"mlp.gate_up", "mlp.down"}
    assert none == []
    assert "attention" in example


@needs_browser
def test_little_is_not_nothing_and_one_is_no_plural(one: Path) -> None:
    script = """return [[1, 1], [1000, 131072]].map(([batch, context]) => {
      change({ gpu: "b200", phase: "decode", batch, context });
      return document.querySelector("main").innerText;
    });"""
    text, large = play(one, script)
    assert "one sequence of 1 token takes" in text
    assert "< 0.1 %" in text
    assert not re.search(r"(?<![\d.])0 %", text)
    assert "rests on: physics:" not in text
    assert "1,000 sequences of 131,072 tokens each" in large


def test_tables_and_heads_have_names_and_the_summary_keeps_still(one: Path) -> None:
    text = one.read_text()
    assert "<p class=summary id=summary></p>" in text
    assert "<p class=spoken id=said aria-live=polite></p>" in text
    assert text.count("<span class=arrow aria-hidden=true></span></button>") == text.count(
        "data-sort="
    ) - text.count("data-sort=name]") - text.count("th[data-sort=")
    for table in re.findall(r"<table[^>]*>(?:<caption)?", text):
        assert "aria-labelledby" in table or table.endswith("<caption"), table
