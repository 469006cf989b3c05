"""Passes of every kind of layer: no weight forgotten, none read twice, caches and states to the byte."""

from __future__ import annotations

from typing import Any

import pytest

from memwall.errors import NotAvailable, UsageError
from memwall.models.attentions import Attention, GroupedAttention, LatentAttention
from memwall.models.inventory import language_items
from memwall.models.mlps import Experts, GatedMlp, PlainMlp
from memwall.models.model import Layers, Model
from memwall.models.recurrences import (
    GatedDelta,
    GatedLinearRecurrence,
    LightningAttention,
    Mamba,
    Mamba2,
    Recurrence,
    ShortConvolution,
)
from memwall.models.storage import storage_of, weight_bytes
from memwall.models.weights import Weight, vector
from memwall.render.step_record import all_notes
from memwall.reports.step import StepReport, step

GROUPED = GroupedAttention(8, 2, 64)
LATENT = LatentAttention(8, 192, 128, 64, 32, 48)
MLP = (GatedMlp(1536),)

MIXERS: dict[str, dict[str, Any]] = {
    "grouped": {"attention": GROUPED},
    "values of another size": {"attention": GROUPED._replace(v_head_dim=32)},
    "biases, norms and sinks": {
        "attention": GROUPED._replace(qkv_bias=True, output_bias=True, qk_norm="head", sinks=True)
    },
    "a bias on K alone left out": {"attention": GROUPED._replace(qkv_bias=True, key_bias=False)},
    "norms over all heads": {"attention": GROUPED._replace(qk_norm="full", qk_norm_bias=True)},
    "a gate an element": {"attention": GROUPED._replace(gate=512)},
    "a gate a head": {"attention": GROUPED._replace(gate=8)},
    "keys are values": {"attention": GROUPED._replace(keys_are_values=True)},
    "the cache of an earlier layer": {"attention": GROUPED._replace(shares_cache=True, qk_norm="head")},
    "window": {"attention": GROUPED._replace(window=32)},
    "latent": {"attention": LATENT},
    "latent, queries not compressed": {"attention": LATENT._replace(q_lora_rank=None)},
    "latent with biases and a window": {"attention": LATENT._replace(bias=True, window=32)},
    "latent with an indexer": {"attention": LATENT._replace(index_heads=4, index_head_dim=64, index_topk=40)},
    "gated delta": {"recurrence": GatedDelta(4, 8, 32, 64)},
    "Kimi delta": {"recurrence": GatedDelta(8, 8, 32, 32, channel_gate_rank=16)},
    "mamba": {"recurrence": Mamba(1024, 16, 32, norms=True, bias=True)},
    "mamba2": {"recurrence": Mamba2(16, 64, 2, 128, bias=True)},
    "mamba2 without a norm": {"recurrence": Mamba2(16, 64, 2, 128, norm=False)},
    "lightning": {"recurrence": LightningAttention(8, 64)},
    "short convolution": {"recurrence": ShortConvolution(512, bias=True)},
    "gated linear": {"recurrence": GatedLinearRecurrence(512, 8)},
    "attention beside a recurrence": {"attention": GROUPED, "recurrence": Mamba2(16, 64, 2, 128)},
}
MLPS: dict[str, dict[str, Any]] = {
    "plain": {"mlps": (PlainMlp(2048, bias=True),)},
    "gated with biases": {"mlps": (GatedMlp(1536, bias=True),)},
    "experts": {"mlps": (Experts(16, 4, 256, bias=True, router_bias=True),)},
    "experts, a shared one behind a gate": {"mlps": (Experts(16, 4, 256, 512, shared_gate=True),)},
    "plain experts in a narrower space": {
        "mlps": (Experts(16, 4, 256, 512, gated=False, expert_hidden=128),)
    },
    "a dense one beside experts": {"mlps": (GatedMlp(768), Experts(16, 4, 256)), "norms": 6},
    "one norm for both": {"norms": 1},
    "norms on both sides": {"norms": 4},
    "none": {"norms": 0},
    "weights of no kind": {
        "extras": (Weight("side_proj", (512, 512)), vector("scale", 512), Weight("other", (64, 512)))
    },
}
ALL = {
    **{name: {"mlps": MLP, **parts} for name, parts in MIXERS.items()},
    **{name: {"attention": GROUPED, "mlps": MLP, **parts} for name, parts in MLPS.items()},
    "a mixer alone": {"attention": GROUPED, "norms": 1},
    "an MLP alone": {"mlps": MLP, "norms": 1},
}
SHAPES: dict[str, dict[str, Any]] = {
    "decode": {"context": 200, "batch": 3},
    "prefill": {"seq": 96, "batch": 2},
    "second part of a prefill": {"phase": "prefill", "seq": 32, "context": 96},
}


