"""What tells things apart without colours, and what one hears of a picture: forms, ends, values, ticks."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

import memwall
from memwall.cli import run
from memwall.plot import accuracy, decode, hierarchy, roofline
from memwall.plot.curves import text_area
from memwall.plot.figure import Axis, Curve, Dot, Figure, compact, decades, doublings
from memwall.plot.labels import Area, nearest
from memwall.plot.layout import framed, layout
from memwall.plot.margins import wrapped
from memwall.plot.marks import at_ends, description
from memwall.plot.metrics import width_of
from memwall.plot.ops import reports_of
from memwall.plot.scene import FORMS, Shape, Text
from memwall.plot.svg import CORNERS
from memwall.plot.terminal import render
from memwall.reports.hierarchy import hierarchy as hierarchy_report

NAMES = ("a100", "h100", "b200")


@pytest.mark.parametrize("low", [0.003, 1, 0.97, 4.4, 7])
@pytest.mark.parametrize("high", [1.4, 1.7, 3, 9, 60, 1e6])
def test_every_axis_has_three_ticks_within_it(low: float, high: float) -> None:
    ticks = [value for value, _ in decades(low, low * high, str)]
    assert 3 <= len(ticks) <= 13
    assert all(low * 0.999 <= value <= low * high * 1.001 for value in ticks)
    assert ticks == sorted(set(ticks))


@pytest.mark.parametrize("batch", ["1:8", "1,512", "8,9,10", "3,5"])
def test_decoding_over_few_batches_has_three_ticks_too(batch: str, tmp_path: Path) -> None:
    path = tmp_path / "plot.svg"
    assert run(["plot", "decode", "--model", "llama3-8b", "--batch", batch, "-o", str(path)]) == 0
    ticks = re.findall(r'text-anchor="end" class="f-faint"[^>]*>([\d.]+ \w+)<', path.read_text())
    assert len(ticks) >= 3


def test_ticks_of_large_numbers_are_short() -> None:
    assert [text for _, text in decades(1, 1e12, compact)] == [
        "1",
        "100",
        "10000",
        "1 M",
        "100 M",
        "10 G",
        "1 T",
    ]
    assert [text for _, text in doublings([2**i for i in range(0, 31, 10)])] == ["1", "1024", "1 Mi", "1 Gi"]
    assert [text for _, text in doublings([1, 8])] == ["1", "2", "5", "8"]


@pytest.mark.parametrize("form", FORMS[1:])
def test_every_form_has_corners_of_its_own(form: str) -> None:
    assert sum(corners == CORNERS[form] for corners in CORNERS.values()) == 1
    assert all(max(abs(x), abs(y)) <= 1.2 for x, y in CORNERS[form])


def test_gpus_of_a_roofline_differ_in_form_and_their_slopes_have_names() -> None:
    devices = [memwall.gpu(name) for name in NAMES]
    scene = layout(roofline.figure(devices, reports_of(["gemv"], devices, "bf16")[0]))
    drawn = {
        (mark.color, mark.kind)
        for mark in scene.marks
        if isinstance(mark, Shape) and mark.hover[:4] == "gemv"
    }
    assert drawn == {(0, "disc"), (1, "square"), (2, "triangle")}
    texts = {mark.text for mark in scene.marks if isinstance(mark, Text)}
    assert {f"{name} HBM" for name in NAMES} | {f"{name} bf16" for name in NAMES} <= texts


def steps(context: int, batches: list[int]) -> list[memwall.StepReport]:
    return [
        memwall.step("llama3-8b", gpu="h200", context=context, batch=batch, bound_only=True)
        for batch in batches
    ]


def test_curves_of_decoding_have_their_names_at_the_ends_and_a_value_at_each_point() -> None:
    batches = [1, 8, 64, 512]
    figure = decode.figure([steps(each, batches) for each in (1024, 32768)], batches)
    scene = layout(figure)
    ends = [mark for mark in scene.marks if isinstance(mark, Text) and mark.text in ("1024", "32768")]
    assert {mark.text for mark in ends} == {"1024", "32768"}
    marks = [mark for mark in scene.marks if isinstance(mark, Shape) and "batch" in mark.hover]
    assert len(marks) == 2 * len(batches)
    assert {mark.kind for mark in marks} == {"disc", "square"}
    last = steps(32768, [512])[0]
    assert last.fits is False
    assert "context 32768, batch 512: at least " in scene.description
    assert "does not fit" in scene.description


def test_a_context_of_which_one_batch_fits_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    args = ["--model", "llama3-8b", "--gpu", "h100", "--context", "131072", "--batch", "3:64:log2"]
    assert run(["plot", "decode", *args]) == 0
    assert "context 131072" in capsys.readouterr().out


def test_names_at_ends_do_not_touch() -> None:
    curves = [Curve(((0.0, 0.0), (1.0, 1.0)), number, end=str(number)) for number in range(5)]
    lines = [((0.0, 0.0), (100.0, 98.0 + number / 10)) for number in range(5)]
    heights = [mark.at[1] for mark in at_ends(curves, lines, Area(0, 0, 100, 100)) if isinstance(mark, Text)]
    assert all(second - first >= 14 for first, second in itertools.pairwise(heights))
    assert heights[-1] <= 105


def test_families_of_accuracy_differ_in_form_and_are_described() -> None:
    figure = accuracy.figure(accuracy.agreement())
    scene = layout(figure)
    kinds = {
        (mark.color, mark.kind) for mark in scene.marks if isinstance(mark, Shape) and mark.paint == "plain"
    }
    assert kinds == {(0, "disc"), (1, "square"), (2, "triangle"), (3, "wedge")}
    for cloud in figure.clouds:
        assert f"{cloud.name}: {len(cloud.points):,} rows" in scene.description


def test_a_curve_of_many_points_is_described_by_some() -> None:
    values = tuple(f"v{i};" for i in range(100))
    curve = Curve(tuple((float(i + 1), 1.0) for i in range(100)), 0, "all", values=values)
    axis = Axis("", 1, 100, ())
    said = description(Figure("", "", axis, axis, (curve,)))
    assert "v0;" in said
    assert "v99;" in said
    assert said.count("v") == 12


def test_the_hierarchy_names_every_dot_and_none_lies_on_another() -> None:
    figure = hierarchy.figure([hierarchy_report(name) for name in ("a100", "h200", "mi300x")])
    places = [dot.at for dot in figure.dots]
    assert len(set(places)) == len(places)
    assert all(dot.label for dot in figure.dots)
    labels = [dot.label for dot in figure.dots]
    assert {"HBM2e", "HBM3e", "HBM3", "Infinity Cache"} <= set(labels)
    assert labels.count("NVMe") == 1
    nvme = next(dot for dot in figure.dots if dot.label == "NVMe")
    assert nvme.hover.startswith("a100, h200, mi300x NVMe: 30 TB")
    (hbm,) = (dot.hover for dot in figure.dots if dot.label == "HBM3")
    assert "204.1 GB (190.1 GiB) assumed" in hbm
    assert any("192 GiB x 0.99" in note for note in figure.notes)


def test_the_hierarchy_says_which_bandwidths_are_recalled_each_once() -> None:
    picture = hierarchy.figure([hierarchy_report(name) for name in ("mi300x", "h100")])
    said = [note for note in picture.notes if "bandwidth of" in note and "no bandwidth" not in note]
    assert said == [
        "mi300x: the bandwidth of Infinity Cache is recalled: AMD CDNA 3 whitepaper",
        "mi300x, h100: the bandwidth of NVMe is recalled: datasheets of PCIe 5.0 x4 drives",
    ]
    marked = [dot.hover for dot in picture.dots if "/s recalled" in dot.hover]
    assert [hover.partition(":")[0] for hover in marked] == ["mi300x Infinity Cache", "mi300x, h100 NVMe"]


@pytest.mark.parametrize("size", [(390, 520), (820, 560)])
def test_an_operators_label_stands_near_a_dot_of_its_column(size: tuple[float, float]) -> None:
    devices = [memwall.gpu(name) for name in ("a100", "h100", "b200", "mi300x")]
    ops = ["gemv", "gemm:m=4096,n=4096,k=4096", "rmsnorm:rows=4096,cols=8192"]
    ops.append("attention:heads=32,head_dim=128,seq=4096")
    figure = roofline.figure(devices, reports_of(ops, devices, "bf16")[0])
    scene, frame = framed(figure, *size)
    labelled = [dot for dot in figure.dots if dot.label and not dot.minor]
    assert all(len(dot.also) == 3 and dot.at[1] > max(y for _, y in dot.also) for dot in labelled)
    numbers = {dot.label: number for number, dot in enumerate(labelled, 1)}
    texts = [mark for mark in scene.marks if isinstance(mark, Text) and mark.halo and mark.height == 14]
    for dot in labelled:
        (text,) = [each for each in texts if str(numbers[dot.label]) in each.text.split(", ")]
        area = text_area(text)
        gaps = []
        for x, y in map(frame.at, (dot.at, *dot.also)):
            near_x, near_y = nearest(area, (x, y))
            gaps.append(max(abs(near_x - x), abs(near_y - y)))
        assert min(gaps) <= 22, text.text


def test_a_title_in_a_wide_font_stays_within_a_phone() -> None:
    """DejaVu Sans Bold at 18 pixels, by the font's own advances: 'NVIDIA H100 SXM5 80 GB' takes 259.8."""
    assert width_of("NVIDIA H100 SXM5 80 GB", 18, bold=True) >= 259.8
    for line in wrapped("Roofline: " + "NVIDIA H100 SXM5 80 GB and " * 3, 18, 358, bold=True):
        assert width_of(line, 18, bold=True) <= 358
    pieces = wrapped("data/" + "x" * 300, 13, 358)
    assert all(width_of(piece, 13) <= 358 for piece in pieces)
    assert "".join(pieces) == "data/" + "x" * 300


