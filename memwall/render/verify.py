"""A verification as records and as a page."""

from __future__ import annotations

from collections.abc import Callable

from memwall.render.bounds import evidence_record, mark, notes_section
from memwall.render.data import Record
from memwall.render.page import Lines, Page, Section, Table
from memwall.reports.evidence import confession, weak
from memwall.traffic import Traffic
from memwall.units import (
    format_bytes,
    format_bytes_per_s,
    format_flops_per_s,
    format_seconds,
    scaled,
    significant,
)
from memwall.verify.case import Trial
from memwall.verify.judge import Row, Verification

_NONE = "-"


def record(report: Verification) -> Record:
    """The run as one document."""
    bounds = [row.prediction.bound for row in report.rows if row.prediction]
    return {
        "gpu": report.device.name,
        "machine": dict(report.machine),
        "passed": report.passed,
        "trials": rows(report),
        **evidence_record(report.device, bounds),
        "notes": _notes(report),
    }


def rows(report: Verification) -> list[Record]:
    """A record a trial."""
    return [_row_record(row, report.estimated) for row in report.rows]


def _row_record(row: Row, estimated: bool) -> Record:
    trial, outcome, prediction = row.outcome.trial, row.outcome, row.prediction
    counters = outcome.counters
    return {
        "op": trial.op,
        "kernel": trial.kernel,
        "shape": dict(trial.dims),
        "dtype": trial.dtype,
        "causal": trial.causal,
        "impl": trial.impl,
        "warm": trial.warm,
        "status": outcome.status,
        "message": outcome.message,
        "verdict": row.verdict,
        "faults": list(row.faults),
        "error": outcome.error,
        "tolerance": outcome.tolerance,
        "bound_time_s": prediction.bound_time_s if prediction else None,
        "limited_by": prediction.bound.limited_by if prediction else None,
        **(_estimate_record(row) if estimated else {}),
        "time_s": outcome.time_s,
        "of_bound": row.of_bound,
        "time": dict(outcome.time or {}),
        "predicted": {
            **_traffic("dram", prediction.dram if prediction else None),
            "dram_most_read_bytes": prediction.most_read_bytes if prediction else None,
            **_traffic("l2", prediction.l2 if prediction else None),
        },
        "counted": {
            "dram_read_bytes": counters.dram_read_bytes if counters else None,
            "dram_written_bytes": counters.dram_written_bytes if counters else None,
            "lts_bytes": counters.l2_bytes if counters else None,
        },
        "read_ratio": row.read_ratio,
        "written_ratio": row.written_ratio,
        "band": prediction.band.share if prediction else None,
        "judged": prediction.judged if prediction else None,
    }


def _estimate_record(row: Row) -> Record:
    return {"estimate_time_s": row.estimate_time_s, "estimate_error": row.estimate_error}


def _traffic(level: str, traffic: Traffic | None) -> Record:
    return {
        f"{level}_read_bytes": traffic.read_bytes if traffic else None,
        f"{level}_written_bytes": traffic.written_bytes if traffic else None,
    }


def page(report: Verification) -> Page:
    """The run for people."""
    machine = report.machine
    heading = f"verify  on {report.device.title} ({report.device.name})"
    names = ("gpu_name", "date", "driver", "cuda", "torch", "triton", "cupy-cuda13x", "cupy-cuda12x")
    facts = [(name.removeprefix("gpu_"), str(machine[name])) for name in names if machine.get(name)]
    facts.append(("answer", _answer(report)))
    sections = [Section(heading, Table(facts)), Section("Time", _time_table(report))]
    if report.counted:
        sections.append(Section("Bytes through main memory", _byte_table(report)))
        sections += _l2_section(report)
    faults = [f"{case(row.outcome.trial)}, {row.outcome.trial.kernel}: {'; '.join(row.faults)}"
              for row in report.rows if row.faults]  # fmt: skip
    sections += [Section("Not as predicted", Lines(faults))] if faults else []
    return [*sections, *notes_section(_notes(report))]


def _answer(report: Verification) -> str:
    verdicts = [row.verdict for row in report.rows]
    counts = {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)}
    listed = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    if not report.passed and not any(row.faults for row in report.rows):
        return f"nothing was judged: {listed or 'no trials'}"
    return f"{'as predicted' if report.passed else 'not as predicted'}: {listed}"


def _time_table(report: Verification) -> Table:
    columns: list[tuple[str, Callable[[Row], str]]] = [
        ("case", lambda row: case(row.outcome.trial)),
        ("kernel", lambda row: row.outcome.trial.kernel),
        ("bound", _bound),
        ("measured", lambda row: _seconds(row.outcome.time_s)),
        ("p20 to p80", _spread),
        ("of bound", lambda row: _percent(row.of_bound)),
        ("rate", _rate),
        ("clock", _clock),
        ("error", lambda row: _NONE if row.outcome.error is None else significant(row.outcome.error, 2)),
        ("verdict", lambda row: row.verdict),
    ]
    if report.estimated:
        columns.insert(3, ("estimate", lambda row: _seconds(row.estimate_time_s)))
        columns.insert(5, ("off", _off))
    return _table(columns, report, words={"case", "kernel", "verdict"})


def _byte_table(report: Verification) -> Table:
    columns: list[tuple[str, Callable[[Row], str]]] = [
        ("case", lambda row: case(row.outcome.trial)),
        ("kernel", lambda row: row.outcome.trial.kernel),
        ("read", _reads),
        ("counted", lambda row: _counted(row, "dram_read_bytes")),
        ("ratio", lambda row: _ratio(row.read_ratio)),
        ("written", _writes),
        ("counted", lambda row: _counted(row, "dram_written_bytes")),
        ("ratio", lambda row: _ratio(row.written_ratio)),
        ("band", _band),
        ("verdict", lambda row: row.verdict),
    ]
    return _table(columns, report, words={"case", "kernel", "band", "verdict"})


