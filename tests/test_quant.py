"""The quantisation table: stored bytes with scales, what a decode step reads, its bound, and fit."""

from __future__ import annotations

import json

import pytest
from capacity_models import QWEN3_5_35B_A3B

from memwall.cli import run
from memwall.dtypes import find
from memwall.errors import NotAvailable
from memwall.memory.streams import streamed_cache_bytes, streamed_weight_bytes
from memwall.models.attentions import GroupedAttention, LatentAttention
from memwall.models.load import load
from memwall.models.mlps import PlainMlp, expected_distinct
from memwall.models.model import Layers, Model, Storage
from memwall.models.parameters import count
from memwall.models.storage import PLAIN, storage_of, weight_bytes
from memwall.reports.quant import FORMATS, QuantReport, quant
from memwall.reports.step import step

GB = 10**9
LLAMA_70B = load("llama3-70b")
LINEAR = 80 * (2 * 8192 * 8192 + 2 * 8192 * 1024 + 3 * 8192 * 28672)
TABLE = 128256 * 8192
NORMS = 161 * 8192
BANDWIDTH = 3352.32e9


@pytest.fixture(scope="module")
def report() -> QuantReport:
    return quant(LLAMA_70B, gpu="h100")


def test_every_format_that_people_ask_for_is_there(report: QuantReport) -> None:
    assert tuple(report.rows) == FORMATS == ("fp32", "bf16", "fp8", "int8", "int4-g128", "nvfp4", "mxfp4")


@pytest.mark.parametrize(
    ("name", "bits", "scale_bits"),
    [
        ("fp32", 32, 0),
        ("bf16", 16, 0),
        ("fp8", 8, 0),
        ("int8", 8, 0),
        ("int4-g128", 4, 16 / 128),
        ("nvfp4", 4, 8 / 16),
        ("mxfp4", 4, 8 / 32),
    ],
)
def test_bytes_with_scales_by_hand(report: QuantReport, name: str, bits: int, scale_bits: float) -> None:
    row = report.rows[name]
    assert row.scale_bytes == LINEAR * scale_bits / 8
    assert row.weight_bytes == LINEAR * (bits + scale_bits) / 8 + 2 * (2 * TABLE + NORMS)
    assert row.streamed_bytes == row.weight_bytes - 2 * TABLE  # the embedding is looked up


def test_decode_of_llama_70b_at_batch_1(report: QuantReport) -> None:
    row = report.rows["bf16"]
    assert row.streamed_bytes == 2 * count(LLAMA_70B).active == 139006066688
    assert row.cache_bytes == 4096 * 327680
    assert row.step.time_s == pytest.approx((139006066688 + 4096 * 327680) / BANDWIDTH)
    assert row.step.time_s * 1e3 == pytest.approx(41.9, abs=0.05)


def test_one_h100_holds_it_from_8_bits_down(report: QuantReport) -> None:
    assert {name for name, row in report.rows.items() if row.capacity.fits} == set(FORMATS) - {"fp32", "bf16"}
    assert report.rows["bf16"].capacity.fewest_gpus == 2
    shared = quant(LLAMA_70B, gpu="h100", tp=2).rows["bf16"]
    assert shared.capacity.fits
    assert shared.streamed_bytes == (139006066688 + 2 * NORMS) / 2


def test_what_computes_each_format(report: QuantReport) -> None:
    on_h100 = {name: row.engine for name, row in report.rows.items()}
    assert on_h100 == {
        **{name: name for name in ("fp32", "bf16", "fp8", "int8")},
        **dict.fromkeys(("int4-g128", "nvfp4", "mxfp4"), "bf16"),
    }
    assert quant(LLAMA_70B, gpu="b200").rows["nvfp4"].native
    assert quant(LLAMA_70B, gpu="v100").rows["bf16"].engine == "fp16"


def test_a_large_batch_is_bound_by_its_products() -> None:
    rows = quant("llama3-8b", gpu="h100", batch=512, context=1).rows
    assert rows["bf16"].step.regime == "compute-bound"
    assert rows["bf16"].step.time_s == pytest.approx(2 * 7504924672 * 512 / 989.4e12)


@pytest.mark.parametrize(("batch", "experts"), [(1, 2), (3, 4.625), (4, 5.46875), (16, 7.9199)])
def test_a_batch_meets_some_of_mixtral_s_experts(batch: int, experts: float) -> None:
    model = load("mixtral-8x7b")  # inference-sim/inference-sim issue 764
    always = 2 * (count(model).active - 32 * 2 * 3 * 4096 * 14336)
    read = streamed_weight_bytes(model, storage_of(model), batch)
    assert read == pytest.approx(always + 2 * 32 * experts * 3 * 4096 * 14336, rel=1e-5)
    assert read < 2 * count(model).total


def test_deepseek_reads_the_chosen_and_the_shared_experts_alone() -> None:
    model = load("deepseek-v3")  # kvcache-ai/ktransformers issue 1156: 8 and 1 of 256
    read = streamed_weight_bytes(model, storage_of(model, "bf16"))
    assert read == pytest.approx(2 * count(model).active)
    assert [round(expected_distinct(256, 8, batch), 1) for batch in (1, 32, 128)] == [8, 163.3, 251.6]
    assert expected_distinct(128, 8, 16) == pytest.approx(82.4, abs=0.05)  # not min(16 x 8, 128)


