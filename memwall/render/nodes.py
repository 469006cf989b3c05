"""A node, or all of them, as records and pages."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.nodes import Node
from memwall.render.bounds import notes_section
from memwall.render.data import Record
from memwall.render.page import Page, Section, Table, numbers, star
from memwall.reports.evidence import confession
from memwall.reports.link_notes import link_remarks
from memwall.reports.node import NodeReport
from memwall.units import format_bytes, format_bytes_per_s, format_seconds, significant


def records(nodes: Sequence[Node]) -> list[Record]:
    """The list for programs."""
    return [{"name": node.name, "title": node.title, "gpu": node.gpu, "gpus": node.gpus} for node in nodes]


def list_page(nodes: Sequence[Node]) -> Page:
    """The list for people."""
    rows = [(n.name, n.title, f"{n.gpus} x {n.gpu}", n.data["fabric"]["kind"]) for n in nodes]
    return [Section("", Table(rows, ("name", "node", "GPUs", "fabric")))]


def record(report: NodeReport) -> Record:
    """One node for programs."""
    node = report.node
    numbers_of = {
        "host_memory_bytes": node.constant("host", "memory_gb"),
        "host_memory_bytes_per_s": node.constant("host", "memory_gb_per_s"),
        "nvme_bytes": node.constant("storage", "nvme_gb"),
        "power_w": node.constant("power", "system_w"),
    }
    return {
        "name": node.name,
        "title": node.title,
        "gpu": node.gpu,
        "gpus": node.gpus,
        "memory_bytes": report.memory_bytes,
        "fabric": node.data["fabric"]["kind"],
        "switches": node.data["fabric"].get("switches"),
        "link": report.link.kind,
        "link_bytes_per_s": report.link.rate.value,
        "network_bytes_per_s_per_gpu": node.network.rate.value if node.network else None,
        "host_link_bytes_per_s": report.host_link.rate.value if report.host_link else None,
        **{key: constant.value if constant else None for key, constant in numbers_of.items()},
        "yardstick": report.model.name,
        "library": report.link.library,
        "all_reduces": [
            {
                "what": row.what,
                "bytes": row.size_bytes,
                "count": row.repeats,
                "inside_time_s": row.inside_s,
                "inside_engine_time_s": row.engine_s,
                "two_nodes_time_s": row.across_s,
            }
            for row in report.traffic
        ],
        "weak_sources": [
            {"key": each.key, "kind": each.kind, "source": each.source}
            for each in report.rests_on
            if each.weak
        ],
        "notes": notes(report),
    }


def page(report: NodeReport) -> Page:
    """One node for people."""
    node = report.node
    return [
        Section(f"{node.title} ({node.name})", Table(_facts(report))),
        Section(_yardstick(report), _traffic(report)),
        *notes_section(notes(report)),
    ]


def _yardstick(report: NodeReport) -> str:
    gpus = min(report.node.gpus, 8)
    return f"All-reduces of one pass of {report.model.title}, tensor parallel on {gpus} GPUs"


def notes(report: NodeReport) -> list[str]:
    """What its reader should know."""
    lines = [f"bandwidths are one way; {report.traffic[0].repeats} all-reduces a pass, two a layer"]
    library = report.link.library
    lines.append(
        f"on one node by {library}, and by an engine whose own kernel does short ones, as memwall step has; "
        f"across two by {library}"
    )
    lines += _reason(report)
    note = report.node.data["fabric"].get("note")
    lines += [note] if note else []
    links = [report.link, *([report.node.network] if report.node.network else [])]
    doubts = [confession(each) for each in report.rests_on if each.weak]
    return [*lines, *dict.fromkeys([*link_remarks(links), *doubts])]


def _reason(report: NodeReport) -> list[str]:
    """Why tensor parallelism stays where the links are."""
    out, network = report.step_out, report.node.network
    if out is None or network is None:
        return []
    if out < WORTHWHILE:
        return [
            "no fabric joins the GPUs: tensor parallelism pays among two, beyond them the all-reduces of a "
            "prefill take seconds; pipeline stages and replicas ask less of the links"
        ]
    ratio = significant(report.link.rate.value / network.rate.value, 3)
    return [
        f"tensor parallelism stays among the {report.node.gpus} GPUs: a GPU's network card carries 1/{ratio} "
        f"of its link, and a step's all-reduces across two nodes take {significant(out, 3)} times as long; "
        "between nodes go pipeline stages, experts and replicas"
    ]


WORTHWHILE = 1.5


def _facts(report: NodeReport) -> list[tuple[str, ...]]:
    node, memory = report.node, report.memory_bytes
    fabric, network, host = node.data["fabric"], node.data.get("network"), node.data.get("host")
    switches = f"{fabric['switches']} x {fabric['kind']}" if fabric.get("switches") else fabric["kind"]
    facts: list[tuple[str, ...]] = [
        ("GPUs", f"{node.gpus} x {report.device.title}", format_bytes(memory) if memory else ""),
        ("fabric", switches, f"{report.link.title}, {_rate(report.link.rate.value)} a GPU"),
    ]
    if network and node.network:
        facts.append(("network", network["form"], f"{_rate(node.network.rate.value)} a GPU{_weak(report)}"))
    if host:
        size, rate = node.constant("host", "memory_gb"), node.constant("host", "memory_gb_per_s")
        if size and rate:
            text = f"{format_bytes(size.value)}, {_rate(rate.value)}{_weak(report)}"
            facts.append(("host", host["form"], text))
    if report.host_link:
        facts.append(("to the host", report.host_link.title, f"{_rate(report.host_link.rate.value)} a GPU"))
    nvme, power = node.constant("storage", "nvme_gb"), node.constant("power", "system_w")
    if nvme:
        facts.append(("drives", "NVMe", format_bytes(nvme.value) + _weak(report)))
    if power:
        facts.append(("power", "at most", f"{power.value:g} W{_weak(report)}"))
    return facts


def _traffic(report: NodeReport) -> Table:
    rows = [
        (row.what, format_bytes(row.size_bytes), *map(_time, (row.inside_s, row.engine_s, row.across_s)))
        for row in report.traffic
    ]
    return numbers(rows, ("pass", "each", "one node", "in an engine", "two nodes"))


def _rate(bytes_per_s: float) -> str:
    return format_bytes_per_s(bytes_per_s)


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else format_seconds(seconds)


def _weak(report: NodeReport) -> str:
    return star(any(each.weak for each in report.rests_on))
