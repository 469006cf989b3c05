"""The page: its numbers in a browser are the command line's, and it needs nothing else."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from report_page import Page, browse, needs_browser, play

from memwall.cli import run


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    command = ["report", "--model", "llama3-70b", "--gpu", "h100,h200", "--context", "8192", "-o"]
    assert run([*command, str(path)]) == 0
    return path


def test_the_page_needs_nothing_else(written: Path) -> None:
    text = written.read_text()
    assert Page(text).loads == []
    assert not re.search(
        r"@import|url\(|fetch\(|XMLHttpRequest|https?://(?!www\.w3\.org)[^\s\"'<]*\.(js|css)", text
    )
    assert text.count("</script>") == 1
    assert len(text) < 500_000


def test_the_page_has_the_same_bytes_again(written: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.html"
    command = ["report", "--model", "llama3-70b", "--gpu", "h100,h200", "--context", "8192", "-o"]
    assert run([*command, str(again)]) == 0
    assert again.read_bytes() == written.read_bytes()


def test_every_slider_and_button_has_a_name(written: Path) -> None:
    text = written.read_text()
    assert "<label for=batch id=batch-name>" in text
    assert "<label for=context id=context-name>" in text
    assert re.findall(r"<button(?! type=button)", text) == []
    assert "<html lang=en>" in text
    assert "name=viewport" in text


def compare(page: Page, expected: dict[str, Any]) -> None:
    """Every number of the page with the command line's."""
    for name, text in page.values.items():
        if expected[name] is None:
            assert text == "", name
        elif isinstance(expected[name], bool):
            assert text == str(expected[name]).lower(), name
        elif isinstance(expected[name], str):
            assert text.startswith(expected[name]), name
        else:
            assert float(text) == pytest.approx(expected[name], rel=1e-12), name
    for found, key in ((page.kernels, "kernels"), (page.exchanges, "exchanges")):
        times = {each["name"]: each["bound_time_s"] for each in expected[key]}
        assert found == pytest.approx(times, rel=1e-12)
    rows = [*expected["kernels"], *expected["exchanges"]]
    expected_times = {
        each["name"]: each["estimate_time_s"] for each in rows if each["estimate_time_s"] is not None
    }
    assert page.estimates == pytest.approx(expected_times, rel=1e-12)


