"""Pictures: their bytes, their labels, and that what they show is what the reports say."""

from __future__ import annotations

import itertools
import math
import os
import re
import shlex
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest

import memwall
from memwall.cli import run
from memwall.errors import FileError, UsageError
from memwall.plot import accuracy, hierarchy, roofline
from memwall.plot.figure import Figure, decades, evenly
from memwall.plot.labels import Area, Wish, place
from memwall.plot.layout import layout
from memwall.plot.measured import runs
from memwall.plot.ops import parse_op
from memwall.plot.scene import Scene, Shape, Text
from memwall.plot.svg import DARK, DARK_PALETTE, LIGHT, PALETTE, svg
from memwall.plot.terminal import render
from memwall.reports.accuracy import accuracy as accuracy_report
from memwall.reports.hierarchy import hierarchy as hierarchy_report

FOLDER = Path(__file__).with_name("golden_svg")
UPDATE = bool(os.environ.get("MEMWALL_UPDATE_GOLDEN"))
GEMMS = " ".join(f"--op gemm:m={2**i},n=4096,k=4096" for i in range(12))
GOLDEN = {
    "roofline": "roofline --gpu h100 --op gemv --op gemm:m=4096,n=4096,k=4096 --op rmsnorm:rows=8,cols=8192",
    "roofline-20-ops": (
        f"roofline --gpu h100 {GEMMS} --op gemv --op gemv:batch=8 --op softmax:rows=4096,cols=8192 "
        "--op rmsnorm:rows=4096,cols=8192 --op attention:heads=64,kv_heads=8,head_dim=128,seq=4096 "
        "--op attention:heads=64,kv_heads=8,head_dim=128,seq_q=1,seq_kv=8192 "
        "--op attention:heads=32,head_dim=128,seq=2048,impl=standard --op gemm:m=64,n=64,k=64"
    ),
    "roofline-phone": f"roofline --gpu h100 {GEMMS} --size 390x520",
    "roofline-three-gpus": "roofline --gpu a100,h100,b200 --op gemv --op gemm:m=4096,n=4096,k=4096",
    "roofline-measured": "roofline --gpu h200 --measured h200",
    "traffic": "traffic --model llama3-70b",
    "decode": "decode --model llama3-8b --gpu h200",
    "memory": "memory --model llama3-70b --gpu h100,b200 --batch 16 --context 8192",
    "decode-layout": "decode --model llama3-70b --gpu h100 --tp 8 --context 2048,8192,32768",
    "accuracy": "accuracy --data data/measured",
    "levels": "roofline --gpu a100,h200 --levels hbm,l2,smem --op gemv --op gemm:m=4096,n=4096,k=4096",
    "hierarchy": "hierarchy --gpu a100,h200",
}


@pytest.mark.parametrize("name", GOLDEN)
def test_the_svg_has_the_bytes_that_it_had_before(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parent)
    path = tmp_path / "plot.svg"
    assert run(["plot", *shlex.split(GOLDEN[name]), "-o", str(path)]) == 0
    golden = FOLDER / f"{name}.svg"
    if UPDATE:
        FOLDER.mkdir(exist_ok=True)
        golden.write_bytes(path.read_bytes())
    assert golden.read_bytes() == path.read_bytes()


def nudged(function: Callable[..., float]) -> Callable[..., float]:
    """A function of another C library: its last digit is off, up or down by what comes in."""

    def other(*values: float) -> float:
        result = function(*values)
        return math.nextafter(result, math.inf if hash(values) % 2 else -math.inf)

    return other


@pytest.mark.parametrize("name", GOLDEN)
def test_the_bytes_do_not_hang_on_the_last_digit_of_a_logarithm(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parent)
    for function in ("log", "log2", "cos", "sin", "tan", "atan2", "hypot", "radians", "degrees"):
        monkeypatch.setattr(math, function, nudged(getattr(math, function)))
    path = tmp_path / "plot.svg"
    assert run(["plot", *shlex.split(GOLDEN[name]), "-o", str(path)]) == 0
    assert (FOLDER / f"{name}.svg").read_bytes() == path.read_bytes()


def test_every_golden_picture_has_its_command() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(GOLDEN)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.svg")), ids=lambda path: path.stem)
def test_a_picture_stands_alone(path: Path) -> None:
    text = path.read_text()
    root = ElementTree.fromstring(text)
    assert root.find("{http://www.w3.org/2000/svg}title") is not None
    assert not re.search(r"(href|src|@import|url\(|<script)", text)
    assert "prefers-color-scheme: dark" in text


