"""Capacity: what a pool holds, found one by one; budgets, levers, and the command."""

from __future__ import annotations

import json

import pytest
from capacity_models import GEMMA_3_27B, QWEN3_5_9B, grouped, keeping
from hypothesis import given, settings
from hypothesis import strategies as st

from memwall.cli import run
from memwall.dtypes import find
from memwall.errors import NotAvailable, UnsupportedDtype, UsageError
from memwall.hardware import load as load_gpu
from memwall.memory.activations import activation_bytes
from memwall.memory.budget import Budget, total_memory
from memwall.memory.sequences import Footprint, Pool, footprint, waste
from memwall.models.attentions import GroupedAttention, LatentAttention
from memwall.models.cache import Kept, state_bytes_per_sequence
from memwall.models.load import load
from memwall.models.recurrences import GatedDelta
from memwall.models.storage import storage_of, weight_bytes
from memwall.models.weights import Weight, largest_share
from memwall.parallel.layout import shared_sizes
from memwall.reports.capacity import capacity
from memwall.units import parse_size

GIB = 2**30
QUICK = settings(max_examples=300, deadline=None, derandomize=True)

FOOTPRINTS = st.builds(
    Footprint,
    caches=st.lists(
        st.builds(Kept, st.just(1), st.integers(1, 9), st.none() | st.integers(1, 30)), min_size=1, max_size=3
    ).map(tuple),
    indexer_bytes_per_token=st.integers(0, 3),
    state_bytes=st.integers(0, 50),
    source_bytes=st.integers(0, 20),
)
POOLS = st.builds(Pool, st.integers(0, 3000), st.integers(1, 8), FOOTPRINTS)


