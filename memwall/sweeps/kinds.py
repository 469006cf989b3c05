"""What can be swept point by point: each command with the report that it shows."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple


class Kind(NamedTuple):
    """A command whose report is a value."""

    function: str
    """The report's function, `module:name` in memwall; it takes the command's options by name."""
    example: str
    """What to type."""
    shown: tuple[str, ...]
    """Results that a page shows where the report has them; the others are in JSON, CSV and Parquet."""
    whole: tuple[str, ...] = ()
    """What is one value, commas and all."""
    listed: bool = False
    """Whether the answer is a list: a row for each of it."""
    first: str | None = None
    """A list in the answer, best first, of which the rows have the first."""
    view: str | None = None
    """Makes the record, `module:Class` or `module:function` in memwall.render; None: by the report."""
    gpu: bool = True
    """Whether there is a GPU where none is named."""


KINDS: dict[str, Kind] = {
    "capacity": Kind(
        "reports.capacity:capacity",
        "memwall sweep capacity --model llama3-70b --gpu h100 --tp 2,4,8 --context 8192:65536:log2",
        ("usable_bytes", "weight_bytes", "kv_budget_bytes", "max_tokens", "max_sequences", "fits"),
        view="capacity_record:numbers",
    ),
    "roofline": Kind(
        "reports.roofline:roofline",
        "memwall sweep roofline --flops 1e12,2e12 --bytes 1e9,1e10,1e11 --gpu h100,b200",
        ("arithmetic_intensity", "regime", "attainable_flops_per_s", "bound_time_s", "estimate_time_s"),
    ),
    "attention": Kind(
        "sweeps.calls:attention",
        "memwall sweep attention --model llama3-70b --seq 1024:65536:log2 --gpu h100,b200",
        (
            "standard.traffic_bytes",
            "flash.traffic_bytes",
            "standard.bound_time_s",
            "flash.bound_time_s",
            "standard.dram_read_bytes",
            "fa1.dram_read_bytes",
            "fa2.dram_read_bytes",
            "fa3.dram_read_bytes",
            "fa2.l2_bytes",
            "fa3.l2_bytes",
        ),
    ),
    "quant": Kind(
        "reports.quant:quant",
        "memwall sweep quant --model llama3-70b --gpu h100,b200 --tp 1,2,4,8",
        ("format", "weight_bytes", "bound_time_s", "tokens_per_s", "fits"),
        listed=True,
    ),
    "train-memory": Kind(
        "sweeps.calls:training_memory",
        "memwall sweep train-memory --model llama3-8b --gpu h100 --gpus 8:64:8 --zero 0,1,2,3",
        ("state_bytes", "activation_bytes", "total_bytes", "fits"),
        gpu=False,
    ),
    "train-step": Kind(
        "sweeps.calls:train_step",
        "memwall sweep train-step --model llama3-70b --gpu h100 --gpus 64:512:64 --tp 4,8 --zero 1",
        ("bound_time_s", "limited_by", "tokens_per_s", "mfu", "fits"),
    ),
    "plan": Kind(
        "sweeps.calls:plan",
        "memwall sweep plan --model llama3-70b --gpu h100,h200 --gpus 4,8 --context 16384 --tpot 30ms,50ms",
        (
            "layout.tp",
            "layout.pp",
            "layout.ep",
            "layout.dp",
            "layout.batch",
            "layout.ttft_s",
            "layout.tpot_s",
            "layout.tokens_per_s",
            "meets",
        ),
        first="layouts",
    ),
    "serve": Kind(
        "reports.serve:serve",
        "memwall sweep serve --model llama3-8b --concurrency 1:64:log2 --isl 1024 --osl 128,1024",
        ("ttft_s", "tpot_s", "tokens_per_s", "needed_bytes", "fits"),
    ),
    "cost": Kind(
        "sweeps.calls:cost",
        "memwall sweep cost --model llama3-8b --price 2.5 --batch 1:64:log2 --context 4096 --gpu h100,h200",
        ("tokens_per_s", "price_per_million_tokens_in", "price_per_million_tokens_out", "fits"),
    ),
    "collective": Kind(
        "reports.collective:collective_time",
        "memwall sweep collective all_reduce,all_gather --bytes 1024:1048576:log2 --gpus 2,4,8 --gpu h100",
        ("bound_time_s", "estimate_time_s", "busbw_bytes_per_s"),
    ),
    "hierarchy": Kind(
        "reports.hierarchy:hierarchy",
        "memwall sweep hierarchy --gpu a100,h100,h200,b200",
        ("level", "size_bytes", "bandwidth_bytes_per_s", "latency_s"),
        listed=True,
    ),
    "tile": Kind(
        "sweeps.calls:tile",
        "memwall sweep tile --m 4096 --n 4096 --k 4096 --tile 128x128x64,128x256x64,256x128x64",
        (
            "dram_read_bytes",
            "smem_bytes",
            "waves",
            "wave_efficiency",
            "fits",
            "tiles.yours.smem_bytes",
            "tiles.yours.stages",
            "tiles.yours.fits",
            "tiles.fa2.smem_bytes",
            "tiles.fa3.smem_bytes",
        ),
        view="tile:TileView",
    ),
    "crossover": Kind(
        "reports.crossover:crossover",
        "memwall sweep crossover --op gemm --vary m --n 4096 --k 1024:8192:1024 --gpu h100,b200",
        ("at", "regime_below", "regime_above", "arithmetic_intensity"),
    ),
    "fuse": Kind(
        "reports.fuse:fuse",
        "memwall sweep fuse linear,gelu --tokens 128:8192:log2 --hidden 4096 --width 16384",
        ("unfused.traffic_bytes", "best.traffic_bytes", "all_fused.traffic_bytes", "best.speedup"),
        whole=("steps",),
    ),
    "occupancy": Kind(
        "sweeps.calls:occupancy",
        "memwall sweep occupancy --threads 128,256 --registers 32:128:16 --smem 0,48KiB",
        ("occupancy", "blocks_per_sm", "warps_per_sm", "limited_by", "spilled_bytes_per_thread"),
    ),
    "banks": Kind(
        "sweeps.calls:banks",
        "memwall sweep banks --shape 32x32,64x32 --access row,column --pad 0:2",
        ("conflict_degree", "efficiency", "least_pad"),
        view="access:BanksView",
    ),
    "access": Kind(
        "sweeps.calls:access",
        "memwall sweep access --pattern strided --stride 1:32:log2 --element 4,8",
        ("sectors", "lines", "efficiency", "effective_bytes_per_s"),
        view="access:AccessView",
    ),
}
"""By the commands' names."""

_VIEWS = {"AttentionTileReport": "tile:AttentionTileView"}


def report_of(kind: Kind) -> Any:
    """The function that makes the report."""
    module, _, name = kind.function.partition(":")
    return getattr(import_module(f"memwall.{module}"), name)


def records_of(kind: Kind, report: Any) -> list[dict[str, Any]]:
    """The report under the keys of its JSON, or each of the list that it is."""
    module, _, name = (_VIEWS.get(type(report).__name__) or kind.view or _module(report)).partition(":")
    view = import_module(f"memwall.render.{module}")
    if kind.listed:
        return list(view.rows(report))
    made = getattr(view, name) if name else view.record
    record: dict[str, Any] = made().record(report) if isinstance(made, type) else made(report)
    if kind.first:
        best, *_ = record[kind.first] or [{}]
        record = {**record, kind.first.removesuffix("s"): best}
    return [record]


def _module(report: Any) -> str:
    return type(report).__module__.rpartition(".")[2]
