"""Memory standards beside the products that use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from memwall.hardware import Device
from memwall.render.data import Record
from memwall.render.page import Lines, Page, Section, Table
from memwall.units import GIGA, significant, to_si


class Product(NamedTuple):
    """A device and the standard of its memory."""

    standard: Mapping[str, Any]
    device: Device

    @property
    def pin_rate(self) -> float | None:
        """Bits a second and pin that the product runs [Gbit/s]."""
        rate: float | None = self.device.data["memory"].get("pin_rate_gbit_per_s")
        return rate

    @property
    def stacks(self) -> int | None:
        """HBM stacks."""
        stacks: int | None = self.device.data["memory"].get("stacks")
        return stacks


def products(standards: Sequence[Mapping[str, Any]], devices: Sequence[Device]) -> list[Product]:
    """Every device under its memory's standard, standards in order."""
    found = []
    for standard in standards:
        matching = [d for d in devices if d.data["memory"]["type"] in standard["match"]]
        found += [
            Product(standard, device) for device in sorted(matching, key=lambda d: (d.data["year"], d.name))
        ]
    return found


def records(products: Sequence[Product]) -> list[Record]:
    """One record a product."""
    return [
        {
            "gpu": product.device.name,
            "standard": product.standard["name"],
            "standard_pin_rate_bits_per_s": to_si(
                "pin_rate_gbit_per_s", product.standard["pin_rate_gbit_per_s"]
            ),
            "pin_rate_bits_per_s": None if product.pin_rate is None else product.pin_rate * GIGA,
            "stacks": product.stacks,
            "standard_stack_bandwidth_bytes_per_s": _standard_stack(product.standard),
            "stack_bandwidth_bytes_per_s": _stack(product),
            "bandwidth_bytes_per_s": product.device.bandwidth.value,
        }
        for product in products
    ]


def page(products: Sequence[Product]) -> Page:
    """A table for each standard."""
    sections = []
    for name in dict.fromkeys(product.standard["name"] for product in products):
        group = [product for product in products if product.standard["name"] == name]
        sections.append(Section(_heading(group[0].standard), _table(group)))
    note = "A product's bandwidth is the driver's clock x width where known; * is recalled, not checked"
    return [*sections, Section("Notes", Lines([note]))]


def _heading(standard: Mapping[str, Any]) -> str:
    stack = _standard_stack(standard)
    each = f", {significant(stack / GIGA)} GB/s a stack" if stack else ""
    jedec = f" ({standard['jedec']})" if standard.get("jedec") else ""
    return f"{standard['name']}{jedec}: up to {standard['pin_rate_gbit_per_s']:g} Gbit/s a pin{each}"


def _table(group: Sequence[Product]) -> Table:
    rows = []
    for product in group:
        stack, rate = _stack(product), product.pin_rate
        rows.append(
            (
                product.device.name,
                "-" if rate is None else f"{rate:g}",
                "-"
                if rate is None
                else f"{significant(100 * rate / product.standard['pin_rate_gbit_per_s'], 3)} %",
                "-" if product.stacks is None else str(product.stacks),
                "-" if stack is None else significant(stack / GIGA),
                significant(product.device.bandwidth.value / GIGA)
                + (" *" if product.device.bandwidth.weak else ""),
            )
        )
    header = ("product", "Gbit/s a pin", "of maximum", "stacks", "GB/s a stack", "GB/s in all")
    return Table(rows, header, frozenset(range(1, 6)))


def _stack(product: Product) -> float | None:
    return product.device.bandwidth.value / product.stacks if product.stacks else None


def _standard_stack(standard: Mapping[str, Any]) -> float | None:
    width = standard.get("interface_bits")
    if not width or not standard["name"].startswith("HBM"):
        return None
    return float(width * to_si("pin_rate_gbit_per_s", standard["pin_rate_gbit_per_s"]) / 8)
