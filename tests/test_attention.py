"""Attention: the masks counted pair by pair, a model as its layers, standard beside flash."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memwall
from memwall.dtypes import precision
from memwall.errors import NotPublished, UnknownName, UnsupportedDtype, UsageError
from memwall.hardware import load
from memwall.models.attentions import LatentAttention
from memwall.models.load import load as load_model
from memwall.models.passes import Tokens, attention_layers, attention_program
from memwall.ops.attention import FLASH, attention, mla, needed_keys, visible_pairs
from memwall.program import fuse, kernel_work
from memwall.reports.attention import attention as report
from memwall.reports.roofline import roofline

QUICK = settings(max_examples=150, deadline=None, derandomize=True)
BF16 = precision("bf16")
H100 = load("h100")
BANDWIDTH = 3352.32e9  # bytes a second: 5120 bits x 5.238 Gbit/s / 8
PEAK = 989.4e12  # bf16 FLOP/s

LENGTHS = st.tuples(st.integers(1, 24), st.integers(0, 24)).map(lambda two: (two[0], sum(two)))
WINDOWS = st.none() | st.integers(1, 40)
SHAPES = st.fixed_dictionaries(
    {
        "kv_heads": st.integers(1, 4),
        "head_dim": st.integers(1, 16),
        "head_dim_v": st.integers(1, 16),
        "batch": st.integers(1, 4),
    }
)


def pairs_one_by_one(seq_q: int, seq_kv: int, window: int | None) -> list[tuple[int, int]]:
    """Query i stands at key seq_kv - seq_q + i, and sees itself and the window - 1 keys before."""
    seen = []
    for i in range(seq_q):
        position = seq_kv - seq_q + i
        seen += [(i, j) for j in range(seq_kv) if j <= position and (window is None or j > position - window)]
    return seen


@given(LENGTHS, WINDOWS)
@settings(max_examples=400, deadline=None, derandomize=True)
def test_visible_pairs_are_those_counted_one_by_one(lengths: tuple[int, int], window: int | None) -> None:
    assert visible_pairs(*lengths, window) == len(pairs_one_by_one(*lengths, window))


@given(LENGTHS, WINDOWS)
@settings(max_examples=400, deadline=None, derandomize=True)
def test_needed_keys_are_those_that_some_query_sees(lengths: tuple[int, int], window: int | None) -> None:
    assert needed_keys(*lengths, window) == len({j for _, j in pairs_one_by_one(*lengths, window)})


@pytest.mark.parametrize(
    ("seq_q", "seq_kv", "window", "pairs"),
    [
        (4096, 4096, None, 8390656),  # 4096 x 4097 / 2
        (1, 4096, None, 4096),
        (4096, 4096, 128, 516160),  # 128 x 129 / 2 + 128 x 3968
        (4096, 4096, 4096, 8390656),  # a window as long as the sequence hides nothing
        (2**20, 2**20, None, 549756338176),
        (1, 1, 1, 1),
        (1, 10**6, 128, 128),
    ],
)
def test_visible_pairs_at_full_size(seq_q: int, seq_kv: int, window: int | None, pairs: int) -> None:
    assert visible_pairs(seq_q, seq_kv, window) == pairs


@given(LENGTHS, WINDOWS, SHAPES, st.integers(1, 4))
@QUICK
def test_causal_flops_are_the_rows_added_up(
    lengths: tuple[int, int], window: int | None, shape: dict[str, int], group: int
) -> None:
    heads = shape["kv_heads"] * group
    program = attention(
        heads, seq_q=lengths[0], seq_kv=lengths[1], window=window, causal=True, precision=BF16, **shape
    )
    # each pair is head_dim multiplies and adds for its score, head_dim_v for its share of the output
    a_pair = 2 * shape["head_dim"] + 2 * shape["head_dim_v"]
    total = sum(a_pair for _ in pairs_one_by_one(*lengths, window)) * heads * shape["batch"]
    assert program.work.flops == total


@given(LENGTHS, st.booleans(), SHAPES, st.integers(1, 4), st.sampled_from(["bf16", "fp8", "fp32"]))
@QUICK
def test_flash_is_the_fused_standard_program(
    lengths: tuple[int, int], causal: bool, shape: dict[str, int], group: int, dtype: str
) -> None:
    heads, formats = shape["kv_heads"] * group, precision(dtype)
    both = {
        impl: attention(
            heads,
            seq_q=lengths[0],
            seq_kv=lengths[1],
            causal=causal,
            impl=impl,
            precision=formats,
            **shape,
        )
        for impl in ("standard", "flash")
    }
    fused = fuse(both["standard"]).work
    assert both["flash"].work.read_bytes == fused.read_bytes
    assert both["flash"].work.written_bytes == fused.written_bytes
    between = sum(t.bytes for t in both["standard"].intermediates)
    assert both["standard"].work.traffic_bytes == fused.traffic_bytes + 2 * between
    if not causal:
        assert both["flash"].work == fused


def test_standard_attention_s_traffic_is_that_of_its_three_kernels() -> None:
    program = attention(8, 64, 100, 300, 2, 64, 3, precision=BF16, impl="standard")
    assert [kernel.name for kernel in program.kernels] == ["QK^T", "softmax", "PV"]
    works = [kernel_work(kernel) for kernel in program.kernels]
    assert sum(w.traffic_bytes for w in works) == program.work.traffic_bytes
    assert sum(w.flops_by_engine["matrix"] for w in works) == program.work.flops


@pytest.mark.parametrize("impl", FLASH)
def test_every_flash_has_the_same_floor(impl: str) -> None:
    for op in (attention, mla):
        floors = [
            op(8, head_dim=64, head_dim_v=32, seq_q=4, seq_kv=9, impl=i, precision=BF16)
            for i in (impl, "flash")
        ]
        assert floors[0].work == floors[1].work


def test_one_query_needs_no_mask() -> None:
    masked, plain = (attention(8, 64, 1, 300, 8, 64, precision=BF16, causal=c).work for c in (True, False))
    assert masked == plain


def test_absorbed_latent_attention_reads_the_latent_once_for_all_heads() -> None:
    # 576 elements of 2 bytes a token and layer: 1152. DeepSeek-V2-Lite's 27 layers: 31104; V3's 61: 70272.
    few, many = (
        [mla(heads, seq_kv, precision=BF16).work.read_bytes for seq_kv in (1000, 1001)] for heads in (16, 128)
    )
    assert few[1] - few[0] == many[1] - many[0] == 1152
    assert (27 * 1152, 61 * 1152) == (31104, 70272)


# --- whole models -------------------------------------------------------------------------------------

# Prefill of 4096 tokens, batch 1, bf16, and bytes a token adds to the cache, by an independent program from
# the models' published config.json: flash bytes, standard bytes, FLOPs of whole squares, FLOPs of exact
# triangles, bytes of one more token once windows are full, and with every layer growing.
PREFILL = {
    "llama2-7b": (4294967296, 141733920768, 8796093022208, 4399120252928, 524288, 524288),
    "llama2-70b": (12079595520, 699274362880, 43980465111040, 21995601264640, 327680, 327680),
    "llama3-8b": (2684354560, 140123308032, 8796093022208, 4399120252928, 131072, 131072),
    "llama3-70b": (12079595520, 699274362880, 43980465111040, 21995601264640, 327680, 327680),
    "mistral-7b": (2684354560, 140123308032, 8796093022208, 4399120252928, 131072, 131072),
    "mixtral-8x7b": (2684354560, 140123308032, 8796093022208, 4399120252928, 131072, 131072),
    "qwen2.5-7b": (1879048192, 107105746944, 6734508720128, 3368076443648, 57344, 57344),
    "qwen3-32b": (9663676416, 559419490304, 35184372088832, 17596481011712, 262144, 262144),
    "gemma2-27b": (4630511616, 202199007232, 12644383719424, 6323735363584, 188416, 376832),
    "deepseek-v3": (40936407040, 1088908427264, 83837761617920, 41929114910720, 70272, 70272),
}


@pytest.mark.parametrize("name", PREFILL)
def test_a_model_s_prefill_is_what_an_independent_program_computed(name: str) -> None:
    flash_bytes, standard_bytes, full, triangles, *_ = PREFILL[name]
    causal = report(name, gpu=H100, seq=4096)
    assert causal.causal
    assert causal.flash.whole.work.traffic_bytes == flash_bytes
    assert causal.standard.whole.work.traffic_bytes == standard_bytes
    assert causal.flash.whole.work.flops == triangles
    assert causal.standard.whole.work.flops == full
    assert causal.traffic_reduction == pytest.approx(standard_bytes / flash_bytes)


@pytest.mark.parametrize("name", PREFILL)
def test_a_token_adds_to_the_cache_what_an_independent_program_computed(name: str) -> None:
    model = load_model(name)
    *_, growth, everything = PREFILL[name]
    layers = attention_layers(model)
    assert sum(each.repeats * each.attention.cached_elements * 2 for each in layers) == everything
    full = [each for each in layers if not each.attention.window]
    assert sum(each.repeats * each.attention.cached_elements * 2 for each in full) == growth


@pytest.mark.parametrize("name", PREFILL)
def test_decoding_one_token_more_reads_the_cache_that_it_added(name: str) -> None:
    # far beyond every window; Q and O do not depend on the cache's length
    before, after = (report(name, gpu=H100, seq_q=1, seq_kv=seq).flash.whole.work for seq in (20000, 20001))
    assert after.read_bytes - before.read_bytes == PREFILL[name][4]
    assert after.written_bytes == before.written_bytes


def test_llama3_70b_at_4096_moves_58_times_less_with_flash() -> None:
    result = report("llama3-70b", gpu=H100, seq=4096)
    # a layer: Q and O 2 x 64 x 4096 x 128 x 2 bytes, K and V 2 x 8 x 4096 x 128 x 2: 150994944
    assert result.flash.per_layer.work.traffic_bytes == 134217728 + 16777216
    # S and P, 64 x 4096^2 x 2 bytes each, both ways: 8589934592 more
    assert result.standard.per_layer.work.traffic_bytes == 150994944 + 8589934592
    assert result.flash.whole.work.traffic_bytes == 80 * 150994944 == 12079595520
    assert result.standard.whole.work.traffic_bytes == 699274362880
    assert result.traffic_reduction == pytest.approx(57.89, abs=0.005)  # 8740929536 / 150994944
    # one head of 64, with an eighth of its KV head: Q, O 1 MiB each, K, V 128 KiB each
    assert result.flash.per_head.work.traffic_bytes == 2 * 1048576 + 2 * 131072
    # 80 x 64 heads x 8390656 pairs x 512
    assert result.flash.whole.work.flops == 21995601264640
    assert result.flash.whole.regime == "compute-bound"
    assert result.flash.whole.time_s == pytest.approx(21995601264640 / PEAK)
    assert result.standard.whole.regime == "memory-bound"
    assert result.standard.whole.time_s == pytest.approx(699274362880 / BANDWIDTH)


@pytest.mark.parametrize("name", [*PREFILL, "gpt-oss-120b", "qwen2.5-72b", "llama3-405b"])
@pytest.mark.parametrize(
    "seq", [{"seq": 300}, {"seq_q": 1, "seq_kv": 9000}, {"seq_q": 5, "seq_kv": 700}], ids=str
)
def test_a_model_s_attention_is_its_layers_one_by_one(name: str, seq: dict[str, Any]) -> None:
    result = report(name, gpu=H100, batch=3, **seq)
    model = load_model(name)
    queries, keys = seq.get("seq_q", seq.get("seq", 0)), seq.get("seq_kv", seq.get("seq", 0))
    for impl, cost in (("flash", result.flash), ("standard", result.standard)):
        flops = traffic = 0
        for group in attention_layers(model):
            for _ in range(group.repeats):
                # with tokens in the cache, a latent is best met as it is, for the few queries here
                absorbed = isinstance(group.attention, LatentAttention) and queries < keys
                tokens = Tokens(3, queries, keys)
                one = attention_program(group.attention, tokens, BF16, True, impl, absorbed).work
                flops += one.flops
                traffic += one.traffic_bytes
        assert (cost.whole.work.flops, cost.whole.work.traffic_bytes) == (flops, traffic)
    assert result.layers == model.layer_count


def test_layers_of_a_kind_are_gathered_full_ones_first() -> None:
    kinds = attention_layers(load_model("gpt-oss-120b"))
    assert [(kind.repeats, kind.attention.window) for kind in kinds] == [(18, None), (18, 128)]
    assert [kind.repeats for kind in attention_layers(load_model("deepseek-v3"))] == [61]  # 3 dense + 58


def test_a_windowed_layer_reads_its_window_and_no_more() -> None:
    # gpt-oss: 18 layers read 8192 keys, 18 read 128, each 2 x 8 x 64 x 2 = 2048 bytes; Q and O 36 x 2 x 8192
    work = report("gpt-oss-120b", gpu=H100, seq_q=1, seq_kv=8192).flash.whole.work
    assert work.traffic_bytes == 18 * 2048 * (8192 + 128) + 36 * 2 * 8192
    # 64 heads x 4 x 64 FLOPs a key
    assert work.flops == 18 * 16384 * (8192 + 128)


def test_latent_attention_prefills_on_whole_heads_and_decodes_on_the_latent() -> None:
    kind = load_model("deepseek-v3").layers[0].attention
    assert isinstance(kind, LatentAttention)
    assert (kind.head_dim, kind.head_dim_v, kind.cached_elements) == (192, 128, 576)
    decode = attention_program(kind, Tokens(8, 1, 8192), BF16, True, "flash", absorbed=True).work
    # 2 b h S 1088 of a layer, and 1152 bytes a cached token
    assert decode.flops == 2 * 8 * 128 * 8192 * 1088
    assert decode.traffic_bytes == 8 * 8192 * 1152 + 8 * 128 * (576 + 512) * 2
    prefill = attention_program(kind, Tokens(1, 4096, 4096), BF16, True, "flash").work
    assert prefill.flops == 128 * 8390656 * 2 * (192 + 128)


def test_a_second_query_token_does_not_change_how_a_latent_is_met() -> None:
    one, two = (report("deepseek-v3", gpu=H100, seq_q=q, seq_kv=8192, batch=16) for q in (1, 2))
    assert one.kinds[0].absorbed
    assert two.kinds[0].absorbed
    assert one.flash.bound_time_s < two.flash.bound_time_s < 2.1 * one.flash.bound_time_s


@pytest.mark.parametrize(("queries", "absorbed"), [(4, True), (4096, False), (8192, False)])
def test_a_latent_is_met_in_the_form_that_takes_least_time(queries: int, absorbed: bool) -> None:
    # many queries share K and V of every head, at 640 FLOPs a pair and head instead of 2176
    result = report("deepseek-v3", gpu=H100, seq_q=queries, seq_kv=8192)
    assert result.kinds[0].absorbed is absorbed


def test_the_parts_of_a_cost_fit_together() -> None:
    result = report(heads=8, kv_heads=2, head_dim=64, seq=512, batch=3, gpu=H100)
    for cost in (result.standard, result.flash):
        assert cost.whole.work == cost.per_layer.work
        assert cost.per_head.work.times(8 * 3).traffic_bytes == pytest.approx(
            cost.per_layer.work.traffic_bytes
        )
        assert cost.per_head.work.times(8 * 3).flops == pytest.approx(cost.per_layer.work.flops)
        assert cost.kernels_bound_time_s >= cost.whole.time_s * (1 - 1e-12)
    assert result.flash.kernels_bound_time_s == pytest.approx(result.flash.whole.time_s)  # a single kernel


def test_kernels_in_turn_take_the_sum_of_their_own_bounds() -> None:
    result = report(heads=64, head_dim=128, seq=4096, gpu=H100)
    # S and P are 2^31 bytes each, Q, K, V and O 2^26; the outer two kernels move one of the former and two
    # of the latter, the softmax moves S and P: all are memory-bound
    parts = [(2**31 + 2 * 2**26), 2 * 2**31, (2**31 + 2 * 2**26)]
    flops = 2 * 64 * 4096**2 * 128
    assert parts[0] / BANDWIDTH > flops / PEAK
    assert result.standard.kernels_bound_time_s == pytest.approx(sum(parts) / BANDWIDTH)


def test_a_model_s_kernels_in_turn_are_those_of_every_layer() -> None:
    result = report("llama3-70b", gpu=H100, seq=4096)
    # a layer's standard kernels: QK^T moves Q, K and S; the softmax S and P; PV P, V and O: memory-bound
    score, query, cache = 2 * 64 * 4096**2, 2 * 64 * 4096 * 128, 2 * 8 * 4096 * 128
    layer = 4 * score + 2 * query + 2 * cache
    assert result.standard.kernels_bound_time_s == pytest.approx(80 * layer / BANDWIDTH)
    assert result.flash.kernels_bound_time_s == pytest.approx(21995601264640 / PEAK)


# --- what the user may leave out, and what is refused ---------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "causal"),
    [
        ({"seq": 256}, True),
        ({"seq": 1}, False),
        ({"seq_q": 1, "seq_kv": 4096}, False),
        ({"seq_q": 16, "seq_kv": 4096}, False),
        ({"seq_q": 16, "seq_kv": 4096, "window": 128}, True),
    ],
    ids=str,
)
def test_a_mask_is_assumed_for_a_square_and_for_a_window(shape: dict[str, Any], causal: bool) -> None:
    assert report(heads=8, head_dim=64, gpu=H100, **shape).causal is causal
    result = roofline("attention", heads=8, head_dim=64, gpu=H100, **shape)
    queries, keys = shape.get("seq_q", shape.get("seq", 0)), shape.get("seq_kv", shape.get("seq", 0))
    pairs = len(pairs_one_by_one(queries, keys, shape.get("window"))) if causal else queries * keys
    assert result.flops == 2 * 8 * pairs * 128


@pytest.mark.parametrize(
    ("lengths", "causal"),
    [({"seq": 64}, True), ({"seq_q": 4, "seq_kv": 64}, True), ({"seq_q": 1, "seq_kv": 64}, False)],
)
def test_a_model_s_prefill_is_causal_and_its_decode_has_no_mask(
    lengths: dict[str, Any], causal: bool
) -> None:
    assert report("llama3-8b", gpu=H100, **lengths).causal is causal


def test_causal_may_be_said() -> None:
    whole = report("llama3-8b", gpu=H100, seq=512, causal=False)
    assert whole.flash.whole.work.flops == 32 * 32 * 512 * 512 * 512  # layers, heads, pairs, 4 x 128
    assert not whole.causal


@pytest.mark.parametrize(
    ("call", "error", "says", "hint"),
    [
        (
            {"heads": 8, "head_dim": 64},
            UsageError,
            "attention needs --seq",
            "memwall roofline --op",
        ),
        ({"seq": 8}, UsageError, "attention needs --heads, --head-dim", "memwall roofline --op attention"),
        ({"model": "llama3-70b"}, UsageError, "attention needs --seq", "--model llama3-70b --seq 8192"),
        ({"model": "llama3-70b", "batch": 4}, UsageError, "attention needs --seq", "--seq 8192"),
        (
            {"model": "llama3-70b", "seq": 8, "heads": 4},
            UsageError,
            "--heads comes from the model",
            "Leave it out",
        ),
        ({"model": "llama3-70b", "seq": 0}, UsageError, "seq must be a whole number", "memwall roofline"),
        ({"model": "llama3-70b", "seq_q": 9, "seq_kv": 8}, UsageError, "9 queries are more", "--seq-kv 9"),
        (
            {"model": "gemma2-27b", "seq": 8, "causal": False},
            UsageError,
            "needs a causal mask",
            "--non-causal",
        ),
        (
            {"heads": 8, "head_dim": 64, "seq": 8, "window": 4, "causal": False},
            UsageError,
            "a window of 4",
            "--non-causal",
        ),
        (
            {"heads": 8, "kv_heads": 3, "head_dim": 64, "seq": 8},
            UsageError,
            "3 KV heads do not",
            "--kv-heads 2",
        ),
        ({"model": "lama3-70b", "seq": 8}, UnknownName, "unknown model 'lama3-70b'", "llama3-70b"),
        ({"model": "llama3-70b", "seq": 8, "gpu": "h1000"}, UnknownName, "unknown GPU 'h1000'", "h100"),
        (
            {"model": "llama3-70b", "seq": 8, "dtype": "nvfp4"},
            UnsupportedDtype,
            "no nvfp4 matrix path",
            "--dtype fp8",
        ),
        (
            {"model": "llama3-70b", "seq": 8, "dtype": "fp6"},
            UnsupportedDtype,
            "no fp6 matrix path",
            "--dtype fp8",
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
def test_what_cannot_be_is_refused_with_what_to_do(
    call: dict[str, Any], error: type[Exception], says: str, hint: str
) -> None:
    with pytest.raises(error) as refused:
        report(**call)
    assert isinstance(refused.value, memwall.MemwallError)
    assert says in refused.value.message
    assert hint in refused.value.hint
    assert not isinstance(refused.value, NotPublished)


def test_a_window_without_a_mask_is_refused_by_the_roofline_too() -> None:
    with pytest.raises(UsageError, match="needs a causal mask") as refused:
        roofline("attention", gpu=H100, heads=8, head_dim=64, seq=8, window=4, causal=False)
    assert refused.value.hint == "Leave out --non-causal"
