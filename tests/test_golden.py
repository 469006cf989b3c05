"""What a person sees, byte for byte, for a dozen commands.

After a change that is meant to change what is printed, write the files anew and read the diff:

    MEMWALL_UPDATE_GOLDEN=1 pytest tests/test_golden.py
    git diff tests/golden
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from memwall.cli import run

FOLDER = Path(__file__).with_name("golden")
UPDATE = bool(os.environ.get("MEMWALL_UPDATE_GOLDEN"))

GOLDEN = {
    "roofline-gemv": "roofline --gpu h100 --op gemv",
    "roofline-gemv-json": "roofline --gpu h100 --op gemv --json",
    "roofline-gemm-fp8": "roofline --gpu h100 --op gemm --m 4096 --n 4096 --k 4096 --dtype fp8",
    "roofline-gemv-int4": "roofline --gpu h100 --op gemv --batch 4 --weight-dtype int4-g128",
    "roofline-attention-standard": (
        "roofline --gpu h100 --op attention --impl standard --heads 32 --kv-heads 8 --head-dim 128 --seq 4096"
    ),
    "roofline-counts": "roofline --gpu h100 --flops 4.2e12 --bytes 1.6e10",
    "roofline-counts-csv": "roofline --gpu h100 --flops 4.2e12 --bytes 1.6e10 --format csv",
    "roofline-what-if": "roofline --gpu h100 --op gemv --set memory.bandwidth_gb_per_s=4000",
    "roofline-two-gpus-markdown": "roofline --gpu h100,h200 --op gemv --format markdown",
    "attention-model": "attention --gpu h100 --model llama3-70b --seq 8192",
    "attention-model-json": "attention --gpu h100 --model llama3-70b --seq 8192 --json",
    "attention-windows": "attention --gpu h100 --model gemma2-27b --seq 16384",
    "attention-decode": "attention --gpu h100 --model llama3-70b --seq-q 1 --seq-kv 8192 --batch 16",
    "attention-shape": "attention --gpu h100 --heads 1 --head-dim 128 --seq 4096 --non-causal",
    "step-decode": "step --gpu h100 --model llama3-70b --phase decode --context 4096",
    "step-decode-eager": "step --gpu h100 --model llama3-8b --phase decode --context 4096 --batch 8 --eager",
    "step-prefill": "step --gpu h100 --model llama3-8b --phase prefill --seq 8192",
    "step-experts": "step --gpu b200 --model deepseek-v3 --context 4096 --batch 32 --dtype fp8",
    "step-states": "step --gpu h200 --model qwen3-next-80b-a3b --phase decode --context 32768 --batch 4",
    "step-several": "step --gpu h100,h200,v100 --model mixtral-8x7b --phase decode --context 4096 --batch 16",
    "step-experts-replicas": (
        "step --gpu h200 --model deepseek-v3 --dp 8 --ep 8 --phase decode --context 4096 --batch 256"
    ),
    "step-stages": "step --gpu h100 --model llama3-70b --tp 8 --pp 2 --phase prefill --seq 4096 --batch 4",
    "step-offload": "step --gpu h100 --model llama3-70b --context 4096 --offload-weights 80GiB",
    "collective-json": "collective all_reduce --gpu h100 --bytes 67108864 --gpus 8 --json",
    "collective-nodes": "collective all-gather --gpu h100 --bytes 2^28 --gpus 32 --nodes 4",
    "collective-several": "collective all_to_all --gpu a100,b200,l40s,mi300x,m1 --bytes 2^20",
    "node-list": "node",
    "node-rack": "node gb300-nvl72",
    "plan-experts": "plan --gpu h200 --model deepseek-v3 --context 8192 --prompt 2048 --tpot 40ms",
    "train-step-stages": "train-step --gpu h100 --model llama3-70b --gpus 64 --tp 4 --pp 4 --microbatches 16",
    "serve": "serve --gpu b200 --model llama3-8b --concurrency 32 --isl 2048 --osl 256",
    "cost": "cost --gpu h100 --model llama3-8b --price 2.50 --batch 32 --context 4096",
    "error-layout": "step --gpu h200 --model deepseek-v3 --tp 8 --ep 3 --context 4096",
    "step-json": "step --gpu h100 --model mistral-7b --phase decode --context 4096 --json",
    "capacity": "capacity --model llama3-70b --gpu h100 --tp 4 --context 8192 --memory-fraction 0.9",
    "capacity-short": "capacity --model llama3-70b --gpu h100 --context 4096",
    "capacity-windows": "capacity --model gemma2-27b --gpu h200 --context 16384 --batch 4",
    "capacity-latent": "capacity --model deepseek-v3 --kv-memory 20GiB --tp 8 --context 32768",
    "capacity-two-gpus": "capacity --model mixtral-8x7b --gpu l40s,h100 --weight-dtype fp8 --context 8192",
    "capacity-json": "capacity --model deepseek-v3 --gpu h200 --tp 8 --dtype fp8 --context 8192 --json",
    "quant": "quant --model llama3-70b --gpu h100",
    "quant-two-gpus": "quant --model mixtral-8x7b --gpu l40s,b200 --batch 4 --context 8192",
    "train-memory": "train-memory --model llama3-70b --gpus 64 --zero 3 --checkpointing full",
    "train-memory-short": "train-memory --model mixtral-8x7b --gpus 8 --tp 2 --pp 2 --zero 1 --gpu h100",
    "attention-generations": (
        "attention --impl all --gpu h200 --heads 32 --head-dim 128 --seq 4096 --non-causal"
    ),
    "roofline-levels": "roofline --gpu h200 --op gemm --m 4096 --n 4096 --k 4096 --levels",
    "hierarchy": "hierarchy --gpu h200",
    "tile-attention": "tile --op attention --head-dim 128 --tile 64x64 --gpu h100",
    "occupancy": "occupancy --gpu h100 --registers 64 --threads 256 --smem 64KiB",
    "banks": "banks --shape 32x32 --access column",
    "access": "access --pattern strided --stride 4 --element 4 --gpu h100",
    "fuse-mlp": "fuse mlp --tokens 4096 --hidden 4096 --width 14336 --gpu h100",
    "explain-gemm": "explain gemm --m 4096 --n 4096 --k 4096 --gpu h100",
    "crossover": "crossover --op gemv --gpu a100,h100,v100 --vary batch",
    "op-show-gemm": "op show gemm",
    "model-show": "model show llama3-70b",
    "model-show-json": "model show deepseek-v3 --json",
    "error-op": "roofline --op gem",
    "error-dtype": "roofline --op gemv --dtype bf61",
    "error-dimension": "roofline --op gemm --m 4k --n 8 --k 8",
    "error-missing": "roofline --op gemm --m 4096",
    "error-engine": "roofline --gpu h100 --op gemv --dtype nvfp4",
    "error-what-if": "roofline --gpu h100 --op gemv --set memory.bandwith_gb_per_s=4000",
    "error-flag": "roofline --gup h100 --op gemv",
    "error-file": "roofline --gpu nowhere.yaml --op gemv",
}


@pytest.mark.parametrize("name", GOLDEN)
def test_the_command_prints_what_it_printed_before(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for key, value in {"COLUMNS": "100", "NO_COLOR": "1", "MEMWALL_PATH": ""}.items():
        monkeypatch.setenv(key, value)
    monkeypatch.chdir(tmp_path)
    code = run(shlex.split(GOLDEN[name]))
    out, err = capsys.readouterr()
    printed = f"$ memwall {GOLDEN[name]}\n{out}{err}" + (f"exit code {code}\n" if code else "")
    path = FOLDER / f"{name}.txt"
    if UPDATE:
        FOLDER.mkdir(exist_ok=True)
        path.write_bytes(printed.encode())
    assert path.read_bytes().decode() == printed


def test_every_golden_file_has_its_command() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(GOLDEN)


def test_no_golden_file_names_a_place_on_a_machine() -> None:
    here = Path(__file__).resolve().parents[1]
    for path in FOLDER.iterdir():
        text = path.read_text(encoding="utf-8")
        assert str(here) not in text
        assert "/home/" not in text
        assert "\r" not in text
        assert "\x1b" not in text
