"""Modelled bytes against hardware counters, and against what must hold on any device."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memwall import hardware
from memwall.errors import NotPublished
from memwall.modelled import Modelled, modelled
from memwall.ops import registry
from memwall.program import Work
from memwall.reports.case import Case, Formats
from memwall.reports.modelled import question_of
from memwall.retention import L2, cache_of
from memwall.tiles import Product, Tiling, no_reuse, with_l2
from memwall.traffic import tiled_gemm

COUNTED = Path(__file__).parent / "counted" / "h200.csv"
DIMS = ("m", "n", "k", "batch", "heads", "kv_heads", "seq_q", "seq_kv", "head_dim", "rows", "cols")
L2_BYTES = 62914560


def predicted(
    op: str,
    gpu: str = "h200",
    dtype: str = "bf16",
    causal: bool | None = None,
    impl: str | None = None,
    **dims: Any,
) -> tuple[Modelled, Work]:
    operator = registry.find(op)
    full, _ = registry.resolve(operator, dims)
    case = Case(operator, full, Formats(dtype), causal, impl)
    question = question_of(case)
    return modelled(question, hardware.load(gpu)), case.program.work


class Row:
    """One counted run, and what is predicted for it."""

    def __init__(self, row: dict[str, str]) -> None:
        self.op, self.dtype = row["op"], row["dtype"]
        self.dims = {name: int(row[name]) for name in DIMS if row[name]}
        self.causal = row["causal"] == "1" if row["causal"] else None
        self.impl = row["impl"] or None
        self.read_bytes, self.counter_bytes = int(row["dram_read_bytes"]), int(row["l2_counter_bytes"])
        self.unit_read_bytes = int(row["unit_read_bytes"] or 0)

    def __str__(self) -> str:
        words = [self.op, self.dtype, self.impl or "", "causal" if self.causal else ""]
        return "-".join([*filter(None, words), *map(str, self.dims.values())])

    @property
    def predicted(self) -> tuple[Modelled, Work]:
        return predicted(self.op, "h200", self.dtype, self.causal, self.impl, **self.dims)

    @property
    def decoding(self) -> bool:
        return self.dims.get("seq_q") == 1


def counted() -> list[Row]:
    with COUNTED.open() as file:
        return [Row(row) for row in csv.DictReader(line for line in file if not line.startswith("#"))]


ROWS = counted()
# Counted once, and outside the band on that day: the waves of a long product come apart more, or less, than
# the mean (a repeat of 16384^3 differed by 17 %), and long causal FA2 blocks do.
OUTSIDE = {
    "gemm-int8-8192-8192-8192",  # a kernel of the Ampere generation, with an order of its own
    "gemm-bf16-4096-57344-8192",
    "gemm-bf16-8192-57344-8192",
    "gemm-bf16-8192-8192-28672",
    "attention-bf16-fa2-causal-1-32-32-16384-16384-128",
    "attention-bf16-fa2-4-32-8-4096-4096-128",
}


def band(row: Row, footprint_bytes: float) -> float:
    """How near the counted reads the prediction must be."""
    if row.op == "gemm":
        return 0.20 if footprint_bytes > 2 * L2_BYTES else 0.15
    if row.op in ("rmsnorm", "layernorm", "softmax"):
        return 0.15
    if row.op == "attention" and row.causal:
        return 0.25
    return 0.05


@pytest.mark.parametrize("row", [row for row in ROWS if str(row) not in OUTSIDE], ids=str)
def test_reads_are_as_counted(row: Row) -> None:
    model, work = row.predicted
    assert model.dram.read_bytes == pytest.approx(row.read_bytes, rel=band(row, work.traffic_bytes))


KINDS: dict[str, tuple[int, Callable[[Row], bool | None]]] = {
    "GEMM in six formats": (20, lambda row: row.op == "gemm"),
    "prefill without a mask": (5, lambda row: row.op == "attention" and not row.causal and not row.decoding),
    "causal prefill": (25, lambda row: row.op == "attention" and row.causal),
    "decode attention": (5, lambda row: row.op == "attention" and row.decoding),
    "norms, softmax": (15, lambda row: row.op in ("rmsnorm", "layernorm", "softmax")),
    "elementwise, reduction": (5, lambda row: row.op in ("add", "gelu", "silu_mul", "read_sum")),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_readme_s_table_is_true(kind: str) -> None:
    percent, belongs = KINDS[kind]
    errors = [abs(row.predicted[0].dram.read_bytes / row.read_bytes - 1) for row in ROWS if belongs(row)]
    within = sum(error <= percent / 100 for error in errors)
    mean = 100 * sum(errors) / len(errors)
    line = f"| {kind} | {within} within {percent} % | {len(errors)} | {mean:.1f} % |"
    assert line in (Path(__file__).parents[1] / "README.md").read_text()


def test_rows_outside_the_band_are_few_and_named() -> None:
    assert {str(row) for row in ROWS} >= OUTSIDE
    assert len(OUTSIDE) <= 0.035 * len(ROWS)


@pytest.mark.parametrize("row", [r for r in ROWS if r.op == "attention" and not r.decoding], ids=str)
def test_units_receive_every_block_of_keys(row: Row) -> None:
    """The bytes that arrive at the units are exactly 'no reuse' with blocks of 128 queries, or 64 at FA2's
    256."""
    from memwall.flash import Blocks, Shape, without_reuse

    block_q = 64 if row.impl == "fa2" and row.dims["head_dim"] == 256 else 128
    dims = row.dims
    shape = Shape(
        dims["batch"], dims["heads"], dims["kv_heads"], dims["seq_q"], dims["seq_kv"], dims["head_dim"],
        dims["head_dim"], bool(row.causal),
    )  # fmt: skip
    block_kv = 64 if block_q == 64 else 128
    loads = without_reuse(shape, Blocks(block_q, block_kv, 1, "load"))
    if row.unit_read_bytes:
        assert loads.read_bytes == pytest.approx(row.unit_read_bytes, rel=0.03)


@pytest.mark.parametrize(
    ("impl", "read_bytes", "counter_bytes"), [("fa2", 104596992, 2790774912), ("fa3", 100694272, 1355962944)]
)
def test_both_flash_kernels_come_out(impl: str, read_bytes: int, counter_bytes: int) -> None:
    """Another H200's counts: N 4096, 32 heads of 128, no mask."""
    shape: dict[str, Any] = {
        "batch": 1,
        "heads": 32,
        "kv_heads": 32,
        "seq_q": 4096,
        "seq_kv": 4096,
        "head_dim": 128,
    }
    model, _ = predicted("attention", causal=False, impl=impl, **shape)
    assert model.dram.read_bytes == pytest.approx(read_bytes, rel=0.05)
    assert model.l2_counter_bytes == pytest.approx(counter_bytes, rel=0.05)


