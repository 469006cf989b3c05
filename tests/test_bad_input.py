"""Every mistake is answered with one line of advice, the documented exit code, and nothing else.

One row a mistake. Each runs in an empty folder that holds the row's own files; a few run again
as real processes.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest

from memwall.catalog import HARDWARE
from memwall.cli import run

GPU = """\
name: my-gpu
title: My GPU
vendor: Mine
architecture: Own
segment: datacenter
year: 2026
status: available
matrix:
  peak_dense_tflops: {bf16: 100}
  source:
    - assumed: an example
vector:
  peak_tflops: {fp32: 10}
  source:
    - assumed: an example
memory:
  type: HBM3
  bandwidth_gb_per_s: 1000
  source:
    - assumed: an example
"""

MODEL = """\
name: my-model
title: My model
hidden_size: 4096
vocab_size: 32000
tied_embeddings: false
layers:
  - count: 32
    attention: {kind: grouped, heads: 32, kv_heads: 8, head_dim: 128}
    mlp: {kind: gated, width: 11008}
source:
  - assumed: an example
"""

GPU_FILE = "roofline --op gemv --gpu bad.yaml"
MODEL_FILE = "attention --seq 8192 --model bad.yaml"
LONG = "9" * 100_000
FOLDER = b"<folder>"


class Mistake(NamedTuple):
    """What is typed, what lies in the folder, and what must come back."""

    name: str
    line: str
    code: int
    words: tuple[str, ...]
    files: Mapping[str, str | bytes] = MappingProxyType({})
    needs: str = ""
    """A GPU of the catalogue that the row is about."""
    path: str = ""
    """MEMWALL_PATH."""

    @property
    def argv(self) -> list[str]:
        """The words typed, as a shell splits them."""
        return shlex.split(self.line)


def gpu(name: str, old: str, new: str, *words: str, code: int = 3) -> Mistake:
    """A GPU file that is right but for one replacement."""
    assert old in GPU, old
    return Mistake(f"gpu file, {name}", GPU_FILE, code, words, {"bad.yaml": GPU.replace(old, new, 1)})


def model(name: str, old: str, new: str, *words: str) -> Mistake:
    """A model file that is right but for one replacement."""
    assert old in MODEL, old
    return Mistake(f"model file, {name}", MODEL_FILE, 3, words, {"bad.yaml": MODEL.replace(old, new, 1)})


def gpu_text(name: str, text: str | bytes, *words: str) -> Mistake:
    """A GPU file of any content."""
    return Mistake(f"gpu file, {name}", GPU_FILE, 3, ("bad.yaml", *words), {"bad.yaml": text})


def model_text(name: str, text: str | bytes, *words: str) -> Mistake:
    """A model file of any content."""
    return Mistake(f"model file, {name}", MODEL_FILE, 3, ("bad.yaml", *words), {"bad.yaml": text})


def setting(name: str, change: str, *words: str) -> Mistake:
    """A what-if that cannot be."""
    return Mistake(f"set, {name}", f"roofline --op gemv --set '{change}'", 2, words)


def count(name: str, value: str, flag: str = "--m") -> Mistake:
    """A dimension that is not a whole number of at least one."""
    return Mistake(
        f"dimension, {name}",
        f"roofline --op gemm --n 8 --k 8 {flag} '{value}'",
        2,
        (flag, "whole number from 1 to 1e15", f"{flag} 4096"),
    )


def amount(name: str, flag: str, value: str) -> Mistake:
    """FLOPs or bytes that are not a finite number of at least zero."""
    other = "--bytes 1" if flag == "--flops" else "--flops 1"
    return Mistake(
        f"{flag}, {name}",
        f"roofline {other} {flag} '{value}'",
        2,
        (flag, "number from 0 to 1e30", f"{flag} 4.2e12"),
    )


NAMES = [
    Mistake("command", "rooflin", 2, ("'rooflin'", "roofline", "memwall --help")),
    Mistake("command, nothing near", "zzzz", 2, ("'zzzz'", "memwall --help")),
    Mistake("subcommand", "gpu lst", 2, ("'lst'", "Did you mean list?", "memwall gpu --help")),
    Mistake("flag", "roofline --gup h100", 2, ("'--gup'", "Did you mean --gpu?")),
    Mistake("flag, nothing near", "roofline --zzzz", 2, ("'--zzzz'", "memwall roofline --help")),
    Mistake("flag of the group", "--jsno", 2, ("'--jsno'", "memwall --help")),
    Mistake("flag of a subcommand", "gpu show h100 --yml", 2, ("'--yml'", "--yaml")),
    Mistake("flag without value", "roofline --op", 2, ("--op needs a value", "memwall roofline --help")),
    Mistake("value for a switch", "roofline --op gemv --json=1", 2, ("--json", "memwall roofline --help")),
    Mistake("format", "roofline --op gemv --format xml", 2, ("'xml'", "text, json, csv, markdown")),
    Mistake("format, near", "roofline --op gemv --format jsn", 2, ("'jsn'", "Did you mean json?")),
    Mistake("color", "roofline --op gemv --color purple", 2, ("'purple'", "auto, always, never")),
    Mistake("stray word", "roofline gemv", 2, ("gemv", "memwall roofline --gpu h100 --op gemv")),
    Mistake("no argument", "gpu show", 2, ("GPU", "memwall gpu")),
    Mistake("no op to show", "op show", 2, ("OP", "memwall op")),
    Mistake("empty argument", "gpu show ''", 2, ("GPU", "memwall gpu list")),
    Mistake("gpu", "roofline --op gemv --gpu h1000", 2, ("'h1000'", "h100", "memwall gpu list")),
    Mistake("gpu, nothing near", "roofline --op gemv --gpu zzzz", 2, ("'zzzz'", "memwall gpu list")),
    Mistake("gpu among several", "roofline --op gemv --gpu h100,h1000", 2, ("'h1000'", "h100")),
    Mistake(
        "gpu, other memory", "roofline --op gemv --gpu h100-40gb", 2, ("'h100-40gb'", "h100", "gpu list")
    ),
    Mistake("gpu, long", f"roofline --op gemv --gpu {'x' * 5000}", 2, ("5000 characters", "gpu list")),
    Mistake("gpu, empty", "roofline --op gemv --gpu ''", 2, ("--gpu names no GPU", "memwall gpu list")),
    Mistake("gpu, comma", "roofline --op gemv --gpu ,", 2, ("--gpu names no GPU", "memwall gpu list")),
    Mistake("gpu to show", "gpu show h1000", 2, ("'h1000'", "h100", "memwall gpu list")),
    Mistake("gpu to compare", "gpu compare h100 h1000", 2, ("'h1000'", "h100")),
    Mistake("vendor", "gpu list --vendor nvidea", 2, ("'nvidea'", "NVIDIA")),
    Mistake("op", "roofline --op gem", 2, ("'gem'", "gemm", "memwall op list")),
    Mistake("op, empty", "roofline --op ''", 2, ("''", "memwall op list")),
    Mistake("op to show", "op show atention", 2, ("'atention'", "attention")),
    Mistake("model", "attention --model lama3-70b --seq 1", 2, ("llama3-70b", "memwall model list")),
    Mistake("model, empty", "attention --model '' --seq 1", 2, ("--model", "memwall model list")),
    Mistake("model to show", "model show lama3-8b", 2, ("llama3-8b", "memwall model list")),
    Mistake("dtype", "roofline --op gemv --dtype bf61", 2, ("'bf61'", "Did you mean bf16")),
    Mistake("dtype, empty", "roofline --op gemv --dtype ''", 2, ("''", "bf16")),
    Mistake("weight dtype", "roofline --op gemv --weight-dtype int4g128", 2, ("'int4g128'", "int4-g128")),
    Mistake("kv dtype", "attention --model llama3-70b --seq 1 --kv-dtype nonsense", 2, ("'nonsense'", "fp8")),
    Mistake("out dtype", "roofline --op gemv --out-dtype f16", 2, ("'f16'", "fp16")),
    Mistake(
        "impl",
        "roofline --op attention --heads 8 --head-dim 64 --seq 8 --impl flsh",
        2,
        ("'flsh'", "flash, standard"),
    ),
    Mistake("impl of an op without", "roofline --op gemv --impl flash", 2, ("--impl", "op show gemv")),
    Mistake("mask of an op without", "roofline --op gemv --causal", 2, ("--causal", "op show gemv")),
]

SHAPES = [
    Mistake("no op", "roofline", 2, ("--op gemv", "--flops 4.2e12 --bytes 1.6e10")),
    Mistake("no op, but a shape", "roofline --m 8", 2, ("--op gemv",)),
    Mistake(
        "gemm without n and k", "roofline --op gemm --m 10", 2, ("--n, --k", "memwall roofline --op gemm")
    ),
    Mistake("gemv with m only", "roofline --op gemv --m 10", 2, ("--k", "memwall roofline --op gemv --m")),
    Mistake("attention without seq", "roofline --op attention --heads 8 --head-dim 64", 2, ("--seq",)),
    Mistake("attention without shape", "attention", 2, ("--heads", "--seq")),
    Mistake("model without seq", "attention --model llama3-70b", 2, ("--model llama3-70b --seq 8192",)),
    Mistake("foreign dimension", "roofline --op gemv --vocab 9", 2, ("--vocab", "--m, --k, --batch")),
    Mistake("foreign dimension of gemm", "roofline --op gemm --m 8 --n 8 --k 8 --seq 9", 2, ("--seq", "--m")),
    count("zero", "0"),
    count("negative", "-3"),
    count("fraction", "1.5"),
    count("nan", "NaN"),
    count("inf", "inf"),
    count("minus inf", "-inf"),
    count("beyond floats", "1e400"),
    count("beyond counts", "99999999999999999"),
    count("100000 digits", LONG),
    count("empty", ""),
    count("suffix", "4k"),
    count("word", "many"),
    count("huge power", "2^9999999"),
    count("huge power of a huge base", f"{'9' * 40}^99"),
    count("negative power", "2^-1"),
    count("zero to a negative power", "0^-1"),
    count("tower", "2^3^4"),
    count("hexadecimal", "0x10"),
    count("list", "1,2"),
    count("another flag", "0", "--batch"),
    *(
        amount(name, flag, value)
        for flag in ("--flops", "--bytes")
        for name, value in [
            ("negative", "-1"),
            ("nan", "nan"),
            ("inf", "inf"),
            ("beyond floats", "1e400"),
            ("100000 digits", LONG),
            ("empty", ""),
            ("suffix", "4T"),
            ("huge power", "2^9999999"),
            ("negative power", "2^-1"),
        ]
    ),
    Mistake(
        "a part of a flop", "roofline --flops 0.5 --bytes 1", 2, ("--flops must be 0 or at least 1", "4.2e12")
    ),
    Mistake("a part of a byte", "roofline --flops 1 --bytes 1e-300", 2, ("--bytes must be 0 or at least 1",)),
    Mistake("flops alone", "roofline --flops 1", 2, ("bytes", "--flops 4.2e12 --bytes 1.6e10")),
    Mistake("bytes alone", "roofline --bytes 1", 2, ("FLOPs", "--flops 4.2e12 --bytes 1.6e10")),
    Mistake("op and flops", "roofline --op gemv --flops 1", 2, ("--flops", "leave out --op")),
    Mistake("no work", "roofline --flops 0 --bytes 0", 2, ("--flops 4.2e12 --bytes 1.6e10",)),
    Mistake(
        "heads not divisible",
        "roofline --op attention --heads 10 --kv-heads 4 --head-dim 64 --seq 8",
        2,
        ("4 KV heads", "10 heads", "--kv-heads 2"),
    ),
    Mistake(
        "more queries than keys",
        "attention --heads 8 --head-dim 64 --seq-q 20 --seq-kv 10",
        2,
        ("20 queries", "10 keys", "--seq-kv 20"),
    ),
    Mistake(
        "more queries than keys of a model",
        "attention --model llama3-8b --seq-q 9 --seq-kv 8",
        2,
        ("--seq-kv 9",),
    ),
    Mistake(
        "window without mask",
        "roofline --op attention --heads 8 --head-dim 64 --seq 20 --window 10 --non-causal",
        2,
        ("window", "causal mask", "Leave out --non-causal"),
    ),
    Mistake(
        "window of a model without mask",
        "attention --model gemma2-27b --seq 8192 --non-causal",
        2,
        ("window", "--non-causal"),
    ),
    Mistake(
        "rope of odd heads",
        "roofline --op rope --rows 8 --heads 8 --head-dim 7",
        2,
        ("even", "--head-dim 128"),
    ),
    Mistake("heads and a model", "attention --model llama3-70b --seq 8 --heads 8", 2, ("--heads", "--model")),
    Mistake("no engine", "roofline --op gemv --dtype int4-g128", 4, ("--weight-dtype int4-g128",)),
    Mistake(
        "no engine, bare flops", "roofline --flops 1 --bytes 1 --dtype q8_0", 4, ("q8_0", "--dtype bf16")
    ),
    Mistake("nvfp4 on Hopper", "roofline --gpu h100 --op gemv --dtype nvfp4", 4, ("nvfp4", "--dtype fp8")),
    Mistake("bf16 on Volta", "roofline --gpu v100 --op gemv", 4, ("bf16", "--dtype fp16"), needs="v100"),
    Mistake(
        "fp8 on Ampere", "roofline --gpu a100 --op gemv --dtype fp8", 4, ("fp8", "--dtype bf16"), needs="a100"
    ),
]

SETTINGS = [
    setting("no equals sign", "memory", "KEY=VALUE", "memory.bandwidth_gb_per_s=4000"),
    setting("no value", "memory.bandwidth_gb_per_s=", "KEY=VALUE"),
    setting("no key", "=4000", "KEY=VALUE"),
    setting("misspelt key", "memory.bandwith_gb_per_s=1", "Did you mean memory.bandwidth_gb_per_s?"),
    setting("misspelt group", "memry.bandwidth_gb_per_s=1", "Did you mean memory.bandwidth_gb_per_s?"),
    setting("misspelt link key", "links.nvlink.link=1", "Did you mean links.nvlink.links?"),
    setting("nothing near", "zzzz.yyyy=1", "memwall gpu show h100 --yaml"),
    setting("unknown format", "matrix.peak_dense_tflops.bf17=1", "bf17", "did you mean bf16?"),
    setting("vector format", "vector.peak_tflops.fp8=1", "fp8", "fp64, fp32, fp16, bf16, int8"),
    setting("text", "memory.bandwidth_gb_per_s=fast", "a number, not 'fast'", "4000"),
    setting("unit", "memory.bandwidth_gb_per_s=4000GB", "'4000GB'", "the key's unit"),
    setting("negative", "memory.bandwidth_gb_per_s=-1", "greater than 0"),
    setting("zero", "memory.bandwidth_gb_per_s=0", "greater than 0"),
    setting("nan", "memory.bandwidth_gb_per_s=NaN", "a number, not 'NaN'"),
    setting("yaml nan", "memory.bandwidth_gb_per_s=.nan", "'.nan'", "4000"),
    setting("infinite", "memory.bandwidth_gb_per_s=1e400", "a number"),
    setting("tiny", "memory.bandwidth_gb_per_s=1e-300", "at least 1e-09"),
    setting("enormous", "memory.bandwidth_gb_per_s=1e16", "at most 1e15"),
    setting("100000 digits", f"memory.bandwidth_gb_per_s={LONG}", "100000 characters"),
    setting("fraction of a unit", "unit.count=1.5", "a whole number"),
    setting("list value", "memory.bandwidth_gb_per_s=[1]", "not a list"),
    setting("mapping value", "memory.bandwidth_gb_per_s={a: 1}", "not a group"),
    setting("two colons", "memory.bandwidth_gb_per_s=a: b", "'a: b'"),
    setting("a group", "memory=5", "'memory' is a group", "memory.capacity_gb"),
    setting("a list", "aliases=x", "'aliases'", "memwall gpu show h100 --yaml"),
    setting("a source", "matrix.source=x", "'matrix.source'", "memwall gpu show h100 --yaml"),
    setting("the name", "name=x", "'name'", "memwall gpu show h100 --yaml"),
    setting("a number's inside", "memory.bandwidth_gb_per_s.x=1", "Did you mean memory.bandwidth_gb_per_s?"),
    Mistake(
        "set, gpu show", "gpu show h100 --set memory.x=1", 2, ("memory.x", "memwall gpu show h100 --yaml")
    ),
]

BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n"

FILES = [
    Mistake("missing gpu file", GPU_FILE, 3, ("bad.yaml: no such file", "memwall gpu show h100 --yaml")),
    Mistake("missing model file", MODEL_FILE, 3, ("bad.yaml: no such file", "memwall")),
    Mistake(
        "long file name",
        f"roofline --op gemv --gpu {'x' * 5000}.yaml",
        3,
        ("5005 characters", "memwall gpu show h100 --yaml"),
    ),
    gpu_text("folder", FOLDER, "folder", ".yaml"),
    model_text("folder", FOLDER, "folder", ".yaml"),
    Mistake(
        "a folder by its path", "roofline --op gemv --gpu ./there", 3, ("./there", ".yaml"), {"there": FOLDER}
    ),
    gpu_text("empty", "", ":1:", "name: my-gpu"),
    gpu_text("comment only", "# nothing\n", ":1:", "name: my-gpu"),
    gpu_text("list", "- a\n- b\n", ":1:", "name: my-gpu"),
    gpu_text("word", "h100\n", ":1:", "name: my-gpu"),
    gpu_text("tab", GPU.replace("  type", "\ttype"), "spaces"),
    gpu_text("alias bomb", BOMB, ":1:", "aliases", "Write the value out"),
    gpu_text("endless alias", "a: &a [*a]\n", ":1:", "aliases"),
    gpu_text("deep nesting", "name: " + "[" * 200_000, "nesting"),
    gpu_text("deep balanced nesting", "name: " + "[" * 900 + "]" * 900, ":1:", "20 levels"),
    gpu_text("two documents", GPU + "---\n" + GPU, "another document", "One file holds one GPU"),
    gpu_text("binary", b"\x00\x01\x02\x03ELF", "not YAML", "text file"),
    gpu_text("invalid UTF-8", b"name: \xff\xfe\n", "not UTF-8", "UTF-8"),
    gpu_text("larger than a megabyte", "# " + "x" * 2**20 + "\n" + GPU, "1 MiB", "kilobytes"),
    gpu_text("key twice", GPU + "name: other\n", ":21:", "'name' stands twice", "Keep one"),
    gpu_text("unclosed quote", GPU.replace("My GPU", "'My GPU"), "Check the syntax"),
    gpu_text("percent sign", GPU.replace("My GPU", "%My GPU"), ":2:", "quote"),
    gpu_text("json", '{"architectures": ["LlamaForCausalLM"]}', ":1:", "architectures"),
    gpu("yaml nan", "gb_per_s: 1000", "gb_per_s: .nan", "bad.yaml:18:", "'.nan'", "3350"),
    gpu("nan", "gb_per_s: 1000", "gb_per_s: NaN", "bad.yaml:18:", "a number, not 'NaN'"),
    gpu("infinite", "gb_per_s: 1000", "gb_per_s: .inf", "bad.yaml:18:", "'.inf'"),
    gpu("exponent", "gb_per_s: 1000", "gb_per_s: 3.35e3", "bad.yaml:18:", "'3.35e3'", "3350"),
    gpu("unit", "gb_per_s: 1000", "gb_per_s: 1000 GB/s", "bad.yaml:18:", "'1000 GB/s'", "unit"),
    gpu("quoted number", "gb_per_s: 1000", "gb_per_s: '1000'", "bad.yaml:18:", "a number, not '1000'"),
    gpu("100000 digits", "gb_per_s: 1000", f"gb_per_s: {LONG}", "bad.yaml:18:", "100000 characters"),
    gpu("4000 digits", "gb_per_s: 1000", f"gb_per_s: {LONG[:4000]}", "bad.yaml:18:", "4000 characters"),
    gpu("octal", "year: 2026", "year: 02026", "bad.yaml:6:", "'02026'"),
    gpu("negative bandwidth", "gb_per_s: 1000", "gb_per_s: -1000", "bad.yaml:18:", "greater than 0"),
    gpu("zero bandwidth", "gb_per_s: 1000", "gb_per_s: 0", "bad.yaml:18:", "greater than 0"),
    gpu("bandwidth missing", "  bandwidth_gb_per_s: 1000\n", "", "memory.bandwidth_gb_per_s", "missing"),
    gpu("name missing", "name: my-gpu\n", "", "bad.yaml:1:", "'name' is missing", "memwall gpu show h100"),
    gpu("memory is a number", GPU[GPU.index("memory:") :], "memory: 5\n", "bad.yaml:16:", "a group"),
    gpu("wrong key", "vendor:", "vendr:", "bad.yaml:3:", "'vendr'", "Did you mean 'vendor'?"),
    gpu("wrong key inside", "bandwidth_gb", "bandwith_gb", "bad.yaml:18:", "'bandwidth_gb_per_s'"),
    gpu(
        "far key inside", "  type:", "  zzzz: 1\n  type:", "memory.zzzz", "Allowed there: ", "bus_width_bits"
    ),
    gpu(
        "wrong link key",
        "memory:",
        "links: {pcie: {lnks: 4, source: [{seen: a}]}}\nmemory:",
        "'links'?",
    ),
    gpu("wrong segment", "datacenter", "cloudy", "bad.yaml:5:", "'datacenter'"),
    gpu("wrong name", "name: my-gpu", "name: My GPU", "bad.yaml:1:", "name"),
    gpu("year as a date", "year: 2026", "year: 2026-01-01", "bad.yaml:6:", "a whole number"),
    gpu("fractional year", "year: 2026", "year: 2026.5", "bad.yaml:6:", "whole number"),
    gpu("peak of no format", "{bf16: 100}", "{bf17: 100}", "bad.yaml:9:", "bf17", "did you mean bf16?"),
    gpu("peak of a storage format", "{bf16: 100}", "{int4-g128: 100}", "bad.yaml:9:", "int4-g128"),
    gpu("vector peak of no format", "{fp32: 10}", "{fp8: 10}", "bad.yaml:13:", "fp8", "fp64, fp32"),
    gpu("no peaks", "{bf16: 100}", "{}", "bad.yaml:9:", "peak_dense_tflops"),
    gpu("source without kind", "- assumed: an example", "- for: [x]", "bad.yaml:11:", "exactly one of seen"),
    gpu("source of nothing", "- assumed: an example", "- assumed: ''", "bad.yaml:11:", "must not be empty"),
    gpu("source of two kinds", "- assumed: an", "- seen: x\n      assumed: an", "exactly one of seen"),
    gpu("no source", "  source:\n    - assumed: an example\n", "", "source", "missing"),
    gpu("source for nothing", "- assumed: an example", "- assumed: x\n      for: [zz]", "zz", "'for'"),
    model_text("empty", "", ":1:"),
    model_text("a GPU", GPU, "bad.yaml:"),
    model("wrong key", "hidden_size", "hiden_size", "bad.yaml:", "hidden_size"),
    model("wrong key inside", "kv_heads", "kv_head", "bad.yaml:8:", "kv_heads"),
    model("key missing", "vocab_size: 32000\n", "", "vocab_size", "memwall model show llama3-70b --yaml"),
    model("heads not divisible", "kv_heads: 8", "kv_heads: 5", "bad.yaml:8:", "5 KV heads", "32 heads"),
    model("attention kind", "kind: grouped", "kind: sparse", "bad.yaml:8:", "sparse", "grouped, latent"),
    model("attention kind missing", "kind: grouped, ", "", "bad.yaml:8:", "kind"),
    model("mlp kind", "kind: gated", "kind: dense", "bad.yaml:9:", "dense", "gated, plain, experts"),
    model("no layers", MODEL[MODEL.index("layers") : MODEL.index("source")], "layers: []\n", "layers"),
    model("fractional width", "11008", "11008.5", "bad.yaml:9:", "a whole number"),
    model("zero layers", "count: 32", "count: 0", "bad.yaml:7:", "greater than 0"),
    model("yes for a number", "32000", "yes", "bad.yaml:4:", "a whole number"),
    Mistake("model show of a broken file", "model show bad.yaml", 3, ("bad.yaml:1:",), {"bad.yaml": "x"}),
    Mistake("gpu show of a broken file", "gpu show bad.yaml --yaml", 3, ("bad.yaml:1:",), {"bad.yaml": "x"}),
    Mistake(
        "config.json",
        "attention --model config.json --seq 8",
        3,
        ("config.json:1", "model_type is missing"),
        {"config.json": "{}"},
    ),
    Mistake(
        "broken user gpu",
        "roofline --op gemv --gpu mine",
        3,
        ("mine.yaml:1:",),
        {"hardware/mine.yaml": "x"},
        path=".",
    ),
    Mistake(
        "user gpu of bytes",
        "gpu show mine",
        3,
        ("mine.yaml", "UTF-8"),
        {"hardware/mine.yaml": b"\xff"},
        path=".",
    ),
    Mistake(
        "user gpu under another name",
        "roofline --op gemv --gpu mine",
        3,
        ("hardware/mine.yaml:1:", "'my-gpu'", "'mine'", "rename the file to my-gpu.yaml"),
        {"hardware/mine.yaml": GPU},
        path=".",
    ),
    Mistake(
        "user model under another name",
        "attention --seq 8192 --model mine",
        3,
        ("configs/models/mine.yaml:2:", "'my-model'", "'mine'", "rename the file to my-model.yaml"),
        {"configs/models/mine.yaml": f"# my own\n{MODEL}"},
        path=".",
    ),
    Mistake(
        "set twice",
        "roofline --op gemv --set unit.count=1 --set unit.count=2",
        2,
        ("--set unit.count", "given twice"),
    ),
    Mistake(
        "set of the clock behind a peak",
        "roofline --op gemv --set matrix.clock_mhz=500",
        2,
        ("behind the published peaks", "matrix.peak_dense_tflops.bf16"),
    ),
    Mistake("set of null", "roofline --op gemv --set memory.bus_width_bits=null", 2, ("is not a value",)),
    Mistake(
        "set of no memory", "roofline --op gemv --set memory.type=HBM9", 2, ("no kind of memory", "HBM3")
    ),
    Mistake(
        "seq beside seq_q",
        "attention --heads 8 --head-dim 64 --seq 10 --seq-q 3",
        2,
        ("--seq sets --seq-q and --seq-kv",),
    ),
    Mistake(
        "parameters that are not those of the dimensions",
        "model show mine.yaml",
        3,
        ("mine.yaml:", "parameters is 7", "leave parameters out"),
        {"mine.yaml": f"parameters: 7\n{MODEL}"},
    ),
    Mistake(
        "broken user model",
        "attention --seq 8 --model mine",
        3,
        ("mine.yaml:1:",),
        {"configs/models/mine.yaml": "x"},
        path=".",
    ),
]

OUTPUTS = [
    Mistake(
        "output, no such folder",
        "roofline --op gemv -o nowhere/x.json",
        2,
        ("nowhere/x.json", "folder that exists"),
    ),
    Mistake(
        "output, a folder",
        "roofline --op gemv -o there",
        2,
        ("there", "-o there/NAME"),
        {"there": FOLDER},
    ),
    Mistake("output, empty", "roofline --op gemv -o ''", 2, ("-o names no file", "-o - is stdout")),
    Mistake("output, file as folder", "roofline --op gemv -o x/y", 2, ("x/y", "folder"), {"x": ""}),
    Mistake(
        "output, long name", f"gpu list -o {'x' * 5000}", 2, ("5000 characters", "in a folder that exists")
    ),
    Mistake(
        "json and csv", "roofline --op gemv --json --format csv", 2, ("--json", "--format csv", "Leave out")
    ),
]

MISTAKES = [*NAMES, *SHAPES, *SETTINGS, *FILES, *OUTPUTS]


def cases() -> list[object]:
    """The rows; one about a GPU that is not in the catalogue is skipped."""
    known = HARDWARE.names()
    return [
        pytest.param(
            m,
            id=m.name,
            marks=pytest.mark.skipif(
                bool(m.needs) and m.needs not in known, reason=f"no hardware/{m.needs}.yaml"
            ),
        )
        for m in MISTAKES
    ]


def lay_out(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """The row's files."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content == FOLDER:
            path.mkdir()
        elif isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content, encoding="utf-8")


