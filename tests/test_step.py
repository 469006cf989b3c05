"""A whole pass: its numbers by hand, and its kernels against closed forms of another route."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memwall
from memwall.catalog import MODELS
from memwall.errors import NotAvailable, UnsupportedDtype, UsageError
from memwall.hardware import load as load_gpu
from memwall.models.attentions import GroupedAttention, LatentAttention
from memwall.models.inventory import language_items
from memwall.models.load import load
from memwall.models.mlps import GatedMlp, expected_distinct
from memwall.models.model import Layers, Model
from memwall.models.parameters import count
from memwall.models.storage import item_bytes, storage_of
from memwall.reports.step import StepReport, step

MODEL_OF = {name: load(name) for name in MODELS.names()}
NAMES = [name for name, model in MODEL_OF.items() if model.decodes and not model.encoder]
QUICK = settings(max_examples=25, deadline=None, derandomize=True)
BANDWIDTH, PEAK = 3352.32e9, 989.4e12  # H100: bytes a second, bf16 FLOP/s
MATRIX_KINDS = ("linear", "routing", "head")


def by_name(report: StepReport, name: str) -> Any:
    [line] = [line for line in report.lines if line.launch.name == name]
    return line


# --- numbers by hand ------------------------------------------------------------------------------------


def test_llama3_70b_decodes_in_41_9_ms_at_best() -> None:
    report = step("llama3-70b", gpu="h100", phase="decode", context=4096)
    # 69,503,033,344 parameters of 2 bytes: all 70.55 G but the embedding of 128256 x 8192.
    assert report.weight_bytes == 2 * (70553706496 - 128256 * 8192) == 139006066688
    # 80 layers x 2 x 8 heads x 128 x 2 bytes x 4096 tokens.
    assert report.read_bytes("cache") == 80 * 2 * 8 * 128 * 2 * 4096 == 1342177280
    assert report.written_bytes("cache") == 80 * 2 * 8 * 128 * 2
    assert report.whole.time_s == pytest.approx(41.9e-3, rel=0.001)
    # What passes between the kernels adds less than a thousandth to weights and cache.
    assert report.whole.time_s == pytest.approx((139006066688 + 1342177280) / BANDWIDTH, rel=0.001)
    assert report.whole.regime == "memory-bound"
    assert report.fits is False


@pytest.mark.parametrize("gpu", ["h100", "h200"])
def test_llama3_8b_prefills_8192_tokens_in_133_4_ms_at_best_on_both(gpu: str) -> None:
    report = step("llama3-8b", gpu=gpu, phase="prefill", seq=8192)
    linear = sum(line.work.flops for line in report.lines if line.launch.kind == "linear")
    attention = by_name(report, "attention").work.flops
    # 32 layers of 2 x 4096^2 + 2 x 4096 x 1024 + 3 x 4096 x 14336 weights.
    assert linear == 2 * 32 * (2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14336) * 8192
    assert linear == pytest.approx(1.143e14, rel=1e-3)
    # 32 layers x 32 heads x 4 x 128 x 8192 x 8193 / 2: the triangle, its diagonal with it.
    assert attention == 32 * 32 * 4 * 128 * 8192 * 8193 // 2
    assert attention == pytest.approx(1.759e13, rel=1e-3)
    head = by_name(report, "head").work.flops
    assert head == 2 * 128256 * 4096  # of the last token alone
    assert report.whole.time_s == pytest.approx((linear + attention + head) / PEAK, rel=1e-9)
    assert report.whole.time_s == pytest.approx(133.4e-3, rel=0.0005)
    assert report.whole.regime == "compute-bound"
    assert report.mfu == pytest.approx(1)


def test_kernels_in_turn_add_what_the_pass_hides() -> None:
    """H100 waits longer than H200 for what memory bounds, though both need 133.4 ms for the products."""
    h100, h200 = (step("llama3-8b", gpu=gpu, seq=8192) for gpu in ("h100", "h200"))
    assert h100.kernels_bound_time_s > h200.kernels_bound_time_s > h200.whole.time_s
    waiting = [
        sum(line.time_s for line in report.lines if line.bound.limited_by == "hbm") for report in (h100, h200)
    ]
    assert waiting[0] / waiting[1] == pytest.approx(4814.3 / 3352.32, rel=1e-6)  # the bandwidths


@pytest.mark.parametrize(
    ("name", "flops"),
    [
        ("llama3-8b", 2 * 7504924672),  # 15.01 G: without the input embedding
        ("llama3-70b", 2 * 69503033344),
        ("gemma2-27b", 2 * 27227128320),  # tied: the table counts once, as the head
    ],
)
def test_flops_of_a_token_are_twice_the_active_parameters_and_attention(name: str, flops: int) -> None:
    model, context = load(name), 1000
    report = step(model, context=context)
    vectors = sum(i.active_parameters for i in language_items(model) if i.weight.role == "vector")
    assert report.whole.work.flops == flops - 2 * vectors + attention_flops(model, 1, 1, context)


EXPERTS = {1: 2, 3: 4.625, 4: 5.46875, 16: 7.919819}
"""8 (1 - 0.75^B) by hand; 5.47 and 7.92 as people round it."""


@pytest.mark.parametrize("batch", EXPERTS)
def test_mixtral_reads_the_experts_that_its_batch_meets(batch: int) -> None:
    report = step("mixtral-8x7b", context=4096, batch=batch)
    read = sum(
        line.launch.repeats * tensor.bytes
        for line in report.lines
        if line.launch.name.startswith("experts.")
        for tensor in line.launch.kernel.reads
        if tensor.role == "weight"
    )
    one = 3 * 4096 * 14336 * 2  # an expert's three matrices
    assert read / (32 * one) == pytest.approx(EXPERTS[batch], rel=1e-6)
    assert report.weight_bytes == pytest.approx(
        2 * (46702792704 - 32000 * 4096) - 32 * one * (8 - EXPERTS[batch]), rel=1e-6
    )


@pytest.mark.parametrize(("batch", "experts"), [(1, 8), (32, 163.3), (128, 251.6)])
def test_deepseek_v3_meets_8_163_and_252_of_its_experts(batch: int, experts: float) -> None:
    report = step("deepseek-v3", context=4096, batch=batch)
    weight = by_name(report, "experts.down").launch.kernel.reads[1]
    assert weight.shape[0] == pytest.approx(experts, abs=0.05)
    assert weight.shape[1:] == (7168, 2048)


def test_a_batch_of_one_reads_the_chosen_experts_to_the_byte() -> None:
    report = step("deepseek-v3", context=1, weight_dtype="bf16")
    assert report.weight_bytes == 2 * count(load("deepseek-v3")).active


def test_other_mixtures_meet_what_the_expectation_says() -> None:
    qwen = step("qwen3-30b-a3b", context=4096, batch=16)  # 128 experts, 8 of them a token
    assert by_name(qwen, "experts.down").launch.kernel.reads[1].shape[0] == pytest.approx(82.4, abs=0.05)
    lite = step("deepseek-v2-lite", context=4096)  # 64 experts, 6 of them a token, two shared
    routed, shared = (by_name(lite, f"{what}.down").launch.kernel.reads[1] for what in ("experts", "shared"))
    assert routed.shape == (6, 2048, 1408)
    assert shared.shape == (2048, 2 * 1408)
    # One FLOP a byte at 16 bits: a token's product with each weight that it reads.
    assert by_name(lite, "experts.down").bound.arithmetic_intensity == pytest.approx(1, rel=0.01)


def test_a_tied_table_counts_once_as_the_head() -> None:
    """Llama 3.2 1B: 1,235,814,400 parameters, the 128256 x 2048 table among them: 2.47 GFLOP a token."""
    layer = Layers(16, GroupedAttention(32, 8, 64), (GatedMlp(8192),))
    model = Model("one", "One", 2048, 128256, True, (layer,))
    assert count(model).active == 1235814400
    report = step(model, context=1)
    norms = 33 * 2048
    attention = 16 * 32 * 4 * 64
    assert report.whole.work.flops == 2 * (1235814400 - norms) + attention
    assert report.whole.work.flops == pytest.approx(2.47e9, rel=0.001)


def test_elementwise_work_grows_with_tokens_and_the_mlp_s_own_width() -> None:
    report = step("llama3-8b", seq=100)
    kernel = by_name(report, "mlp.silu*mul").launch.kernel
    assert [t.shape for t in (*kernel.reads, *kernel.writes)] == [(100, 14336)] * 3
    assert kernel.vector_flops == 3 * 100 * 14336


def test_a_step_grows_evenly_with_its_context_so_that_the_mean_step_is_the_middle_one() -> None:
    first, middle, last = (step("llama3-8b", context=n).whole.time_s for n in (1000, 3000, 5000))
    assert (first + last) / 2 == pytest.approx(middle, rel=1e-12)


@pytest.mark.parametrize(
    ("impl", "total"), [("flash", 12079595520), ("standard", 699274362880)], ids=["flash", "standard"]
)
def test_attention_of_a_70b_prefill_moves_what_the_attention_command_says(impl: str, total: int) -> None:
    """80 layers of Q, K, V and O; standard writes and reads S and P of 64 x 4096^2 elements besides."""
    report = step("llama3-70b", seq=4096, impl=impl)
    moved = sum(line.work.traffic_bytes for line in report.lines if line.launch.kind == "attention")
    assert moved == total == getattr(memwall.attention("llama3-70b", seq=4096), impl).traffic_bytes


def test_flash_of_llama2_7b_moves_queries_keys_values_and_results_once() -> None:
    """Four tensors of 32 heads x 4096 x 128; standard, four passes over 32 x 4096^2 scores besides."""
    flash, standard = (step("llama2-7b", seq=4096, impl=impl) for impl in ("flash", "standard"))
    layer = by_name(flash, "attention").launch.kernel
    assert sum(tensor.bytes for tensor in (*layer.reads, *layer.writes)) == 4 * 33554432
    moved = sum(line.work.traffic_bytes for line in standard.lines if line.launch.kind == "attention")
    assert moved == 32 * 4 * (33554432 + 2 * 32 * 4096**2)


def test_the_embedding_is_looked_up_and_not_multiplied_with() -> None:
    line = by_name(step("llama3-8b", seq=100), "embedding")
    assert line.work.flops == 0
    assert line.work.traffic_bytes == 100 * (8 + 2 * 4096 + 2 * 4096)  # ids, rows in, rows out


def test_weights_of_four_bits_are_computed_in_sixteen() -> None:
    report = step("llama3-8b", context=4096, weight_dtype="int4-g128")
    plain = step("llama3-8b", context=4096)
    linear = 32 * (2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14336)
    # 4 bits, and 16 of scale a group of 128; head and norms stay at 16 bits.
    assert plain.weight_bytes - report.weight_bytes == linear * 2 - linear * (4 + 16 / 128) / 8
    assert list(report.whole.work.matrix_flops) == ["bf16"]
    gemm = by_name(report, "mlp.down").launch.kernel
    assert [t.dtype.name for t in (*gemm.reads, *gemm.writes)] == ["bf16", "int4-g128", "bf16"]
    assert gemm.reads[1].bytes == 4096 * 14336 // 2 + 4096 * 14336 // 128 * 2


def test_fp8_computes_the_linear_layers_and_nothing_else() -> None:
    report = step("mixtral-8x7b", context=4096, batch=8, dtype="fp8")
    engines = {
        line.launch.name: line.launch.kernel.compute for line in report.lines if line.work.matrix_flops
    }
    narrow = {name for name, engine in engines.items() if engine == "fp8"}
    assert narrow == {"attention.qkv", "attention.output", "experts.gate_up", "experts.down"}
    assert {engine for name, engine in engines.items() if name not in narrow} == {"bf16"}
    gemm = by_name(report, "attention.qkv").launch.kernel
    assert gemm.reads[0].dtype.name == "fp8"
    assert gemm.writes[0].dtype.name == "bf16"
    norm = by_name(report, "residual+norm").launch.kernel  # the sum stays, its norm is what is narrow
    assert [t.dtype.name for t in norm.writes] == ["bf16", "fp8"]


def test_an_eager_pass_converts_to_fp8_in_kernels_of_their_own() -> None:
    fused, eager = (step("llama3-8b", context=4096, dtype="fp8", eager=e) for e in (False, True))
    converted = [line for line in eager.lines if line.launch.name == "quantise"]
    assert sum(line.launch.repeats for line in converted) == 32 * 4  # two norms, attention, silu*mul
    assert not [line for line in fused.lines if line.launch.name == "quantise"]
    assert fused.whole.work.traffic_bytes < eager.whole.work.traffic_bytes


def test_an_fp8_cache_is_half_of_a_16_bit_one_and_changes_no_weights() -> None:
    wide, narrow = (step("llama3-8b", context=4096, kv_dtype=kv) for kv in (None, "fp8"))
    assert narrow.read_bytes("cache") * 2 == wide.read_bytes("cache")
    assert narrow.written_bytes("cache") * 2 == wide.written_bytes("cache")
    assert narrow.weight_bytes == wide.weight_bytes


def test_throughput_is_of_the_batch_and_of_one_user() -> None:
    report = step("llama3-8b", context=4096, batch=16)
    assert report.tokens_per_s == pytest.approx(16 / report.whole.time_s)
    assert report.tokens_per_s_per_user == pytest.approx(1 / report.whole.time_s)
    prefill = step("llama3-8b", seq=512, batch=4)
    assert prefill.tokens_per_s == pytest.approx(2048 / prefill.whole.time_s)


def test_windows_limit_what_a_step_reads() -> None:
    report = step("gemma2-27b", context=10000)
    token = 2 * 16 * 128 * 2  # K and V of a layer
    assert report.read_bytes("cache") == token * (23 * 10000 + 23 * 4096)


def test_latent_attention_is_absorbed_where_that_is_faster() -> None:
    decode = step("deepseek-v3", context=4096, batch=8)
    assert decode.setting.absorbed
    assert decode.read_bytes("cache") == 8 * 4096 * 61 * 576 * 2
    prefill = step("deepseek-v3", seq=4096)
    assert not prefill.setting.absorbed
    attention = by_name(prefill, "attention").work.flops
    assert attention == 61 * 128 * (4096 * 4097 // 2) * 2 * (192 + 128)


# --- the other route: the inventory and closed forms ------------------------------------------------------


def attention_flops(model: Model, batch: int, seq_q: int, seq_kv: int, absorbed: bool = False) -> int:
    """Two FLOPs a pair, head and element of key and value; pairs added up query by query."""
    total = 0
    for group in model.layers:
        kind = group.attention
        if kind is None:
            continue
        window, indexed = kind.window or seq_kv, 0
        seen = [position + 1 for position in range(seq_kv - seq_q, seq_kv)]
        if isinstance(kind, LatentAttention) and kind.index_heads:
            window = min(window, kind.index_topk)
            indexed = 2 * batch * sum(seen) * kind.index_heads * kind.index_head_dim
        pairs = sum(min(keys, window) for keys in seen)
        elements = kind.head_dim + kind.head_dim_v
        if absorbed and isinstance(kind, LatentAttention):
            elements = 2 * kind.kv_lora_rank + kind.qk_rope_head_dim
        total += group.repeats * (2 * batch * kind.heads * pairs * elements + indexed)
    return total


PASSES: dict[str, dict[str, Any]] = {
    "decode": {"context": 777},
    "decode, batch 5": {"context": 300, "batch": 5},
    "prefill": {"seq": 96, "batch": 2},
}


@pytest.mark.parametrize("eager", [False, True], ids=["fused", "eager"])
@pytest.mark.parametrize("kind", PASSES)
@pytest.mark.parametrize("name", NAMES)
def test_kernels_add_up_to_closed_forms(name: str, kind: str, eager: bool) -> None:
    shape = PASSES[kind]
    model, batch = load(name), shape.get("batch", 1)
    seq = shape.get("seq", 1)
    report = step(model, eager=eager, **shape)
    rows, heads = batch * seq, batch
    products = sum(
        2 * item.active_parameters * rows
        for item in language_items(model)
        if item.weight.role in ("linear", "router")
    )
    products += 2 * model.vocab_size * model.hidden_size * heads
    by_kernel = sum(
        line.launch.repeats * line.launch.kernel.matrix_flops
        for line in report.lines
        if line.launch.kind in MATRIX_KINDS
    )
    assert by_kernel == products
    length = shape.get("context", seq)
    expected = attention_flops(model, batch, seq, length, report.setting.absorbed)
    assert sum(line.work.flops for line in report.lines if line.launch.kind == "attention") == expected
    recurrences = sum(
        line.launch.repeats * line.launch.kernel.matrix_flops
        for line in report.lines
        if line.launch.kind == "recurrence"
    )
    assert report.whole.work.flops == products + expected + recurrences
    fractions = 2 * sum(line.launch.repeats for line in report.lines)  # of experts, rounded up to a byte
    assert report.weight_bytes == pytest.approx(inventory_bytes(model, rows), rel=0, abs=fractions)


def inventory_bytes(model: Model, tokens: int) -> float:
    """Every weight once as stored, experts as far as they are met; of the embedding only a tied head."""
    total, storage = 0.0, storage_of(model)
    for item in language_items(model):
        weight = item.weight
        if weight.role == "table" or (weight.role == "embedding" and not model.tied_embeddings):
            continue
        met = 1.0
        if weight.used is not None:
            met = expected_distinct(weight.copies, weight.used, tokens) / weight.copies
        total += item_bytes(item, storage) * met
    return total


@pytest.mark.parametrize("shape", PASSES.values(), ids=PASSES)
@pytest.mark.parametrize("name", ["llama3-8b", "llama3-70b", "mistral-7b"])
def test_an_eager_pass_moves_the_intermediates_besides(name: str, shape: dict[str, Any]) -> None:
    model, batch = load(name), shape.get("batch", 1)
    [group] = model.layers
    kind, [mlp] = group.attention, group.mlps
    assert isinstance(kind, GroupedAttention)
    assert isinstance(mlp, GatedMlp)
    rows = batch * shape.get("seq", 1)
    hidden, width = model.hidden_size, mlp.width
    queries, keys = kind.heads * kind.head_dim, kind.kv_heads * kind.head_dim
    layer = (
        2 * hidden  # the residual stream, read back by the two norms
        + 3 * hidden  # their results, read by three products and not one, by two and not one
        + 8 * queries + 8 * keys  # rope's steps
        + 2 * keys  # turned keys, written and read back for the cache
        + 2 * width  # silu(gate)
    )  # fmt: skip
    table = 4 * kind.head_dim  # cos and sin, for K again
    logits = 2 * 4 * model.vocab_size * batch  # widened to fp32, written and read
    expected = rows * group.repeats * (2 * layer + table) + logits
    fused, eager = (step(model, eager=e, **shape) for e in (False, True))
    assert eager.whole.work.traffic_bytes - fused.whole.work.traffic_bytes == expected
    assert fused.saved_bytes == eager.saved_bytes == expected
    assert eager.whole.work.matrix_flops == fused.whole.work.matrix_flops


def test_merged_projections_read_their_input_once_in_an_eager_pass_too() -> None:
    apart, merged = (step("llama3-8b", seq=100, eager=True, merged=m) for m in (False, True))
    # QKV read one input and not three, gate and up one and not two; 2 bytes an element.
    saved = 32 * 3 * 100 * 4096 * 2
    assert apart.whole.work.traffic_bytes - merged.whole.work.traffic_bytes == saved
    names = {line.launch.name for line in merged.lines}
    assert {"attention.qkv", "mlp.gate_up", "mlp.silu", "mlp.mul", "residual", "norm"} <= names
    fused, told = step("llama3-8b", seq=100), step("llama3-8b", seq=100, merged=True)
    assert [line.launch for line in told.lines] == [line.launch for line in fused.lines]
    assert told.saved_bytes == merged.saved_bytes == fused.saved_bytes - saved


@pytest.mark.parametrize("name", NAMES)
def test_fusing_never_adds_traffic_and_keeps_products(name: str) -> None:
    for shape in PASSES.values():
        fused, eager = (step(name, eager=e, **shape) for e in (False, True))
        assert fused.whole.work.traffic_bytes < eager.whole.work.traffic_bytes
        assert fused.whole.work.matrix_flops == eager.whole.work.matrix_flops
        assert fused.weight_bytes == eager.weight_bytes
        assert len(fused.lines) < len(eager.lines)


@pytest.mark.parametrize("name", NAMES)
def test_the_pass_is_the_sum_of_its_kernels(name: str) -> None:
    report = step(name, context=500, batch=3)
    assert report.whole.work.traffic_bytes == pytest.approx(
        sum(line.work.traffic_bytes for line in report.lines), rel=1e-12
    )
    assert report.kernels_bound_time_s >= report.whole.time_s * (1 - 1e-12)
    kept = ("cache", "state")
    accounted = report.weight_bytes + report.read_bytes(*kept) + report.written_bytes(*kept)
    assert accounted + report.activation_bytes == pytest.approx(report.whole.work.traffic_bytes, abs=2)


# --- what must hold for any shape -------------------------------------------------------------------------

any_model = st.sampled_from(["llama3-8b", "gemma2-27b", "mixtral-8x7b", "deepseek-v3", "gpt-oss-120b"])


def check_more_is_more(less: StepReport, more: StepReport) -> None:
    before, after = less.whole.work, more.whole.work
    assert after.flops >= before.flops
    assert after.read_bytes >= before.read_bytes
    assert after.written_bytes >= before.written_bytes
    slack = 1 + 1e-12
    assert more.whole.time_s * slack >= less.whole.time_s
    assert more.kernels_bound_time_s * slack >= less.kernels_bound_time_s


@given(any_model, st.integers(1, 600), st.integers(1, 200), st.integers(1, 20000), st.booleans())
@QUICK
def test_more_sequences_cost_no_less(name: str, batch: int, more: int, context: int, eager: bool) -> None:
    less, whole = (step(name, context=context, batch=b, eager=eager) for b in (batch, batch + more))
    check_more_is_more(less, whole)
    assert whole.tokens_per_s >= less.tokens_per_s * (1 - 1e-9)


@given(any_model, st.integers(1, 64), st.integers(1, 20000), st.integers(1, 20000))
@QUICK
def test_more_context_costs_no_less(name: str, batch: int, context: int, more: int) -> None:
    check_more_is_more(*(step(name, context=n, batch=batch) for n in (context + 1, context + 1 + more)))


@given(any_model, st.integers(1, 8), st.integers(1, 20000), st.integers(1, 20000))
@QUICK
def test_more_prompt_costs_no_less(name: str, batch: int, seq: int, more: int) -> None:
    check_more_is_more(*(step(name, seq=n, batch=batch) for n in (seq, seq + more)))


@given(any_model, st.integers(1, 4000), st.integers(1, 4000))
@QUICK
def test_a_prompt_in_two_parts_computes_the_same_attention(name: str, first: int, second: int) -> None:
    """The triangle of a prompt is that of its first part and the rest's rows, whatever the windows."""
    if name == "deepseek-v3":  # absorbed or not, the second part has other FLOPs
        return
    parts = [step(name, seq=first), step(name, phase="prefill", seq=second, context=first + second)]
    whole = step(name, seq=first + second)
    flops: Callable[[StepReport], int] = lambda report: sum(  # noqa: E731
        line.work.flops for line in report.lines if line.launch.kind == "attention"
    )
    assert flops(parts[0]) + flops(parts[1]) == flops(whole)


