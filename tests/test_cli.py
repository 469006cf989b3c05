"""What every command promises: help, formats, files accepted back, colours, pipes, fast starts."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import re
import shlex
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import pytest
from click.shell_completion import ShellComplete

from memwall.catalog import HARDWARE, MODELS, Catalog, aliases, normalise
from memwall.cli import COMMANDS, cli, run
from memwall.cli.devices import on_each
from memwall.cli.mistakes import in_own_words
from memwall.cli.options import ATTENTION_DIMS, DIMS, GPU, MODEL, Format
from memwall.errors import Refusal, UnknownName, UsageError
from memwall.hardware import Device
from memwall.ops import registry

ROOT = Path(__file__).resolve().parents[1]
ESCAPE = "\x1b["
FEW = 20
"""A catalogue with fewer devices lacks some that the help names."""

# One sound call of every command that gives a result.
CALLS = {
    "roofline": "roofline --gpu h100 --op gemv",
    "roofline of counts": "roofline --flops 4.2e12 --bytes 1.6e10",
    "roofline of several kernels": (
        "roofline --op attention --impl standard --heads 8 --head-dim 64 --seq 1024 --gpu h100"
    ),
    "roofline, two GPUs": "roofline --gpu h100,h100-sxm --op gemv",
    "attention": "attention --model llama3-70b --seq 8192",
    "attention of two kinds of layer": "attention --model gemma2-27b --seq 8192",
    "attention, two GPUs": "attention --model llama3-8b --seq 8192 --gpu h100,h100-sxm",
    "gpu list": "gpu list",
    "gpu show": "gpu show h100",
    "gpu compare": "gpu compare h100 h100-sxm",
    "op list": "op list",
    "op show": "op show attention",
    "model list": "model list",
    "model show": "model show deepseek-v3",
    "hbm": "hbm",
    "attention, every generation": "attention --impl all --model llama3-8b --seq 4096",
    "roofline by level": "roofline --gpu h200 --op gemm --m 512 --n 512 --k 512 --levels",
    "hierarchy": "hierarchy --gpu mi300x",
    "tile": "tile --m 512 --n 512 --k 512",
    "tile of attention": "tile --op attention --head-dim 64",
    "fuse": "fuse linear,gelu --tokens 64 --hidden 512",
    "explain": "explain gemv",
    "crossover": "crossover --op gemv --vary batch",
    "occupancy": "occupancy --threads 256",
    "banks": "banks --shape 32x32 --access column",
    "access": "access --pattern random",
}
SEVERAL = {
    "roofline, two GPUs",
    "attention, two GPUs",
    "gpu list",
    "gpu compare",
    "op list",
    "model list",
    "hbm",
}


def calls() -> list[object]:
    """The calls; `hbm` needs its file of standards."""
    standards = ROOT / "hardware" / "standards" / "memory.yaml"
    lacks = pytest.mark.skipif(not standards.exists(), reason="no hardware/standards/memory.yaml")
    return [pytest.param(name, id=name, marks=[lacks] if name == "hbm" else []) for name in CALLS]


def commands(
    group: click.Group = cli, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command and group with the words that reach it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


EVERY = [path for path, _ in commands()]


def output(capsys: pytest.CaptureFixture[str], line: str) -> str:
    """The stdout of a call that succeeds in silence."""
    assert run(line.split()) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def process(*argv: str, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Any:
    """`python -m memwall` as users start it, with its output piped."""
    return subprocess.run(
        [sys.executable, "-m", "memwall", *argv],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
    )


# --- help -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize("path", [(), *EVERY], ids=lambda path: " ".join(path) or "memwall")
def test_help_is_there_for_every_command(
    path: tuple[str, ...], flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = output(capsys, " ".join([*path, flag]))
    assert text.startswith(f"Usage: {' '.join(['memwall', *path])}")
    assert max(map(len, text.splitlines())) <= 100 + 10


A_CONFIG = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
}
LACKING: set[str] = set()
"""Commands whose help has no example yet."""


def helps() -> list[object]:
    """Every command; those without an example are expected to fail until they have one."""
    lacking = pytest.mark.xfail(reason="its help has no example yet", strict=True)
    return [
        pytest.param(path, id=" ".join(path) or "memwall", marks=[lacking] if {*path} & LACKING else [])
        for path in [(), *EVERY]
    ]


@pytest.mark.parametrize("path", helps())
def test_help_has_an_example_to_copy(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, " ".join([*path, "--help"]))
    examples = re.findall(rf"^ +(memwall {' '.join(path)}.*)$", text, re.MULTILINE)
    assert examples


@pytest.mark.parametrize("path", [(), *EVERY], ids=lambda path: " ".join(path) or "memwall")
def test_every_example_in_the_help_runs(
    path: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("config.json").write_text(json.dumps(A_CONFIG))  # the user's own, which examples name
    for name in ("README.md", "chapter.txt"):
        Path(name).write_text("3 GB<!-- memwall: 3*GB -->\n")
    Path("cases.csv").write_text("op,m,n,k\ngemm,64,64,64\n")
    Path("cases.jsonl").write_text('{"op": "gemm", "m": 64, "n": 64, "k": 64, "gpu": "h100"}\n')
    measured = "".join(f"h200,copy,{rows},4096,{5 + rows / 200}\n" for rows in range(100, 9000, 500))
    Path("measured.csv").write_text(f"gpu,op,rows,cols,time_us\n{measured}")
    for name, export in {"report.csv": "ncu_raw", "table.csv": "rocprof_compute"}.items():
        Path(name).write_text((ROOT / "tests" / "profiles" / f"{export}.csv").read_text())
    text = output(capsys, " ".join([*path, "--help"])).replace("\\\n", "")  # long ones go on in the next line
    for line in re.findall(r"^ +memwall (.*)$", text, re.MULTILINE):
        on_a_gpu = line.startswith(("verify", "calibrate --from-device"))
        if on_a_gpu and not {"numpy", "--replay"} & set(line.split()):
            continue  # it needs a GPU, and takes a minute there
        code = run(shlex.split(line.partition(" > ")[0]))
        err = capsys.readouterr().err
        if "unknown GPU" in err and len(HARDWARE.names()) < FEW:
            pytest.skip("a GPU of the examples has no file")
        assert (code, err) == (0, ""), line


def test_the_list_of_commands_has_the_first_line_of_each_docstring() -> None:
    context = click.Context(cli)
    firsts = {}
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        firsts[name] = (command.help or "").splitlines()[0]
    assert firsts == COMMANDS


def test_the_help_lists_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "--help").partition("Exit codes")[2]
    assert "(1 and 5 are for commands that check or verify)" in text
    assert re.findall(r"^ +(\d+) ", text, re.MULTILINE) == "0 1 2 3 4 5 70 130".split()  # noqa: SIM905


def test_dir_shows_the_public_names() -> None:
    import memwall

    assert set(memwall.__all__) <= set(dir(memwall))


def test_every_command_and_option_says_what_it_is() -> None:
    for path, command in commands():
        assert command.help, path
        for param in command.params:
            if isinstance(param, click.Option):
                assert param.help, (path, param.name)


def test_no_words_at_all_show_the_help_and_count_as_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    for argv in ([], ["gpu"], ["op"], ["model"]):
        assert run(argv) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("Usage: memwall")


def test_the_version_is_the_package_s_own(capsys: pytest.CaptureFixture[str]) -> None:
    import memwall

    assert memwall.__version__ in output(capsys, "--version")
    assert memwall.__version__ in output(capsys, "-V")


def test_dimensions_and_options_are_the_same_names() -> None:
    dims = {dim for op in registry.ops().values() for dim in op.dims}
    assert dims | {"seq"} == set(DIMS)
    assert set(registry.find("attention").dims) | {"seq"} == set(ATTENTION_DIMS)


@pytest.mark.parametrize("name", list(registry.ops()))
def test_the_example_of_every_op_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = registry.find(name).command().split()
    assert words[0] == "memwall"
    assert run(words[1:]) == 0
    assert capsys.readouterr().err == ""


# --- formats --------------------------------------------------------------------------------------


def no_nan(text: str) -> Any:
    """The JSON document; NaN and Infinity are refused."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize("name", calls())