def test_no_measured_rate_is_above_the_ceiling_of_a_mixture() -> None:
    """AlexsJones/llmfit issue 474: 77.6 tokens/s measured at about 2.9 bits on 512 GB/s."""
    assert count(QWEN3_5_35B_A3B).active == pytest.approx(2.95e9, rel=0.005)
    sixteen_bits = streamed_weight_bytes(QWEN3_5_35B_A3B, storage_of(QWEN3_5_35B_A3B))
    ceiling = 512 * GB / (sixteen_bits * 2.9 / 16)
    assert ceiling == pytest.approx(465, rel=0.04)
    whole = 512 * GB / (count(QWEN3_5_35B_A3B).total * 2.9 / 8)
    assert whole < 77.6 < ceiling


def test_sparse_attention_reads_its_index_and_what_it_picks() -> None:
    kind = LatentAttention(64, 2048, 512, 192, 64, 256, index_heads=32, index_head_dim=128, index_topk=2048)
    model = Model("sparse", "Sparse", 1024, 1000, True, (Layers(78, kind),))
    read = [streamed_cache_bytes(model, context, PLAIN) for context in (1024, 65536)]
    assert read == [78 * 1024 * (576 + 128) * 2, 78 * (2048 * 576 + 65536 * 128) * 2]


def test_a_tied_table_is_read_once_as_the_head() -> None:
    model = load("gemma2-27b")
    assert streamed_weight_bytes(model, storage_of(model)) == 2 * count(model).total


def test_states_are_read_and_written() -> None:
    states = 30 * (32 * 128 * 128 + 3 * 8192) * 4
    assert streamed_cache_bytes(QWEN3_5_35B_A3B, 1000, find("fp8")) == 1000 * 10240 + 2 * states


def test_a_checkpoint_that_is_quantised_has_a_row_of_its_own() -> None:
    stored = LLAMA_70B._replace(storage=Storage("block fp8", find("fp8-128x128")))
    own = quant(stored).rows["own"]
    assert own.scale_bytes == LINEAR // 128 // 128 * 4
    assert own.capacity.budget.weight_bytes == own.weight_bytes


def test_a_format_asked_for_covers_what_the_checkpoint_leaves_out() -> None:
    model = load("gpt-oss-120b")  # whose attention stays at 16 bits
    hidden, heads = 2880, 64 * 64
    linear = 36 * (2 * hidden * heads + 2 * hidden * 512 + 128 * 3 * hidden * 2880)
    whole, fp8 = (weight_bytes(model, storage_of(model, name)).total for name in ("bf16", "fp8"))
    assert whole - fp8 == linear
    assert weight_bytes(model).total < whole - 36 * 128 * 3 * hidden * 2880


def test_an_encoder_does_not_decode() -> None:
    with pytest.raises(NotAvailable, match="does not generate"):
        quant(LLAMA_70B._replace(decodes=False))


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["quant", "--model", "llama3-70b", "--gpu", "h100", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    formats = record["formats"]
    assert list(formats) == list(FORMATS)
    assert formats["bf16"]["streamed_weight_bytes"] == 139006066688
    assert (formats["bf16"]["fits"], formats["bf16"]["fewest_gpus"]) == (False, 2)
    assert formats["int4-g128"]["bits_per_element"] == 4.125
    assert run(["quant", "--model", "llama3-70b", "--gpu", "h100,b200", "--format", "csv"]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert "formats.nvfp4.bound_time_s" in header
    assert len(rows) == 2
    assert run(["quant", "--gpu", "h100"]) == 2
    assert run(["quant", "--model", "llama3-70b", "--batch", "0"]) == 2


def test_a_step_of_an_encoder_s_decoder_streams_as_the_pass_does() -> None:
    heads = GroupedAttention(8, 8, 64)
    group = Layers(6, heads, (PlainMlp(2048),), norms=3)
    model = Model("t", "T", 512, 32128, True, (group._replace(cross=heads),), encoder=(group,))
    for name, row in quant(model, context=4096, batch=4, source_tokens=700).rows.items():
        if name in ("bf16", "fp8"):
            report = step(model, phase="decode", context=4096, batch=4, source_tokens=700, weight_dtype=name)
            assert row.streamed_bytes == report.weight_bytes
            assert row.cache_bytes == report.read_bytes("cache") == 4 * (4096 + 700) * 6 * 2 * 512 * 2
    decoder = 6 * (4 * 512 * 512 + 2 * 512 * 512 + 2 * 512 * 2048) + 32128 * 512 + 19 * 512
    large = quant(model, context=1, source_tokens=1, batch=65536).rows["bf16"].step
    assert large.work.matrix_flops == {"bf16": 2 * 65536 * decoder}


def test_a_checkpoint_that_computes_narrow_is_not_called_widened() -> None:
    report = quant("qwen3-32b-fp8", gpu="h100", context=4096)
    assert report.rows["own"].engine == "fp8"
    assert report.rows["own"].native
    assert not quant("qwen3-32b-fp8", gpu="a100", context=4096).rows["own"].native
