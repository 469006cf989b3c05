"""memwall step: what it says to people and to programs, its warnings and refusals."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memwall.cli import run
from memwall.models.step.launch import merged
from memwall.reports.step import step

SEVENTY = "step --model llama3-70b --gpu h100 --phase decode --context 4096"


def said(capsys: pytest.CaptureFixture[str], command: str, code: int = 0) -> tuple[str, str]:
    assert run(command.split()) == code
    printed = capsys.readouterr()
    return printed.out, printed.err


def record(capsys: pytest.CaptureFixture[str], command: str) -> dict[str, Any]:
    out, _ = said(capsys, f"{command} --json")

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    document: dict[str, Any] = json.loads(out, parse_constant=refuse)
    assert document["schema"] == 1
    return document


def test_the_json_has_what_is_promised(capsys: pytest.CaptureFixture[str]) -> None:
    document = record(capsys, SEVENTY)
    assert document["gpu"] == "h100"
    assert document["weight_bytes"] == 139006066688
    assert document["kv_read_bytes"] == 1342177280
    assert document["bound_time_s"] == document["time_per_token_s"] == pytest.approx(41.9e-3, rel=1e-3)
    assert document["ttft_s"] is None
    assert document["tokens_per_s"] == document["tokens_per_s_per_gpu"] == 1 / document["bound_time_s"]
    assert document["mbu"] == 1
    assert document["fits"] is False
    assert document["resident_weight_bytes"] == 2 * 70553706496
    kernels = document["kernels"]
    keys = "name kind repeats flops read_bytes written_bytes traffic_bytes arithmetic_intensity regime"
    assert list(kernels[0]) == [*keys.split(), "limited_by", "bound_time_s", "estimate_time_s", "share"]
    for key in ("traffic_bytes", "read_bytes", "written_bytes"):
        assert document[key] == sum(k["repeats"] * k[key] for k in kernels)
    products = ("linear", "attention", "head")
    assert document["flops"] == sum(k["repeats"] * k["flops"] for k in kernels if k["kind"] in products)
    assert sum(k["share"] for k in kernels) == pytest.approx(1)
    in_turn = sum(k["repeats"] * k["bound_time_s"] for k in kernels)
    assert document["kernels_bound_time_s"] == pytest.approx(in_turn)


def test_bytes_are_whole_where_the_number_of_experts_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    document = record(capsys, "step --model mixtral-8x7b --context 4096 --batch 3 --weight-dtype int4-g128")
    values = [document, *document["kernels"]]
    assert all(isinstance(v, int) for each in values for key, v in each.items() if key.endswith("_bytes"))
    assert all(isinstance(kernel["flops"], int) for kernel in document["kernels"])


def test_a_prefill_has_a_time_to_the_first_token(capsys: pytest.CaptureFixture[str]) -> None:
    document = record(capsys, "step --model llama3-8b --gpu h200 --phase prefill --seq 8192")
    assert document["ttft_s"] == pytest.approx(133.4e-3, rel=1e-3)
    assert document["time_per_token_s"] is None
    assert document["tokens_per_s"] == pytest.approx(8192 / document["ttft_s"])
    assert document["mfu"] == pytest.approx(1)
    assert document["fits"] is True


def test_what_does_not_fit_is_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = said(capsys, SEVENTY)
    assert err.startswith("warning: llama3-70b does not fit on one h100")
    # 141.107 GB of weights and 1.342 GB of cache in 84.94 GB.
    assert "57.51 GB more" in err
    assert "does not fit" in out
    assert record(capsys, SEVENTY)["notes"][-1] == err.removeprefix("warning: ").strip()
    _, silent = said(capsys, "step --model llama3-8b --context 4096")
    assert silent == ""


def test_the_page_fits_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (SEVENTY, f"{SEVENTY} --eager", "step --model deepseek-v3 --context 4096 --batch 32"):
        out, _ = said(capsys, command)
        table = out.partition("\nKernels, all repeats of each\n")[2].partition("\n\n")[0]
        assert max(map(len, table.splitlines())) <= (
            100 if "eager" in command or "deepseek" in command else 80
        )
        largest = [line for line in table.splitlines() if line.endswith("<")]
        assert largest
        assert "%" in largest[0]


def test_equal_layers_stand_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    names = [kernel["name"] for kernel in record(capsys, "step --model gemma2-27b --context 8192")["kernels"]]
    assert len(names) == len(set(names))
    assert names.index("attention.qkv") < names.index("attention") < names.index("attention.output")
    assert (
        names.index("attention, window 4096") < names.index("attention.output") < names.index("mlp.gate_up")
    )
    assert names[-2:] == ["head", "sampling"]


def test_merging_keeps_every_launch() -> None:
    lines = step("deepseek-v3", context=10).lines
    launches = [line.launch for line in lines]
    assert merged(launches) == tuple(launches)
    twice = {launch: launch.repeats for launch in merged([*launches, *launches])}
    assert sum(twice.values()) == 2 * sum(launch.repeats for launch in launches)


def test_several_gpus_stand_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    command = "step --model llama3-8b --gpu h100,v100,h200 --context 4096"
    results = record(capsys, command)["results"]
    assert [each["gpu"] for each in results] == ["h100", "v100", "h200"]
    assert results[1]["error"]["code"] == "unsupported-dtype"
    out, _ = said(capsys, command)
    assert "v100: NVIDIA V100 SXM2 16 GB has no bf16 matrix path" in out
    assert "Try --dtype fp16" in out


def test_what_the_user_left_out_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert record(capsys, "step --model llama3-8b --context 9")["defaults"] == ["GPU h100", "dtype bf16"]
    assert record(capsys, "step --model llama3-8b --gpu h100 --context 9 --dtype fp8")["defaults"] == []


def test_a_what_if_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    document = record(capsys, f"{SEVENTY} --set memory.bandwidth_gb_per_s=4000")
    assert document["assumed"] == ["memory.bandwidth_gb_per_s"]
    assert document["bound_time_s"] == pytest.approx(document["traffic_bytes"] / 4e12)


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("step --model llama3-70b", 2, "which pass"),
        ("step --phase decode --context 8", 2, "--model"),
        ("step --model llama3-80b --context 8", 2, "Did you mean llama3-"),
        ("step --model llama3-8b --phase decode", 2, "--context"),
        ("step --model llama3-8b --phase decode --context 0", 2, "--context must be a whole number"),
        ("step --model llama3-8b --phase train --seq 8", 2, "prefill"),
        ("step --model llama3-8b --context 8 --gpu v100", 4, "no bf16 matrix path"),
        ("step --model llama3-8b --context 8 --dtype nvfp4", 4, "nvfp4"),
        ("step --model llama3-8b --context 8 --impl flesh", 2, "no implementation"),
        ("step --model nowhere/config.json --context 8", 3, "nowhere/config.json"),
    ],
)
def test_mistakes_are_told_in_one_line(
    capsys: pytest.CaptureFixture[str], command: str, code: int, message: str
) -> None:
    _, err = said(capsys, command, code)
    assert err.startswith("error: ")
    assert message in err
    assert err.count("\n") == 1


def test_an_encoder_prefills_and_does_not_decode(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = {
        "model_type": "bert", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
        "intermediate_size": 3072, "vocab_size": 30522, "max_position_embeddings": 512, "type_vocab_size": 2,
        "architectures": ["BertForMaskedLM"],
    }  # fmt: skip
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    _, err = said(capsys, f"step --model {path} --phase decode --context 8", 4)
    assert "is an encoder" in err
    document = record(capsys, f"step --model {path} --phase prefill --seq 512")
    assert document["kv_written_bytes"] == 0
    assert document["bound_time_s"] > 0


def test_the_csv_is_one_row(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = said(capsys, f"{SEVENTY} --format csv")
    header, row = out.splitlines()
    values = dict(zip(header.split(","), row.split(","), strict=False))
    assert values["traffic_bytes"] == str(step("llama3-70b", context=4096).whole.work.traffic_bytes)


def test_the_piped_page_touches_nothing_heavy() -> None:
    code = "import sys; from memwall.cli import run; run(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    command = [sys.executable, "-c", code, *SEVENTY.split()]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stderr.split()
    assert not {"numpy", "pydantic", "rich", "sympy"} & set(loaded)


@pytest.mark.parametrize("flag", ["--offload-weights 500GiB", "--offload-cache 1TiB"])
def test_no_more_is_offloaded_than_there_is(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = "step --model llama3-70b --gpu h200 --context 4096"
    assert run([*words.split(), *flag.split()]) == 2
    hint = capsys.readouterr().err.rpartition("Try ")[2].split()
    assert run([*words.split(), *hint]) == 0
