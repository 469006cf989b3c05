"""What a result rests on, said where it matters: weak numbers, what-ifs, and the terms of the bound."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memwall.bound import Bound
from memwall.constant import Constant
from memwall.errors import NotAvailable
from memwall.hardware import Device
from memwall.units import format_bytes, format_flops_per_s, scaled

Bounds = Sequence[Bound]


def weak(bounds: Bounds) -> list[Constant]:
    """The recalled and assumed numbers of the file behind some bounds, each once."""
    found = {leaf.key: leaf for bound in bounds for leaf in bound.leaves if leaf.weak}
    return list(found.values())


def confession(constant: Constant) -> str:
    """What a result says of a weak number that it rests on."""
    how = "recalled, not checked" if constant.kind == "recalled" else "assumed"
    return f"* rests on {constant.key}, {how}: {constant.source}"


def remarks(device: Device, bounds: Bounds, footprint_bytes: float = 0) -> list[str]:
    """What a careful reader of bounds on one device needs to know.

    Args:
        device: the device.
        bounds: the bounds shown.
        footprint_bytes: what has to be in memory at once [B].
    """
    makers = (_of_the_device, _of_weak_numbers, _of_what_ifs, _of_clocks, _of_arithmetic, _of_what_is_unknown)
    notes = [note for make in makers for note in make(device, bounds)]
    return [*notes, *_of_capacity(device, footprint_bytes)]


def _of_the_device(device: Device, bounds: Bounds) -> Iterator[str]:
    if device.announced:
        yield f"{device.title} is announced, not shipping: its figures are its maker's plans"
    if device.own:
        yield f"{device.name} is read from {device.where}"


def _of_weak_numbers(device: Device, bounds: Bounds) -> Iterator[str]:
    yield from map(confession, weak(bounds))


def _of_what_ifs(device: Device, bounds: Bounds) -> Iterator[str]:
    """A what-if that changes nothing must not look as if it did."""
    entering = {leaf.key for bound in bounds for leaf in bound.leaves}
    for key in device.assumed:
        if key in entering:
            continue  # told among the weak numbers
        terms = dict.fromkeys(term for bound in bounds for term in bound.terms_with(key))
        if terms:
            yield f"{key} is set by you: it enters the term {' and '.join(terms)}, which does not limit"
        else:
            yield f"{key} is set by you and does not enter the bound"


def _of_clocks(device: Device, bounds: Bounds) -> Iterator[str]:
    peaks = {
        c.key: c for bound in bounds for c in bound.rests_on if c.note and not c.key.startswith("special")
    }
    for key, constant in peaks.items():
        yield f"{key} is taken {constant.note}"


def _of_arithmetic(device: Device, bounds: Bounds) -> Iterator[str]:
    """The terms under which no kernel beats the bound."""
    formats = dict.fromkeys(dtype for bound in bounds for dtype in bound.work.matrix_flops)
    for dtype in formats:
        if dtype in ("fp32", "fp64") and {"tf32", "bf16"} & set(device.dtypes()):
            split = "split into narrower products on the matrix unit"
            yield f"native {dtype} arithmetic: {split} it can be faster and less exact"
        other = device.peak_with_fp16_sums(dtype)
        if other:
            peak = format_flops_per_s(other.value)
            yield f"{dtype} products are summed in fp32; summed in fp16 the peak is {peak}"
    special = device.special_rate
    if special and any(bound.limited_by == "special" for bound in bounds):
        unit = scaled(special.value, "op/s")
        yield f"special: exponentials on their own unit, {unit}, and emulated on the vector lanes beside it"


def _of_what_is_unknown(device: Device, bounds: Bounds) -> Iterator[str]:
    unknown = sorted({engine for bound in bounds for engine in bound.unknown})
    if unknown:
        what = " and ".join(unknown)
        yield f"the rate of {what} work is not published: left out, and the bound still holds"


def _of_capacity(device: Device, footprint_bytes: float) -> Iterator[str]:
    try:
        capacity = device.capacity
    except NotAvailable:
        return
    if footprint_bytes > capacity.value:
        needed, there = format_bytes(footprint_bytes), format_bytes(capacity.value)
        yield f"it does not fit: its tensors take {needed}, the memory has {there}"