def test_json_is_one_document_of_schema_1(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, CALLS[name] + " --json")
    document = no_nan(text)
    assert document["schema"] == 1
    assert next(iter(document)) == "schema"
    assert ("results" in document) == (name in SEVERAL)
    assert text.endswith("}\n")
    assert output(capsys, CALLS[name] + " --format json") == text


ROOFLINE_KEYS = """
    gpu op shape dtype weight_dtype kv_dtype out_dtype causal impl flops flops_by_engine read_bytes
    written_bytes traffic_bytes arithmetic_intensity ridge_point regime attainable_flops_per_s
    bound_time_s limited_by terms_s estimate_time_s basis error_p50 error_p90 kernels_bound_time_s kernels
    defaults assumed weak_sources notes advice
"""
ATTENTION_KEYS = """
    gpu op model shape dtype kv_dtype causal standard flash traffic_reduction layer_kinds defaults
    assumed weak_sources notes
"""
GPU_KEYS = """
    gpu title vendor architecture year status peak_flops_per_s vector_flops_per_s special_ops_per_s
    memory_type capacity_bytes capacity_marketed_bytes capacity_driver_bytes bandwidth_bytes_per_s
    ridge_points l2_bytes units tdp_w assumed weak_sources data
"""
MODEL_KEYS = """
    model title parameters_total parameters_active parameters_embedding layers hidden_size vocab_size
    tied_embeddings kv_growth_bytes_per_token kv_all_layers_bytes_per_token layer_groups
"""


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        (CALLS["roofline"], ROOFLINE_KEYS),
        (CALLS["roofline of counts"], ROOFLINE_KEYS),
        (CALLS["attention"], ATTENTION_KEYS),
        (CALLS["gpu show"], GPU_KEYS),
        (CALLS["model show"], MODEL_KEYS),
    ],
)
def test_json_has_the_documented_keys(line: str, keys: str, capsys: pytest.CaptureFixture[str]) -> None:
    document = no_nan(output(capsys, line + " --json"))
    assert {"schema", *keys.split()} <= document.keys()


def test_json_is_in_si_units(capsys: pytest.CaptureFixture[str]) -> None:
    answer = no_nan(output(capsys, CALLS["roofline"] + " --json"))
    assert answer["flops"] == 2 * 8192 * 8192
    assert answer["traffic_bytes"] == 2 * (8192 * 8192 + 2 * 8192)
    assert answer["bound_time_s"] == pytest.approx(answer["traffic_bytes"] / 3352.32e9)
    assert answer["regime"] == "memory-bound"
    assert answer["limited_by"] == "hbm"


