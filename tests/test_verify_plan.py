"""What the verifier plans, predicts and refuses; no GPU needed."""

from __future__ import annotations

import pytest

from memwall import hardware
from memwall.errors import NotAvailable, UsageError
from memwall.verify.case import IRREGULAR, Trial, irregular, trial_of
from memwall.verify.kernels import blocks
from memwall.verify.kernels.table import KERNELS
from memwall.verify.plan import requested_plan, standard_plan
from memwall.verify.predict import CAUSAL, INSIDE_L2, STREAM, TILED, predict

H200 = hardware.load("h200")
PLAN = standard_plan()


def attention(
    seq_q: int, seq_kv: int, *, heads: int = 32, causal: bool = False, impl: str = "flash"
) -> Trial:
    dims = {
        "heads": heads, "head_dim": 128, "seq_q": seq_q, "seq_kv": seq_kv,
        "kv_heads": heads, "head_dim_v": 128, "batch": 1,
    }  # fmt: skip
    return Trial(f"triton.{impl}", "attention", dims, causal=causal, impl=impl)


def test_the_standard_run_has_every_kernel_and_no_trial_twice() -> None:
    assert {trial.kernel for trial in PLAN} == set(KERNELS)
    assert len({trial.name for trial in PLAN}) == len(PLAN)


@pytest.mark.parametrize("trial", PLAN, ids=lambda trial: trial.name)
def test_every_trial_has_a_prediction(trial: Trial) -> None:
    prediction = predict(trial, H200)
    assert prediction.dram.read_bytes >= prediction.work.read_bytes  # compulsory is the least
    assert prediction.bound_time_s > 0 or prediction.in_l2
    assert trial_of(trial.record) == trial


@pytest.mark.parametrize("trial", PLAN, ids=lambda trial: trial.name)
def test_the_check_is_small_and_irregular(trial: Trial) -> None:
    small = irregular(trial)
    assert small.dims.keys() == trial.dims.keys()
    assert all(size <= trial.dims[name] for name, size in small.dims.items())
    fixed = {**IRREGULAR, **({"seq_kv": 1031} if trial.dims.get("seq_q") == 1 else {})}
    assert all(small.dims[name] == min(trial.dims[name], fixed.get(name, trial.dims[name]))
               for name in small.dims if name not in ("batch", "heads", "kv_heads"))  # fmt: skip
    if trial.op == "attention":
        dims = small.dims
        assert dims["heads"] // dims["kv_heads"] == trial.dims["heads"] // trial.dims["kv_heads"]
        assert dims["seq_q"] <= dims["seq_kv"]


def test_bands_by_hand() -> None:
    assert predict(attention(8192, 8192, causal=True), H200).band == CAUSAL
    assert predict(attention(8192, 8192), H200).band == STREAM
    assert predict(attention(1, 32768, heads=64), H200).band == STREAM
    assert predict(attention(512, 512), H200).band == INSIDE_L2  # 16.8 MB of 2 x 62.9
    assert predict(attention(4096, 4096, causal=True, impl="standard"), H200).band == STREAM
    cube = Trial("triton.gemm", "gemm", {"m": 8192, "n": 8192, "k": 8192})
    assert predict(cube, H200).band == TILED
    assert predict(cube._replace(dims={"m": 1024, "n": 1024, "k": 1024}), H200).band == INSIDE_L2


def test_standard_attention_shows_its_scores_and_flash_does_not() -> None:
    tensor, scores = 32 * 4096 * 128 * 2, 32 * 4096 * 4096 * 2
    standard = predict(attention(4096, 4096, impl="standard"), H200).dram
    assert (standard.read_bytes, standard.written_bytes) == (3 * tensor + 2 * scores, tensor + 2 * scores)
    flash = predict(attention(4096, 4096), H200).dram
    assert (flash.read_bytes, flash.written_bytes) == (3 * tensor, tensor)


