"""The page's numbers are the command line's, in Python's reading of its forms and in a browser's."""

from __future__ import annotations

import json
import math
import os
import random
import re
import shutil
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import memwall
from memwall.catalog import MODELS
from memwall.cli import run
from memwall.errors import NotAvailable
from memwall.htmlreport.forms import Forms, Pass, forms_of
from memwall.htmlreport.trace import Tape, Traced
from memwall.models.load import load
from memwall.render.step_record import record

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")


OPERATIONS: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "**": lambda a, b: a**b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "abs": abs,
    "round": round,
}


def value(tape: Tape, node: int, batch: int, context: int, known: dict[int, Any]) -> Any:
    """A node's value by its operations: a second reading of the forms, beside the browser's."""
    if node in known:
        return known[node]
    kind, *parts = tape.nodes[node]
    if kind in ("input", "number"):
        found = {"batch": batch, "context": context}[parts[0]] if kind == "input" else parts[0]
    else:
        left, *right = (value(tape, part, batch, context, known) for part in parts)
        found = OPERATIONS[kind](left, *right)
    known[node] = found
    return found


def at(forms: Forms, batch: int, context: int) -> dict[str, Any]:
    """What the page shows at a point."""
    known: dict[int, Any] = {}

    def of(form: Any) -> Any:
        return value(forms.tape, form.node, batch, context, known) if isinstance(form, Traced) else form

    holding = [
        region
        for region in forms.regions
        if all(bool(value(forms.tape, node, batch, context, known)) == side for node, side in region.guards)
    ]
    assert len(holding) == 1
    whole: Pass = holding[0].result
    return {
        "flops": of(whole.flops),
        "traffic_bytes": round(of(whole.traffic_bytes)),
        "bound_time_s": max(of(time) for _, time in whole.limits),
        "resident_cache_bytes": of(whole.cache_bytes),
        "resident_weight_bytes": forms.weight_bytes,
        "capacity_bytes": forms.capacity_bytes,
        "kernels": [
            (k.name, k.kind, k.repeats, max(of(time) for _, time in k.limits)) for k in whole.kernels
        ],
    }


@pytest.mark.parametrize("model", MODELS.names())
def test_the_forms_of_every_model_give_the_steps_numbers(model: str) -> None:
    loaded, device = load(model), memwall.gpu("b200")
    for phase in ("decode", "prefill"):
        try:
            forms = forms_of(device, loaded, phase, {})
        except NotAvailable:
            assert not loaded.decodes
            continue
        points = random.Random(model + phase)
        for _ in range(3):
            batch, context = points.randint(1, 1024), round(2 ** points.uniform(0, 17))
            length = {"context" if phase == "decode" else "seq": context}
            report = memwall.step(loaded, gpu=device, phase=phase, batch=batch, **length)  # type: ignore[arg-type]
            expected, found = record(report), at(forms, batch, context)
            kernels = found.pop("kernels")
            assert found == pytest.approx({name: expected[name] for name in found}, rel=1e-12)
            assert [kernel[:3] for kernel in kernels] == [
                (each["name"], each["kind"], each["repeats"]) for each in expected["kernels"]
            ]
            times = [each["bound_time_s"] for each in expected["kernels"]]
            assert [kernel[3] for kernel in kernels] == pytest.approx(times, rel=1e-12)


class Page(HTMLParser):
    """What a page shows: values by key, kernels, and what it would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self.kernels: dict[str, float] = {}
        self.loads: list[str] = []
        self.hidden: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: text or "" for name, text in attrs}
        if "data-key" in given:
            self.values[given["data-key"]] = given.get("data-value", "")
        if "data-kernel" in given:
            self.kernels[given["data-kernel"]] = float(given["data-value"])
        self.loads += [given[name] for name in ("src", "href") if name in given]


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


def browse(path: Path, place: str) -> Page:
    """The page as a browser has it, its scripts run; nothing may be on the console."""
    assert BROWSER
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    command += ["--virtual-time-budget=2000", "--dump-dom", f"{path.as_uri()}#{place}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    assert done.stdout
    return Page(done.stdout)


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
    args = f"step --model llama3-70b --gpu {gpu} --phase {phase} --batch {batch} {length} {context} --json"
    assert run(args.split()) == 0
    expected = json.loads(capsys.readouterr().out)
    for name, text in page.values.items():
        if isinstance(expected[name], bool):
            assert text == str(expected[name]).lower()
        elif isinstance(expected[name], str):
            assert text == expected[name]
        else:
            assert float(text) == pytest.approx(expected[name], rel=1e-14), name
    times = {each["name"]: each["bound_time_s"] for each in expected["kernels"]}
    assert page.kernels == pytest.approx(times, rel=1e-14)


@needs_browser
def test_a_browser_sorts_filters_and_slides(written: Path, tmp_path: Path) -> None:
    """By events, as from mouse and keyboard."""
    play = """<script>
    const fire = (id, value, event) => {
      const e = document.getElementById(id); e.value = value; e.dispatchEvent(new Event(event));
    };
    fire("batch-number", 64, "change"); fire("context", 96, "input");
    document.querySelector("th[data-sort=name] button").click();
    fire("filter", "ATTENTION", "input");
    const dot = document.querySelector("figure:not([hidden]) circle.op");
    dot.dispatchEvent(new Event("focus"));
    document.title = [...document.querySelectorAll("#kernels tr")].map((r) => r.dataset.kernel).join("|")
      + "@" + location.hash + "@" + document.getElementById("tip").textContent;
    </script>"""
    path = tmp_path / "played.html"
    path.write_text(written.read_text().replace("</body>", f"{play}</body>"))
    assert BROWSER
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    done = subprocess.run(
        [*command, "--virtual-time-budget=2000", "--dump-dom", path.as_uri()],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    title = re.search(r"<title>(.*?)</title>", done.stdout)
    assert title
    assert "CONSOLE" not in done.stderr
    kernels, place, tip = title.group(1).replace("&amp;", "&").split("@")
    assert kernels.split("|") == sorted(kernels.split("|"))
    assert kernels.startswith("attention")
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


def test_an_encoder_has_no_decode(tmp_path: Path) -> None:
    path = tmp_path / "bert.html"
    assert run(["report", "--model", "bert-base", "--context", "512", "-o", str(path)]) == 0
    assert '"phases": ["prefill"]' in path.read_text()


def test_a_gpu_without_an_answer_is_named_in_the_page(tmp_path: Path) -> None:
    path = tmp_path / "two.html"
    assert run(["report", "--model", "llama3-8b", "--gpu", "v100,h100", "-o", str(path)]) == 0
    assert "v100: NVIDIA V100 SXM2 16 GB has no bf16 matrix path" in path.read_text().replace("&#x27;", "'")


def test_the_sliders_reach_what_was_asked(tmp_path: Path) -> None:
    path = tmp_path / "long.html"
    command = ["report", "--model", "llama3-8b", "--batch", "5000", "--context", "2000000", "-o"]
    assert run([*command, str(path)]) == 0
    found = re.search(r'"most": \[(\d+), (\d+)\]', path.read_text())
    assert found
    assert tuple(map(int, found.groups())) == (5000, 2_000_000)
    assert math.log2(5000) * 8 <= 100
