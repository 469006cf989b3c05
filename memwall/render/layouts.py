"""A layout and its exchanges, as the record and the page of a pass show them."""

from __future__ import annotations

from memwall.maths import Count
from memwall.render.data import Record
from memwall.render.page import Section, numbers
from memwall.reports.evidence import confession
from memwall.reports.link_notes import engine_remark, pass_remarks
from memwall.reports.step import StepReport
from memwall.units import format_bytes, format_seconds, significant


def layout_record(report: StepReport) -> Record:
    """The keys of a layout; work and bytes of a pass are one GPU's."""
    spread = report.spread
    layout = spread.layout
    return {
        "tp": layout.tp,
        "pp": layout.pp,
        "ep": layout.ep,
        "dp": layout.dp,
        "gpus": layout.gpus,
        "sequence_parallel": layout.sequence_parallel,
        "imbalance": layout.imbalance,
        "microbatches": layout.microbatches(spread.batch),
        "bubble": spread.bubble,
        "estimate_bubble": report.expected_bubble,
        "offloaded_bytes": spread.offloaded_bytes,
        "host_bound_time_s": sum(each.bound_time_s for each in spread.host),
        "host_estimate_time_s": sum(each.estimate_time_s for each in spread.host),
        "communication_bound_time_s": spread.bound_time_s,
        "communication_estimate_time_s": spread.estimate_time_s,
        "exchanges": [
            {
                "name": each.name,
                "op": each.what.op,
                "bytes": each.what.bytes,
                "gpus": each.what.gpus,
                "nodes": each.group.nodes,
                "repeats": each.repeats,
                "algorithm": each.algorithm,
                "by": each.by,
                "bound_time_s": each.bound_time_s,
                "estimate_time_s": each.estimate_time_s,
            }
            for each in spread.exchanges
        ],
    }


def _percent(share: Count) -> str:
    return f"{significant(100 * share, 3)} %"


def layout_facts(report: StepReport) -> list[tuple[str, ...]]:
    """The layout on a line; nothing on one GPU."""
    layout = report.spread.layout
    if layout.gpus == 1:
        return []
    parts = layout.microbatches(report.spread.batch)
    several = "es" if parts > 1 else ""
    bubble = f", {parts} microbatch{several}, a stage waits {_percent(report.spread.bubble)} at the bound"
    if report.expected_bubble is not None:
        bubble += f", {_percent(report.expected_bubble)} in the estimate"
    batch = report.setting.tokens.batch
    each = f"{batch} sequence{'s' if batch > 1 else ''} on each in a pass"
    return [("layout", f"{layout.gpus} GPUs: {layout.text}", each + (bubble if layout.pp > 1 else ""))]


def exchange_section(report: StepReport) -> list[Section]:
    """What the GPUs send each other, all repeats of each."""
    spread = report.spread
    if not (spread.exchanges or spread.host):
        return []
    rows = [
        (
            f"{each.name.removesuffix(f'.{each.what.op}')}: {each.what.op}, {each.what.gpus}",
            str(each.repeats),
            format_bytes(each.what.bytes),
            format_seconds(each.repeats * each.bound_time_s),
            "-" if each.estimate_time_s is None else format_seconds(each.repeats * each.estimate_time_s),
            "-" if each.estimate_time_s is None else f"{each.by}, {each.algorithm}",
        )
        for each in spread.exchanges
    ]
    if len(spread.exchanges) > 1:
        known = spread.estimate_time_s
        total = "-" if known is None else format_seconds(known)
        rows.append(("together", "", "", format_seconds(spread.bound_time_s), total, ""))
    rows += [
        (
            f"{each.name} (over {each.link.title})",
            "1",
            format_bytes(each.bytes),
            format_seconds(each.bound_time_s),
            format_seconds(each.estimate_time_s),
            "copies",
        )
        for each in spread.host
    ]
    table = numbers(rows, ("exchange", "x", "bytes", "bound", "estimate", "by"))
    return [Section("Over the links", table._replace(right=table.right - {5}))]


def layout_shared_notes(report: StepReport) -> list[str]:
    """What its reader should know of a layout, on whichever device."""
    spread = report.spread
    layout = spread.layout
    if layout.gpus == 1:
        return []
    if layout.pp > 1:
        notes = [
            "kernels, FLOPs and traffic are those of one microbatch on its way through all stages, a GPU of "
            "each; memory is the fullest GPU's; the bound takes the stages as alike, the estimate has the "
            f"head on the last; tokens/s of all {layout.gpus}"
        ]
    else:
        notes = [f"FLOPs, traffic and memory are one GPU's; tokens/s of all {layout.gpus}"]
    notes += layout.uneven(spread.batch)
    if layout.ep > 1:
        notes.append(
            f"routing: the busiest GPU's experts have {layout.imbalance:g} times the mean of the tokens"
        )
    return [*notes, *engine_remark([layout])]


def layout_own_notes(report: StepReport) -> list[str]:
    """What its reader should know of it on this device: the host, and the links."""
    notes = _host_notes(report)
    if any(each.group.nodes > 1 for each in report.spread.exchanges):
        notes.append("some exchanges leave the node, through its network cards")
    return [*notes, *pass_remarks(report.device, [report.spread.layout])]


def _host_notes(report: StepReport) -> list[str]:
    """What streaming from the host does to the pass."""
    host = report.spread.host
    if not host:
        return []
    kept = format_bytes(report.spread.offloaded_bytes)
    fetched_s = sum(each.estimate_time_s for each in host)
    notes = [
        f"{kept} of each GPU are in the host's memory, fetched in every pass, {format_seconds(fetched_s)}, "
        f"while its kernels run, in turn {format_seconds(report.kernels_bound_time_s)}"
    ]
    rates = {each.link.rate.key: each.link.rate for each in host}
    return [*notes, *(confession(rate) for rate in rates.values() if rate.weak)]
