"""What fits, as a page."""

from __future__ import annotations

from collections.abc import Sequence

from memwall.errors import Refusal
from memwall.memory.sequences import POLICIES, Pool
from memwall.models.storage import storage_of
from memwall.parallel.fit import flags
from memwall.render.bounds import compared_notes, notes_section
from memwall.render.capacity_record import record as record
from memwall.render.capacity_record import weight_format
from memwall.render.page import Lines, Page, Section, Table, star
from memwall.reports.capacity import CapacityReport
from memwall.reports.capacity_notes import notes, own_notes, shared_notes
from memwall.reports.fitting import staged
from memwall.reports.levers import Lever
from memwall.units import GIBI, format_memory, significant

Row = CapacityReport | Refusal


def page(report: CapacityReport) -> Page:
    """The report for people."""
    heading = f"{_title(report)}  on {report.device.title} ({report.device.name})"
    sections = [
        Section(heading, Table(_memory_rows(report))),
        Section("What fits", Table(_fitting_rows(report))),
    ]
    if len(report.policies) > 1:
        sections.append(Section("As the engine lays out its cache", _policies_table(report)))
    levers = report.levers
    if levers:
        sections.append(Section("What would free memory", _levers_table(levers)))
    if report.blocks is not None:
        sections.append(Section("As an engine's log has it", Lines(_log(report))))
    return [*sections, *notes_section(notes(report))]


def compare_page(rows: Sequence[Row]) -> Page:
    """Several devices side by side."""
    first = next(row for row in rows if isinstance(row, CapacityReport))
    header = ("GPU", "usable", "weights", "left for the cache", "tokens", "sequences", "fits")
    asked = first.question
    facts = [
        ("asked", f"{asked.batch} x {asked.context:,} tokens, {format_memory(first.cache_bytes)}"),
        ("growth a token", f"{first.kv_bytes_per_token:,} B"),
    ]
    notes = [*shared_notes(first), *compared_notes(rows, own_notes)]
    table = Table([_compare_row(row) for row in rows], header, frozenset(range(1, 6)))
    return [Section(_title(first), Table(facts)), Section("", table), *notes_section(notes)]


def _compare_row(row: Row) -> tuple[str, ...]:
    if isinstance(row, Refusal):
        return (row.gpu, *["-"] * 6)
    budget = row.budget
    return (
        row.device.name,
        _gib(row.usable_bytes) + star(row.total.weak),
        _gib(budget.weight_bytes),
        _gib(budget.left_bytes),
        _count(row.max_tokens, budget.left_bytes),
        _count(row.max_sequences, budget.left_bytes),
        "yes" if row.fits else f"no, {_gib(row.shortfall_bytes)} short",
    )


def _title(report: CapacityReport) -> str:
    question = report.question
    shared = f"  on each of {question.tensor_parallel} GPUs" if question.tensor_parallel > 1 else ""
    return f"capacity  {report.model.title}  weights {_short_format(report)}, KV {question.kv_dtype}{shared}"


def _short_format(report: CapacityReport) -> str:
    """As titles have it: a checkpoint's own is described beside its bytes."""
    storage = storage_of(report.model, report.question.weight_dtype)
    return storage.linear.name if _is_described(report) else storage.scheme


def _is_described(report: CapacityReport) -> bool:
    storage = storage_of(report.model, report.question.weight_dtype)
    return storage.scheme != storage.linear.name


def _memory_rows(report: CapacityReport) -> list[tuple[str, ...]]:
    question, budget, kept = report.question, report.budget, report.pool.footprint
    how = "given" if question.memory_bytes else "assumed" if report.total.weak else "driver-reported"
    rows = [("memory", format_memory(report.total.value) + star(report.total.weak), how)]
    if question.fraction < 1:
        rows.append(("usable", format_memory(report.usable_bytes), f"{question.fraction:g} of it"))
    own = weight_format(report) if _is_described(report) else ""
    given = "given" if question.weights_given_bytes else own
    rows.append(("weights", format_memory(budget.weight_bytes), given))
    estimate = f"estimated activations, {question.chunk:,} tokens a pass"
    rows.append(
        (
            "reserve",
            format_memory(budget.reserve_bytes),
            "given" if question.reserve_bytes is not None else estimate,
        )
    )
    alone = "given" if question.kv_memory_bytes else ""
    left = "missing before any cache" if budget.left_bytes < 0 else "left for the cache"
    rows.append((left, format_memory(abs(budget.left_bytes)), alone))
    rows.append(("a token adds", f"{report.kv_bytes_per_token:,} B", _growth_text(report)))
    if kept.constant_bytes:
        rows.append(("constant a sequence", format_memory(kept.constant_bytes), _constant_text(report)))
    each = format_memory(report.kv_bytes_per_sequence)
    return [*rows, (f"{question.context:,} tokens", each, "a sequence")]


def _growth_text(report: CapacityReport) -> str:
    kept = report.pool.footprint
    words = []
    if kept.filling_bytes_per_token != report.kv_bytes_per_token:
        words.append(f"{kept.filling_bytes_per_token:,} B while windows fill")
    if kept.indexer_bytes_per_token:
        words.append(f"{kept.indexer_bytes_per_token:,} B of it the indexers' keys")
    return ", ".join(words)


