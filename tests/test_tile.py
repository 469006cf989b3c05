"""Tiles: hand-worked traffic, shared memory and waves; the best tile by brute force; attention's tiles."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from memwall import hardware
from memwall.cli import run
from memwall.reports.attention_tile import attention_tile
from memwall.reports.tile import SIDES, cost, tile
from memwall.tiles import Product, Tiling

KIB = 1024
CUBE: dict[str, Any] = {"m": 4096, "n": 4096, "k": 4096}


def test_naive_and_tiled_by_hand() -> None:
    """The naive kernel loads 2 x 4096^3 elements; tiles of 128 load each operand 32 times."""
    report = tile("gemm", (128, 128, 64), gpu="h100", **CUBE)
    assert report.naive.read_bytes == 2 * 4096**3 * 2
    assert report.asked.no_reuse.read_bytes == 2 * 32 * 4096**2 * 2
    assert report.naive.read_bytes / report.asked.no_reuse.read_bytes == 128
    assert report.compulsory.total_bytes == 3 * 4096**2 * 2


def test_shared_memory_and_waves_by_hand() -> None:
    asked = tile("gemm", (128, 256, 64), gpu="h100", **CUBE).asked
    assert asked.stage_bytes == (128 + 256) * 64 * 2
    assert asked.stages == 227 * KIB // (48 * KIB)
    assert asked.sums_bytes == 128 * KIB
    assert (asked.tiles, asked.waves) == (512, 4)


def test_the_last_wave() -> None:
    report = tile("gemm", (128, 256, 64), gpu="h100", **CUBE)
    assert report.last_wave_share == (512 - 3 * 132) / 132
    assert report.wave_efficiency == 512 / (4 * 132)


def test_weights_in_few_bits_take_less_of_a_stage() -> None:
    whole = tile("gemm", gpu="h100", **CUBE).asked
    packed = tile("gemm", gpu="h100", weight_dtype="int4-g128", **CUBE).asked
    assert packed.stage_bytes == pytest.approx((128 * 2 + 256 * 4.125 / 8) * 64)
    assert packed.dram.read_bytes < whole.dram.read_bytes


@pytest.mark.parametrize("gpu", ["v100", "a100", "h100", "rtx-4090", "mi300x"])
def test_the_best_tile_moves_least_of_those_that_fit(gpu: str) -> None:
    report = tile("gemm", gpu=gpu, dtype="fp16", **CUBE)
    device, best = hardware.load(gpu), report.best
    assert best is not None
    assert best.stages >= 2
    registers = device.group("unit").get("registers_kib", 256) * KIB * 0.75
    for rows in SIDES:
        for cols in SIDES:
            product = Product(4096, 4096, 4096, 2, 2, 2)
            each = cost(product, Tiling.of(rows, cols), device, report.smem_limit_bytes)
            if each.stages >= 2 and each.sums_bytes <= registers:
                assert best.dram.total_bytes <= each.dram.total_bytes


@pytest.mark.parametrize(
    ("sides", "gpu", "dtype", "fits"),
    [
        ((512, 512, 64), "h100", "bf16", False),  # 1 MiB of sums
        ((256, 256, 64), "h100", "fp32", False),  # 256 KiB: every register there is
        ((192, 256, 64), "h100", "bf16", True),
        ((256, 256, 64), "b200", "bf16", True),  # all of tensor memory, which holds nothing else
        ((256, 512, 32), "b200", "bf16", False),
    ],
)
def test_sums_beyond_the_registers_do_not_fit(
    sides: tuple[int, int, int], gpu: str, dtype: str, fits: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tile("gemm", sides, gpu=gpu, dtype=dtype, **CUBE)
    assert report.asked.fits == fits
    assert report.best is None or report.best.fits
    name = "x".join(map(str, sides))
    line = f"tile --m 4096 --n 4096 --k 4096 --tile {name} --gpu {gpu} --dtype {dtype}"
    assert run(shlex.split(line)) == 0
    printed = capsys.readouterr().out
    assert name in printed
    assert ("it does not fit: its sums take" in printed) == (not fits)
    assert f"sums in {'tensor memory' if gpu == 'b200' else 'registers'}" in printed


def test_of_equal_traffic_the_best_keeps_more_units_busy() -> None:
    """All of 512 x 512 fits into L2, so that every tile reads it once: small ones fill the units."""
    best = tile("gemm", gpu="h100", m=512, n=512, k=4096).best
    assert best is not None
    assert (best.tiling.tile_m, best.tiling.tile_n, best.tiles) == (64, 64, 64)


def test_the_best_may_have_another_depth() -> None:
    """At 512 deep two stages of no tile fit; at 128 or less they do."""
    report = tile("gemm", (128, 128, 512), gpu="h100", **CUBE)
    assert report.best is not None
    assert report.best.tiling.tile_k in (32, 64, 128)
    assert report.best.stages >= 2


def test_many_products_are_added_up() -> None:
    one = tile("gemm", m=512, n=512, k=128).asked
    many = tile("batched_gemm", batch=64, m=512, n=512, k=128).asked
    assert many.tiles == 64 * one.tiles
    assert many.dram.total_bytes == 64 * one.dram.total_bytes


def test_attention_tiles_of_64_take_64_and_a_half_kib() -> None:
    """Q, K, V and O of 64 x 128 elements, 16 KiB each, and two statistics of 4 bytes a row."""
    yours = attention_tile((64, 64), gpu="h100", head_dim=128).tiles[0]
    assert yours.q_bytes == yours.k_bytes == yours.v_bytes == yours.o_bytes == 16 * KIB
    assert yours.total_bytes == 64.5 * KIB


def test_generations_have_their_own_tiles() -> None:
    report = attention_tile(gpu="h100", head_dim=128, causal=False)
    assert [(t.impl, t.block_q, t.block_kv) for t in report.tiles] == [
        ("fa1", 16, 256),
        ("fa2", 128, 64),
        ("fa3", 128, 176),
    ]
    assert all(report.stages(each) >= 1 for each in report.tiles)


def test_a_tile_that_does_not_fit_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shlex.split("tile --op attention --head-dim 256 --tile 256x256 --gpu t4 --dtype fp16")) == 0
    assert "does not fit" in capsys.readouterr().out
    assert run(shlex.split("tile --m 64 --n 64 --k 64 --tile 512x512x256 --gpu h100")) == 0
    assert "it does not fit" in capsys.readouterr().out


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    line = "tile --op gemm --m 4096 --n 4096 --k 4096 --tile 128x128x64 --gpu h100 --json"
    assert run(shlex.split(line)) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["naive_bytes"] == 2 * 4096**3 * 2 + 4096**2 * 2
    assert document["stages"] == 7
    assert document["best"]["dram_read_bytes"] <= document["dram_read_bytes"]
    assert run(shlex.split("tile --op attention --head-dim 128 --tile 64x64 --json")) == 0
    assert json.loads(capsys.readouterr().out)["tiles"]["yours"]["smem_bytes"] == 64.5 * KIB


@pytest.mark.parametrize("form", ["text", "csv", "markdown", "json"])
@pytest.mark.parametrize("line", ["tile --m 64 --n 64 --k 64", "tile --op attention --head-dim 64"])
def test_every_format(line: str, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*shlex.split(line), "--gpu", "h100,tpu-v5e", "--format", form]) == 0
    assert "tpu-v5e" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ("tile --m 64 --n 64", 2, "--k"),
        ("tile --m 64 --n 64 --k 64 --tile 64x64", 2, "128x128x64"),
        ("tile --m 64 --n 64 --k 64 --tile wide", 2, "--tile"),
        ("tile --m 64 --n 64 --k 64 --tile 0x64x64", 2, "--tile"),
        ("tile --m 64 --n 64 --k 64 --tile 0x1", 2, "Write it like --tile 128x128x64"),
        ("tile --op attention --head-dim 64 --tile 0x1", 2, "Write it like --tile 64x64"),
        ("tile --m 64 --n 64 --k 64 --tile 4096x64x64", 2, "1 to 1024"),
        ("tile --op attention --head-dim 128 --tile 64x64x64", 2, "64x64"),
        ("tile --op rmsnorm --m 64", 2, "gemm"),
        ("tile --op gemm --m 64 --n 64 --k 64 --causal", 2, "--causal"),
        ("tile --op gemm --m 64 --n 64 --k 64 --gpu tpu-v5e", 4, "file lacks"),
        ("tile --op gemn --m 64", 2, "gemm"),
    ],
)
def test_mistakes_are_answered(line: str, code: int, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shlex.split(line)) == code
    assert says in capsys.readouterr().err
