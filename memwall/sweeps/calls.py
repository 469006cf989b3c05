"""Reports by the names of their commands' options, where their own arguments have other names or places.

Each takes what its command takes and hands it to the report that the command shows.
"""

from __future__ import annotations

from typing import Any

from memwall.errors import UsageError
from memwall.units import parse_number

PRODUCTS = ("gemm", "gemv", "batched_gemm", "grouped_gemm")


def attention(
    model: Any = None,
    *,
    impl: str | None = None,
    block_q: int | None = None,
    block_kv: int | None = None,
    **asked: Any,
) -> Any:
    """Standard and flash side by side, or with `impl` the generations."""
    from memwall.reports.attention import attention as report
    from memwall.reports.generations import generations

    if impl is not None:
        return generations(model, impl=impl, block_q=block_q, block_kv=block_kv, **asked)
    if block_q is not None or block_kv is not None:
        raise UsageError("--block-q and --block-kv belong to --impl", "Add --impl all")
    return report(model, **asked)


def tile(*, op: str = "gemm", tile: tuple[int, ...] | None = None, **asked: Any) -> Any:
    """A product's tile, or attention's."""
    from memwall.ops import registry
    from memwall.reports.attention_tile import attention_tile
    from memwall.reports.tile import tile as product_tile

    name = registry.find(op).name
    sides = 2 if name == "attention" else 3
    if tile is not None and len(tile) != sides:
        raise UsageError(f"{name}'s tile has {sides} sides, not {len(tile)}", "Try 128x128x64, or 64x64")
    if name == "attention":
        _none(name, asked, "weight_dtype")
        return attention_tile(tile, **asked)  # type: ignore[arg-type]
    if name not in PRODUCTS:
        raise UsageError(f"{name} is not cut into tiles here", f"Choose: {', '.join(PRODUCTS)}, attention")
    _none(name, asked, "kv_dtype", "causal")
    return product_tile(name, tile, **asked)  # type: ignore[arg-type]


def _none(op: str, asked: dict[str, Any], *names: str) -> None:
    """An option that belongs to the other kind of operator."""
    for name in names:
        if asked.pop(name, None) is not None:
            raise UsageError(f"{op} has no --{name.replace('_', '-')}", f"See memwall op show {op}")


def banks(*, shape: tuple[int, int], access: str, element: int = 4, pad: int = 0, **asked: Any) -> Any:
    """Bank conflicts of a tile of rows x columns."""
    from memwall.reports.access import banks as report

    return report(*shape, access, element, pad, **asked)


def access(
    *, pattern: str, element: int = 4, stride: int | None = None, offset: int = 0, **asked: Any
) -> Any:
    """Sectors and lines of a warp's request."""
    from memwall.reports.access import access as report

    return report(pattern, element, stride, offset, **asked)


def occupancy(*, threads: int, registers: int = 32, smem: int = 0, **asked: Any) -> Any:
    """Blocks and warps an SM."""
    from memwall.reports.occupancy import occupancy as report

    return report(threads, registers, smem, **asked)


def training_memory(model: Any, *, zero: str = "0", **asked: Any) -> Any:
    """What training needs of each GPU."""
    from memwall.reports.training import training_memory as report

    return report(model, zero=int(zero), **asked)


def train_step(model: Any, *, zero: str = "0", **asked: Any) -> Any:
    """A training step's bound."""
    from memwall.reports.train_step import train_step as report

    return report(model, zero=int(zero), **asked)


def plan(model: Any, *, price: str | None = None, **asked: Any) -> Any:
    """The layouts that meet the targets."""
    from memwall.reports.plan import plan as report

    return report(model, price=None if price is None else _price(price), **asked)


def cost(model: Any, *, price: str, **asked: Any) -> Any:
    """What tokens cost."""
    from memwall.reports.cost import cost as report

    return report(model, price=_price(price), **asked)


def _price(text: str) -> float:
    price = float(parse_number(str(text), "--price"))
    if price <= 0:
        raise UsageError(f"--price is what a GPU-hour costs, above 0, not '{text}'", "Try --price 2.50")
    return price
