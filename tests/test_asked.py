"""What a new user types, and is told: flags without an effect, hints, help, and what does not fit."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from memwall.cli import run
from memwall.dtypes import find
from memwall.errors import UsageError
from memwall.models.load import load
from memwall.models.model import Storage
from memwall.render import capacity as capacity_view
from memwall.render import fit
from memwall.render import quant as quant_view
from memwall.render.page import Table
from memwall.reports.capacity import capacity
from memwall.reports.quant import quant
from memwall.reports.step import step
from memwall.reports.training import training_memory

COMMANDS = ("model list", "model show", "step", "capacity", "quant", "train-memory")
LLAMA = load("llama3-8b")
INT4 = LLAMA._replace(storage=Storage("GPTQ: int4, a 16-bit scale a group of 128", find("int4-g128")))


def told(capsys: pytest.CaptureFixture[str], line: str, code: int) -> str:
    assert run(shlex.split(line)) == code
    out, err = capsys.readouterr()
    return out + err


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("capacity --model llama3-8b --memory-fraction 90%", "Try --memory-fraction 0.9"),
        ("capacity --model llama3-8b --memory-fraction 95", "Try --memory-fraction 0.95"),
        ("capacity --model llama3-8b --memory-fraction much", "Try --memory-fraction 0.9"),
        ("capacity --model llama3-8b --tp 0", "Try --tp 8"),
        ("step --model llama3-8b --context 9 --batch 1.5", "Try --batch 8"),
        ("step --phase decode", "needs --model NAME"),
        ("quant", "needs --model NAME"),
        ("capacity --model llama3-8b --source-tokens 9", "Leave out --source-tokens"),
        ("train-memory --model llama3-8b --gpus 8 --ep 2", "Leave out --ep"),
        ("train-memory --model llama3-8b --gpus 8 --sequence-parallel", "Try --tp 8 with it"),
    ],
)
def test_a_mistake_is_answered_with_what_can_be_typed(
    capsys: pytest.CaptureFixture[str], line: str, words: str
) -> None:
    answer = told(capsys, line, 2)
    assert words in answer
    assert answer.count("\n") == 1


def test_a_name_is_suggested_once_whatever_its_aliases(capsys: pytest.CaptureFixture[str]) -> None:
    near = re.search(r"Did you mean (.*?)\?", told(capsys, "capacity --model llama-3-70", 2))
    assert near
    names = near[1].split(" or ")
    assert "llama3-70b" in names
    assert all(load(name).name == name for name in names)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_a_window_of_80_columns(capsys: pytest.CaptureFixture[str], command: str) -> None:
    lines = told(capsys, f"{command} --help", 0).splitlines()
    assert max(map(len, lines)) <= 80


def test_flags_that_change_nothing_are_said() -> None:
    def notes(**asked: object) -> str:
        from memwall.render.training import record

        return " ".join(record(training_memory(LLAMA, **asked))["notes"])  # type: ignore[arg-type]

    assert "it changes nothing" in notes(zero=3)
    assert "it changes nothing" not in notes(zero=3, gpus=8)
    assert "sequence parallelism" in notes(gpus=8, tp=8, sequence_parallel=True)
    assert "no bf16 unit" in notes(gpu="t4")
    assert "no bf16 unit" not in notes(gpu="h100")


def test_merged_alone_says_what_it_changes(capsys: pytest.CaptureFixture[str]) -> None:
    alone = told(capsys, "step --model llama3-8b --context 64 --merged", 0)
    assert "of an eager pass whose projections are merged" in alone
    assert "projections are merged" not in told(capsys, "step --model llama3-8b --context 64", 0)


def test_a_checkpoint_s_row_is_short_and_its_format_a_note() -> None:
    report = quant(INT4, gpu="h100", context=4096)
    table, notes = (section.body for section in quant_view.page(report))
    assert isinstance(table, Table)
    assert table.rows[0][0] == "checkpoint"
    assert max(len(row[0]) for row in table.rows) <= len("checkpoint")
    assert any("GPTQ: int4, a 16-bit scale a group of 128" in line for line in notes.lines)  # type: ignore[union-attr]
    assert not any("own" in line.split() for line in notes.lines)  # type: ignore[union-attr]


def test_a_checkpoint_that_stores_alone_in_fp8_computes_in_16_bits_in_quant_as_in_step() -> None:
    stored = LLAMA._replace(storage=Storage("fp8 weights", find("fp8")))
    both = stored._replace(storage=Storage("fp8", find("fp8"), compute="fp8"))
    for model, dtype in ((stored, "bf16"), (both, "fp8")):
        assert quant(model, gpu="h100").rows["own"].engine == dtype
        assert step(model, gpu="h100", context=64).formats.dtype == dtype


def test_bf16_where_there_is_none_is_not_called_widened() -> None:
    notes = quant_view.record(quant(LLAMA, gpu="v100"))["notes"]
    assert "bf16: this device has no bf16 unit: fp16, as many bytes, stands in for it" in notes
    [widened] = [note for note in notes if "widened" in note]
    assert "bf16" not in widened.split(":")[0].split(", ")


def test_narrower_weights_are_narrower_than_the_checkpoint_s() -> None:
    def weights(model: object) -> list[str]:
        return [each.text for each in capacity(model, gpu="h100").levers if each.action == "weights"]  # type: ignore[arg-type]

    fp8 = LLAMA._replace(storage=Storage("fp8, a scale a block", find("fp8-128x128")))
    assert weights(LLAMA) == ["fp8 weights", "int4-g128 weights", "nvfp4 weights"]
    assert weights(fp8) == ["int4-g128 weights", "nvfp4 weights"]
    assert weights(INT4) == []


def test_what_does_not_fit_is_first_told_what_would() -> None:
    report = step("llama3-70b", gpu="h100", context=4096)
    first = report.advice[0]
    assert first.action == "fit"
    assert "--weight-dtype fp8 (74 GB), int4-g128 (" in first.text  # 72.66 GB and 1.342 GB of cache
    fewest = capacity("llama3-70b", gpu="h100", context=4096).fewest_gpus
    assert first.text.endswith(f"memwall capacity --model llama3-70b --gpu h100 --tp {fewest}")
    assert step("llama3-70b", gpu="h100", context=4096, weight_dtype="fp8").fits
    assert all(each.action != "fit" for each in step("llama3-8b", gpu="h100", context=4096).advice)


def test_nothing_left_and_no_limit_are_two_answers(capsys: pytest.CaptureFixture[str]) -> None:
    full = told(capsys, "capacity --model llama3-70b --gpu h100,h200 --context 4096", 0)
    assert re.search(r"^  h100 .*none +none +no, ", full, re.MULTILINE)
    windowed = LLAMA._replace(
        layers=tuple(
            group._replace(attention=group.attention._replace(window=512))  # type: ignore[union-attr]
            for group in LLAMA.layers
        )
    )
    rows = [
        row
        for section in capacity_view.page(capacity(windowed, gpu="h100", context=64))
        if isinstance(section.body, Table)
        for row in section.body.rows
    ]
    assert [row[1] for row in rows if row[0] == "longest context"] == ["no limit"]


def test_a_context_by_default_is_said_to_fit_or_not() -> None:
    assert "context 131072, though no length fits" in capacity("llama3-70b", gpu="h100").defaults
    assert "context 131072" in capacity("llama3-70b", gpu="b200").defaults
    less = capacity("llama3-8b", gpu="rtx-3090")
    longest = less.question.context
    assert f"context {longest}, the longest that fits" in less.defaults
    assert capacity("llama3-8b", gpu="rtx-3090", context=longest).fits
    assert not capacity("llama3-8b", gpu="rtx-3090", context=longest + 1).fits
    assert "context 4096" in capacity("falcon-7b", gpu="h100").defaults  # its file says of none


def test_a_checkpoint_s_format_stands_beside_its_bytes_and_not_in_the_title() -> None:
    first = capacity_view.page(capacity(INT4, gpu="h100", context=64))[0]
    assert "weights int4-g128, KV bf16" in first.heading
    assert isinstance(first.body, Table)
    assert [row[2] for row in first.body.rows if row[0] == "weights"] == [INT4.storage.scheme]  # type: ignore[union-attr]


def test_a_column_stands_almost_alone_in_no_table() -> None:
    """The mark of the slowest kernel stays in its line, and a wide table is dealt out evenly."""
    report = step("deepseek-v3", gpu="h200", batch=8, context=4096)
    from memwall.render.step import page

    table = page(report)[1].body
    assert isinstance(table, Table)
    assert "" not in table.header
    assert sum(row[-1].endswith(" <") for row in table.rows) == 1
    parts = list(fit.tables(table, 80))
    assert min(len(part.header) for part in parts) >= len(table.header) // 2


def test_the_list_of_models_has_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(capsys, "model list", 0).splitlines()[2:]
    assert sum(len(line) <= 80 for line in lines) > 0.95 * len(lines)
    assert max(map(len, lines)) <= 100


def test_show_s_record_has_what_its_text_has(capsys: pytest.CaptureFixture[str]) -> None:
    record = json.loads(told(capsys, "model show llama3-70b --json", 0))
    text = told(capsys, "model show llama3-70b", 0)
    assert record["sources"]
    assert all(source["source"] in text for source in record["sources"])
    assert "context" in record
    readme = (Path(__file__).parent.parent / "README.md").read_text()
    assert [key for key in record if f"`{key}`" not in readme] == []


def test_states_have_their_unit(capsys: pytest.CaptureFixture[str]) -> None:
    assert re.search(r"state [\d,]+ elements", told(capsys, "model show jamba-v0.1", 0))


def test_parallelism_is_shown() -> None:
    from memwall.render.training import page

    heading = page(training_memory(LLAMA, gpus=8, tp=8, sequence_parallel=True))[0].heading
    assert "tp 8 with sp" in heading
    with pytest.raises(UsageError, match="no experts"):
        training_memory(LLAMA, gpus=8, ep=2)
    assert training_memory("mixtral-8x7b", gpus=8, ep=8).setup.expert_parallel == 8
