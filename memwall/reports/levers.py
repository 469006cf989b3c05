"""What each change of a server would free, each by the same question asked again."""

from __future__ import annotations

import re
from typing import NamedTuple

from memwall import hardware
from memwall.catalog import HARDWARE, Entry
from memwall.dtypes import find
from memwall.hardware import Device
from memwall.memory.question import Question
from memwall.models.storage import storage_of
from memwall.parallel.layout import shared_sizes
from memwall.reports.capacity import CapacityReport, solve
from memwall.units import to_si

NARROWER_WEIGHTS = ("fp8", "int4-g128", "nvfp4")
NARROWER_CACHES = ("fp8", "int8")
WORTH_MOVING = 1.5
"""Times the memory that a larger GPU must have to be named."""


class Lever(NamedTuple):
    """One change, and what fits then."""

    action: str
    """kv, weights, gpus or gpu."""
    text: str
    freed_bytes: int
    """Of each GPU: for the asked batch and context, or more of it on a larger GPU."""
    then: CapacityReport


def levers(report: CapacityReport) -> tuple[Lever, ...]:
    """The changes that free memory, in the order in which people try them."""
    found = _narrower_cache(report)
    if report.question.kv_memory_bytes is None:  # else the budget is fixed, whatever the weights take
        if report.question.weights_given_bytes is None:
            found += _narrower_weights(report) + _more_gpus(report)
        if report.question.memory_bytes is None:
            found += _bigger_gpus(report)
    return tuple(lever for lever in found if lever.freed_bytes > 0)


def _narrower_cache(report: CapacityReport) -> list[Lever]:
    """fp8 and int8 take the same bytes: per-tensor or per-head scales are a few bytes, and not counted."""
    now = report.question
    if find(now.kv_dtype).bits_per_element <= find(NARROWER_CACHES[0]).bits_per_element:
        return []
    name = " or ".join(NARROWER_CACHES)
    return [_asked(report, now._replace(kv_dtype=NARROWER_CACHES[0]), "kv", f"{name} KV cache")]


def _narrower_weights(report: CapacityReport) -> list[Lever]:
    now = report.question
    bits = storage_of(now.model, now.weight_dtype).linear.bits
    formats = [name for name in NARROWER_WEIGHTS if find(name).bits < bits]
    return [_asked(report, now._replace(weight_dtype=name), "weights", f"{name} weights") for name in formats]


def _more_gpus(report: CapacityReport) -> list[Lever]:
    now = report.question
    twice = 2 * now.tensor_parallel
    if twice not in shared_sizes(now.model, report.device):
        return []
    return [_asked(report, now._replace(tensor_parallel=twice), "gpus", f"{twice} GPUs share it")]


def _asked(report: CapacityReport, question: Question, action: str, text: str) -> Lever:
    """The change, and how much less of a GPU is taken."""
    then = solve(question, report.device)
    return Lever(action, text, _taken(report) - _taken(then), then)


def _taken(report: CapacityReport) -> int:
    return report.budget.weight_bytes + report.budget.reserve_bytes + report.cache_bytes


def _bigger_gpus(report: CapacityReport) -> list[Lever]:
    """Of the same maker's data-centre parts the smallest with half as much again, and the largest.

    Those whose driver's total is known come before those whose total would be assumed.
    """
    sizes = {entry: _memory_of(entry) for entry in _peers(report.device)}
    enough = WORTH_MOVING * report.budget.total_bytes
    larger = [entry for entry, (known, total_bytes) in sizes.items() if known and total_bytes >= enough]
    larger = larger or [entry for entry, (_, total_bytes) in sizes.items() if total_bytes >= enough]
    larger.sort(key=lambda entry: sizes[entry])
    chosen = list({sizes[entry]: entry for entry in (*larger[-1:], *larger[:1])}.values())[::-1]
    return [_moved(report, solve(report.question, hardware.from_entry(entry))) for entry in chosen]


def _moved(report: CapacityReport, then: CapacityReport) -> Lever:
    more = then.budget.usable_bytes - report.budget.usable_bytes
    return Lever("gpu", f"on {then.device.name}", more, then)


def _peers(device: Device) -> list[Entry]:
    """The maker's data-centre parts that ship, found by their files' text: parsing each would cost more."""
    wanted = (f"\nvendor: {device.data['vendor']}\n", "\nsegment: datacenter\n", "\nstatus: available\n")
    entries, _ = HARDWARE.read_each(lambda entry: entry)
    return [e for e in entries if not e.user and e.name != device.name and all(w in e.text for w in wanted)]


def _memory_of(entry: Entry) -> tuple[bool, float]:
    """Whether the driver's total stands in a file, and it or the label [B]; 0 if neither does."""
    driver = re.search(r"\n  capacity_driver_bytes: (\d+)", entry.text)
    if driver:
        return True, int(driver[1])
    label = re.search(r"\n  capacity_gi?b: ([\d.]+)", entry.text)
    return False, to_si("gib", float(label[1])) if label else 0