def stepped(args: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert run(["step", *args.split(), "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


@needs_browser
@pytest.mark.parametrize(
    ("gpu", "phase", "batch", "context"),
    [("h100", "decode", 1, 8192), ("h200", "decode", 37, 5000), ("h100", "prefill", 4, 1000)],
)
def test_a_browser_computes_the_command_lines_numbers(
    written: Path, gpu: str, phase: str, batch: int, context: int, capsys: pytest.CaptureFixture[str]
) -> None:
    page = browse(written, f"gpu={gpu}&phase={phase}&batch={batch}&context={context}")
    length = "--context" if phase == "decode" else "--seq"
    args = f"--model llama3-70b --gpu {gpu} --phase {phase} --batch {batch} {length} {context}"
    assert {"estimate_time_s", "basis", "bound_time_s"} <= page.values.keys()
    compare(page, stepped(args, capsys))
    assert page.command == f"memwall step {args}"


@pytest.mark.skipif(shutil.which("node") is None, reason="no Node is installed")
def test_the_pages_forms_need_no_browser(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The part of the script that computes, alone."""
    script = written.read_text().partition("<script>")[2].partition('"use strict";\nconst SI')[0]
    points = [("h200", "decode", 37, 5000), ("h100", "prefill", 1023, 130_001)]
    script += f"console.log(JSON.stringify({json.dumps(points)}.map((point) => at(...point))));"
    done = subprocess.run(["node", "-"], input=script, capture_output=True, text=True, check=True)
    for (gpu, phase, batch, context), found in zip(points, json.loads(done.stdout), strict=True):
        length = "--context" if phase == "decode" else "--seq"
        args = f"--model llama3-70b --gpu {gpu} --phase {phase} --batch {batch} {length} {context}"
        expected = stepped(args, capsys)
        for name in found.keys() & expected.keys() - {"kernels", "exchanges"}:
            exact = isinstance(expected[name], str | bool | None)
            assert found[name] == (expected[name] if exact else pytest.approx(expected[name], rel=1e-12)), (
                name
            )


@needs_browser
@pytest.mark.parametrize(
    ("model", "flags", "gpu", "phase", "batch", "context"),
    [
        ("llama3-70b", "--tp 4 --pp 2 --dp 2 --sequence-parallel", "h100", "decode", 33, 3000),
        ("llama3-70b", "--tp 8 --dtype fp8 --kv-dtype fp8", "h100", "prefill", 3, 6000),
        ("deepseek-v3", "--tp 8 --dp 2 --ep 16 --imbalance 1.2", "h200", "decode", 96, 4096),
        ("llama3-8b", "--bound-only --set memory.bandwidth_gb_per_s=4000", "h100", "decode", 3, 100),
        ("llama3-8b", "--library vllm", "b200", "prefill", 1, 4),
        ("llama3-8b", "--engine vllm --tp 2", "h100", "decode", 9, 700),
        ("llama3-8b", "--engine llama.cpp", "l40s", "decode", 3, 700),
    ],
)
def test_a_layout_and_what_ifs_reach_the_page_and_the_command_that_it_shows(
    model: str,
    flags: str,
    gpu: str,
    phase: str,
    batch: int,
    context: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "page.html"
    assert run(["report", "--model", model, "--gpu", gpu, *flags.split(), "-o", str(path)]) == 0
    page = browse(path, f"gpu={gpu}&phase={phase}&batch={batch}&context={context}")
    command = page.command.removeprefix("memwall step ")
    for flag in flags.split():
        assert flag in command.split()
    compare(page, stepped(command, capsys))


@needs_browser
def test_a_browser_sorts_filters_and_slides(written: Path) -> None:
    """By events, as from mouse and keyboard."""
    script = """
    fire("batch-number", 64, "change");
    fire("batch-number", "", "change"); fire("batch-number", -3, "change");
    fire("context", REPORT.places.context.indexOf(4096), "input");
    document.querySelector("th[data-sort=name] button").click();
    fire("filter", "ATTENTION", "input");
    const dot = document.querySelector("figure:not([hidden]) circle.op");
    dot.dispatchEvent(new Event("focus"));
    return [[...document.querySelectorAll("#kernels tr")].map((r) => r.dataset.kernel), location.hash,
      document.getElementById("tip").textContent];"""
    kernels, place, tip = play(written, script)
    assert kernels == sorted(kernels)
    assert kernels[0].startswith("attention")
    assert place == "#gpu=h100&phase=decode&batch=64&context=4096"
    assert "FLOP/B" in tip


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        ("--model llama3-8b", 2, "Name it: -o report.html"),
        ("--model lama3-8b -o x.html", 2, "unknown model"),
        ("--model llama3-8b --gpu v100 -o x.html", 4, "no bf16 matrix path"),
        ("--model llama3-8b --batch 0 -o x.html", 2, "--batch"),
        ("--model llama3-8b -o nowhere/x.html", 2, "No such file"),
        ("--model llama3-8b -o x.pdf", 2, "print it to PDF"),
        ("--model llama3-8b -o x.PDF", 2, "Write -o x.html"),
        ("--model llama3-8b -o x.svg", 2, "memwall plot roofline -o plot.svg"),
        ("--model llama3-8b -o x.png", 2, "the report is a page of HTML"),
        ("--model llama3-8b -o x.json", 2, "memwall step -o step.json"),
        ("--model llama3-8b -o x.docx", 2, "Try -o x.html"),
        ("--model llama3-8b -o x", 2, "Try -o x.html"),
        ("--model llama3-8b --bound-only --library fa3 -o x.html", 2, "Leave out --library"),
        ("--model llama3-8b --bound-only --calibration a.yaml -o x.html", 2, "Leave out --calibration"),
        ("--model bert-base --phase decode -o x.html", 4, "generates none. Try memwall step --phase prefill"),
        ("--model llama3-8b --tp 7 -o x.html", 2, "do not split so"),
        ("--model llama3-70b --tp 16 -o x.html", 2, "Try --tp 8 --pp 2"),
        ("--model llama3-8b --ep 2 -o x.html", 2, "has no experts"),
        ("--model llama3-8b --pp 33 -o x.html", 2, "has 32 layers"),
        ("--model llama3-8b --library nobody -o x.html", 2, "nobody"),
    ],
)
def test_a_page_that_cannot_be_says_why(
    args: str,
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["report", *args.split()]) == code
    assert said in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


def test_a_gpu_named_twice_is_there_once(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    assert run(["report", "--model", "llama3-8b", "--gpu", "H100,h100-sxm5-80gb,h100", "-o", str(path)]) == 0
    assert path.read_text().count("name=gpu ") == 1


def test_two_gpus_of_one_name_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["gpu", "show", "h100", "--yaml"]) == 0
    mine = tmp_path / "mine.yaml"
    mine.write_text(capsys.readouterr().out.replace("tdp_w: 700", "tdp_w: 650"))
    path = tmp_path / "page.html"
    assert run(["report", "--model", "llama3-8b", "--gpu", f"h100,{mine}", "-o", str(path)]) == 2
    assert "another GPU of the page is called h100" in capsys.readouterr().err
    assert not path.exists()


@needs_browser
def test_the_command_names_files_as_the_user_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "my models"
    folder.mkdir()
    for kind, name in (("gpu", "h100"), ("model", "llama3-8b")):
        assert run([kind, "show", name, "--yaml"]) == 0
        (folder / f"{kind}.yaml").write_text(capsys.readouterr().out)
    path, model, gpu = tmp_path / "page.html", folder / "model.yaml", folder / "gpu.yaml"
    what_if = "memory.bandwidth_gb_per_s=4000"
    args = ["--model", str(model), "--gpu", str(gpu), "--context", "4096", "--set", what_if]
    assert run(["report", *args, "-o", str(path)]) == 0
    page = browse(path, "batch=4")
    shown = shlex.split(page.command)
    assert shown[:6] == ["memwall", "step", "--model", str(model), "--gpu", str(gpu)]
    assert shown[-2:] == ["--set", what_if]
    assert run([*shown[1:], "--json"]) == 0
    compare(page, json.loads(capsys.readouterr().out))


def test_an_encoder_has_no_decode(tmp_path: Path) -> None:
    path = tmp_path / "bert.html"
    assert run(["report", "--model", "bert-base", "--context", "512", "-o", str(path)]) == 0
    assert '"phases":["prefill"]' in path.read_text()


def test_a_gpu_without_an_answer_is_named_in_the_page(tmp_path: Path) -> None:
    path = tmp_path / "two.html"
    assert run(["report", "--model", "llama3-8b", "--gpu", "v100,h100", "-o", str(path)]) == 0
    assert "v100: NVIDIA V100 SXM2 16 GB has no bf16 matrix path" in path.read_text().replace("&#x27;", "'")


def test_the_sliders_reach_what_was_asked(tmp_path: Path) -> None:
    path = tmp_path / "long.html"
    command = ["report", "--model", "llama3-8b", "--batch", "5000", "--context", "2000000", "-o"]
    assert run([*command, str(path)]) == 0
    found = re.search(r'"most":\[(\d+),(\d+)\]', path.read_text())
    assert found
    assert tuple(map(int, found.groups())) == (5000, 2_000_000)
    assert math.log2(5000) * 8 <= 100