@pytest.mark.parametrize(("size", "read_bytes"), [(4096, 149.8e6), (16384, 15.04e9)])
def test_both_products_come_out(size: int, read_bytes: float) -> None:
    model, _ = predicted("gemm", m=size, n=size, k=size)
    assert model.dram.read_bytes == pytest.approx(read_bytes, rel=0.05)


def test_a_count_of_others_on_another_gpu() -> None:
    """cuBLAS sgemm 4096^3 on an RTX 4070 Ti SUPER with 48 MB of L2: 497.3 MB read and written.

    Source: gau-nernst/learn-cuda@1454f8b 02a_matmul_simt, Nsight Compute. 201.3 MB are compulsory.
    """
    model, _ = predicted("gemm", "rtx-4070-ti-super", "fp32", m=4096, n=4096, k=4096)
    assert model.dram.total_bytes == pytest.approx(497.3e6, rel=0.10)


def test_streams_cross_the_partitions_half_of_the_time() -> None:
    for row in ROWS:
        if row.op in ("add", "gelu", "read_sum") and row.dims["rows"] * row.dims["cols"] > 4e6:
            model, _ = row.predicted
            assert model.l2_counter_bytes == pytest.approx(row.counter_bytes, rel=0.05)


def test_causal_standard_attention_reads_a_mask_for_every_head() -> None:
    shape: dict[str, Any] = {
        "batch": 1,
        "heads": 32,
        "kv_heads": 32,
        "seq_q": 4096,
        "seq_kv": 4096,
        "head_dim": 128,
    }
    plain, _ = predicted("attention", causal=False, impl="standard", **shape)
    masked, _ = predicted("attention", causal=True, impl="standard", **shape)
    square = 32 * 4096 * 4096 * 2  # S once more, and the mask, each of one square a head
    assert masked.dram.read_bytes - plain.dram.read_bytes == pytest.approx(2 * square, rel=0.01)


def test_no_reuse_is_the_tiled_product_counted_load_by_load() -> None:
    tiling = Tiling(128, 256)
    ours = no_reuse(Product(1000, 3000, 512, 2, 2, 2), tiling)
    assert ours == tiled_gemm(1000, 3000, 512, 128, 256, 2, 2)


def shapes() -> Iterator[tuple[str, dict[str, Any]]]:
    for op in registry.ops().values():
        yield op.name, dict(op.example)


@pytest.mark.parametrize(("op", "dims"), list(shapes()), ids=[name for name, _ in shapes()])
@pytest.mark.parametrize("gpu", ["v100", "a100", "h100", "b200", "rtx-4090", "mi300x"])
def test_modelled_reads_are_at_least_compulsory(op: str, dims: dict[str, Any], gpu: str) -> None:
    dtype = "fp16" if gpu == "v100" else "bf16"
    model, work = predicted(op, gpu, dtype, **dims)
    reads = sum(
        t.bytes
        for t in Case(
            registry.find(op), registry.resolve(registry.find(op), dims)[0], Formats(dtype)
        ).program.inputs
    )
    assert model.dram.read_bytes >= reads * (1 - 1e-9)
    assert model.dram.written_bytes == work.written_bytes
    assert model.l2_counter_bytes > 0


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 30000), st.integers(1, 30000), st.integers(1, 30000), st.floats(1e5, 2e8))
def test_a_product_reads_between_each_once_and_no_reuse(m: int, n: int, k: int, capacity: float) -> None:
    product, tiling = Product(m, n, k, 2, 2, 2), Tiling()
    read = with_l2(product, tiling, 132, L2(capacity, 2), 1.5).read_bytes
    assert sum(product.operands) * (1 - 1e-9) <= read <= no_reuse(product, tiling).read_bytes * (1 + 1e-9)
    larger = with_l2(product, tiling, 132, L2(2 * capacity, 2), 1.5).read_bytes
    assert larger <= read * (1 + 1e-9)


def test_a_device_without_an_l2_is_refused() -> None:
    with pytest.raises(NotPublished, match="file"):
        predicted("gemm", "tpu-v5e", "bf16", m=64, n=64, k=64)


def test_partitions_are_the_data_centre_parts() -> None:
    partitions = {
        name: cache_of(hardware.load(name)).partitions for name in ("v100", "a100", "h100", "rtx-4090")
    }
    assert partitions == {"v100": 1, "a100": 2, "h100": 2, "rtx-4090": 1}
