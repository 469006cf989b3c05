"""memwall tile."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from memwall.cli.chip_options import Sides
from memwall.cli.devices import answer
from memwall.cli.options import (
    OP,
    Format,
    causal_option,
    dtype_option,
    gpu_option,
    output_options,
    set_option,
    shape_options,
)
from memwall.errors import UsageError

EPILOG = """\b
Examples:
  memwall tile --op gemm --m 4096 --n 4096 --k 4096 --tile 128x128x64 --gpu h100
  memwall tile --op gemm --m 8192 --n 8192 --k 8192 --gpu a100,h100,mi300x --dtype fp16
  memwall tile --op attention --head-dim 128 --tile 64x64 --gpu h100

\b
The first: naive 274.9 GB, tiled 2.181 GB. The last: Q, K, V and O of 16 KiB each, 64.5 KiB with m and l.
"""

PRODUCTS = ("gemm", "gemv", "batched_gemm", "grouped_gemm")
DIMS = (
    "m", "n", "k", "batch", "experts",
    "heads", "kv_heads", "head_dim", "head_dim_v", "seq", "seq_q", "seq_kv",
)  # fmt: skip


@click.command("tile", epilog=EPILOG)
@gpu_option
@click.option("--op", type=OP, default="gemm", help="a product (gemm, grouped_gemm ...) or attention")
@shape_options(DIMS)
@click.option("--tile", type=Sides(), help="rows x columns x depth; attention: queries x keys")
@dtype_option
@click.option("--weight-dtype", type=Format(), help="storage format of the weights")
@click.option("--kv-dtype", type=Format(), help="storage format of K and V")
@causal_option
@set_option
@output_options
def command(
    gpu: str | None,
    changes: dict[str, str],
    op: str,
    tile: tuple[int, ...] | None,
    weight_dtype: str | None,
    kv_dtype: str | None,
    causal: bool | None,
    **options: Any,
) -> int:
    """Tiles: traffic at each level, shared memory and stages, waves, and the best tile."""
    from memwall.ops import registry
    from memwall.render.tile import AttentionTileView, TileView

    name = registry.find(op).name
    sides = 2 if name == "attention" else 3
    if tile is not None and len(tile) != sides:
        example = "64x64" if sides == 2 else "128x128x64"
        raise UsageError(f"{name}'s tile has {sides} sides, not {len(tile)}", f"Try --tile {example}")
    if name == "attention":
        from memwall.reports.attention_tile import attention_tile

        _refuse(name, weight_dtype=weight_dtype)
        options |= {"tile": tile, "kv_dtype": kv_dtype, "causal": causal}
        return answer(attention_tile, AttentionTileView(), gpu, changes, options)
    if name not in PRODUCTS:
        raise UsageError(
            f"{name} is not cut into tiles here", f"Choose from: {', '.join(PRODUCTS)}, attention"
        )
    from memwall.reports.tile import tile as tile_report

    _refuse(name, kv_dtype=kv_dtype, causal=causal)
    options |= {"tile": tile, "weight_dtype": weight_dtype}
    return answer(partial(tile_report, name), TileView(), gpu, changes, options)


def _refuse(op: str, **given: object) -> None:
    """An option that belongs to the other kind of operator."""
    for name, value in given.items():
        if value is not None:
            raise UsageError(f"{op} has no --{name.replace('_', '-')}", f"See memwall op show {op}")
