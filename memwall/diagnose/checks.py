"""Healthy ranges, and the decision tree's next steps in order.

Ranges: main memory above 70 % of its bandwidth where it limits; L2 hit rate 30 to 80 %, below 10 % for
streams, above 90 % where all fits; no bank conflicts, no spills, no excess sectors; occupancy above 60 %,
unless few warps drive the matrix unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from memwall.units import significant

BUSY, IDLE = 0.70, 0.40
"""Shares of a peak above which a unit limits, and below which it does not."""
FULL, SPARSE = 0.60, 0.33
"""Occupancy that hides latency, and that hardly does."""
STREAM_HITS, FEW_HITS, MANY_HITS = 0.10, 0.30, 0.80
MATRIX_AT_WORK = 0.5
NEGLIGIBLE = 0.01
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
"""The passes over shared memory, that conflicts are a share of."""


class Check(NamedTuple):
    """One healthy range and where a kernel stands."""

    name: str
    value: float | None
    """A share of one, or a count; None if it was not collected."""
    healthy: str
    status: str
    """ok, note, bad, or missing."""
    text: str


class Finding(NamedTuple):
    """A step of the decision tree, and what the profile says about it."""

    action: str
    text: str


def regime_of(values: Mapping[str, float], intensity: float | None, ridge: float | None) -> str:
    """memory-bound, compute-bound or latency-bound, by what is busy; by intensity where nothing is counted.

    A kernel that keeps neither main memory nor a unit busy waits for latency, whatever its intensity.
    """
    memory, compute = values.get("dram_share"), values.get("sm_share")
    if memory is not None or compute is not None:
        busiest = max(memory or 0.0, compute or 0.0)
        if busiest < IDLE and (values.get("tensor_share") or 0.0) < IDLE:
            return "latency-bound"
        return "memory-bound" if (memory or 0.0) >= (compute or 0.0) else "compute-bound"
    if intensity is not None and ridge is not None:
        return "memory-bound" if intensity < ridge else "compute-bound"
    return "unknown"


def checks(values: Mapping[str, float], regime: str) -> tuple[Check, ...]:
    """Every healthy range."""
    return (
        _bandwidth(values.get("dram_share"), regime),
        _hits(values.get("l2_hit_share")),
        _banks(values),
        _spills(values.get("spill_requests")),
        _excess(
            "uncoalesced accesses", _uncoalesced(values), "none", "of the sectors hold nothing that is used",
            "let neighbouring threads load neighbouring addresses: memwall access",
        ),
        _occupancy(values),
    )  # fmt: skip


def steps(values: Mapping[str, float], regime: str, found: tuple[Check, ...]) -> tuple[Finding, ...]:
    """What to do, in the tree's order, with what the profile says of each."""
    by_name = {check.name: check for check in found}
    coalescing, conflicts = by_name["uncoalesced accesses"], by_name["bank conflicts"]
    spills, occupancy = by_name["register spills"], by_name["occupancy"]
    if regime == "memory-bound":
        made = [
            Finding(
                "fusion", "join it with its neighbours, what passes between them stays on chip: memwall fuse"
            ),
            Finding("quantisation", "fewer bits an element move fewer bytes: memwall quant"),
            _told("coalescing", coalescing, "accesses are coalesced, or were not counted"),
            _told(
                "shared-memory tiles", conflicts, "larger tiles read their operands less often: memwall tile"
            ),
            Finding("async copies", "keep more bytes in flight: cp.async, TMA"),
            Finding("KV compression", "attention in decode only: fewer KV heads, a narrower KV cache"),
        ]
    elif regime == "compute-bound":
        made = [
            Finding("batch", "more rows add time in proportion: the units are busy"),
            _told("tile efficiency", conflicts, "tiles that fill whole waves of the units: memwall tile"),
            _told(
                "registers", spills if spills.status == "bad" else occupancy, "registers are not the limit"
            ),
            Finding(
                "narrower dtype", "fp8 or fp4 operands have twice and four times the rate: memwall roofline"
            ),
            Finding("fusion", "saves launches and the bytes between kernels, not FLOPs"),
        ]
    elif regime == "latency-bound":
        made = [
            _told("occupancy", occupancy, "more blocks, or more work in flight in each"),
            Finding("parallelism", "split the work over more blocks: split-K, split-KV, smaller tiles"),
            Finding("launch", "many short kernels: capture a graph, fuse"),
            _told("coalescing", coalescing, "accesses are coalesced, or were not counted"),
        ]
    else:
        made = [
            Finding(
                "collect", "regime unknown: collect --section SpeedOfLight --section MemoryWorkloadAnalysis"
            )
        ]
    faults = [
        Finding(name, check.text)
        for name, check in (("bank conflicts", conflicts), ("spills", spills), ("coalescing", coalescing))
        if check.status == "bad" and not any(check.text in step.text for step in made)
    ]
    return (*faults, *made)