def test_several_gpus_are_results_and_one_that_cannot_has_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = narrow_gpu(tmp_path)
    line = f"roofline --op gemv --dtype fp8 --gpu h100,{plain}"
    first, second = no_nan(output(capsys, line + " --json"))["results"]
    assert first["gpu"] == "h100"
    assert second == {
        "gpu": "narrow",
        "error": {"code": "not-published", "message": second["error"]["message"], "hint": "Try --dtype fp32"},
    }
    text = output(capsys, line)
    assert "narrow: " in text
    assert "Try --dtype fp32" in text
    rows = list(csv.DictReader(io.StringIO(output(capsys, line + " --format csv"))))
    assert [row["gpu"] for row in rows] == ["h100", "narrow"]
    assert rows[1]["error.code"] == "not-published"
    assert rows[0]["error.code"] == ""


def test_no_gpu_that_can_is_exit_4(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = narrow_gpu(tmp_path)
    for dtype in ("nvfp4", "int4"):
        line = f"roofline --op gemv --dtype {dtype} --gpu h100,{plain}"
        assert run(f"{line} --json".split()) == 4
        out, err = capsys.readouterr()
        assert [row["gpu"] for row in json.loads(out)["results"] if row["error"]["hint"]] == [
            "h100",
            "narrow",
        ]
        assert err == ""
        assert run(line.split()) == 4  # people are told why of each, on one line
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("error: no GPU has an answer: h100: ")
        assert "; narrow: " in err


def test_gpus_may_be_named_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    both = output(capsys, "roofline --op gemv --gpu h100 --gpu h200,h100 --json")
    assert [row["gpu"] for row in json.loads(both)["results"]] == ["h100", "h200"]


@pytest.mark.parametrize(
    ("command", "shipped"), [("gpu list", "h100"), ("hbm", "h100"), ("model list", "llama3-70b")]
)
def test_a_broken_file_is_left_out_of_a_list_with_a_warning(
    command: str,
    shipped: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for folder in ("hardware", "configs/models"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "mine.yaml").write_text("x")
    monkeypatch.setenv("MEMWALL_PATH", str(tmp_path))
    assert run(command.split()) == 0
    out, err = capsys.readouterr()
    assert shipped in out
    assert err.startswith("warning: left out: ")
    assert "mine.yaml:1:" in err


def test_a_gpu_without_an_answer_is_a_refusal(tmp_path: Path) -> None:
    def make(device: Device) -> float:
        return device.peak("fp8").rate.value

    peak, refusal = on_each(f"h100,{narrow_gpu(tmp_path)}", {}, make)
    assert peak == 1978.9e12
    assert isinstance(refusal, Refusal)
    assert refusal.gpu == "narrow"
    assert refusal == ("narrow", refusal.error)


def narrow_gpu(folder: Path) -> Path:
    """A GPU with nothing but fp32."""
    path = folder / "narrow.yaml"
    path.write_text(
        "name: narrow\ntitle: Narrow\nvendor: Mine\narchitecture: Own\nsegment: datacenter\nyear: 2026\n"
        "status: available\nvector:\n  peak_tflops: {fp32: 10}\n  source: [{assumed: an example}]\n"
        "memory:\n  type: HBM3\n  bandwidth_gb_per_s: 1000\n  source: [{assumed: an example}]\n"
    )
    return path


@pytest.mark.parametrize("name", calls())
def test_csv_has_one_row_a_result_under_the_same_keys(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, CALLS[name] + " --format csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    document = no_nan(output(capsys, CALLS[name] + " --json"))
    results = document.get("results", [document])
    listed = {"hierarchy": "levels", "explain": "quantities"}.get(name)
    if listed:  # the answer is a list: a row for each of it
        results = [item for result in results for item in result[listed]]
    assert len(rows) == len(results)
    for row, result in zip(rows, results, strict=True):
        assert None not in row
        for key, value in result.items():
            if not isinstance(value, dict | list) and key != "schema":
                assert row[key] == ("" if value is None else str(value)), key


def table_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_csv_says_what_a_result_rests_on(capsys: pytest.CaptureFixture[str]) -> None:
    line = "roofline --set memory.bandwidth_gb_per_s=4000 --set memory.type=HBM4 --format csv"
    (row,) = table_of(output(capsys, f"{line} --op gemv"))
    assert row["assumed"] == "memory.bandwidth_gb_per_s;memory.type"
    assert row["weak_sources"] == "memory.bandwidth_gb_per_s"
    assert row["defaults"] == "GPU h100; dtype bf16; shape m=8192 k=8192 batch=1"
    assert row["notes"].count("; ") >= 1
    assert "advice" not in row
    assert "kernels" not in row


@pytest.mark.parametrize("name", ["roofline", "attention", "gpu list", "gpu compare"])
def test_csv_of_every_result_has_the_columns_that_name_its_grounds(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    row = table_of(output(capsys, CALLS[name] + " --format csv"))[0]
    assert {"assumed", "weak_sources"} <= row.keys()
    assert {"kernels", "advice", "layer_kinds"}.isdisjoint(row)


def test_columns_stand_in_one_order_whichever_gpu_comes_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = narrow_gpu(tmp_path)
    line = "roofline --op gemv --dtype fp8 --format csv --gpu"
    headers = [
        output(capsys, f"{line} {gpus}").splitlines()[0] for gpus in (f"h100,{plain}", f"{plain},h100")
    ]
    assert headers[0] == headers[1]
    assert headers[0].endswith(",error.code,error.message,error.hint")
    peaks = [
        [key for key in table_of(output(capsys, f"gpu compare {gpus} --format csv"))[0] if "peak_" in key]
        for gpus in ("t4 b200", "b200 t4")
    ]
    assert peaks[0] == peaks[1]


def test_a_list_of_operators_is_a_table_of_words(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "op list --format csv")
    assert len(text.splitlines()) == 1 + len(registry.ops())
    row = next(row for row in table_of(text) if row["op"] == "gemm")
    assert (row["required"], row["optional"]) == ("m n k", "")
    assert "documentation" not in row
    first = no_nan(output(capsys, "op list --json"))["results"][0]
    assert first["required"] == ["m", "n", "k"]
    assert "documentation" not in first
    assert "documentation" in no_nan(output(capsys, "op show gemm --json"))


def test_markdown_numbers_steps_and_escapes_marks(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "roofline --op gemv --gpu m1-max --dtype fp32 --format markdown")
    assert re.search(r"^## Next steps.*\n\n1\. ", text, re.MULTILINE)
    assert not re.search(r"^- (?:\d+\.|[*+-]) ", text, re.MULTILINE)
    assert "\n- \\* rests on " in text


def test_markdown_keeps_the_layout_of_documentation(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "op show gemm --format markdown")
    assert text.startswith("## gemm\n\n```text\nMatrix product")


@pytest.mark.parametrize("name", calls())
def test_markdown_tables_are_well_formed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, CALLS[name] + " --format markdown")
    tables = [block.splitlines() for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)]
    assert tables or name == "op show"
    for table in tables:
        cells = {len(re.findall(r"(?<!\\)\|", line)) for line in table}
        assert len(cells) == 1, table[:3]
        assert re.fullmatch(r"\|( -+:? \|)+", table[1])
    assert ESCAPE not in text
    assert text.endswith("\n")


@pytest.mark.parametrize("name", calls())
def test_text_is_plain_when_it_is_not_for_a_terminal(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, CALLS[name])
    assert ESCAPE not in text
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    assert output(capsys, CALLS[name] + " --format text") == text
    assert output(capsys, CALLS[name] + " --color never") == text


# --- the catalogue's pages -------------------------------------------------------------------------


def cells(text: str, name: str) -> list[str]:
    """The cells of a line of plain text that begins with a name."""
    line = next(line for line in text.splitlines() if line.strip().startswith(f"{name} "))
    return re.split(r" {2,}", line.strip())


def test_the_list_marks_what_is_weak_and_what_is_at_maximum_clock(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = output(capsys, "gpu list")
    header = "GPU memory capacity GB/s TFLOP/s format ridge name".split()  # noqa: SIM905
    assert text.splitlines()[0].split() == header
    assert cells(text, "h100")[3:7] == ["3352", "989.4", "bf16", "295"]
    assert cells(text, "h800")[3:7] == ["3350 *", "989.4 *", "bf16", "295 *"]
    assert cells(text, "rtx-4090")[3:7] == ["1008", "203.6 ^", "bf16", "202"]
    assert cells(text, "rx-7900-xtx")[3:7] == ["960", "124.1 *^", "bf16", "129 *"]
    notes = text.partition("Notes\n")[2]
    for said in ("sorted by maker, year and name", "  * ", "  ^ ", "a dash: "):
        assert said in notes


def test_marks_are_explained_only_where_they_stand(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Notes" not in output(capsys, "gpu compare h100 h100-sxm")
    text = output(capsys, "gpu compare h100 rtx-4090")
    assert "  ^ at the maximum clock" in text
    assert "  * " not in text
    assert "  * recalled" in output(capsys, "gpu show t4")


def test_devices_side_by_side_have_formats_in_one_order_and_integers_in_op(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = output(capsys, "gpu compare t4 h800 b200 rtx-4090")
    order = "fp64 fp32 tf32 bf16 fp16 fp8 fp6 fp4 nvfp4 mxfp4 int8 int4".split()  # noqa: SIM905
    assert re.findall(r"^  (\w+) peak", text, re.MULTILINE) == order
    assert cells(text, "int8 peak")[1] == "130 TOP/s"
    assert cells(text, "int4 peak")[4] == "1.628 POP/s ^"
    assert cells(text, "int8 ridge, OP/B")[1] == "406.2"
    assert cells(text, "fp64 ridge, FLOP/B")[1] == "0.7936 *"
    assert cells(text, "bf16 ridge, FLOP/B")[2] == "295.3 *"  # its bandwidth is recalled
    shown = output(capsys, "gpu show t4")
    assert cells(shown, "int8")[1:4] == ["130 TOP/s", "406.2", "OP/B"]


def test_capacity_is_the_driver_s_and_as_marketed(capsys: pytest.CaptureFixture[str]) -> None:
    answer = no_nan(output(capsys, "gpu show h100 --json"))
    assert answer["capacity_driver_bytes"] == answer["capacity_bytes"] == 84942979072
    assert answer["capacity_marketed_bytes"] == 80e9
    answer = no_nan(output(capsys, "gpu show t4 --json"))
    assert answer["capacity_bytes"] == answer["capacity_marketed_bytes"] == 16e9
    assert answer["capacity_driver_bytes"] is None


def test_a_gpu_s_weak_sources_are_those_of_its_bandwidth_and_peaks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert no_nan(output(capsys, "gpu show h100 --json"))["weak_sources"] == []
    weak = no_nan(output(capsys, "gpu show wse3 --json"))["weak_sources"]
    assert [source["key"] for source in weak] == ["memory.bandwidth_gb_per_s"]
    assert set(weak[0]) == {"key", "kind", "source"}


def test_memory_explains_what_runs_above_its_standard(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "hbm")
    assert "  above 100 %: " in text
    assert "\nHBM, generation not published\n" in text
    assert cells(text, "trainium2") == ["trainium2", "-", "-", "-", "-", "2900"]
    results = no_nan(output(capsys, "hbm --json"))["results"]
    (found,) = [result for result in results if result["gpu"] == "trainium2"]
    assert (found["standard"], found["standard_pin_rate_bits_per_s"]) == (None, None)


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suffix", "form"), [("json", "json"), ("csv", "csv"), ("md", "markdown"), ("txt", "text")]
)
def test_the_file_s_ending_picks_the_format(
    suffix: str, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"result.{suffix}"
    assert output(capsys, f"{CALLS['roofline']} -o {path}") == ""
    assert path.read_text() == output(capsys, f"{CALLS['roofline']} --format {form}")
    assert list(tmp_path.iterdir()) == [path]


def test_an_explicit_format_beats_the_file_s_ending(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "result.json"
    output(capsys, f"{CALLS['roofline']} -o {path} --format csv")
    assert path.read_text().startswith("gpu,op,")


def test_a_dash_for_the_file_is_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert output(capsys, f"{CALLS['roofline']} -o -") == output(capsys, CALLS["roofline"])


def test_a_file_is_replaced_and_a_link_to_it_stays_a_link(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    target.write_text("old")
    link.symlink_to(target)
    output(capsys, f"{CALLS['roofline']} -o {link}")
    assert link.is_symlink()
    assert no_nan(target.read_text())["schema"] == 1


def test_a_pipe_named_as_the_file_is_written_and_not_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        output(capsys, f"{CALLS['roofline']} -o {path} --json")
        assert no_nan(os.read(reader, 2**16).decode())["schema"] == 1
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(path.stat().st_mode)


def same_answer(capsys: pytest.CaptureFixture[str], first: str, second: str, *but: str) -> None:
    """Two calls answer alike, save for the keys `but`."""
    answers = [no_nan(output(capsys, line + " --json")) for line in (first, second)]
    for answer in answers:
        for key in but:
            answer.pop(key)
    assert answers[0] == answers[1]


@pytest.mark.parametrize("name", HARDWARE.names())
def test_a_gpu_s_own_yaml_is_accepted_back(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.yaml"
    output(capsys, f"gpu show {name} --yaml -o {path}")
    same_answer(capsys, f"gpu show {name}", f"gpu show {path}")
    line = "roofline --flops 0 --bytes 1e9 --gpu"
    same_answer(capsys, f"{line} {name}", f"{line} {path}", "notes")  # which say whose file it is


@pytest.mark.parametrize("name", MODELS.names())
def test_a_model_s_own_yaml_is_accepted_back(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.yaml"
    output(capsys, f"model show {name} --yaml -o {path}")
    same_answer(capsys, f"model show {name}", f"model show {path}")
    line = "attention --seq 8192 --model"
    same_answer(capsys, f"{line} {name}", f"{line} {path}")


@pytest.mark.parametrize(
    "change",
    [
        "memory.bandwidth_gb_per_s=4000",
        "memory.bandwidth_gb_per_s=4e3",
        "memory.pin_rate_gbit_per_s=6.25",
        "memory.bus_width_bits=2^12",
        "memory.type=HBM4",
        "matrix.peak_dense_tflops.bf16=1200",
        "matrix.peak_dense_tflops.int4=4000",
        "l2.bandwidth_measured_gb_per_s=5500",
        "links.nvlink.gb_per_s_per_direction=900",
        "special.exp_per_clock_per_unit=32",
        "unit.count=144",
    ],
)
def test_a_what_if_as_a_file_is_accepted_back_and_stays_assumed(
    change: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.yaml"
    output(capsys, f"gpu show h100 --yaml --set {change} -o {path}")
    answer = no_nan(output(capsys, f"roofline --op gemv --gpu {path} --json"))
    assert answer["assumed"] == [change.partition("=")[0]]
    same_answer(capsys, f"gpu show h100 --set {change}", f"gpu show {path}")
    own = f"roofline --op gemv --gpu {path}"
    same_answer(capsys, f"{CALLS['roofline']} --set {change}", own, "notes")  # which say whose file it is


def test_a_what_if_changes_the_answer_and_is_confessed(capsys: pytest.CaptureFixture[str]) -> None:
    changed = no_nan(output(capsys, CALLS["roofline"] + " --set memory.bandwidth_gb_per_s=4000 --json"))
    assert changed["bound_time_s"] == pytest.approx(changed["traffic_bytes"] / 4e12)
    assert changed["assumed"] == ["memory.bandwidth_gb_per_s"]
    assert [weak["kind"] for weak in changed["weak_sources"]] == ["assumed"]
    assert "set by you" in output(capsys, CALLS["roofline"] + " --set memory.bandwidth_gb_per_s=4000")


def test_a_folder_of_one_s_own_comes_before_the_shipped_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hardware").mkdir()
    mine = tmp_path / "hardware" / "h100.yaml"
    output(capsys, f"gpu show h100 --yaml --set memory.bandwidth_gb_per_s=4000 -o {mine}")
    monkeypatch.setenv("MEMWALL_PATH", f"/nowhere{os.pathsep}{tmp_path}")
    assert no_nan(output(capsys, CALLS["roofline"] + " --json"))["assumed"] == ["memory.bandwidth_gb_per_s"]


# --- colour, pipes, interrupts --------------------------------------------------------------------


def test_colour_is_there_when_asked_for_and_never_in_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert ESCAPE in output(capsys, CALLS["roofline"] + " --color always")
    path = tmp_path / "result.txt"
    output(capsys, f"{CALLS['roofline']} --color always -o {path}")
    assert ESCAPE not in path.read_text()


@pytest.mark.parametrize(
    ("env", "coloured"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, False),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, True),
        ({"TERM": "dumb"}, False),
    ],
)
def test_a_terminal_decides_on_colour_unless_told(env: dict[str, str], coloured: bool) -> None:
    assert (ESCAPE in on_a_terminal(CALLS["roofline"].split(), env)) == coloured


def test_a_terminal_without_colour_still_gets_the_answer() -> None:
    text = on_a_terminal([*CALLS["roofline"].split(), "--color", "never"], {"TERM": "xterm-256color"})
    assert ESCAPE not in text
    assert "memory-bound" in text


def on_a_terminal(argv: list[str], env: dict[str, str]) -> str:
    """What `python -m memwall` prints on a pseudo-terminal."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    kept = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "TERM", "FORCE_COLOR")}
    with subprocess.Popen(
        [sys.executable, "-m", "memwall", *argv],
        stdout=theirs,
        env={**kept, "PYTHONPATH": str(ROOT), "COLUMNS": "100", **env},
    ) as child:
        os.close(theirs)
        text = b""
        while chunk := read_some(ours):
            text += chunk
    os.close(ours)
    assert child.returncode == 0
    return text.decode()


def read_some(descriptor: int) -> bytes:
    """The next bytes of a pseudo-terminal; nothing once it is closed."""
    try:
        return os.read(descriptor, 4096)
    except OSError:
        return b""


@pytest.mark.parametrize("name", ["roofline", "gpu show", "op list"])
def test_a_reader_that_leaves_early_hears_nothing(name: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "memwall", *CALLS[name].split(), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        assert child.stderr.read() == b""
    assert child.returncode == 0


@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
def test_head_gets_its_line_and_nobody_complains() -> None:
    line = f"{sys.executable} -m memwall gpu show h100 | head -1"
    done = subprocess.run(
        ["sh", "-c", line],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout == "NVIDIA H100 SXM5 80 GB (h100)\n"
    assert done.stderr == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_behind_stdout_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "memwall", "op", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    assert done.returncode == 2
    assert done.stderr == "error: stdout: No space left on device. Write to a file instead: -o FILE\n"


@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
@pytest.mark.parametrize("line", ["op list --json", "plot accuracy -o -", "accuracy --json"])
def test_a_disk_that_fills_in_the_middle_is_no_success(line: str, tmp_path: Path) -> None:
    blocks = 8  # of 512 or 1024 bytes, as the shell counts
    path = tmp_path / "cut"
    done = subprocess.run(
        ["sh", "-c", f"ulimit -f {blocks}; {sys.executable} -m memwall {line} > {path}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert path.stat().st_size in (blocks * 512, blocks * 1024)
    assert done.returncode == 2
    assert done.stderr == "error: stdout: File too large. Write to a file instead: -o FILE\n"


def test_a_full_disk_is_not_an_unwritable_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "ops.json"
    path.write_text("as it was")

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("memwall.cli.output.os.replace", full)
    assert run(["op", "list", "-o", str(path)]) == 2
    assert "No space left on device. Make room" in capsys.readouterr().err
    assert (path.read_text(), os.listdir(tmp_path)) == ("as it was", ["ops.json"])


@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
@pytest.mark.parametrize("line", ["op list", "roofline --op gemv", "gpu show h100 --yaml", "hbm --json"])
def test_a_closed_stdout_is_an_error_for_the_result_is_lost(line: str) -> None:
    done = to_closed_stdout(line)
    assert done.returncode == 2
    assert done.stderr == "error: stdout is closed. Write to a file instead: -o FILE\n"


@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
def test_a_closed_stdout_does_not_matter_to_a_file(tmp_path: Path) -> None:
    done = to_closed_stdout(f"op list -o {tmp_path / 'ops.json'}")
    assert (done.returncode, done.stderr) == (0, "")
    assert no_nan((tmp_path / "ops.json").read_text())["schema"] == 1


def to_closed_stdout(line: str) -> Any:
    """A call whose stdout the shell has closed."""
    return subprocess.run(
        ["sh", "-c", f"{sys.executable} -m memwall {line} >&-"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def test_a_title_that_the_terminal_cannot_spell_is_escaped(tmp_path: Path) -> None:
    text = narrow_gpu(tmp_path).read_text().replace("title: Narrow", "title: a \u2192 b")
    (tmp_path / "narrow.yaml").write_text(text, encoding="utf-8")
    done = process("gpu", "show", "narrow.yaml", env={"PYTHONIOENCODING": "latin-1"}, cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("a \\u2192 b (narrow)")


def test_an_interrupt_is_130_and_says_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("memwall.hardware.load", interrupt)
    assert run(CALLS["roofline"].split()) == 130
    out, err = capsys.readouterr()
    assert out == ""
    assert err.strip() == ""


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "h100",
        "H100",
        " h100 ",
        "H100-SXM5-80GB",
        "NVIDIA H100 80GB HBM3",
        "NVIDIA H100 SXM5 80GB",
        "h100_sxm",
        "H100 SXM",
        "H100 80GB",
        "h100-80g",
        "H100\u201180GB",
        "H100\u2013SXM",
        "nvidia/H100-SXM5",
        "H100 (see the paper)",
        "NVIDIA H100 SXM5 80 GB",
        "h100 80 GiB",
        "H-100",
    ],
)
def test_spellings_of_the_h100_find_it(name: str) -> None:
    assert HARDWARE.find(name).name == "h100"


@pytest.mark.parametrize(
    "name",
    [
        "h100-40gb",
        "h100 40 GB",
        "h10040gb",
        "H100 94GB",
        "h10",
        "h1000",
        "100",
        "nvidia",
        "sxm",
        "",
        "-",
        "h100-gb",
    ],
)
def test_other_things_are_not_the_h100(name: str) -> None:
    try:
        found = HARDWARE.find(name).name
    except UnknownName:
        return
    assert found != "h100"


@pytest.mark.parametrize("name", ["h100-40gb", "H100 40 GB", "h10040gb", "80GB", "rtx4090 48GB"])
def test_a_memory_size_that_contradicts_is_an_unknown_name(name: str) -> None:
    with pytest.raises(UnknownName):
        HARDWARE.find(name)


@pytest.mark.parametrize("catalog", [HARDWARE, MODELS], ids=["GPU", "model"])
def test_everything_is_found_by_its_title_and_without_dashes(catalog: Catalog) -> None:
    for entry in catalog.entries():
        title = re.search(r"^title: (.*)$", entry.text, re.MULTILINE)
        assert title
        spellings = [entry.name, title[1].strip('"'), *aliases(entry.text)]
        for spelling in spellings:
            assert catalog.find(spelling).name == entry.name
            assert catalog.find(spelling.replace(" ", "").upper()).name == entry.name
        assert catalog.find(entry.name.replace("-", "")).name == entry.name


OTHERS = {
    "A100-SXM4-80GB": "a100",
    "NVIDIA A100-SXM4-80GB": "a100",
    "A100-PCIe-40GB": "a100-pcie-40gb",
    "Tesla V100-SXM2-16GB": "v100",
    "NVIDIA H200": "h200",
    "H200-SXM": "h200",
    "B200-SXM": "b200",
    "AMD Instinct MI300X": "mi300x",
    "RTX-3090": "rtx-3090",
    "NVIDIA GeForce RTX 4090": "rtx-4090",
    "GB300": "gb300",
    "rtx4090": "rtx-4090",
    "RTX4090": "rtx-4090",
    "GeForce RTX4090 24GB": "rtx-4090",
    "NVIDIA A100 80GB PCIe": "a100-pcie",
    "MI250X 128 GB": "mi250x-oam",
}


@pytest.mark.parametrize(("name", "known"), OTHERS.items())
def test_spellings_of_data_files_find_their_gpu(name: str, known: str) -> None:
    if known not in HARDWARE.names():
        pytest.skip(f"no hardware/{known}.yaml")
    assert HARDWARE.find(name).name == known


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("Llama-3-70B", "llama3-70b"),
        ("meta-llama/Llama-3.1-70B", "llama3-70b"),
        ("meta-llama/Meta-Llama-3-70B", "llama3-70b"),
        ("Meta-Llama-3.1-70B", "llama3-70b"),
        ("LLAMA3_70B", "llama3-70b"),
        ("gemma2 27b", "gemma2-27b"),
        ("llama3 70b", "llama3-70b"),
        ("Llama 3 70B", "llama3-70b"),
        ("Llama-3-70B-Instruct", "llama3-70b"),
        ("meta-llama/Meta-Llama-3-8B", "llama3-8b"),
        ("meta-llama/Llama-2-7b-chat-hf", "llama2-7b"),
        ("google/gemma-2-27b-it", "gemma2-27b"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b"),
        ("Qwen/Qwen2.5-72B-Instruct", "qwen2.5-72b"),
    ],
)
def test_spellings_of_models_find_them(name: str, model: str) -> None:
    assert MODELS.find(name).name == model


def test_normalising_twice_changes_nothing() -> None:
    for name in ("RTX 3090", "M1 7\u2011Core GPU", "a__b--c//d", "  X (y) @z"):
        assert normalise(normalise(name)) == normalise(name)


# --- completion -----------------------------------------------------------------------------------


def completed(args: list[str], incomplete: str) -> list[str]:
    """What the shell offers."""
    completion = ShellComplete(cli, {}, "memwall", "_MEMWALL_COMPLETE")
    return [item.value for item in completion.get_completions(args, incomplete)]


def test_the_shell_completes_names() -> None:
    assert "h100" in completed(["roofline", "--gpu"], "h1")
    assert "h100" in completed(["roofline", "--gpu"], "H1")
    assert "h100,h100" in completed(["roofline", "--gpu"], "h100,h1")
    assert completed(["roofline", "--gpu"], "h100,zz") == []
    assert "h100" in completed(["gpu", "show"], "")
    assert "llama3-70b" in completed(["attention", "--model"], "llama3")
    assert completed(["roofline", "--dtype"], "bf") == ["bf16"]
    assert "roofline" in completed([], "ro")
    assert "--kv-heads" in completed(["roofline"], "--kv")
    assert completed(["roofline", "--format"], "js") == ["json"]


def test_the_types_complete_by_themselves() -> None:
    context = click.Context(cli)
    option = click.Option(["--x"])
    values = [item.value for item in GPU.shell_complete(context, option, "h100, H10")]
    assert values == [f"h100,{name}" for name in HARDWARE.names() if name.startswith("h10")]
    assert [item.value for item in MODEL.shell_complete(context, option, "gemma2-27")] == ["gemma2-27b"]
    assert "nvfp4" in [item.value for item in Format().shell_complete(context, option, "NV")]


def test_the_shell_completes_operators_implementations_and_makers() -> None:
    assert set(completed(["roofline", "--op"], "ge")) == {"gemm", "gemv", "gelu"}
    assert "rmsnorm" in completed(["op", "show"], "RMS")
    assert set(completed(["roofline", "--impl"], "")) >= {"flash", "standard", "fused", "eager"}
    assert completed(["roofline", "--op", "attention", "--impl"], "s") == ["standard"]
    assert completed(["roofline", "--op", "gemm", "--impl"], "") == []
    assert completed(["gpu", "list", "--vendor"], "nv") == ["NVIDIA"]


@pytest.mark.parametrize("option", [["roofline", "--gpu"], ["attention", "--model"], ["gpu", "show"]])
@pytest.mark.parametrize("text", ["./", "../my", "~/gpus/", "/etc/h", "my-own-g"])
def test_the_shell_completes_files_for_a_path_and_where_no_name_begins_so(
    option: list[str], text: str
) -> None:
    completion = ShellComplete(cli, {}, "memwall", "_MEMWALL_COMPLETE")
    assert [(item.type, item.value) for item in completion.get_completions(option, text)] == [("file", text)]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_is_printed(shell: str) -> None:
    done = process(env={"_MEMWALL_COMPLETE": f"{shell}_source"})
    if "Couldn't detect Bash version" in done.stderr:
        pytest.skip("no bash")
    assert done.returncode == 0
    assert "_MEMWALL_COMPLETE" in done.stdout


# --- start-up -------------------------------------------------------------------------------------

WATCH = """
import sys
from memwall.cli import run
code = run(sys.argv[1:])
print("LOADED", *sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
sys.exit(code)
"""


def loaded(line: str) -> set[str]:
    """The top-level packages that a call has imported by its end."""
    done = subprocess.run(
        [sys.executable, "-c", WATCH, *line.split()],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    return set(done.stderr.split("LOADED", 1)[1].split())


HEAVY = {"numpy", "pydantic", "pydantic_core", "rich", "sympy", "scipy", "torch"}


@pytest.mark.parametrize(
    "line",
    [
        "roofline --gpu h100 --op gemv",
        "roofline --gpu h100 --op gemv --json",
        "attention --model llama3-70b --seq 8192 --json",
        "gpu list --json",
        "model show llama3-70b --format csv",
        "op list --format markdown",
        "attention --impl all --model llama3-70b --seq 8192 --gpu a100,h100",
        "roofline --gpu h200 --op gemm --m 4096 --n 4096 --k 4096 --levels",
        "hierarchy --gpu h100 --json",
        "tile --m 4096 --n 4096 --k 4096",
        "occupancy --threads 256",
        "banks --shape 32x32 --access column",
        "access --pattern random --format csv",
        "fuse mlp --tokens 4096 --hidden 4096",
        "crossover --op gemv --vary batch",
        "--help",
        "roofline --help",
    ],
)
def test_a_piped_answer_needs_no_heavy_package(line: str) -> None:
    assert not loaded(line) & HEAVY


def test_the_first_help_reads_no_yaml_and_no_command() -> None:
    assert not loaded("--help") & {"yaml", "json", "csv", "difflib"}


@pytest.mark.parametrize(
    ("line", "example"),
    [
        ("tile --op gemm --m 64 --n 64", "memwall tile --op gemm --m 4096 --n 4096 --k 4096"),
        ("explain gemm --m 4", "memwall explain gemm --m 4096 --n 4096 --k 4096"),
        (
            "crossover --op gemm --vary n --m 3",
            "memwall crossover --op gemm --vary n --m 4096 --k 4096",
        ),
        ("roofline --op gemm --m 4", "memwall roofline --op gemm --m 4096 --n 4096 --k 4096"),
    ],
)
def test_an_operator_s_example_names_the_command_that_was_typed(
    line: str, example: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """And it works."""
    assert run(line.split()) == 2
    assert f"For example: {example}\n" in capsys.readouterr().err
    assert run(example.split()[1:]) == 0


def test_diagnose_s_example_names_diagnose() -> None:
    error = UsageError("gemm needs --k", f"For example: {registry.find('gemm').command()}")
    said = in_own_words(error, ["diagnose", "x.csv"])
    assert said.endswith("memwall diagnose report.csv --op gemm --m 4096 --n 4096 --k 4096")
