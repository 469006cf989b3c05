"""The report on a collective as a record and as a page."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.errors import Refusal
from memwall.render.bounds import compared_notes, notes_section
from memwall.render.data import Record
from memwall.render.page import Page, Section, Table, numbers, star
from memwall.reports.collective import CollectiveReport
from memwall.reports.link_notes import link_remarks, own_kernel_remark
from memwall.units import format_bytes, format_bytes_per_s, format_seconds

Row = CollectiveReport | Refusal


def record(report: CollectiveReport) -> Record:
    """The report for programs."""
    what, first = report.what, report.stages[0]
    return {
        "gpu": report.device.name,
        "op": what.op,
        "bytes": what.bytes,
        "gpus": what.gpus,
        "nodes": report.group.nodes,
        "node": report.node.name if report.node else None,
        "link": first.link.kind,
        "link_bytes_per_s": first.link.rate.value,
        "network_bytes_per_s": report.group.network.rate.value if report.group.network else None,
        "wire_bytes": round(what.wire_bytes(first.link.switched)),
        "regime": "link-bound",
        "limited_by": "link",
        "bound_time_s": report.bound_time_s,
        "estimate_time_s": report.estimate_time_s,
        "library": report.library,
        "engine_estimate_time_s": report.engine.time_s if report.engine else None,
        "engine_algorithm": report.engine.algorithm if report.engine else None,
        "algbw_bytes_per_s": report.algbw_bytes_per_s,
        "busbw_bytes_per_s": report.busbw_bytes_per_s,
        "stages": [
            {
                "op": stage.what.op,
                "gpus": stage.what.gpus,
                "bytes": stage.what.bytes,
                "link": stage.link.kind,
                "algorithm": stage.algorithm,
                "bound_time_s": stage.bound_time_s,
                "estimate_time_s": stage.estimate_time_s,
            }
            for stage in report.stages
        ],
        "defaults": list(report.defaults),
        "assumed": list(report.device.assumed),
        "weak_sources": [
            {"key": each.key, "kind": each.kind, "source": each.source}
            for each in report.rests_on
            if each.weak
        ],
        "notes": notes(report),
    }


def page(report: CollectiveReport) -> Page:
    """The report for people."""
    heading = f"{_title(report)}  on {report.device.title} ({report.device.name})"
    return [
        Section(heading, Table(_facts(report))),
        *_stages(report),
        *notes_section(notes(report)),
    ]


def compare_page(rows: Sequence[Row]) -> Page:
    """Several GPUs side by side."""
    first = next(row for row in rows if isinstance(row, CollectiveReport))
    header = ("GPU", "link", "one way", "bound", "estimate", "in an engine", "algbw", "busbw")
    table = numbers([_compare_row(row) for row in rows], header)
    engine = any(isinstance(row, CollectiveReport) and row.engine for row in rows)
    said = [*_counting(first, engine), *compared_notes(rows, _own)]
    return [Section(_title(first), table), *notes_section(said)]


def notes(report: CollectiveReport) -> list[str]:
    """What its reader should know."""
    return [*_counting(report, report.engine is not None), *_own(report)]


def _counting(report: CollectiveReport, engine: bool) -> list[str]:
    lines = [f"by default: {', '.join(report.defaults)}"] if report.defaults else []
    what = {
        "all_gather": "the whole output",
        "reduce_scatter": "the whole input",
        "all_to_all": "a GPU's input",
    }
    lines.append(f"bytes as nccl-tests counts them: {what.get(report.what.op, 'the buffer of one GPU')}")
    lines.append("estimate, algbw, busbw: of the maker's library (NCCL, RCCL, oneCCL), as nccl-tests does")
    if engine:
        lines.append(
            "in an engine: by a kernel of its own where that is faster, as vLLM, SGLang and TensorRT-LLM "
            "have for short all-reduces; memwall step, cost, serve and plan reckon with it"
        )
    return lines


def _own(report: CollectiveReport) -> list[str]:
    lines: list[str] = []
    if report.what.gpus == 1:
        return lines
    if report.what.op == "all_reduce" and report.group.link.switched:
        lines.append("bound: with the sums done in the switch each byte crosses a GPU's link once")
    lines += own_kernel_remark(report.group.link) if report.engine else []
    return [*lines, *link_remarks(stage.link for stage in report.stages)]


def _title(report: CollectiveReport) -> str:
    what, nodes = report.what, report.group.nodes
    where = f", {nodes} nodes" if nodes > 1 else ""
    return f"{what.op}  {format_bytes(what.bytes)}  {what.gpus} GPU{'s' if what.gpus > 1 else ''}{where}"


def _facts(report: CollectiveReport) -> list[tuple[str, ...]]:
    if report.what.gpus == 1:
        return [("time", "0 s", "one GPU has nobody to send to: a collective is among two or more")]
    link, network = report.group.link, report.group.network
    weak = star(any(each.weak for each in report.rests_on))
    facts: list[tuple[str, ...]] = [
        ("link", link.title, f"{format_bytes_per_s(link.rate.value)} one way {link.rate.note}".rstrip())
    ]
    if network:
        facts.append(
            ("between nodes", network.title, f"{format_bytes_per_s(network.rate.value)} a GPU one way")
        )
    else:
        wire = format_bytes(report.what.wire_bytes(link.switched))
        facts.append(("wire", wire, "sent and received by each GPU, at least"))
    facts.append(("bound", format_seconds(report.bound_time_s) + weak, "the link's rate alone"))
    if report.estimate_time_s is not None:
        how = f"{report.library}: {report.stages[0].algorithm}"
        facts.append(("estimate", format_seconds(report.estimate_time_s), how))
        if report.engine:
            own = f"its own kernel: {report.engine.algorithm}"
            facts.append(("in an engine", format_seconds(report.engine.time_s), own))
        facts.append(("algbw", _rate(report.algbw_bytes_per_s), "bytes / estimate"))
        facts.append(("busbw", _rate(report.busbw_bytes_per_s), f"algbw x {report.what.factor:g}"))
    return facts


def _stages(report: CollectiveReport) -> list[Section]:
    if len(report.stages) == 1:
        return []
    rows = [
        (
            f"{stage.what.op} of {stage.what.gpus}, {stage.link.title}",
            format_bytes(stage.what.bytes),
            format_seconds(stage.bound_time_s),
            "-" if stage.estimate_time_s is None else format_seconds(stage.estimate_time_s),
        )
        for stage in report.stages
    ]
    return [Section("Stages", numbers(rows, ("stage", "bytes", "bound", "estimate")))]


def _compare_row(row: Row) -> tuple[str, ...]:
    if isinstance(row, Refusal):
        return (row.gpu, *["-"] * 7)
    estimated = row.estimate_time_s
    return (
        row.device.name,
        row.group.link.title,
        format_bytes_per_s(row.group.link.rate.value),
        format_seconds(row.bound_time_s),
        "-" if estimated is None else format_seconds(estimated),
        format_seconds(row.engine.time_s) if row.engine else "-",
        _rate(row.algbw_bytes_per_s),
        _rate(row.busbw_bytes_per_s),
    )


def _rate(bytes_per_s: float | None) -> str:
    return "-" if bytes_per_s is None else format_bytes_per_s(bytes_per_s)