def model_of(*groups: Layers, **how: Any) -> Model:
    return Model("tiny", "Tiny", 512, 1000, how.pop("tied_embeddings", False), groups, **how)


def tiny(name: str) -> Model:
    return model_of(Layers(3, **ALL[name]), norm_bias=name == "plain")


def stored(model: Model, tokens: int, but: tuple[str, ...] = ("embedding", "table")) -> float:
    """Every weight once, experts as far as so many tokens meet them."""
    total = 0.0
    for item in language_items(model):
        weight = item.weight
        if weight.role in but:
            continue
        met = 1.0
        if weight.used is not None:
            met = 1 - (1 - weight.used / weight.copies) ** tokens
        total += 2 * item.parameters * met
    return total


def matrix_flops(report: StepReport, *kinds: str) -> int:
    return sum(
        line.launch.repeats * line.launch.kernel.matrix_flops
        for line in report.lines
        if line.launch.kind in kinds
    )


@pytest.mark.parametrize("eager", [False, True], ids=["fused", "eager"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("name", ALL)
def test_every_weight_is_read_once_and_multiplied_with_every_token(
    name: str, shape: dict[str, Any], eager: bool
) -> None:
    model = tiny(name)
    report = step(model, eager=eager, **shape)
    tokens = shape.get("batch", 1) * shape.get("seq", 1)
    assert report.weight_bytes == pytest.approx(stored(model, tokens), abs=1)
    products = 0
    for item in language_items(model):
        if item.weight.role not in ("linear", "router"):
            continue
        rows = tokens
        if item.weight.name == "kv_b_proj" and not report.setting.absorbed:
            rows = report.tokens.batch * report.tokens.seq_kv  # K and V of the whole cache
        products += 2 * item.active_parameters * rows
    products += 2 * 1000 * 512 * report.tokens.batch
    assert matrix_flops(report, "linear", "routing", "head") == products
    assert all(line.bound.time_s > 0 for line in report.lines)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("name", ALL)
def test_fusing_saves_bytes_and_no_product(name: str, shape: dict[str, Any]) -> None:
    fused, eager = (step(tiny(name), eager=e, **shape) for e in (False, True))
    assert fused.whole.work.traffic_bytes < eager.whole.work.traffic_bytes
    assert fused.whole.work.matrix_flops == eager.whole.work.matrix_flops
    for role in ("cache", "state"):
        assert fused.read_bytes(role) == eager.read_bytes(role)
        assert fused.written_bytes(role) == eager.written_bytes(role)


@pytest.mark.parametrize("name", ALL)
def test_every_format_of_the_linear_layers_is_read_to_the_byte(name: str) -> None:
    """Those of a batch that meets all experts are all that is stored, but for the embedding."""
    model = tiny(name)
    for weights in ("fp8", "int4-g128", "mxfp4", "fp8-128x128"):
        report = step(model, context=64, batch=4096, weight_dtype=weights)
        resident = weight_bytes(model, storage_of(model, weights)).total
        assert report.weight_bytes == pytest.approx(resident - 2 * 1000 * 512, rel=1e-9), weights


# --- caches and states ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in MIXERS if "attention" in MIXERS[name]])
def test_a_step_writes_its_token_and_a_prompt_all_of_its_own(name: str) -> None:
    model = tiny(name)
    kind = MIXERS[name]["attention"]
    token = 3 * 2 * (kind.cached_elements + getattr(kind, "index_head_dim", 0))
    decode = step(model, context=200, batch=5)
    assert decode.written_bytes("cache") == 5 * token
    assert step(model, seq=96).written_bytes("cache") == 96 * token


@pytest.mark.parametrize(
    ("kind", "read"),
    [
        (GROUPED, 200 * 2 * 2 * 64),
        (GROUPED._replace(window=32), 32 * 2 * 2 * 64),
        (GROUPED._replace(v_head_dim=32), 200 * 2 * (64 + 32)),
        (GROUPED._replace(shares_cache=True), 200 * 2 * 2 * 64),  # an earlier layer's, read all the same
        (LATENT, 200 * (128 + 32)),
        (LATENT._replace(index_heads=4, index_head_dim=64, index_topk=40), 40 * 160 + 200 * 64),
    ],
)
def test_a_step_reads_the_keys_that_it_sees(kind: Attention, read: int) -> None:
    report = step(model_of(Layers(3, kind, MLP)), context=200, batch=7)
    assert report.read_bytes("cache") == 7 * 3 * 2 * read


@pytest.mark.parametrize("name", [name for name in MIXERS if "recurrence" in MIXERS[name]])
def test_states_are_read_and_written_in_fp32_and_do_not_grow(name: str) -> None:
    kind: Recurrence = MIXERS[name]["recurrence"]
    size = 3 * 4 * kind.state_elements
    for context in (10, 1000):
        decode = step(tiny(name), context=context, batch=5)
        assert decode.read_bytes("state") == decode.written_bytes("state") == 5 * size
    prefill = step(tiny(name), seq=500, batch=5)
    assert prefill.read_bytes("state") == 0  # it begins with none
    assert prefill.written_bytes("state") == 5 * size


@pytest.mark.parametrize(
    "kind", [GatedDelta(4, 8, 32, 64), Mamba(1024, 16, 32), Mamba2(16, 64, 2, 128), LightningAttention(8, 64)]
)
def test_a_recurrence_costs_a_token_what_its_equation_says(kind: Recurrence) -> None:
    report = step(model_of(Layers(1, recurrence=kind, norms=1)), context=8)
    [scan] = [line.launch.kernel for line in report.lines if line.launch.name == "recurrence.scan"]
    assert scan.matrix_flops + scan.vector_flops == kind.flops_per_token


def shapes(report: StepReport, name: str) -> list[tuple[Any, ...]]:
    """Of what a kernel reads and writes, in order."""
    [line] = [line for line in report.lines if line.launch.name == name]
    kernel = line.launch.kernel
    return [tensor.shape for tensor in (*kernel.reads, *kernel.writes)]


def test_experts_work_on_pairs_of_tokens_and_experts() -> None:
    """3 tokens of 512 with 4 of 16 experts of width 256 each: 12 pairs, 16 (1 - 0.75^3) = 9.25 experts."""
    model = model_of(Layers(2, GROUPED, (Experts(16, 4, 256, 128),)))
    fused, eager = (step(model, context=9, batch=3, eager=e) for e in (False, True))
    up, down = (9.25, 256, 512), (9.25, 512, 256)
    assert shapes(fused, "moe.router") == [(3, 512), (16, 512), (3, 16)]
    assert shapes(fused, "moe.route") == [(3, 16), (3, 4), (3, 4)]
    assert shapes(fused, "experts.gate_up") == [(3, 512), up, up, (12, 512)]  # each token read once
    assert shapes(fused, "experts.silu*mul") == [(12, 256)] * 3
    assert shapes(fused, "experts.down") == [(12, 256), down, (12, 512)]
    assert shapes(fused, "shared.silu*mul") == [(3, 128)] * 3
    assert shapes(fused, "moe.combine") == [(3, 4, 512), (3, 4), (3, 512), (3, 512)]
    assert shapes(eager, "moe.dispatch") == [(3, 512), (3, 4), (3, 4, 512)]
    assert shapes(eager, "experts.gate_proj") == [(12, 512), up, (12, 256)]
    assert shapes(eager, "moe.combine") == [(3, 4, 512), (3, 4), (3, 512)]
    assert shapes(eager, "moe.add") == [(3, 512)] * 3


def test_a_recurrence_reads_what_each_token_brings() -> None:
    delta = step(model_of(Layers(1, recurrence=GatedDelta(4, 8, 32, 64), norms=1)), seq=10, batch=3)
    state = (3, 8, 32, 64)
    key, value, vectors = (3, 10, 4, 32), (3, 10, 8, 64), [(8,), (8,)]
    assert shapes(delta, "recurrence.conv") == [(3, 10, 768), (768, 4), (3, 10, 768), (3, 768, 3)]
    assert shapes(delta, "recurrence.scan") == [key, key, value, (3, 10, 16), *vectors, value, state]
    kimi = GatedDelta(8, 8, 32, 32, channel_gate_rank=16)  # a decay a channel, a beta a head
    scan = shapes(step(model_of(Layers(1, recurrence=kimi, norms=1)), seq=10, batch=3), "recurrence.scan")
    assert scan[3] == (3, 10, 8 * 32 + 8)


def test_a_bias_is_added_to_every_output_of_every_token() -> None:
    model = model_of(Layers(1, GROUPED._replace(qkv_bias=True), MLP))
    [qkv] = [line for line in step(model, seq=10).lines if line.launch.name == "attention.qkv"]
    assert qkv.launch.kernel.vector_flops == 10 * (8 + 2 + 2) * 64


# --- encoders ---------------------------------------------------------------------------------------------

ENCODER = Layers(4, GROUPED, MLP)
TRANSLATOR = model_of(
    Layers(3, GROUPED, MLP, cross=GroupedAttention(8, 8, 64, qkv_bias=True), norms=3), encoder=(ENCODER,)
)
READER = model_of(
    ENCODER._replace(norms=2),
    decodes=False,
    head=False,
    final_norm=False,
    extras=(Weight("position_embeddings", (512, 512), "table"),),
)


def test_an_encoder_alone_reads_both_ways_and_keeps_nothing() -> None:
    report = step(READER, seq=128, batch=3)
    attention = matrix_flops(report, "attention")
    assert attention == 4 * 3 * 8 * 128 * 128 * 4 * 64  # the whole square
    assert report.read_bytes("cache") == report.written_bytes("cache") == 0
    assert not [line for line in report.lines if line.launch.kind in ("head", "sampling")]
    assert report.weight_bytes == stored(READER, 384)
    positions = [line for line in report.lines if line.launch.name == "position_embeddings"]
    assert positions[0].launch.kernel.reads[1].shape == (3 * 128, 512)
    turned = [line for line in report.lines if "rope" in line.launch.name]
    assert not turned  # its positions are learned


def test_an_encoder_alone_does_not_decode() -> None:
    with pytest.raises(NotAvailable, match="generates none"):
        step(READER, phase="decode", context=64)
    with pytest.raises(UsageError, match="Leave it out"):
        step(READER, seq=64, context=128)


def test_a_translator_prefills_its_encoder_and_one_token_of_its_decoder() -> None:
    report = step(TRANSLATOR, seq=96, batch=2)
    names = {line.launch.name for line in report.lines}
    assert {"encoder.attention", "cross.attention", "attention", "head"} <= names
    assert report.weight_bytes == stored(TRANSLATOR, 1)
    products = 0
    for item in language_items(model_of(ENCODER, head=False)):
        products += 2 * item.parameters * 2 * 96 if item.weight.role == "linear" else 0
    for item in language_items(model_of(*TRANSLATOR.layers, head=False)):
        if item.weight.role == "linear":
            crossed = item.weight.part == "cross_attn" and item.weight.name in ("k_proj", "v_proj")
            products += 2 * item.parameters * 2 * (96 if crossed else 1)
    assert matrix_flops(report, "linear") == products
    assert report.tokens_per_s == pytest.approx(2 * 96 / report.whole.time_s)
    own, other = 3 * 2 * 2 * 64 * 2, 3 * 96 * 2 * 8 * 64 * 2  # one token of its own, 96 of the encoder
    assert report.resident_cache_bytes == report.written_bytes("cache") == 2 * (own + other)


def test_a_translator_decodes_with_the_encoder_s_keys_and_not_its_weights() -> None:
    report = step(TRANSLATOR, phase="decode", context=50, source_tokens=96, batch=2)
    decoder = model_of(*TRANSLATOR.layers)
    crossed = 3 * 2 * (8 * 64 * 512 + 8 * 64)  # K and V of the encoder's tokens were made in the prefill
    assert report.weight_bytes == stored(decoder, 2) - 2 * crossed
    own, other = 3 * 50 * 2 * 2 * 64 * 2, 3 * 96 * 2 * 8 * 64 * 2
    assert report.read_bytes("cache") == 2 * (own + other)
    assert report.resident_cache_bytes == 2 * (own + other)


def test_a_tied_head_reads_the_embedding_whole() -> None:
    tied = model_of(Layers(2, GROUPED, MLP), tied_embeddings=True)
    untied = model_of(Layers(2, GROUPED, MLP))
    assert step(tied, context=9).weight_bytes == step(untied, context=9).weight_bytes


SEER = TRANSLATOR._replace(
    context=48,
    extras=(
        Weight("conv1", (512, 240), "convolution"),
        Weight("encoder.embed_positions", (150, 512), "table"),
        Weight("decoder.embed_positions", (48, 512), "table"),
    ),
)


def test_an_encoder_has_its_own_positions_and_its_own_limit() -> None:
    report = step(SEER, seq=150, batch=2)
    launches = [line.launch for line in report.lines]
    rows = {launch.name: launch.kernel.reads[1].shape[0] for launch in launches if launch.kind == "embedding"}
    assert rows["encoder.embed_positions"] == 150  # each of the table's, once
    assert rows["decoder.embed_positions"] == 2
    assert "encoder.embedding" not in rows  # it reads frames and no tokens
    assert not [note for note in all_notes(report) if "made for" in note]
    noted = all_notes(step(SEER, seq=151))
    assert "151 tokens are more than the 150 its encoder was made for" in noted
    decoding = step(SEER, phase="decode", context=49)
    assert decoding.source == 150
    assert "source tokens 150" in decoding.defaults
    assert "49 tokens are more than the 48 it was made for" in all_notes(decoding)


def test_a_copy_on_each_side_is_read_by_its_side() -> None:
    norm = vector("layernorm_embedding", 512, copies=2)
    both = TRANSLATOR._replace(extras=(Weight("embed_positions", (130, 512), "table", copies=2), norm))
    prefill = step(both, seq=96)
    assert prefill.weight_bytes == stored(both, 1)
    tables = [line.launch for line in prefill.lines if line.launch.name.endswith("embed_positions")]
    assert [launch.kernel.reads[1].shape[0] for launch in tables] == [96, 1]
    decode = step(both, phase="decode", context=9).weight_bytes
    assert decode == step(TRANSLATOR, phase="decode", context=9).weight_bytes + 2 * 512


def test_source_tokens_are_of_decoding_with_an_encoder() -> None:
    with pytest.raises(UsageError, match="Try --seq 9"):
        step(TRANSLATOR, seq=96, source_tokens=9)
    with pytest.raises(UsageError, match="--source-tokens 96"):
        step(TRANSLATOR, phase="decode", context=9, seq=96)
    with pytest.raises(UsageError, match="Leave out --source-tokens"):
        step(model_of(Layers(2, GROUPED, MLP)), context=9, source_tokens=5)


# --- names ------------------------------------------------------------------------------------------------


def names_of(model: Model, **asked: Any) -> list[str]:
    return [line.launch.name for line in step(model, **asked).lines]


def test_positions_stand_with_the_embedding() -> None:
    table = Weight("wpe", (512, 512), "table")
    learned = model_of(Layers(2, GROUPED, (PlainMlp(2048),)), extras=(table,))
    assert names_of(learned, context=9)[:2] == ["embedding", "wpe"]
    norm = vector("embeddings.LayerNorm", 512)
    reader = READER._replace(extras=(*READER.extras, norm))
    assert names_of(reader, seq=9)[:3] == ["embedding", "position_embeddings", "embedded.LayerNorm"]


def test_kernels_are_called_what_they_do() -> None:
    table = Weight("wpe", (512, 512), "table")
    learned = names_of(model_of(Layers(2, GROUPED, (PlainMlp(2048),)), extras=(table,)), context=9)
    assert "attention.kv" in learned
    assert "mlp.activation" in learned  # which one no file of a plain MLP's sizes says
    turned = names_of(model_of(Layers(2, GROUPED, MLP)), context=9)
    assert "attention.rope+kv" in turned
    assert {"cross.q", "cross.kv"} <= set(names_of(TRANSLATOR, seq=96))


def test_mlps_of_several_widths_name_them() -> None:
    wide = Layers(1, GROUPED, (GatedMlp(3072),))
    names = names_of(model_of(Layers(2, GROUPED, MLP), wide), context=9)
    assert {"mlp.gate_up, width 1536", "mlp.down, width 3072"} <= set(names)
    assert len(names) == len(set(names))