@pytest.mark.parametrize(("step", "each_bytes"), [(1, 4), (2, 8), (8, 32), (32, 64), (999999, 64)])
def test_lone_elements_cost_what_memory_hands_over(step: int, each_bytes: int) -> None:
    trial = Trial("cupy.access", "access", {"count": 1000, "step": step, "elements": 2**20}, "fp32")
    assert predict(trial, H200).dram.read_bytes == 1000 * each_bytes


def test_what_stays_in_l2_is_not_bound_by_memory() -> None:
    trial = Trial("cupy.copy", "copy", {"rows": 512, "cols": 4096}, "fp32", warm=True)
    assert predict(trial, H200).bound_time_s == 0
    assert predict(trial._replace(warm=False), H200).bound_time_s > 0


def test_a_requested_plan_names_kernels_by_their_implementation() -> None:
    plan = requested_plan("attention", {"heads": 32, "seq": 4096}, impls=["standard", "flash"], causal=True)
    assert [trial.kernel for trial in plan] == ["triton.standard", "triton.flash"]
    assert plan[0].dims["head_dim"] == 128  # the default of the verifier
    assert all(trial.causal for trial in plan)
    decode = requested_plan("attention", {"heads": 8, "seq_q": 1, "seq_kv": 4096}, impls=["flash"])
    assert decode[0].kernel == "triton.decode"
    gemv = requested_plan("gemv", {"m": 64, "k": 64})
    assert [(trial.kernel, trial.dtype) for trial in gemv] == [
        ("triton.gemv", "bf16"), ("cupy.gemv", "fp32"), ("library.gemv", "bf16"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("op", "shape", "settings", "error", "says"),
    [
        ("gemv", {"m": 8, "k": 8}, {"impls": ["tirton"]}, UsageError, "Did you mean triton"),
        ("silu_mul", {"rows": 8, "cols": 8}, {}, NotAvailable, "no kernel for silu_mul"),
        ("gemv", {"m": 8, "k": 8}, {"dtype": "fp8"}, NotAvailable, "computes in fp8"),
        ("gemm", {"m": 8, "n": 8, "k": 8}, {"dtype": "fp32", "impls": ["triton"]}, NotAvailable, "in fp32"),
        ("gemm", {"m": 8}, {}, UsageError, "needs"),
        ("attention", {"heads": 8, "seq": 64, "head_dim": 80}, {}, NotAvailable, "head_dim"),
        ("attention", {"heads": 8, "seq": 64, "window": 16}, {}, NotAvailable, "window"),
        ("batched_gemm", {"batch": 2, "m": 8, "n": 8, "k": 8}, {}, NotAvailable, "GEMV"),
        ("copy", {"rows": 8, "cols": 7}, {"impls": ["cupy"]}, NotAvailable, "multiple of 4"),
        ("rmsnorm", {"rows": 8, "cols": 8}, {"impls": ["cupy"]}, UsageError, "Choose from"),
    ],
)
def test_what_the_kernels_cannot_take_is_said_before_anything_runs(
    op: str, shape: dict[str, int | None], settings: dict[str, object], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        requested_plan(op, shape, **settings)  # type: ignore[arg-type]


def test_decode_splits_leave_no_split_without_keys() -> None:
    for kv_heads, seq_kv in ((1, 1), (1, 63), (8, 8192), (32, 32768), (256, 100), (3, 1031)):
        splits, span = blocks.decode_splits(kv_heads, seq_kv, units=132)
        assert (splits - 1) * span < seq_kv <= splits * span


def test_gemv_splits_its_sum_only_where_rows_are_few() -> None:
    assert blocks.gemv_splits(row_blocks=512, k=8192, units=132) == 1
    assert blocks.gemv_splits(row_blocks=32, k=262144, units=132) > 1
    assert blocks.gemv_splits(row_blocks=1, k=64, units=132) == 1  # nothing to share