@pytest.mark.parametrize(("palette", "paper"), [(PALETTE, LIGHT["paper"]), (DARK_PALETTE, DARK["paper"])])
def test_every_colour_can_be_read_on_its_ground(palette: tuple[str, ...], paper: str) -> None:
    """WCAG 2's contrast, at least 4.5 to 1."""

    def luminance(color: str) -> float:
        parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for color in palette:
        bright, dim = sorted((luminance(color), luminance(paper)), reverse=True)
        assert (bright + 0.05) / (dim + 0.05) >= 4.5, color


def scene_of(name: str) -> Scene:
    h100 = memwall.gpu("h100")
    texts = re.findall(r"--op (\S+)", GOLDEN[name])
    from memwall.plot.ops import reports_of

    reports, _ = reports_of(texts, [h100], "bf16")
    return layout(roofline.figure([h100], reports))


def areas(texts: list[Text]) -> list[Area]:
    from memwall.plot.curves import text_area

    return [text_area(text) for text in texts]


def test_the_labels_of_twenty_operators_do_not_overlap() -> None:
    scene = scene_of("roofline-20-ops")
    texts = [mark for mark in scene.marks if isinstance(mark, Text)]
    numbers = [
        text
        for text in texts
        if re.fullmatch(r"\d{1,2}(, \d{1,2})*", text.text) and text.halo and text.height > 13
    ]
    said = [int(number) for text in numbers for number in text.text.split(", ")]
    assert sorted(said) == list(range(1, 21))
    key = [text.text for text in texts if re.match(r"\d+  \w", text.text)]
    assert len(key) == 20
    shrunk = [Area(a.left + 3.1, a.top + 4, a.right - 3.1, a.bottom - 4) for a in areas(numbers)]
    for first, second in itertools.combinations(shrunk, 2):
        assert not first.meets(second)
    dots = [mark for mark in scene.marks if isinstance(mark, Shape) and mark.kind == "disc"]
    assert len(dots) == 20
    for dot, area in itertools.product(dots, shrunk):
        assert not (area.left < dot.at[0] < area.right and area.top < dot.at[1] < area.bottom)


PICTURES = [name for name in GOLDEN if name != "accuracy"]


@pytest.mark.parametrize("size", ["820x560", "390x520"])
@pytest.mark.parametrize("name", PICTURES)
def test_no_text_of_a_picture_covers_another_or_leaves_it(
    name: str, size: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parent)
    scenes: list[Scene] = []

    def kept(scene: Scene) -> str:
        scenes.append(scene)
        return ""

    monkeypatch.setattr("memwall.plot.svg.svg", kept)
    args = re.sub(r" --size \S+", "", GOLDEN[name])
    assert run(["plot", *shlex.split(args), "--size", size, "-o", str(tmp_path / "plot.svg")]) == 0
    texts = [mark for mark in scenes[0].marks if isinstance(mark, Text) and not mark.angle]
    inked = {
        text: Area(a.left + 3, a.top + 4, a.right - 3, a.bottom - 4)
        for text, a in zip(texts, areas(texts), strict=True)
    }
    for (first, one), (second, other) in itertools.combinations(inked.items(), 2):
        assert not one.meets(other), (first.text, second.text)
    for text, area in inked.items():
        assert area.left >= 0, text.text
        assert area.right <= scenes[0].width * 1.02, text.text


def test_every_operator_of_several_gpus_has_its_number_once() -> None:
    devices = [memwall.gpu(name) for name in ("a100", "h100", "b200")]
    from memwall.plot.ops import reports_of

    texts = re.findall(r"--op (\S+)", GOLDEN["roofline-20-ops"])
    scene = layout(roofline.figure(devices, reports_of(texts, devices, "bf16")[0]))
    found = [mark for mark in scene.marks if isinstance(mark, Text)]
    beside = [mark.text for mark in found if mark.halo and mark.height > 13]
    numbers = [text for text in beside if re.fullmatch(r"\d{1,2}(, \d{1,2})*", text)]
    assert sorted(int(number) for text in numbers for number in text.split(", ")) == list(range(1, 21))
    assert any("its label stands at one of its dots" in mark.text for mark in found)


def test_a_roofline_of_one_format_and_no_operator_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plot", "roofline", "--gpu", "h100", "--dtype", "bf16"]) == 0
    assert "bf16 989.4 TFLOP/s" in capsys.readouterr().out


def test_slopes_are_drawn_as_asked_and_a_missing_one_is_explained() -> None:
    h200, h100 = memwall.gpu("h200"), memwall.gpu("h100")
    labels = [curve.label for curve in roofline.figure([h200], []).curves]
    assert [label.split()[0] for label in labels[:3]] == ["HBM", "L2", "shared"]
    assert roofline.figure([h200], []).notes == ()
    assert roofline.figure([h200], [], levels=["l2"]).curves[0].label == "L2 8.5 TB/s"
    assert "h100: no bandwidth of L2 is known" in roofline.figure([h100], []).notes[0]
    assert roofline.figure([h100], [], levels=["hbm"]).notes == ()
    both = roofline.figure([h200, h100], [], levels=["hbm", "l2"])
    assert [curve.label for curve in both.curves] == [
        "h200 HBM",
        "h200 L2",
        "h200 bf16",
        "h100 HBM",
        "h100 bf16",
    ]
    texts = [mark.text for mark in layout(both).marks if isinstance(mark, Text)]
    assert {curve.label for curve in both.curves} <= set(texts)  # which GPU's, not by colour alone
    assert "h200: HBM 4.814 TB/s, L2 8.5 TB/s, bf16 989.4 TFLOP/s" in texts
    assert "--levels" in roofline.figure([h200, h100], []).notes[0]