def held_one_by_one(pool: Pool, context: int) -> tuple[int, int]:
    """Sequences of `context` tokens and tokens in all, taking a block at a time while there is room."""
    full = -(-context // pool.block) * pool.block
    left, sequences = pool.budget_bytes, 0
    while pool.footprint.bytes(full, pool.block) <= left:
        left -= pool.footprint.bytes(full, pool.block)
        sequences += 1
    last = 0
    while last < full and pool.footprint.bytes(last + pool.block, pool.block) <= left:
        last += pool.block
    return sequences, sequences * full + last


@given(POOLS, st.integers(1, 60))
@QUICK
def test_a_pool_holds_what_is_held_block_by_block(pool: Pool, context: int) -> None:
    assert (pool.max_sequences(context), pool.max_tokens(context)) == held_one_by_one(pool, context)


@given(POOLS, st.integers(1, 4))
@QUICK
def test_the_longest_context_fits_and_one_block_more_does_not(pool: Pool, batch: int) -> None:
    longest = pool.longest_context(batch)
    if longest is None:  # windows and states alone: any length takes as much as a very long one
        assert pool.footprint.growth_bytes_per_token == 0
        assert batch * pool.paged_bytes(10**6) <= pool.budget_bytes
        return
    assert not longest or batch * pool.paged_bytes(longest) <= pool.budget_bytes
    assert batch * pool.paged_bytes(longest + pool.block) > pool.budget_bytes


@given(FOOTPRINTS, st.integers(1, 60), st.integers(1, 8))
@QUICK
def test_waste_is_the_mean_over_lengths_one_by_one(kept: Footprint, context: int, block: int) -> None:
    found, lengths = waste(kept, context, block), range(1, context + 1)
    contiguous = sum(kept.bytes(context) - kept.bytes(n) for n in lengths) / context
    paged = sum(kept.bytes(n, block) - kept.bytes(n) for n in lengths) / context
    # Reserved whole, a sequence holds its windows and states from the start; a window that no block divides
    # is charged to the next whole one.
    assert found.contiguous_bytes == pytest.approx(contiguous)
    windows = [cache.window for cache in kept.caches if cache.window is not None]
    if all(window % block == 0 or window >= context for window in windows):
        assert found.paged_bytes == pytest.approx(paged)


def test_without_windows_tokens_do_not_depend_on_the_context() -> None:
    pool = Pool(10 * GIB, 16, footprint(load("llama3-8b"), find("bf16")))
    assert {pool.max_tokens(context) for context in (1, 100, 4096, 10**6)} == {10 * GIB // 2**21 * 16}


def test_with_windows_long_sequences_hold_more_tokens_in_all() -> None:
    pool = Pool(40 * GIB, 16, footprint(GEMMA_3_27B, find("bf16")))
    short, long = pool.max_tokens(1024), pool.max_tokens(131072)
    assert short == 40 * GIB // (496 * 2**10 * 16) * 16
    assert (long or 0) > 5 * (short or 0)


def test_windows_alone_set_no_limit_to_the_context() -> None:
    report = capacity(keeping((2, GroupedAttention(8, 8, 64, window=128))), kv_memory="1GiB", context=4096)
    assert report.longest_context is None
    assert report.kv_bytes_per_token == 0
    assert report.max_sequences == GIB // (2 * 2048 * 128)


def test_an_indexer_s_keys_are_counted_on_every_gpu() -> None:
    kind = LatentAttention(64, 2048, 512, 192, 64, 256, index_heads=32, index_head_dim=128, index_topk=2048)
    report = capacity(keeping((78, kind)), kv_memory="10GiB", context=4096, tp=8)
    assert report.kv_bytes_per_token == 78 * (512 + 64) * 2 + 78 * 128 * 2


def test_what_an_encoder_has_read_is_constant() -> None:
    heads = GroupedAttention(20, 20, 64)
    group = keeping((32, heads)).layers[0]._replace(cross=heads)
    whisper = keeping((32, heads))._replace(layers=(group,), encoder=(group._replace(cross=None),))
    silent, heard = (
        capacity(whisper, kv_memory="1GiB", context=448, source_tokens=n, tp=2) for n in (0, 1500)
    )
    each = 32 * 20 * 64 * 2 * 2 // 2
    assert silent.kv_bytes_per_sequence == 448 * each
    assert heard.kv_bytes_per_sequence == (448 + 1500) * each
    assert heard.pool.footprint.constant_bytes == 1500 * each


def test_heads_are_split_while_there_are_any() -> None:
    assert [largest_share(12 * 64, 12, gpus) for gpus in (1, 2, 8, 12, 24)] == [768, 384, 128, 64, 64]
    model = grouped(1, 12, 12, 64)
    sizes = [footprint(model, find("bf16"), tp).growth_bytes_per_token for tp in (1, 2, 8, 24)]
    assert sizes == [3072, 1536, 512, 256]  # on eight GPUs the fullest has two heads of twelve


def test_states_are_split_by_their_heads() -> None:
    whole = state_bytes_per_sequence(QWEN3_5_9B)
    assert whole == 24 * (32 * 128 * 128 + 3 * 8192) * 4
    assert [state_bytes_per_sequence(QWEN3_5_9B, tp) for tp in (2, 16, 64)] == [
        whole // 2,
        whole // 16,
        whole // 16,
    ]
    assert GatedDelta(16, 32, 128, 128).state_shards == 16


def test_weights_of_each_gpu_by_hand() -> None:
    model, tp = load("llama3-70b"), 8
    a_layer = 2 * 8192 * 8192 + 2 * 8192 * 1024 + 3 * 8192 * 28672
    norms = 161 * 8192 * 2
    assert (
        weight_bytes(model, tensor_parallel=tp).total == (80 * a_layer + 2 * 128256 * 8192) * 2 // tp + norms
    )
    fp8 = weight_bytes(model, storage_of(model, "fp8"), tp).total
    assert fp8 == (80 * a_layer + 2 * 2 * 128256 * 8192) // tp + norms


def test_the_total_is_the_driver_s_else_the_label_s_assumed() -> None:
    assert (total_memory(load_gpu("h100")).value, total_memory(load_gpu("h100")).weak) == (84942979072, False)
    l4 = total_memory(load_gpu("l4"))
    assert (l4.value, l4.kind) == (int(24 * 2**30 * 0.99), "assumed")
    assert total_memory(load_gpu("trainium2")).value == int(96 * 2**30 * 0.99)
    changed = total_memory(load_gpu("h100", {"memory.capacity_gb": 94}))
    assert (changed.value, changed.kind) == (int(94 * 2**30 * 0.99), "assumed")
    exact = total_memory(load_gpu("h100", {"memory.capacity_driver_bytes": 10**11}))
    assert (exact.value, exact.kind) == (1e11, "assumed")


def test_a_budget_below_zero_is_what_is_missing() -> None:
    budget = Budget(100, 0.8, 90, 5)
    assert (budget.usable_bytes, budget.left_bytes, budget.shortfall_bytes(3)) == (80, -15, 18)
    assert budget.smallest_fraction(3) == 0.98
    assert Pool(budget.left_bytes, 16, footprint(GEMMA_3_27B, find("bf16"))).max_tokens(16) is None
    assert Budget(100, 0.8, 90, 5, cache_given_bytes=7).shortfall_bytes(3) == 0


def test_the_activation_estimate_by_hand() -> None:
    # Llama 3 8B: the residual and its norm, gate, up and their product; logits of 256 sequences
    assert activation_bytes(load("llama3-8b"), 29000) == 29000 * 2 * (2 * 4096 + 3 * 14336) + 256 * 128256 * 6
    # over two GPUs the MLP is split, the stream is not
    halved = 29000 * 2 * (2 * 4096 + 3 * 14336 // 2) + 256 * 128256 * 6
    assert activation_bytes(load("llama3-8b"), 29000, tensor_parallel=2) == halved
    # Mixtral: two experts of each token, which write their width three times and a copy of the token
    experts = 2 * (3 * 14336 + 4096)
    assert activation_bytes(load("mixtral-8x7b"), 100) == 100 * 2 * (2 * 4096 + experts) + 100 * 32000 * 6


def test_the_activation_estimate_is_near_what_two_servers_had_left() -> None:
    # 23.58 x 0.9 - 14.9888 - 0.35 - 2.89 GiB, asked for 29,000 tokens (vllm-project/vllm issue 10517)
    measured = 23.58 * 0.9 - 14.9888 - 0.35 - 2.89
    assert activation_bytes(load("llama3-8b"), 29000) / GIB == pytest.approx(measured, rel=0.05)
    # 1.26 GiB a GPU (issue 15815)
    assert 0.7 < activation_bytes(load("qwen2.5-32b"), tensor_parallel=2) / GIB / 1.26 < 1.3


def test_the_smallest_fraction_and_the_fewest_gpus_would_do() -> None:
    refused = capacity("llama3-70b", gpu="h100", context=4096, tp=2, memory_fraction=0.5)
    assert not refused.fits
    fraction = refused.budget.smallest_fraction(refused.cache_bytes) or 0
    again = capacity("llama3-70b", gpu="h100", context=4096, tp=2, memory_fraction=fraction + 1e-6)
    assert again.fits
    assert refused.fewest_gpus == 4
    assert capacity("llama3-70b", gpu="h100", context=4096, tp=4, memory_fraction=0.5).fits
    assert shared_sizes(grouped(1, 14, 2, 64), load_gpu("h100")) == [1, 2]
    assert shared_sizes(load("llama3-70b"), load_gpu("h100")) == [1, 2, 4, 8]  # a node has no more


def test_levers_free_what_they_say() -> None:
    report = capacity("llama3-70b", gpu="h100", context=4096, batch=2, tp=4)
    by_text = {lever.text: lever for lever in report.levers}
    assert by_text["fp8 or int8 KV cache"].freed_bytes == 2 * 4096 * 40960  # half of 80 KiB a token and GPU
    linear = 80 * (2 * 8192 * 8192 + 2 * 8192 * 1024 + 3 * 8192 * 28672) // 4
    assert by_text["fp8 weights"].freed_bytes == linear
    assert by_text["nvfp4 weights"].freed_bytes == linear * 2 - linear * 9 // 16
    assert by_text["on h200"].freed_bytes == 150109880320 - 84942979072
    assert all(lever.then.max_tokens or (report.max_tokens or 0) < 0 for lever in report.levers)


def test_without_a_context_the_longest_that_fits_is_taken() -> None:
    model = keeping((40, GroupedAttention(40, 8, 128)), context=131072)
    assert capacity(model, kv_memory="6.51GiB").question.context == 42656
    assert capacity(model, kv_memory="60GiB").question.context == 131072
    assert not capacity(model, kv_memory="6.51GiB", context=131072).fits


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("44.42GiB", round(44.42 * 2**30)),
        ("80GB", 80 * 10**9),
        ("80 gb", 80 * 10**9),
        ("5", 5 * 2**30),
        ("1.5", 3 * 2**29),
        ("512MiB", 2**29),
        ("512 Mi", 2**29),
        ("100B", 100),
        ("0", 0),
        ("2e1GB", 2 * 10**10),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text, "--memory") == size


@pytest.mark.parametrize("text", ["", "GB", "-5", "nan", "1e30GB", "5 XB", "five", "5GBB", "inf"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(UsageError, match="--memory must be a size"):
        parse_size(text, "--memory")


def test_a_compute_format_needs_its_engine_and_a_storage_format_does_not() -> None:
    with pytest.raises(UnsupportedDtype):
        capacity("llama3-8b", gpu="a100", dtype="fp8")
    with pytest.raises(NotAvailable, match="storage format"):
        capacity("llama3-8b", dtype="int4-g128")
    assert capacity("llama3-8b", gpu="a100", weight_dtype="fp8").fits
    assert capacity("llama3-8b", dtype="fp8").budget.weight_bytes < 8030261248 * 2
    with pytest.raises(NotAvailable, match="no latent"):
        capacity("llama3-8b", policy="mha")


KEYS = {
    *("fits", "usable_bytes", "weight_bytes", "kv_bytes_per_token", "kv_bytes_per_sequence"),
    *("max_tokens", "max_sequences", "blocks"),
}


def answered(command: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, object]]:
    code = run([*command.split(), "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_the_command_answers_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    command = (
        "capacity --model llama3-70b --gpu h100 --tp 8 --dtype fp8 --kv-dtype fp8 --context 4096 --reserve 5"
    )
    code, record = answered(command, capsys)
    assert code == 0
    assert record.keys() >= KEYS
    usable, weights = 84942979072, record["weight_bytes"]
    assert isinstance(weights, int)
    assert record["max_tokens"] == (usable - weights - 5 * GIB) // (20480 * 16) * 16
    assert record["kv_bytes_per_sequence"] == 4096 * 20480


def test_what_does_not_fit_is_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    code, record = answered("capacity --model llama3-70b --gpu h100 --context 4096", capsys)
    assert (code, record["fits"], record["max_tokens"], record["max_sequences"]) == (1, False, None, None)
    assert record["fewest_gpus"] == 2
    assert isinstance(record["shortfall_bytes"], int)
    assert record["shortfall_bytes"] > 59 * 10**9
    assert run(["capacity", "--model", "llama3-70b", "--gpu", "h100", "--context", "4096"]) == 1
    assert "does not fit: 59.38 GB (55.3 GiB) short" in capsys.readouterr().out


def test_of_several_gpus_one_that_holds_it_is_enough(capsys: pytest.CaptureFixture[str]) -> None:
    code, record = answered("capacity --model llama3-70b --gpu h100,b300 --context 4096", capsys)
    results = record["results"]
    assert isinstance(results, list)
    assert (code, [row["fits"] for row in results]) == (0, [False, True])
    assert run(["capacity", "--model", "llama3-70b", "--gpu", "v100,h100", "--context", "4096"]) == 1


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        ("--memory-fraction 0", 2),
        ("--memory-fraction 1.1", 2),
        ("--memory 0", 2),
        ("--memory 80XB", 2),
        ("--reserve -1", 2),
        ("--context 0", 2),
        ("--block 0", 2),
        ("--tp 0", 2),
        ("--policy windows", 2),
        ("--kv-dtype bf61", 2),
        ("--dtype nvfp4", 4),
        ("--reserve 0", 0),
        ("--memory 0.5", 1),
    ],
)
def test_exit_codes(flags: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"capacity --model llama3-8b --gpu h100 {flags}".split()) == code
    said = capsys.readouterr().err
    assert ("error: " in said) == (code > 1)


def test_by_default_an_encoder_has_read_as_many_tokens_as_the_context_or_as_it_has_positions_for() -> None:
    heads = GroupedAttention(20, 20, 64)
    group = keeping((32, heads)).layers[0]._replace(cross=heads)
    reader = keeping((32, heads))._replace(layers=(group,), encoder=(group._replace(cross=None),))
    each = 32 * 2 * 20 * 64 * 2
    even = capacity(reader, kv_memory="1GiB", context=448)
    assert even.kv_bytes_per_sequence == 2 * 448 * each
    assert "source tokens 448" in even.defaults
    table = Weight("encoder.embed_positions", (1500, 1024), "table")
    padded = capacity(reader._replace(extras=(table,)), kv_memory="1GiB", context=448)
    assert padded.kv_bytes_per_sequence == (448 + 1500) * each
    assert "source tokens 1500" in padded.defaults


def test_source_tokens_of_a_model_without_an_encoder_are_refused() -> None:
    with pytest.raises(UsageError, match="Leave out --source-tokens"):
        capacity("llama3-8b", context=448, source_tokens=7)