def _told(action: str, check: Check, otherwise: str) -> Finding:
    return Finding(action, check.text if check.status == "bad" else otherwise)


def _percent(share: float) -> str:
    return f"{significant(100 * share, 3)} %"


def _bandwidth(share: float | None, regime: str) -> Check:
    name, healthy = "memory bandwidth", f"above {_percent(BUSY)} if memory-bound"
    if share is None:
        return Check(name, None, healthy, "missing", "not collected")
    if share >= BUSY:
        return Check(name, share, healthy, "ok", f"{_percent(share)} of the peak: main memory is busy")
    if regime == "compute-bound":
        return Check(name, share, healthy, "ok", f"{_percent(share)}: the units are the limit, not memory")
    status = "bad" if share < IDLE else "note"
    return Check(name, share, healthy, status, f"{_percent(share)} of the peak: it waits for something else")


def _hits(share: float | None) -> Check:
    name, healthy = "L2 hit rate", f"{_percent(FEW_HITS)} to {_percent(MANY_HITS)}"
    if share is None:
        return Check(name, None, healthy, "missing", "not collected")
    if share < STREAM_HITS:
        text = "a stream: each line once"
    elif share < FEW_HITS:
        text = "little is found again"
    elif share <= MANY_HITS:
        text = "some is found again; writes that find their line count as hits too"
    else:
        text = "nearly all is found again: main memory is spared"
    return Check(name, share, healthy, "ok", f"{_percent(share)}: {text}")


def _conflicts(values: Mapping[str, float]) -> float | None:
    if "shared_excess" in values and values.get("shared_wavefronts"):
        return min(1.0, values["shared_excess"] / values["shared_wavefronts"])
    if values.get("shared_wavefronts") == 0:
        return 0.0
    each = values.get("conflicts_an_access")
    return None if each is None else each / (1 + each)


def _banks(values: Mapping[str, float]) -> Check:
    share, counted = _conflicts(values), values.get("shared_excess")
    if share is None and counted == 0:
        share = 0.0  # none of however many passes
    if share is None and counted is not None:
        text = (
            f"{significant(counted)} conflicts counted; of how many passes is missing: collect {WAVEFRONTS}"
        )
        return Check("bank conflicts", None, "none", "note", text)
    return _excess(
        "bank conflicts", share, "none", "of the passes over shared memory are conflicts",
        "pad or swizzle the tile: memwall banks",
    )  # fmt: skip


def _uncoalesced(values: Mapping[str, float]) -> float | None:
    if "global_excess" in values and values.get("global_sectors"):
        return values["global_excess"] / values["global_sectors"]
    share = values.get("coalescing_share")
    return None if share is None else 1 - share


def _excess(name: str, share: float | None, healthy: str, what: str, remedy: str) -> Check:
    if share is None:
        return Check(name, None, healthy, "missing", "not collected")
    if share <= NEGLIGIBLE:
        return Check(name, share, healthy, "ok", "none" if not share else f"{_percent(share)}: negligible")
    return Check(name, share, healthy, "bad", f"{_percent(share)} {what}: {remedy}")


def _spills(requests: float | None) -> Check:
    name, healthy = "register spills", "none"
    if requests is None:
        return Check(name, None, healthy, "missing", "not collected")
    if not requests:
        return Check(name, 0.0, healthy, "ok", "none")
    text = f"{significant(requests)} requests to local memory: fewer registers a thread, or smaller tiles"
    return Check(name, requests, healthy, "bad", f"{text}: memwall occupancy")


def _occupancy(values: Mapping[str, float]) -> Check:
    share = values.get("occupancy_share")
    name, healthy = "occupancy", f"above {_percent(FULL)}, or a busy matrix unit"
    if share is None:
        return Check(name, None, healthy, "missing", "not collected")
    if share >= FULL:
        return Check(name, share, healthy, "ok", _percent(share))
    if max(values.get("tensor_share", 0.0), values.get("dram_share", 0.0)) >= MATRIX_AT_WORK:
        return Check(
            name, share, healthy, "ok", f"{_percent(share)}: few warps, and enough to keep a unit busy"
        )
    status = "bad" if share < SPARSE else "note"
    limit = values.get("theoretical_occupancy_share")
    of = f" of at most {_percent(limit)}" if limit is not None else ""
    return Check(
        name, share, healthy, status, f"{_percent(share)}{of}: registers or shared memory, memwall occupancy"
    )