# --- refusals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({}, "which pass"),
        ({"phase": "decode"}, "decode needs --context"),
        ({"phase": "prefill"}, "prefill needs --seq"),
        ({"phase": "train", "seq": 8}, "prefill or decode, not 'train'"),
        ({"phase": "decode", "context": 8, "seq": 8}, "--seq is a prompt's"),
        ({"phase": "prefill", "seq": 8, "context": 4}, "counts a cached prefix"),
        ({"context": 8, "impl": "flesh"}, "no implementation 'flesh'"),
    ],
)
def test_a_pass_that_cannot_be_is_refused(how: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        step("llama3-8b", **how)


def test_a_device_without_the_format_is_refused() -> None:
    with pytest.raises(UnsupportedDtype, match="no bf16 matrix path"):
        step("llama3-8b", gpu="v100", context=8)
    assert step("llama3-8b", gpu="v100", context=8, dtype="fp16").whole.time_s > 0
    with pytest.raises(NotAvailable, match="no engine computes in int4-g128"):
        step("llama3-8b", context=8, dtype="int4-g128")


def test_narrow_layers_on_a_device_without_bf16_leave_the_rest_in_fp16() -> None:
    assert "bf16" not in load_gpu("t4").dtypes()
    report = step("llama3-8b", gpu="t4", context=8, dtype="int8")
    assert set(report.whole.work.matrix_flops) == {"int8", "fp16"}
