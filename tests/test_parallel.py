"""A pass on several GPUs: numbers by hand, the shards against the whole, and what must hold always."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memwall.catalog import MODELS
from memwall.cli import run
from memwall.errors import UsageError
from memwall.hardware import load as load_gpu
from memwall.models.load import load
from memwall.models.model import Model
from memwall.models.storage import weight_bytes
from memwall.parallel.layout import Layout, check, splits_heads
from memwall.parallel.memory import weights_on_a_gpu
from memwall.parallel.shard import shard
from memwall.render.step_record import all_notes
from memwall.reports.step import StepReport, step

MODEL_OF: dict[str, Model] = {name: load(name) for name in MODELS.names()}
NAMES = [name for name, model in MODEL_OF.items() if model.decodes and not model.encoder]
MIXTURES = ["mixtral-8x7b", "deepseek-v3"]
QUICK = settings(max_examples=25, deadline=None, derandomize=True)
BANDWIDTH = 3352.32e9  # H100, bytes a second


def decode(name: str, **options: object) -> StepReport:
    return step(MODEL_OF[name], phase="decode", **{"context": 4096, "gpu": "h100", **options})  # type: ignore[arg-type]


def degrees(name: str) -> Iterator[int]:
    return (tp for tp in (2, 4, 8) if splits_heads(MODEL_OF[name], tp))


def test_an_eighth_of_70b_by_hand() -> None:
    """By hand: 70,553,706,496 parameters without the table, an eighth, and the norms whole, 2 bytes each;
    an eighth of a cache of 80 layers x 4096 tokens x 2 x 8 x 128 x 2 bytes."""
    report = decode("llama3-70b", tp=8)
    norms = 161 * 8192
    weights = 2 * ((70_553_706_496 - 128_256 * 8192 - norms) // 8 + norms)
    cache = 80 * 4096 * 2 * 8 * 128 * 2 // 8
    assert report.weight_bytes == weights
    assert report.read_bytes("cache") == cache
    assert (weights + cache) / BANDWIDTH == pytest.approx(5.23e-3, rel=1e-3)
    assert 5.23e-3 <= report.bound_time_s <= 5.2401e-3


def test_two_all_reduces_a_layer() -> None:
    report = decode("llama3-70b", tp=8, batch=32)
    [layers] = [each for each in report.spread.exchanges if each.name.startswith("layers")]
    assert layers.repeats == 2 * 80
    assert layers.what.bytes == 32 * 8192 * 2
    assert {each.name for each in report.spread.exchanges} == {
        "embedding.all_reduce", "layers.all_reduce", "logits",
    }  # fmt: skip


def test_sequence_parallel_moves_the_same_bytes_and_norms_fewer_rows() -> None:
    plain = step("llama3-70b", tp=8, seq=4096, gpu="a100")
    cut = step("llama3-70b", tp=8, seq=4096, gpu="a100", sequence_parallel=True)
    assert cut.spread.bound_time_s == pytest.approx(plain.spread.bound_time_s)
    rows = [
        {line.launch.name: line.work.traffic_bytes for line in r.lines}["residual+norm"] for r in (plain, cut)
    ]
    assert 7.9 < rows[0] / rows[1] < 8  # the norm's weights stay whole
    assert cut.bound_time_s <= plain.bound_time_s


def test_an_estimate_is_in_line_with_engines() -> None:
    """Llama 3 70B, batch 1, 4096 tokens, 8 H100: 9.99 ms, the sum of kernels measured one by one, exchanges
    among them (aiconfigurator 0.12, its silicon mode); the bound is half of that."""
    report = decode("llama3-70b", tp=8)
    assert report.estimate is not None
    assert report.estimate.time_s == pytest.approx(9.99e-3, rel=0.1)
    assert report.estimate.time_s > 1.7 * report.bound_time_s


@pytest.mark.parametrize("name", NAMES)
def test_one_gpu_is_no_parallelism(name: str) -> None:
    plain, one = decode(name), decode(name, tp=1, pp=1, ep=1, dp=1, sequence_parallel=True)
    assert [line.launch for line in one.lines] == [line.launch for line in plain.lines]
    assert one.bound_time_s == plain.bound_time_s
    assert one.resident_bytes == plain.resident_bytes
    assert one.spread.exchanges == ()


@pytest.mark.parametrize("name", NAMES)
def test_shards_are_never_less_than_the_whole(name: str) -> None:
    whole = decode(name, batch=8)
    for tp in degrees(name):
        part = decode(name, batch=8, tp=tp)
        assert tp * part.whole.work.flops >= whole.whole.work.flops
        assert part.whole.work.flops <= whole.whole.work.flops
        assert tp * part.weight_bytes >= whole.weight_bytes
        assert part.read_bytes("cache") <= whole.read_bytes("cache") <= tp * part.read_bytes("cache")
        assert part.resident_weight_bytes == weight_bytes(MODEL_OF[name], part.storage, tp).total


def test_shards_of_a_model_that_splits_evenly_are_the_whole() -> None:
    whole, part = decode("llama3-70b", batch=16), decode("llama3-70b", batch=16, tp=8)
    matrix = [r.whole.work.matrix_flops["bf16"] for r in (whole, part)]
    assert 8 * matrix[1] == matrix[0]
    assert 8 * part.read_bytes("cache") == whole.read_bytes("cache")
    assert 8 * part.read_bytes("weight") == whole.read_bytes("weight")


@pytest.mark.parametrize("name", NAMES)
def test_the_parts_weights_are_the_shards_of_the_wholes(name: str) -> None:
    """Two routes: the weights that a part of a model lists, and the shards that each whole weight has."""
    model = MODEL_OF[name]._replace(storage=None, checkpoint_bytes=None, towers=())
    for tp in degrees(name):
        listed = weight_bytes(shard(model, Layout(tp=tp))).total
        cut = weight_bytes(model, tensor_parallel=tp).total
        assert listed == pytest.approx(cut, rel=0.002)


@pytest.mark.parametrize("name", MIXTURES)
def test_spread_experts_add_up(name: str) -> None:
    whole, part = decode(name, batch=64, gpu="h200"), decode(name, batch=64, gpu="h200", tp=8, ep=8)
    cut = decode(name, batch=64, gpu="h200", tp=8)

    def experts(report: StepReport) -> tuple[float, float]:
        lines = [line for line in report.lines if line.launch.name in ("experts.gate_up", "experts.down")]
        return sum(line.work.flops for line in lines), sum(line.work.read_bytes for line in lines)

    assert 8 * experts(part)[0] == pytest.approx(experts(whole)[0]) == pytest.approx(8 * experts(cut)[0])
    assert experts(part)[1] == pytest.approx(experts(cut)[1], rel=0.02)
    assert weights_on_a_gpu(MODEL_OF[name], None, Layout(tp=8, ep=8)) == pytest.approx(
        weights_on_a_gpu(MODEL_OF[name], None, Layout(tp=8)), rel=0.01
    )


def test_a_token_reaches_every_gpu_that_its_experts_are_cut_between() -> None:
    """By hand: 32 tokens of 7168 fp8 numbers; 8 experts are in 2 (1 - 1/2^8) of 2 groups of 8 GPUs."""
    report = decode("deepseek-v3", gpu="h200", dp=16, ep=2, batch=512)
    sent = {each.name: each.what.bytes for each in report.spread.exchanges}
    assert sent["experts.dispatch"] == round(32 * 7168 * 2 * (1 - 1 / 2**8) * 8)
    assert sent["experts.combine"] == 2 * sent["experts.dispatch"]  # in 16 bits
    spread = decode("deepseek-v3", gpu="h200", dp=16, ep=16, batch=512)
    assert spread.spread.bound_time_s < report.spread.bound_time_s


def test_replicas_share_the_experts_and_send_tokens_to_them() -> None:
    report = decode("deepseek-v3", gpu="h200", dp=8, ep=8, batch=256)
    names = [each.name for each in report.spread.exchanges]
    assert names == ["experts.dispatch", "experts.combine"]
    dispatch = report.spread.exchanges[0]
    reached = 8 * (1 - (7 / 8) ** 8)  # GPUs of eight that have one of a token's eight experts
    assert dispatch.what.bytes == round(32 * reached * 7168)  # 8 bits there, 16 back
    assert report.spread.exchanges[1].what.bytes == round(32 * reached * 7168 * 2)
    assert dispatch.repeats == 58
    busy = decode("deepseek-v3", gpu="h200", dp=8, ep=8, batch=256, imbalance=1.5)
    assert busy.spread.bound_time_s == pytest.approx(1.5 * report.spread.bound_time_s, rel=1e-4)
    assert busy.whole.work.flops > report.whole.work.flops


def test_a_latent_is_on_every_gpu() -> None:
    whole, part = decode("deepseek-v3", gpu="h200"), decode("deepseek-v3", gpu="h200", tp=8)
    assert part.read_bytes("cache") == whole.read_bytes("cache")
    assert part.resident_cache_bytes == whole.resident_cache_bytes


def test_heads_of_k_and_v_split_until_they_run_out() -> None:
    eight, sixteen = decode("llama3-70b", tp=8, gpu="gb200"), decode("llama3-70b", tp=16, gpu="gb200")
    assert eight.read_bytes("cache") == sixteen.read_bytes("cache")
    assert sixteen.read_bytes("weight") < eight.read_bytes("weight")


def test_a_pipeline_waits_as_its_formula_says() -> None:
    prefill = step("llama3-70b", gpu="h100", tp=4, pp=2, seq=4096, batch=4)
    assert prefill.spread.bubble == pytest.approx((2 - 1) / (2 + 2 - 1))
    one = step("llama3-70b", gpu="h100", tp=4, seq=4096, batch=2)
    matrix = {t.limit: t.time_s for t in one.whole.terms}["matrix"]
    assert prefill.bound_time_s == pytest.approx(matrix * 3 / 2)  # m + p - 1 stage times of half a pass each
    alone = decode("llama3-70b", tp=4, pp=2)
    assert alone.spread.bubble == 0.5
    assert alone.whole.time_s == decode("llama3-70b", tp=4).whole.time_s
    assert alone.resident_weight_bytes < 0.51 * decode("llama3-70b", tp=4).resident_weight_bytes


@QUICK
@given(st.sampled_from(["llama3-70b", "mixtral-8x7b"]), st.integers(1, 256), st.sampled_from([2, 4, 8]))
def test_a_faster_link_never_takes_more_time(name: str, batch: int, tp: int) -> None:
    times = []
    for rate in (31.5, 450, 900):
        device = load_gpu("h100", {"links.nvlink.gb_per_s_per_direction": rate})
        report = decode(name, gpu=device, batch=batch, tp=tp)
        known = report.spread.estimate_time_s
        assert known is not None
        assert report.spread.bound_time_s <= known
        times.append((report.bound_time_s, report.kernels_bound_time_s, known))
    assert times == sorted(times, reverse=True)


def test_a_slow_link_limits_a_prefill() -> None:
    report = step("llama3-70b", gpu="l40s", tp=8, seq=8192)
    assert report.whole.limited_by == "link"
    assert report.whole.regime == "link-bound"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--model llama3-70b --tp 3", "--tp 2 or --tp 4"),
        ("--model llama3-70b --tp 128", "Try --tp 8"),
        ("--model llama3-70b --tp 16", "--tp 8 --pp 2"),
        ("--model deepseek-v3 --gpu h200 --tp 8 --ep 3", "--ep 2 or --ep 4"),
        ("--model llama3-70b --tp 8 --ep 8", "no experts"),
        ("--model llama3-8b --pp 33", "--pp 32"),
        ("--model deepseek-v3 --tp 8 --ep 8 --imbalance 0", "--imbalance"),
        ("--model llama3-8b --imbalance 2", "experts that are spread over GPUs, and here none are"),
        ("--model deepseek-v3 --tp 8 --imbalance 1.2", "spread the experts with --ep"),
        ("--model llama3-8b --tp 0", "--tp"),
    ],
)
def test_a_layout_that_cannot_be_names_the_nearest(
    capsys: pytest.CaptureFixture[str], options: str, says: str
) -> None:
    assert run(f"step {options} --phase decode --context 4096".split()) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("dp", "batch", "says"),
    [
        (4, 1, ["a batch of 1 over 4 replicas: 1 with 1, 3 with 0"]),
        (4, 6, ["a batch of 6 over 4 replicas: 2 with 2, 2 with 1"]),
        (4, 8, []),
        (1, 7, []),
    ],
)
def test_uneven_replicas_are_remarked_on(dp: int, batch: int, says: list[str]) -> None:
    assert Layout(dp=dp).uneven(batch) == says
    report = decode("llama3-8b", dp=dp, batch=batch)
    assert [note for note in all_notes(report) if "replicas" in note] == says


def test_heads_that_do_not_split_are_refused() -> None:
    with pytest.raises(UsageError, match="64, 8 KV"):
        check(Layout(tp=48), MODEL_OF["llama3-70b"], load_gpu("h100"))


def test_the_json_has_what_is_promised(capsys: pytest.CaptureFixture[str]) -> None:
    command = "step --model llama3-70b --tp 8 --phase decode --batch 32 --context 4096 --json"
    assert run(command.split()) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["tp"], document["gpus"]) == (8, 8)
    assert document["tokens_per_s_per_gpu"] == pytest.approx(document["tokens_per_s"] / 8)
    parts = sum(each["repeats"] * each["bound_time_s"] for each in document["exchanges"])
    assert parts == pytest.approx(document["communication_bound_time_s"])
    assert document["communication_bound_time_s"] < document["communication_estimate_time_s"]
    kernels = sum(each["repeats"] * each["bound_time_s"] for each in document["kernels"])
    assert document["kernels_bound_time_s"] == pytest.approx(kernels + parts)
    assert document["fits"] is True


def test_streaming_weights_from_the_host_takes_what_the_link_takes() -> None:
    """80 GiB over 63 GB/s; large copies reach 0.88 of that (55.4 GB/s measured on PCIe 5)."""
    report = decode("llama3-70b", offload_weights="80GiB")
    assert report.bound_time_s == pytest.approx(80 * 2**30 / 63e9)
    assert report.estimate is not None
    assert report.estimate.time_s == pytest.approx(80 * 2**30 / (0.88 * 63e9))
    assert report.whole.limited_by == "link"
    assert report.fits is True
    whole = decode("llama3-70b")
    assert whole.fits is False
    assert whole.resident_bytes - report.resident_bytes == 80 * 2**30


def test_a_little_from_the_host_costs_nothing_while_kernels_run() -> None:
    report, plain = decode("llama3-8b", offload_weights="100MiB"), decode("llama3-8b")
    assert report.bound_time_s == plain.bound_time_s
    assert report.estimate == plain.estimate


def test_grace_is_nearer_than_pcie() -> None:
    grace, server = (
        decode("llama3-70b", gpu="gh200", offload_cache="1GiB"),
        decode("llama3-70b", gpu="h200", offload_cache="1GiB"),
    )
    assert grace.spread.host[0].link.kind == "nvlink_c2c"
    assert server.spread.host[0].link.rate.value == 63e9
    eight = decode("llama3-70b", gpu="a100", tp=8, offload_weights="1GiB")
    assert eight.spread.host[0].link.rate.value == 31.5e9  # 409.6 GB/s of host memory are enough for eight
