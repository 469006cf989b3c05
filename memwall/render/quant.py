"""The quantisation table as a record and as a page."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.errors import Refusal
from memwall.models.storage import PLAIN
from memwall.render.bounds import compared_notes, evidence_record, mark, notes_section
from memwall.render.data import Record
from memwall.render.page import Page, Section, Table, star
from memwall.reports.evidence import confession, remarks
from memwall.reports.lengths import too_long
from memwall.reports.quant import OWN, QuantReport, Row
from memwall.units import format_bytes, format_memory, format_seconds, significant


def record(report: QuantReport) -> Record:
    """The report under its documented keys."""
    question = report.question
    return {
        "gpu": report.device.name,
        "model": report.model.name,
        "context": question.context,
        "batch": question.batch,
        "tensor_parallel": question.tensor_parallel,
        "kv_dtype": question.kv_dtype,
        "formats": {name: _row_record(report, row) for name, row in report.rows.items()},
        "defaults": list(report.defaults),
        **evidence_record(report.device, [row.step for row in report.rows.values()], report.model),
        "notes": [*_shared_notes(report), *_own_notes(report)],
    }


def rows(report: QuantReport) -> list[Record]:
    """The formats, each with the GPU and model that it is of."""
    of = {"gpu": report.device.name, "model": report.model.name}
    return [{**of, "format": name, **_row_record(report, row)} for name, row in report.rows.items()]


def page(report: QuantReport) -> Page:
    """The report for people."""
    heading = f"{_title(report)}  on {report.device.title} ({report.device.name})"
    return [
        Section(heading, _table(report)),
        *notes_section([*_shared_notes(report), *_own_notes(report)]),
    ]


def compare_page(rows: Sequence[QuantReport | Refusal]) -> Page:
    """A table for each device."""
    reports = [row for row in rows if isinstance(row, QuantReport)]
    first = reports[0]
    asked = [("caches", format_memory(next(iter(first.rows.values())).cache_bytes))]
    tables = [Section(f"{r.device.title} ({r.device.name})", _table(r)) for r in reports]
    notes = [*_shared_notes(first), *compared_notes(rows, _own_notes)]
    return [Section(_title(first), Table(asked)), *tables, *notes_section(notes)]


def _title(report: QuantReport) -> str:
    question = report.question
    shared = f" on each of {question.tensor_parallel} GPUs" if question.tensor_parallel > 1 else ""
    step = f"a step of {question.batch} x 1 token at context {question.context:,}"
    return f"quant  {report.model.title}  {step}, KV {question.kv_dtype}{shared}"


def _table(report: QuantReport) -> Table:
    rows = [_cells(report, name, row) for name, row in report.rows.items()]
    header = ("weights", "bits", "stored", "scales", "step reads", "bound", "tokens/s", "computes in", "fits")
    return Table(rows, header, frozenset(range(1, 7)))


def _cells(report: QuantReport, name: str, row: Row) -> tuple[str, ...]:
    return (
        _shown(name),
        significant(report.bits_per_parameter(row)),
        format_memory(row.weight_bytes),
        format_bytes(row.scale_bytes) if row.scale_bytes else "-",
        format_bytes(row.streamed_bytes + row.cache_bytes),
        format_seconds(row.step.time_s) + mark([row.step]),
        significant(report.question.batch / row.step.time_s),
        row.engine or "-",
        _fit(row),
    )


def _shown(name: str) -> str:
    """A row's name: a checkpoint's own format is described in a note."""
    return "checkpoint" if name == OWN else name


def _fit(row: Row) -> str:
    """Whether it fits, and on how many GPUs it would."""
    if row.capacity.fits:
        return "yes" + star(row.capacity.total.weak)
    short = format_bytes(row.capacity.shortfall_bytes)
    fewest = row.capacity.fewest_gpus
    return f"no, {short} short; on {fewest} GPUs" if fewest else f"no, {short} short"


def _row_record(report: QuantReport, row: Row) -> Record:
    return {
        "scheme": row.storage.scheme,
        "bits_per_element": row.storage.linear.bits_per_element,
        "bits_per_parameter": report.bits_per_parameter(row),
        "weight_bytes": row.weight_bytes,
        "scale_bytes": row.scale_bytes,
        "streamed_weight_bytes": row.streamed_bytes,
        "cache_bytes": row.cache_bytes,
        "traffic_bytes": row.streamed_bytes + row.cache_bytes,
        "bound_time_s": row.step.time_s,
        "limited_by": row.step.limited_by,
        "tokens_per_s": report.question.batch / row.step.time_s,
        "computes_in": row.engine,
        "native": row.native,
        "fits": row.capacity.fits,
        "shortfall_bytes": row.capacity.shortfall_bytes,
        "fewest_gpus": row.capacity.fewest_gpus,
    }


def _shared_notes(report: QuantReport) -> list[str]:
    found = [f"by default: {', '.join(report.defaults)}"] if report.defaults else []
    if report.model.doubt:
        found.append(confession(report.model.doubt))
    if OWN in report.rows:
        found.append(f"checkpoint: as its files store it, {report.rows[OWN].storage.scheme}")
    found += [
        f"the format is the linear layers'; embedding, head, norms and routers stay at {PLAIN.bits} bits",
        "a step reads the caches, and every weight once: not the embedding, of experts those that it meets",
        "bound: the larger of what it reads over the bandwidth and its products over the peak",
        "fits: with the step's sequences and the estimated activations; see memwall capacity",
    ]
    found += too_long(report.model, report.question.context, report.question.source_tokens)
    if report.question.source_tokens:
        found.append(
            "the encoder ran in the prefill: a step reads K and V of its tokens, none of its weights"
        )
    if report.question.tensor_parallel > 1:
        found.append("bytes are of one GPU; what the GPUs send each other is not counted")
    return found


def _own_notes(report: QuantReport) -> list[str]:
    steps = [row.step for row in report.rows.values()]
    total = next(iter(report.rows.values())).capacity.total
    found = [confession(total)] if total.weak else []
    for words, names in _computed_elsewhere(report).items():
        found.append(f"{', '.join(names)}: {words}")
    return [*remarks(report.device, steps), *found]


def _computed_elsewhere(report: QuantReport) -> dict[str, list[str]]:
    """Formats that the device does not compute in, by what becomes of them."""
    found: dict[str, list[str]] = {}
    for name, row in report.rows.items():
        if row.native:
            continue
        bits = row.storage.linear.bits
        if row.engine is None:
            words = "no rate of this device is known to compute with"
        elif bits < PLAIN.bits:
            words = f"stored so, and widened to 16 bits ({row.engine}) to compute"
        elif bits > PLAIN.bits:
            words = f"stored so, and narrowed to {row.engine} to compute"
        else:
            words = f"this device has no {name} unit: {row.engine}, as many bytes, stands in for it"
        found.setdefault(words, []).append(_shown(name))
    return found