def _constant_text(report: CapacityReport) -> str:
    kept = report.pool.footprint
    windows = sorted({cache.window for cache in kept.caches if cache.window})
    words = [f"full windows of {', '.join(map(str, windows))}"] if windows else []
    words += ["states"] if kept.state_bytes else []
    return ", ".join(words + (["the encoder's tokens"] if kept.source_bytes else []))


def _fitting_rows(report: CapacityReport) -> list[tuple[str, ...]]:
    question = report.question
    many = "sequence" if question.batch == 1 else "sequences"
    asked = f"{question.batch:,} {many} of {question.context:,} tokens"
    rows: list[tuple[str, ...]] = [(asked, _verdict(report))]
    rows += [(name, text) for name, text in _remedies(report) if not report.fits]
    if report.budget.left_bytes < 0:
        return rows
    left = report.budget.left_bytes
    rows.append((f"sequences of {question.context:,}", _count(report.max_sequences, left)))
    what = "longest context" if question.batch == 1 else f"longest context of {question.batch:,}"
    made_for = report.model.context
    beyond = made_for is not None and (report.longest_context or made_for + 1) > made_for
    rows.append((what, _count(report.longest_context, left), f"made for {made_for:,}" if beyond else ""))
    rows.append(("tokens", _count(report.max_tokens, left)))
    waste = report.waste
    if waste.reserved_bytes:
        shares = (waste.paged_bytes / waste.reserved_bytes, waste.contiguous_share)
        paged, whole = (f"{significant(100 * share, 3)} %" for share in shares)
        blocks = f"blocks of {question.block}"
        rows.append(("idle while it grows", f"{paged} in {blocks}, {whole} if reserved whole"))
    return rows


def _verdict(report: CapacityReport) -> str:
    return "fits" if report.fits else f"does not fit: {format_memory(report.shortfall_bytes)} short"


def _remedies(report: CapacityReport) -> list[tuple[str, str]]:
    """The smallest fraction and the fewest GPUs that would do."""
    found = []
    fraction = report.budget.smallest_fraction(report.cache_bytes)
    if fraction is not None:
        alone = report.budget.smallest_fraction()
        text = f"{_ceiling(fraction)}" if fraction <= 1 else "none: it needs more than this memory"
        if alone is not None and alone <= 1:
            text += f"; weights and reserve alone {_ceiling(alone)}"
        found.append(("smallest fraction", text))
    if report.fewest_gpus:
        found.append(("fewest GPUs", f"{report.fewest_gpus}: --tp {report.fewest_gpus}"))
    elif layout := staged(report):
        found.append(("fewest GPUs", f"{layout.gpus}, in stages: {flags(layout)} (memwall step)"))
    return found


def _ceiling(fraction: float) -> str:
    """Rounded up: rounded down it would not do."""
    return f"{-(-fraction * 10000 // 1) / 10000:.4f}"


def _policies_table(report: CapacityReport) -> Table:
    rows = []
    for name, pool in report.policies.items():
        kept, context = pool.footprint, report.question.context
        rows.append(
            (
                f"{name}{' (used above)' if name == report.question.policy else ''}",
                f"{kept.growth_bytes_per_token:,} B",
                format_memory(kept.constant_bytes),
                format_memory(kept.bytes(context)),
                _count(pool.max_tokens(context), pool.budget_bytes),
                _count(pool.max_sequences(context), pool.budget_bytes),
            )
        )
    header = ("", "a token", "constant", f"{report.question.context:,} tokens", "max tokens", "sequences")
    return Table(rows, header, frozenset(range(1, 6)))


def _levers_table(levers: Sequence[Lever]) -> Table:
    rows = [
        (
            lever.text,
            _gib(lever.freed_bytes),
            _count(lever.then.max_tokens, lever.then.budget.left_bytes),
            _count(lever.then.max_sequences, lever.then.budget.left_bytes),
            "yes" if lever.then.fits else "no",
        )
        for lever in levers
    ]
    return Table(rows, ("change", "freed", "tokens", "sequences", "fits"), frozenset({1, 2, 3}))


def _log(report: CapacityReport) -> list[str]:
    """What engines print when they start, under each layout of the cache."""
    lines = []
    for name, pool in report.policies.items():
        lines.append(_log_line(report, pool) + (f"  ({POLICIES[name]})" if len(report.policies) > 1 else ""))
    return lines


def _log_line(report: CapacityReport, pool: Pool) -> str:
    context, block = report.question.context, report.question.block
    tokens, concurrency = pool.max_tokens(context), pool.concurrency(context)
    if tokens is None or concurrency is None:
        return "no cache to speak of"
    memory = f"cache memory {pool.budget_bytes / GIBI:.2f} GiB"
    times = f"concurrency at {context:,} tokens a request {concurrency:.2f}x"
    return f"{memory}, blocks {tokens // block:,} of {block}, cache size {tokens:,} tokens, {times}"


def _gib(value: float) -> str:
    return f"{significant(value / GIBI)} GiB"


def _count(value: int | None, budget_bytes: int) -> str:
    """A count; without one either nothing is left for a cache, or memory sets no limit."""
    if value is not None:
        return f"{value:,}"
    return "none" if budget_bytes < 0 else "no limit"