def tree(folder: Path) -> dict[str, int]:
    """Everything in a folder, with its size."""
    return {str(p.relative_to(folder)): p.stat().st_size if p.is_file() else -1 for p in folder.rglob("*")}


def check(mistake: Mistake, code: int, out: str, err: str) -> None:
    """The promise: one line of advice, and nothing else."""
    assert code == mistake.code, err
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    assert len(err) < 400, len(err)
    assert "Traceback" not in err
    for word in mistake.words:
        assert word in err, err


@pytest.mark.parametrize("mistake", cases())
def test_a_mistake_is_answered_with_one_line_of_advice(
    mistake: Mistake, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMWALL_PATH", mistake.path)
    lay_out(tmp_path, mistake.files)
    before = tree(tmp_path)
    code = run(mistake.argv)
    out, err = capsys.readouterr()
    check(mistake, code, out, err)
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    "name",
    [
        "command",
        "gpu",
        "stray word",
        "dimension, 100000 digits",
        "nvfp4 on Hopper",
        "gpu file, deep nesting",
        "gpu file, alias bomb",
        "output, a folder",
    ],
)
def test_a_real_process_says_the_same(name: str, tmp_path: Path) -> None:
    mistake = next(m for m in MISTAKES if m.name == name)
    lay_out(tmp_path, mistake.files)
    done = process(mistake.argv, tmp_path)
    check(mistake, done.returncode, done.stdout, done.stderr)


