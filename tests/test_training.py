"""Training memory: the papers' formulas as identities, sums to the last parameter, and the command."""

from __future__ import annotations

import json

import pytest
from capacity_models import DEEPSEEK_V2_LITE, QWEN3_5_9B

from memwall.catalog import MODELS
from memwall.cli import run
from memwall.errors import UsageError
from memwall.memory.backward import Run, layer_bytes
from memwall.memory.training import OPTIMIZERS, Needs, Setup, _stage, needs
from memwall.models.attentions import GroupedAttention, LatentAttention
from memwall.models.load import load
from memwall.models.mlps import Experts, PlainMlp
from memwall.models.model import Layers, Model
from memwall.models.parameters import count
from memwall.reports.training import training_memory

GIB = 2**30
LLAMA_70B = load("llama3-70b")
PARAMETERS = 70553706496
# A layer of the 22B model of arXiv:2205.05198, table 3: 64 heads, hidden 6144, sequences of 2048, batch 4.
A, H, S, B, LAYERS, VOCABULARY = 64, 6144, 2048, 4, 48, 51200
GPT_LAYER = Layers(
    LAYERS, GroupedAttention(A, A, H // A, qkv_bias=True, output_bias=True), (PlainMlp(4 * H, bias=True),)
)
GPT = Model("gpt-22b", "GPT 22B", H, VOCABULARY, True, (GPT_LAYER,), norm_bias=True)
SBH = S * B * H


def a_layer(**options: object) -> int:
    """What a GPT layer with dropout keeps."""
    return layer_bytes(GPT_LAYER, GPT, Run(S, B, dropout=True, **options))  # type: ignore[arg-type]


def test_a_gpt_layer_keeps_what_the_paper_says() -> None:  # equation 1: s b h (34 + 5 a s / h)
    assert a_layer(attention="standard") == 34 * SBH + 5 * A * S * S * B


@pytest.mark.parametrize("t", [1, 2, 8])
def test_tensor_parallelism_leaves_ten(t: int) -> None:  # equation 2: s b h (10 + 24/t + 5 a s / (h t))
    kept = a_layer(attention="standard", tensor_parallel=t)
    assert kept == 10 * SBH + 24 * SBH // t + 5 * A * S * S * B // t


@pytest.mark.parametrize("t", [1, 2, 8])
def test_sequence_parallelism_leaves_none(t: int) -> None:  # equation 4: s b h / t (34 + 5 a s / h)
    kept = a_layer(attention="standard", tensor_parallel=t, sequence_parallel=True)
    assert kept == (34 * SBH + 5 * A * S * S * B) // t


def test_checkpointing_leaves_34_and_2() -> None:  # equations 5 and 6: s b h 34 / t; table 2: s b h 2
    selective = {"attention": "standard", "checkpointing": "selective", "tensor_parallel": 8}
    assert a_layer(**selective, sequence_parallel=True) == 34 * SBH // 8
    assert a_layer(attention="standard", checkpointing="full", tensor_parallel=8) == 2 * SBH


def test_flash_keeps_a_sum_a_head_instead_of_the_probabilities() -> None:
    assert a_layer() == 34 * SBH + 4 * A * S * B
    assert a_layer(checkpointing="selective") == a_layer()


def test_without_dropout_there_are_no_masks() -> None:
    kept = layer_bytes(GPT_LAYER, GPT, Run(S, B, attention="standard"))
    assert kept == 32 * SBH + 2 * A * S * S * B


def test_a_gated_grouped_layer_by_hand() -> None:
    model = load("llama3-8b")
    norms, attention = 2 * 4096, 4096 + 4096 + 2 * 1024 + 4096  # their inputs; input, q, k and v, result
    mlp = 4096 + 4 * 14336  # input; gate, its silu, up, product
    kept = 1024 * (2 * (norms + attention + mlp) + 4 * 32)  # and a 32-bit sum a head
    assert layer_bytes(model.layers[0], model, Run(1024)) == kept


def test_kv_heads_that_are_copied_are_kept_as_often() -> None:
    model = load("llama3-8b")
    shared = layer_bytes(model.layers[0], model, Run(1024, tensor_parallel=16))
    stream = 2 * 4 * 4096
    split = 2 * (4096 + 2 * 16 * 128 + 4096 + 4 * 14336) + 4 * 32  # 8 KV heads on 16 GPUs: one each
    assert shared == 1024 * (stream + split // 16)


def test_experts_keep_the_copies_that_they_read_and_write() -> None:
    model = Model("moe", "MoE", 1024, 1000, False, (Layers(1, None, (Experts(64, 4, 256, 512),), norms=0),))
    stream = 2 * 1024 + 4 * 64 + 2 * 4 * 2 * 1024
    assert layer_bytes(model.layers[0], model, Run(10)) == 10 * (stream + 2 * 4 * (4 * 256 + 512))


def test_a_latent_layer_keeps_the_compressed_and_every_head() -> None:
    kind = LatentAttention(16, 1536, 512, 128, 64, 128)
    model = Model("latent", "Latent", 2048, 1000, False, (Layers(1, kind, (), norms=0),))
    compressed = 2048 + 2 * 1536 + 2 * 512 + 64
    heads = 16 * (192 + 192 + 128 + 128)
    assert layer_bytes(model.layers[0], model, Run(10)) == 10 * (2 * (compressed + heads) + 4 * 16)


@pytest.mark.parametrize(
    ("zero", "bytes_each", "gigabytes"),
    [(0, 16, 120), (1, 4 + 12 / 64, 31.4), (2, 2 + 14 / 64, 16.6), (3, 16 / 64, 1.9)],
)
def test_the_zero_paper_s_figure(zero: int, bytes_each: float, gigabytes: float) -> None:
    """arXiv:1910.02054, figure 1: 7.5B parameters on 64 GPUs."""
    states = training_memory(LLAMA_70B, gpus=64, zero=zero).needs.states
    assert states == pytest.approx(bytes_each * PARAMETERS)
    assert states / PARAMETERS * 7.5 == pytest.approx(gigabytes, abs=0.06)


@pytest.mark.parametrize("name", MODELS.names())
def test_the_stages_hold_every_parameter_once(name: str) -> None:
    model = load(name)
    for pipeline in (1, 3):
        setup = Setup(model, Run(16), pipeline, pipeline)
        held = sum(_stage(setup, index).parameters for index in range(pipeline)) // 2
        copy = count(model).embedding if model.tied_embeddings and pipeline > 1 else 0
        assert held == count(model).total + copy


@pytest.mark.parametrize(
    ("optimizer", "bytes_each"),
    [("adam", 12), ("adam-8bit", 4 + 2 * (1 + 4 / 2048)), ("sgd", 4), ("sgd-momentum", 8)],
)
def test_what_each_optimizer_keeps(optimizer: str, bytes_each: float) -> None:
    kept = training_memory(LLAMA_70B, optimizer=optimizer).needs.optimizer
    assert kept == pytest.approx(bytes_each * PARAMETERS, rel=1e-9)


def test_adafactor_keeps_rows_and_columns() -> None:
    tables = 2 * (128256 + 8192)
    attention = 2 * (8192 + 8192) + 2 * (1024 + 8192)
    layer = attention + 3 * (28672 + 8192) + 2 * 8192
    averages = 4 * (tables + 8192 + 80 * layer)
    assert training_memory(LLAMA_70B, optimizer="adafactor").needs.optimizer == 4 * PARAMETERS + averages


def test_llama_70b_over_64_gpus_by_hand() -> None:
    report = training_memory(LLAMA_70B, gpus=64, zero=3, seq=4096, checkpointing="full")
    layer = 2 * 8192 * 8192 + 2 * 8192 * 1024 + 3 * 8192 * 28672 + 2 * 8192
    one = 4096 * (2 * (2 * 8192 + 8192 + 8192 + 2048 + 8192 + 8192 + 4 * 28672) + 4 * 64)
    checkpoint = 2 * 4096 * 8192
    head = 4096 * (2 * 2 * 8192 + 4 * 128256)
    assert report.needs == Needs(
        -(-2 * PARAMETERS // 64),
        -(-2 * PARAMETERS // 64),
        -(-12 * PARAMETERS // 64),
        80 * checkpoint + head,
        one - checkpoint + layer * (2 * 2 + 2),
    )


def test_a_pipeline_s_first_stage_keeps_every_micro_batch() -> None:
    """Section 4.2.3 of arXiv:2205.05198: p micro-batches of L / p layers are L layers' activations."""
    alone, split = (needs(Setup(GPT, Run(S, B, dropout=True), p, p)) for p in (1, 4))
    layers = LAYERS * a_layer()
    assert split.activations == layers + 4 * SBH  # the embedding's mask of each
    assert alone.activations == layers + SBH + S * B * (4 * H + 4 * VOCABULARY)


def test_experts_are_spread_whole() -> None:
    options = {"gpus": 16, "zero": 1}
    alone, spread = (training_memory(DEEPSEEK_V2_LITE, ep=ep, **options) for ep in (1, 8))  # type: ignore[arg-type]
    experts = 26 * 64 * 3 * 2048 * 1408
    assert alone.needs.parameters - spread.needs.parameters == 2 * experts * 7 // 8
    assert spread.needs.optimizer == alone.needs.optimizer  # 1/8 of them over 2 GPUs, or all over 16
    with pytest.raises(UsageError, match="ep 3 does not divide"):
        training_memory(DEEPSEEK_V2_LITE, gpus=16, ep=3)


@pytest.mark.parametrize("checkpointing", ["none", "selective", "full"])
def test_each_stage_of_zero_needs_no_more_states(checkpointing: str) -> None:
    for model in (LLAMA_70B, QWEN3_5_9B, DEEPSEEK_V2_LITE):
        reports = [training_memory(model, gpus=8, zero=z, checkpointing=checkpointing) for z in (0, 1, 2, 3)]
        states = [report.needs.states for report in reports]
        assert states == sorted(states, reverse=True)
        assert len(set(states)) == 4


def test_gradients_in_32_bits_are_twice_as_large() -> None:
    sixteen, thirty_two = (training_memory(LLAMA_70B, grad_dtype=name).needs for name in ("bf16", "fp32"))
    assert thirty_two.gradients == 2 * sixteen.gradients == 4 * PARAMETERS


def test_every_optimizer_has_its_source() -> None:
    assert all(optimizer.source for optimizer in OPTIMIZERS.values())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"gpus": 6, "tp": 4}, "not whole groups"),
        ({"gpus": 128, "pp": 128}, "80 layers. Try --pp 80"),
        ({"optimizer": "lion"}, "no optimizer 'lion'"),
        ({"zero": 4}, "no zero '4'"),
        ({"checkpointing": "some"}, "no checkpointing"),
    ],
)
def test_what_cannot_be(options: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        training_memory(LLAMA_70B, **options)  # type: ignore[arg-type]


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    command = (
        "train-memory --model llama3-70b --gpus 64 --zero 3 --optimizer adam --seq 4096 --checkpointing full"
    )
    assert run([*command.split(), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["state_bytes"] == pytest.approx(16 * PARAMETERS / 64)
    assert record["total_bytes"] == sum(
        record[key]
        for key in (
            "parameter_bytes",
            "gradient_bytes",
            "optimizer_bytes",
            "activation_bytes",
            "working_bytes",
        )
    )
    assert (record["gpu"], record["fits"]) == (None, None)
    assert record["choices"]["zero_3"]["full"] == record["total_bytes"]


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        ("--gpus 64 --zero 3 --checkpointing full --gpu h100", 0),
        ("--gpus 64 --zero 3 --checkpointing none --gpu h100", 1),
        ("--gpus 64 --zero 3 --checkpointing none --gpu h100,b200", 0),
        ("--zero 5", 2),
        ("--gpus 64 --tp 3", 2),
        ("--set memory.capacity_gb=100", 2),
        ("--gpu nowhere", 2),
    ],
)
def test_exit_codes(flags: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"train-memory --model llama3-70b {flags}".split()) == code
    assert ("error: " in capsys.readouterr().err) == (code > 1)
