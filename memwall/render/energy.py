"""Where a token's energy goes, in words."""

from __future__ import annotations

from memwall.constant import Constant
from memwall.reports.cost import CostReport
from memwall.reports.energy import Split, link_energy, memory_energy
from memwall.reports.evidence import confession
from memwall.units import significant, to_si


def energy_text(split: Split) -> str:
    """0.45 J a token: memory 0.05 J, links 0.001 J, the rest 0.4 J."""
    text = f"{significant(split.total_j)} J a token"
    if split.memory_j is None:
        return text
    memory = f"memory {significant(split.memory_j, 3)} J"
    links = f", links {significant(split.links_j, 3)} J" if split.links_j else ""
    rest = "more than that" if split.rest_j is None else f"the rest {significant(split.rest_j, 3)} J"
    return f"{text}: {memory}{links}, {rest}"


def energy_notes(report: CostReport) -> list[str]:
    """What the parts rest on, and what is not published."""
    device = report.device
    memory, kind = memory_energy(device), device.group("memory").get("type") or "its memory"
    if memory is None:
        return [f"energy is not split: no published energy of a bit of {kind} was found"]
    passes = (report.decode, report.prefill)
    links = [each.group.network or each.group.link for p in passes for each in p.spread.exchanges]
    known = {link.title: link_energy(link) for link in links}.items()
    lines = [
        f"memory: compulsory traffic x {_pj(memory)} pJ/bit of {kind}, {memory.note} ({memory.source}); "
        "the rest: arithmetic, caches, leakage and waiting, of the power stated"
    ]
    lines += [f"links: {title} {_pj(found)} pJ/bit ({found.source})" for title, found in known if found]
    missing = [title for title, found in known if found is None]
    if missing:
        lines.append(
            f"links are in the rest: no published energy of a bit was found for {', '.join(missing)}"
        )
    return [*lines, *([confession(memory)] if memory.weak else [])]


def _pj(constant: Constant) -> str:
    return significant(constant.value / to_si("pj", 1))