def process(argv: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """`python -m memwall` in a folder."""
    root = Path(__file__).resolve().parents[1]
    return subprocess.run(
        [sys.executable, "-m", "memwall", *argv],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_rows_have_names_of_their_own_and_there_are_enough() -> None:
    assert len({m.name for m in MISTAKES}) == len(MISTAKES) >= 75


def test_the_files_that_the_rows_break_are_right_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lay_out(tmp_path, {"gpu.yaml": GPU, "model.yaml": MODEL})
    assert run(["attention", "--seq", "8192", "--gpu", "gpu.yaml", "--model", "model.yaml"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("mode", "argv", "code"),
    [
        (0o000, ["roofline", "--op", "gemv", "--gpu", "closed.yaml"], 3),
        (0o444, ["roofline", "--op", "gemv", "-o", "closed.yaml"], 2),
    ],
)
def test_a_file_closed_to_this_user_is_named(
    mode: int,
    argv: list[str],
    code: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    lay_out(tmp_path, {"closed.yaml": GPU})
    (tmp_path / "closed.yaml").chmod(mode)
    if os.access("closed.yaml", os.W_OK):
        pytest.skip("this user reads and writes everything")
    returned = run(argv)
    check(Mistake("", "", code, ("closed.yaml",)), returned, *capsys.readouterr())


@pytest.mark.parametrize("path", ["nowhere", "bad.yaml", ":", ""])
def test_a_search_path_that_leads_nowhere_is_ignored(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMWALL_PATH", path)
    lay_out(tmp_path, {"bad.yaml": "x"})
    assert run(["roofline", "--gpu", "h100", "--op", "gemv"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("content", ["not: [closed", b"\xff\xfe"])
@pytest.mark.parametrize("name", ["h100", "h100-sxm", "H100-SXM5-80GB"])
def test_a_broken_user_file_matters_only_when_it_is_asked_for(
    name: str,
    content: str | bytes,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MEMWALL_PATH", str(tmp_path))
    lay_out(tmp_path, {"hardware/aaa-broken.yaml": content})
    assert run(["roofline", "--gpu", name, "--op", "gemv"]) == 0
    assert capsys.readouterr().err == ""


def test_an_existing_file_survives_a_run_that_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lay_out(tmp_path, {"kept.json": "{}"})
    assert run(["roofline", "--op", "gemv", "--gpu", "h1000", "-o", "kept.json"]) == 2
    assert (tmp_path / "kept.json").read_text() == "{}"
    assert list(tmp_path.iterdir()) == [tmp_path / "kept.json"]


def test_a_full_disk_leaves_nothing_half_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("memwall.cli.output.os.replace", refuse)
    returned = run(["roofline", "--op", "gemv", "-o", "x.json"])
    check(Mistake("", "", 2, ("x.json", "No space left")), returned, *capsys.readouterr())
    assert not list(tmp_path.iterdir())