def test_a_terminal_has_the_size_that_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plot", "roofline", "--op", "gemv", "--size", "70x20"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if re.search("[│┤└]", line)]
    assert max(map(len, lines)) <= 70
    assert len(lines) == 21


def test_labels_without_room_are_left_out() -> None:
    frame = Area(0, 0, 60, 30)
    wishes = [Wish((30, 15), "a long label", 14) for _ in range(4)]
    placed = place(wishes, frame, [], [])
    assert placed.count(None) >= 3


def test_dots_are_where_the_reports_say() -> None:
    h100 = memwall.gpu("h100")
    gemm = memwall.roofline("gemm", gpu=h100, m=4096, n=4096, k=4096)
    figure = roofline.figure([h100], [gemm])
    dot = next(dot for dot in figure.dots if dot.shape == "disc")
    assert dot.at == (gemm.bound.arithmetic_intensity, gemm.bound.attainable_flops_per_s)
    ridges = {dot.at[0] for dot in figure.dots if dot.shape == "diamond"}
    assert gemm.bound.ridge_point in ridges
    slope = figure.curves[0].points
    assert all(y == pytest.approx(x * h100.bandwidth.value) for x, y in slope)


def test_a_measured_run_stands_below_its_prediction() -> None:
    h200 = memwall.gpu("h200")
    found = runs("h200", [h200], []).found
    assert len(found) > 20
    figure = roofline.figure([h200], [each.report for each in found], found)
    rings = [dot for dot in figure.dots if dot.shape == "ring"]
    assert rings
    for each in found:
        assert each.flops_per_s <= each.report.bound.attainable_flops_per_s * 1.02, each.name
    gemm = memwall.roofline("gemm", gpu=h200, m=4096, n=4096, k=4096)
    assert {each.name for each in runs("h200", [h200], [gemm]).found} == {"triton.gemm", "library.gemm"}


def test_a_table_of_times_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("op,dtype,m,n,k,time_us\ngemm,bf16,4096.0,4096,4096,200\nnothing,bf16,1,1,1,5\n")
    h100 = memwall.gpu("h100")
    (found,) = runs(str(path), [h100], []).found
    assert found.time_s == pytest.approx(200e-6)
    assert found.flops_per_s == pytest.approx(2 * 4096**3 / 200e-6)
    with pytest.raises(FileError, match="nowhere"):
        runs(str(tmp_path / "nowhere.csv"), [h100], [])


def test_the_points_of_accuracy_are_the_rows_with_a_prediction() -> None:
    found = accuracy.agreement()
    report = accuracy_report()
    assert len(found.every) == report.total.rows
    picture = accuracy.figure(found)
    assert f"{100 * report.total.within_25:.1f} %" in picture.subtitle
    for points in found.bounds.values():
        assert all(bound <= 1.02 * measured for measured, bound in points)


def test_the_hierarchy_has_each_level_whose_size_and_bandwidth_are_known() -> None:
    picture = hierarchy.figure([hierarchy_report("h200")])
    assert [dot.label for dot in picture.dots][:3] == ["registers", "L1 and shared memory", "L2"]


def test_ticks_are_round_numbers_within_the_axis() -> None:
    assert [value for value, _ in decades(0.5, 2000, str)] == [1, 10, 100, 1000]
    assert [value for value, _ in decades(3, 40, str)] == [5, 10, 20]
    assert [value for value, _ in evenly(10, str)] == [0, 2, 4, 6, 8, 10]
    assert [value for value, _ in evenly(2.9 * 1024, str, 1024)] == [0, 512, 1024, 1536, 2048, 2560]