def _l2_section(report: Verification) -> list[Section]:
    known = [row for row in report.rows if row.outcome.counters and row.prediction and row.prediction.l2]
    if not known:
        return []
    table = []
    for row in known:
        if not (row.prediction and row.prediction.l2 and row.outcome.counters):
            continue
        asked, counted = row.prediction.l2.total_bytes, row.outcome.counters.l2_bytes
        numbers = (format_bytes(asked), format_bytes(counted), significant(counted / asked, 3))
        table.append((case(row.outcome.trial), row.outcome.trial.kernel, *numbers))
    header = ("case", "kernel", "requested", "lts__t_bytes", "ratio")
    return [Section("Bytes through L2", Table(table, header, frozenset({2, 3, 4})))]


def _table(columns: list[tuple[str, Callable[[Row], str]]], report: Verification, words: set[str]) -> Table:
    header = tuple(name for name, _ in columns)
    right = frozenset(i for i, name in enumerate(header) if name not in words)
    return Table([tuple(make(row) for _, make in columns) for row in report.rows], header, right)


def case(trial: Trial) -> str:
    """A trial's operator, shape and format in few words: attention 1x32 d128 8192x8192 causal bf16."""
    dims = trial.dims
    if trial.op == "attention":
        heads = (
            f"{dims['heads']}" if dims["heads"] == dims["kv_heads"] else f"{dims['heads']}/{dims['kv_heads']}"
        )
        shape = f"{dims['batch']}x{heads} d{dims['head_dim']} {dims['seq_q']}x{dims['seq_kv']}"
        shape += " causal" if trial.causal else ""
    elif trial.op == "access":
        shape = f"{dims['count']} elements, {dims['step']} apart"
    else:
        shape = "x".join(str(size) for size in dims.values())
    return f"{trial.op} {shape} {trial.dtype}{' warm' if trial.warm else ''}"


def _bound(row: Row) -> str:
    if row.prediction is None or not row.prediction.bound_time_s:
        return _NONE
    return format_seconds(row.prediction.bound_time_s) + mark([row.prediction.bound])


def _spread(row: Row) -> str:
    time = row.outcome.time
    return f"{format_seconds(time['p20_s'])} to {format_seconds(time['p80_s'])}" if time else _NONE


def _rate(row: Row) -> str:
    """Bytes a second where main memory limits, FLOPs a second elsewhere."""
    if row.prediction is None or not row.outcome.time_s:
        return _NONE
    work = row.prediction.work
    if row.prediction.bound.limited_by == "hbm":
        return format_bytes_per_s(work.traffic_bytes / row.outcome.time_s)
    return format_flops_per_s(work.flops / row.outcome.time_s)


def _clock(row: Row) -> str:
    """The compute units' clock, read while the kernel ran."""
    clock_hz = (row.outcome.time or {}).get("sm_hz")
    return scaled(clock_hz, "Hz") if clock_hz else _NONE


def _band(row: Row) -> str:
    if row.prediction is None or not row.prediction.judged:
        return _NONE
    return f"{100 * row.prediction.band.share:.0f} %, {row.prediction.band.reason}"


def _reads(row: Row) -> str:
    if row.prediction is None:
        return _NONE
    least, most = row.prediction.dram.read_bytes, row.prediction.most_read_bytes
    return format_bytes(least) if most == least else f"{format_bytes(least)} to {format_bytes(most)}"


def _writes(row: Row) -> str:
    return format_bytes(row.prediction.dram.written_bytes) if row.prediction else _NONE


def _counted(row: Row, side: str) -> str:
    return format_bytes(getattr(row.outcome.counters, side)) if row.outcome.counters else _NONE


def _ratio(ratio: float | None) -> str:
    return _NONE if ratio is None else f"{ratio:.3f}"


def _percent(share: float | None) -> str:
    return _NONE if share is None else f"{100 * share:.1f} %"


def _off(row: Row) -> str:
    error = row.estimate_error
    return _NONE if error is None else f"{100 * error:+.1f} %"


def _seconds(time_s: float | None) -> str:
    return _NONE if time_s is None else format_seconds(time_s)


def _notes(report: Verification) -> list[str]:
    notes = list(report.notes)
    verdicts = {row.verdict for row in report.rows}
    if "reference" in verdicts:
        notes.append("reference: bytes not judged, of a library's kernel or beyond the model's claim")
    if any(row.prediction and row.prediction.in_l2 for row in report.rows):
        notes.append(
            "warm: the working set stays in L2, which main memory does not bound; counters are of a cold run"
        )
    if report.estimated:
        notes.append("off: estimate / measured - 1; the estimate is of a kernel that libraries run")
    if report.counted:
        notes.append("bytes: one cold run by Nsight Compute; written includes what the run left dirty in L2")
        notes.append("a ratio is left out where that side is under 2 % of the traffic")
        if report.device.architecture == "Hopper":
            notes.append(
                "lts__t_bytes: a pure stream counts 1.5 times on this GPU, for the crossings between the "
                "halves of its L2; equal requests of neighbouring compute units count once"
            )
    weak_numbers = weak([row.prediction.bound for row in report.rows if row.prediction])
    return [*notes, *map(confession, weak_numbers)]
