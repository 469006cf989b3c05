"""Memory standards beside the products that use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from memwall.hardware import Device
from memwall.render import rates
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
    def percent(self) -> float | None:
        """Its pin rate in per cent of the standard's, if both are known."""
        most = self.standard.get("pin_rate_gbit_per_s")
        return 100 * self.pin_rate / most if self.pin_rate and most else None

    @property
    def stacks(self) -> int | None:
        """HBM stacks."""
        stacks: int | None = self.device.data["memory"].get("stacks")
        return stacks


UNPUBLISHED: Mapping[str, Any] = {"name": "HBM", "match": ["HBM"]}
"""Stands for the standard of products whose maker does not say which generation their memory is."""


def products(standards: Sequence[Mapping[str, Any]], devices: Sequence[Device]) -> list[Product]:
    """Every device under its memory's standard, standards in order; HBM of no known generation last."""
    found = []
    for standard in (*standards, UNPUBLISHED):
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
            "standard": None if product.standard is UNPUBLISHED else product.standard["name"],
            "standard_pin_rate_bits_per_s": _bits_per_s(product.standard),
            "pin_rate_bits_per_s": _bits_per_s(product.device.data["memory"]),
            "stacks": product.stacks,
            "standard_stack_bandwidth_bytes_per_s": _standard_stack(product.standard),
            "stack_bandwidth_bytes_per_s": _stack(product),
            "bandwidth_bytes_per_s": product.device.bandwidth.value,
        }
        for product in products
    ]


def page(products: Sequence[Product]) -> Page:
    """A table for each standard."""
    groups = [
        [product for product in products if product.standard["name"] == name]
        for name in dict.fromkeys(product.standard["name"] for product in products)
    ]
    tables = {_heading(group[0].standard): _table(group) for group in groups}
    notes = [
        "a product's bandwidth is the driver's clock x width where known, else as marketed",
        "a stack's is its share of that: less than its pins give where a maker leaves some unused or rounds",
    ]
    if any(product.percent and product.percent > 100 for product in products):
        notes.append("above 100 %: a maker may run its memory faster than the standard asks of every part")
    marks = [note for table in tables.values() for note in rates.mark_notes(table)]
    return [
        *(Section(heading, table) for heading, table in tables.items()),
        Section("Notes", Lines([*notes, *dict.fromkeys(marks)])),
    ]


def _heading(standard: Mapping[str, Any]) -> str:
    if standard is UNPUBLISHED:
        return "HBM, generation not published"
    stack = _standard_stack(standard)
    each = f", {significant(stack / GIGA)} GB/s a stack" if stack else ""
    jedec = f" ({standard['jedec']})" if standard.get("jedec") else ""
    return f"{standard['name']}{jedec}: up to {standard['pin_rate_gbit_per_s']:g} Gbit/s a pin{each}"


def _table(group: Sequence[Product]) -> Table:
    rows = []
    for product in group:
        stack, rate, percent = _stack(product), product.pin_rate, product.percent
        rows.append(
            (
                product.device.name,
                "-" if rate is None else f"{rate:g}",
                "-" if percent is None else f"{significant(percent, 3)} %",
                "-" if product.stacks is None else str(product.stacks),
                "-" if stack is None else significant(stack / GIGA),
                rates.bandwidth_in_gb_per_s(product.device),
            )
        )
    header = ("product", "Gbit/s a pin", "of maximum", "stacks", "GB/s a stack", "GB/s in all")
    return Table(rows, header, frozenset(range(1, 6)))


def _stack(product: Product) -> float | None:
    return product.device.bandwidth.value / product.stacks if product.stacks else None


def _bits_per_s(memory: Mapping[str, Any]) -> float | None:
    """A standard's or a product's rate of one pin."""
    rate = memory.get("pin_rate_gbit_per_s")
    return None if rate is None else to_si("pin_rate_gbit_per_s", rate)


def _standard_stack(standard: Mapping[str, Any]) -> float | None:
    width, rate = standard.get("interface_bits"), _bits_per_s(standard)
    if not (width and rate and standard["name"].startswith("HBM")):
        return None
    return float(width * rate / 8)