def test_dots_lie_over_the_grounds_of_labels() -> None:
    h100 = memwall.gpu("h100")
    scene = layout(roofline.figure([h100], [memwall.roofline("gemv", gpu=h100)]))
    last_text = max(i for i, mark in enumerate(scene.marks) if isinstance(mark, Text) and mark.halo)
    dots = [i for i, mark in enumerate(scene.marks) if isinstance(mark, Shape) and mark.kind == "disc"]
    assert min(dots) > last_text


@pytest.mark.parametrize(
    "command", ["roofline --gpu h100,a100 --dtype bf16,fp8 --op gemv", "hierarchy", "decode"]
)
def test_a_terminal_keeps_its_width(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    model = ["--model", "llama3-8b"] if command == "decode" else []
    assert run(["plot", *command.split(), *model, "--size", "60x20"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 60


def test_letters_at_one_place_stand_side_by_side_or_are_in_the_key() -> None:
    axis = Axis("", 1, 100, ((1, "1"),))
    dots = tuple(Dot((10.0, 10.0), 0, f"dot {number}") for number in range(8))
    text = render(Figure("", "", axis, axis, (), dots), 60, 10)
    row = next(line for line in text.splitlines() if "A" in line)
    assert set("ABCDEF") <= set(row)
    assert "letters side by side are at one place" in text
    assert "G  dot 6, where A is" in text


def test_a_terminals_roof_labels_hide_no_dot() -> None:
    axis = Axis("", 1, 100, ((1, "1"),))
    roof = Curve(((1.0, 50.0), (100.0, 50.0)), 0, label="bf16 989.4 TFLOP/s")
    dots = (Dot((60.0, 60.0), 0, "a dot"), Dot((20.0, 40.0), 0, "another"))
    lines = render(Figure("", "", axis, axis, (roof,), dots), 60, 14).splitlines()
    drawing = [line for line in lines if line[-1:] != "│" and ("│" in line or "┤" in line)]
    assert sum("bf16 989.4 TFLOP/s" in line for line in drawing) == 1
    assert (
        sum("A" in line for line in drawing)
        == sum("B" in line.replace("TFLOP/s", "") for line in drawing)
        == 1
    )


@pytest.mark.parametrize("size", [(820, 560), (390, 520)])
def test_roofs_of_many_gpus_and_formats_have_names_that_do_not_touch(size: tuple[float, float]) -> None:
    devices = [memwall.gpu(name) for name in (*NAMES, "mi300x")]
    figure = roofline.figure(devices, [], dtypes=["bf16", "fp8", "int8"])
    texts = [mark for mark in layout(figure, *size).marks if isinstance(mark, Text)]
    names = [text for text in texts if re.fullmatch(r"\w+ (bf16|fp8|int8|, )+", text.text)]
    assert len(names) == 8
    heights = sorted(text.at[1] for text in names)
    assert all(second - first >= 14 for first, second in itertools.pairwise(heights))
    for text in names:
        assert text.at[0] + width_of(text.text, text.height) <= size[0]


def test_what_stands_above_a_small_picture_leaves_it_room() -> None:
    devices = [memwall.gpu(name) for name in NAMES]
    scene, frame = framed(roofline.figure(devices, []), 280, 280)
    assert frame.area.bottom - frame.area.top >= 140
    assert scene.height > 280


@pytest.mark.parametrize("size", [(820, 560), (390, 520)])
def test_each_of_sixty_operators_is_found_by_picture_and_key(size: tuple[float, float]) -> None:
    rows = [2**i for i in range(12)]
    texts = [f"gemm:m={m},n={n},k=4096" for m in rows for n in (1024, 4096, 8192)]
    texts += [f"{op}:rows={m},cols=8192" for m in rows for op in ("rmsnorm", "softmax")]
    h100 = memwall.gpu("h100")
    marks = [
        mark.text
        for mark in layout(roofline.figure([h100], reports_of(texts, [h100], "bf16")[0]), *size).marks
        if isinstance(mark, Text)
    ]
    drawn = {n for text in marks if re.fullmatch(r"\d+(, \d+)*", text) for n in text.split(", ")}
    drawn |= {text.split(" ")[0] for text in marks if re.fullmatch(r"\d+ \+\d+", text)}
    key = {
        found[1]: found[2]
        for text in marks
        if (found := re.match(r"(\d+) {1,2}(?:gemm|rmsnorm|softmax) .*?(?:, (at \d+|no room.*))?$", text))
    }
    assert len(key) == 60
    for number, where in key.items():
        place = where.removeprefix("at ") if where else number
        assert place in drawn or where == "no room to mark it", (number, where)
    assert sum(where == "no room to mark it" for where in key.values() if where) <= 6