@pytest.mark.parametrize("text", ["gemm:m", "gemm:=4", "gemm:m=", "gemm:m=four"])
def test_an_operator_that_cannot_be_read_says_so(text: str) -> None:
    with pytest.raises(UsageError, match="--op"):
        parse_op(text)


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        ("roofline --op gem", 2, "unknown op"),
        ("roofline --op gemm:m=4,n=4", 2, "needs k. For example: --op gemm:m=4096,n=4096,k=4096"),
        ("roofline --gpu v100 --op gemv", 4, "no bf16 matrix path"),
        ("roofline --op gemv -o plot.gif", 2, "Try -o plot.svg"),
        ("roofline --op gemv -o nowhere/plot.svg", 2, "No such file"),
        ("roofline --op gemv -o plot.svg --size 12", 2, "WIDTHxHEIGHT"),
        ("roofline --op gemv -o plot.svg --size 12x12", 2, "280 to 8000"),
        ("roofline --op gemv -o plot.svg --size 820x", 2, "WIDTHxHEIGHT in pixels"),
        ("roofline --op gemv --size 820x560", 2, "pixels are a file's: -o plot.svg"),
        ("roofline --op gemv --size 8", 2, "WIDTHxHEIGHT in columns and lines"),
        ("roofline --op gemv -o plot.png --format svg", 2, "Leave out --format, or name it *.svg"),
        ("roofline --op gemv --dtype ,", 2, "--dtype names no format"),
        ("accuracy --gpu h100", 2, "--data MEASURED.csv"),
        ("accuracy --data . --gpu h101", 2, "unknown GPU 'h101'"),
        ("decode --model llama3-8b --context 1:9", 2, "room for 1 to 8 values, not 9"),
        ("roofline --op gemv --levels l3", 2, "no memory is called 'l3'"),
        ("roofline --op gemv --levels ,", 2, "Any of hbm,l2,smem"),
        ("decode --model llama3-8b --tp 7", 2, "do not split so"),
        ("decode --model llama3-70b --gpu h100 --tp 16", 2, "Try --tp 8 --pp 2"),
        ("memory --model llama3-8b --batch 0", 2, "--batch"),
        ("memory --model llama3-8b --tp 3", 2, "do not split so"),
        ("memory --model llama3-70b --gpu h100 --tp 16", 2, "Try --tp 8"),
        ("memory --model llama3-8b --tp 0", 2, "--tp"),
        ("memory --model llama3-8b --context many", 2, "--context"),
        ("roofline --measured nowhere.json", 3, "nowhere.json"),
        ("traffic", 2, "whose attention"),
        ("traffic --model llama3-8b --lengths 4096", 2, "room for 2 to 512 values"),
        ("traffic --model llama3-8b --gpu h100,h200", 2, "of one GPU"),
        ("decode --model llama3-8b --batch 8:1", 2, "runs backwards"),
        ("decode --model bert-base", 4, "encoder"),
        ("memory --model lama3-8b", 2, "unknown model"),
    ],
)
def test_what_cannot_be_drawn_is_said(
    args: str,
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["plot", *args.split()]) == code
    assert said in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


def test_a_gpu_that_cannot_is_named_beside_those_that_can(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plot", "roofline", "--gpu", "v100,h100", "--op", "gemv"]) == 0
    assert "warning: gemv on v100: NVIDIA V100" in capsys.readouterr().err


@pytest.mark.parametrize("columns", [60, 100, 160])
@pytest.mark.parametrize("name", ["roofline", "traffic", "decode", "memory"])
def test_a_terminal_gets_lines_that_fit(
    name: str, columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert run(["plot", *shlex.split(GOLDEN[name])]) == 0
    lines = capsys.readouterr().out.splitlines()
    drawing = [line for line in lines if re.search("[│┤└█]", line)]
    assert drawing
    assert max(map(len, drawing)) <= columns


def test_a_terminal_that_spells_ascii_alone_gets_ascii() -> None:
    h100 = memwall.gpu("h100")
    figure: Figure = roofline.figure([h100], [memwall.roofline("gemv", gpu=h100)])
    assert render(figure, plain=True).isascii()


@pytest.mark.parametrize(("form", "begins"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_png_and_pdf_are_drawn_from_the_svg(form: str, begins: bytes, tmp_path: Path) -> None:
    pytest.importorskip("cairosvg", reason="PNG and PDF need cairosvg")
    path = tmp_path / f"plot.{form}"
    assert run(["plot", "roofline", "--op", "gemv", "-o", str(path)]) == 0
    assert path.read_bytes().startswith(begins)


def test_png_without_its_library_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cairosvg", None)
    monkeypatch.chdir(tmp_path)
    assert run(["plot", "roofline", "--op", "gemv", "-o", "plot.png"]) == 4
    assert "memwall[plot]" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


def test_no_number_of_a_picture_is_missing() -> None:
    for path in FOLDER.glob("*.svg"):
        for number in re.findall(r'"(-?[\d.]+|nan|inf)"', path.read_text()):
            assert math.isfinite(float(number))


def test_the_same_picture_in_a_page_has_no_style_of_its_own() -> None:
    h100 = memwall.gpu("h100")
    scene = layout(roofline.figure([h100], [memwall.roofline("gemv", gpu=h100)]))
    assert "<style>" in svg(scene)
    assert "<style>" not in svg(scene, standalone=False)
